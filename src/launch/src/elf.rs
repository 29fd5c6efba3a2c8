//! What an ELF file asks of the dynamic loader, read piece by piece: the file may be any length.

use std::fs::File;
use std::path::Path;

use colltune_files::{Links, read_part};
use goblin::container::Ctx;
use goblin::elf::Elf;
use goblin::elf::dynamic::{DT_NEEDED, DT_RPATH, DT_RUNPATH, Dynamic};
use goblin::elf::header::{ELFMAG, Header};
use goblin::elf::program_header::{PT_DYNAMIC, ProgramHeader};

/// Longer than the header of any class.
const HEADER_BYTES: usize = 64;
/// A table of dynamic entries is refused above this length.
const DYNAMIC_BYTES_MAX: u64 = 1 << 20;
/// The most entries that are looked at: each is a separate read.
const ENTRIES_MAX: usize = 1_000;
/// Paths and names are cut above this length.
const TEXT_BYTES_MAX: usize = 16 << 10;

/// The names in a file's dynamic section.
#[derive(Debug, Default)]
pub struct Wants {
    pub needed: Vec<String>,
    pub rpaths: Vec<String>,
    pub runpaths: Vec<String>,
}

/// Reads what a file wants; `None` for anything that is no regular file, or no ELF file. A program that is linked
/// statically wants nothing.
pub fn read(path: &Path) -> Option<Wants> {
    let file = colltune_files::open(path, Links::Follow).ok()?;
    let start = read_part(&file, 0, HEADER_BYTES).ok()?;
    start.starts_with(ELFMAG).then_some(())?;
    let header = Elf::parse_header(&start).ok()?;
    let ctx = Ctx::new(header.container().ok()?, header.endianness().ok()?);
    let mut segments = segments(&file, &header, ctx)?;
    let Some(dynamic) = segments.iter().position(|one| one.p_type == PT_DYNAMIC) else {
        return Some(Wants::default());
    };
    let dynamic = &mut segments[dynamic];
    (dynamic.p_filesz <= DYNAMIC_BYTES_MAX).then_some(())?;
    let bytes = read_part(&file, dynamic.p_offset, dynamic.p_filesz as usize).ok()?;
    // `bytes` are the table alone.
    dynamic.p_offset = 0;
    let dynamic = Dynamic::parse(&bytes, &segments, ctx).ok()??;
    let text = |offset: u64| text_at(&file, (dynamic.info.strtab as u64).checked_add(offset)?);
    let all = |tag: u64| -> Vec<String> {
        let entries = dynamic.dyns.iter().filter(|entry| entry.d_tag == tag);
        let texts = entries.take(ENTRIES_MAX);
        texts.filter_map(|entry| text(entry.d_val)).collect()
    };
    Some(Wants {
        needed: all(DT_NEEDED),
        rpaths: all(DT_RPATH),
        runpaths: all(DT_RUNPATH),
    })
}

fn segments(file: &File, header: &Header, ctx: Ctx) -> Option<Vec<ProgramHeader>> {
    let count = usize::from(header.e_phnum);
    let bytes = read_part(file, header.e_phoff, count * ProgramHeader::size(ctx)).ok()?;
    ProgramHeader::parse(&bytes, 0, count, ctx).ok()
}

fn text_at(file: &File, at: u64) -> Option<String> {
    let bytes = read_part(file, at, TEXT_BYTES_MAX).ok()?;
    let end = bytes.iter().position(|byte| *byte == 0)?;
    std::str::from_utf8(&bytes[..end]).ok().map(str::to_owned)
}
