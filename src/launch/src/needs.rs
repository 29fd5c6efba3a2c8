//! Which MPI library an executable needs, read from its ELF headers as the dynamic loader would.
//!
//! The names in DT_NEEDED decide. A library that is hidden behind another one (PETSc, say) is
//! found by following the same search order as the loader: RPATH, LD_LIBRARY_PATH, RUNPATH, the
//! loader's cache, the standard folders.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use colltune_core::library::Abi;
use colltune_files::{Links, read_part};

use super::elf;

/// What a file has to do with MPI.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Needs {
    /// It needs a library of this binary interface.
    Mpi(Abi),
    /// It needs an MPI library that no build of the shim serves.
    UnknownMpi(String),
    /// It needs no MPI library that can be seen.
    NoMpi,
    /// It is a script or anything else that is no ELF file.
    NotElf,
}

/// The binary interface behind the name of a shared library; `None` for other libraries.
fn abi_of(soname: &str) -> Option<Result<Abi, String>> {
    let (stem, version) = soname.split_once(".so").unwrap_or((soname, ""));
    let openmpi = [
        "libmpi",
        "libmpi_mpifh",
        "libmpi_usempif08",
        "libmpi_usempi_ignore_tkr",
        "libmpi_cxx",
    ];
    let mpich = [
        "libmpich",
        "libmpichfort",
        "libmpichcxx",
        "libmpifort",
        "libmpicxx",
        "libfmpich",
        "libmpl",
    ];
    match (stem, version) {
        ("libmpl", _) => None,
        (stem, ".40") if openmpi.contains(&stem) => Some(Ok(Abi::OpenMpi)),
        ("libmpi" | "libmpi_usempi", ".12") => Some(Ok(Abi::Mpich)),
        (stem, ".12" | "") if mpich.contains(&stem) => Some(Ok(Abi::Mpich)),
        (stem, ".12") if stem.starts_with("libmpi_") => Some(Ok(Abi::Mpich)),
        ("libmpi_abi" | "libpmpi_abi" | "libmpifort_abi", _) => Some(Ok(Abi::Standard)),
        (stem, _) if stem == "libmpi" || openmpi.contains(&stem) || mpich.contains(&stem) => {
            Some(Err(soname.to_owned()))
        }
        _ => None,
    }
}

/// Finds out which MPI library `file` needs. A file that cannot be read counts as `NotElf`.
pub fn of_file(file: &Path) -> Needs {
    let Some(first) = read(file) else {
        return Needs::NotElf;
    };
    let mut unknown = None;
    let mut seen = BTreeSet::new();
    let mut todo = VecDeque::from([first]);
    let mut cache = None;
    while let Some(object) = todo.pop_front() {
        for soname in &object.needed {
            match abi_of(soname) {
                Some(Ok(abi)) => return Needs::Mpi(abi),
                Some(Err(name)) => unknown = unknown.or(Some(name)),
                None if seen.insert(soname.clone()) && !is_system(soname) => {
                    let cache = cache.get_or_insert_with(loader_cache);
                    todo.extend(find(soname, &object, cache).and_then(|path| read(&path)));
                }
                None => {}
            }
        }
    }
    unknown.map_or(Needs::NoMpi, Needs::UnknownMpi)
}

/// Libraries that never lead to MPI; following them would only cost time.
fn is_system(soname: &str) -> bool {
    let stem = soname.split(".so").next().unwrap_or(soname);
    matches!(
        stem,
        "libc"
            | "libm"
            | "libdl"
            | "libpthread"
            | "librt"
            | "libgcc_s"
            | "libstdc++"
            | "libgfortran"
            | "libquadmath"
            | "ld-linux-x86-64"
            | "linux-vdso"
            | "libz"
    )
}

struct Object {
    folder: PathBuf,
    needed: Vec<String>,
    rpaths: Vec<String>,
    runpaths: Vec<String>,
}

fn read(file: &Path) -> Option<Object> {
    let wants = elf::read(file)?;
    let folders = |list: Vec<String>| -> Vec<String> {
        let parts = list.iter().flat_map(|text| text.split(':'));
        let parts = parts.filter(|text| !text.is_empty());
        parts.map(str::to_owned).collect()
    };
    let runpaths = folders(wants.runpaths);
    Some(Object {
        folder: file.canonicalize().ok()?.parent()?.to_owned(),
        needed: wants.needed,
        rpaths: if runpaths.is_empty() {
            folders(wants.rpaths)
        } else {
            Vec::new()
        },
        runpaths,
    })
}

/// Whether a file begins as what the kernel gives to an interpreter. Nothing more of it is read.
pub fn is_script(file: &Path) -> bool {
    let opened = colltune_files::open(file, Links::Follow);
    opened
        .and_then(|file| read_part(&file, 0, 2))
        .is_ok_and(|bytes| bytes == b"#!")
}

/// The runtime of a sanitizer that a program needs; it refuses to start where another library comes before it.
pub fn sanitizer_of(file: &Path) -> Option<String> {
    let needed = elf::read(file)?.needed;
    needed.into_iter().find(|name| is_sanitizer(name))
}

/// Whether this is the runtime of the address or thread sanitizer, of GCC or Clang; a path or a name.
pub fn is_sanitizer(library: &str) -> bool {
    let name = library.rsplit('/').next().unwrap_or(library);
    let stems = ["libasan.so", "libtsan.so", "libhwasan.so"];
    let clangs = ["asan", "tsan", "hwasan"].map(|kind| format!("libclang_rt.{kind}"));
    let starts = |stem: &str| name.starts_with(stem);
    stems.into_iter().any(starts) || clangs.iter().any(|stem| starts(stem))
}

fn find(soname: &str, object: &Object, cache: &BTreeMap<String, PathBuf>) -> Option<PathBuf> {
    let folder = |text: &String| {
        let origin = object.folder.to_string_lossy();
        PathBuf::from(
            text.replace("${ORIGIN}", &origin)
                .replace("$ORIGIN", &origin),
        )
    };
    let environment = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    let standard = ["/lib64", "/usr/lib64", "/lib", "/usr/lib"].map(PathBuf::from);
    let in_folders = |mut folders: Box<dyn Iterator<Item = PathBuf> + '_>| {
        folders.find_map(|folder| Some(folder.join(soname)).filter(|path| path.is_file()))
    };
    if soname.contains('/') {
        return Some(PathBuf::from(soname)).filter(|path| path.is_file());
    }
    in_folders(Box::new(object.rpaths.iter().map(folder)))
        .or_else(|| in_folders(Box::new(std::env::split_paths(&environment))))
        .or_else(|| in_folders(Box::new(object.runpaths.iter().map(folder))))
        .or_else(|| cache.get(soname).cloned())
        .or_else(|| in_folders(Box::new(standard.into_iter())))
}

/// Reads `/etc/ld.so.cache`: library name to path. Anything unexpected gives fewer entries.
///
/// Layout of "glibc-ld.so.cache1.1": 20 bytes of magic, the number of entries, 24 more bytes,
/// then entries of 24 bytes with the offsets of name and path from the start of the header.
fn loader_cache() -> BTreeMap<String, PathBuf> {
    const MAGIC: &[u8] = b"glibc-ld.so.cache1.1";
    const HEADER: usize = 48;
    const ENTRY: usize = 24;
    const CACHE_BYTES_MAX: usize = 16 << 20;
    let file = colltune_files::open(Path::new("/etc/ld.so.cache"), Links::Follow);
    let bytes = file
        .and_then(|file| read_part(&file, 0, CACHE_BYTES_MAX))
        .unwrap_or_default();
    let start = bytes
        .windows(MAGIC.len())
        .position(|window| window == MAGIC);
    let Some(table) = start.map(|start| &bytes[start..]) else {
        return BTreeMap::new();
    };
    let word =
        |at: usize| Some(u32::from_ne_bytes(table.get(at..at + 4)?.try_into().ok()?) as usize);
    let text = |at: usize| {
        let tail = table.get(at..)?;
        let end = tail.iter().position(|byte| *byte == 0)?;
        std::str::from_utf8(&tail[..end]).ok().map(str::to_owned)
    };
    let mut found = BTreeMap::new();
    for entry in 0..word(20).unwrap_or(0).min(table.len() / ENTRY) {
        let at = HEADER + entry * ENTRY;
        if let (Some(name), Some(path)) = (word(at + 4).and_then(text), word(at + 8).and_then(text))
        {
            found.entry(name).or_insert_with(|| PathBuf::from(path));
        }
    }
    found
}

/// The file that a word of a command line starts: as a path, or found in PATH.
pub fn resolve(word: &OsStr, wdir: Option<&OsStr>) -> Option<PathBuf> {
    let at = |path: PathBuf| wdir.map_or(path.clone(), |wdir| Path::new(wdir).join(path));
    if word.is_empty() {
        return None;
    }
    if word.as_encoded_bytes().contains(&b'/') {
        return Some(at(PathBuf::from(word))).filter(|path| path.is_file());
    }
    in_path(word).or_else(|| Some(at(PathBuf::from(word))).filter(|path| is_executable(path)))
}

/// The file that PATH gives for a name without `/`.
pub fn in_path(name: &OsStr) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|folder| folder.join(name))
        .find(|file| is_executable(file))
}

fn is_executable(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(file)
        .is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn library_names_tell_the_binary_interface() {
        for (name, abi) in [
            ("libmpi.so.40", Abi::OpenMpi),
            ("libmpi_mpifh.so.40", Abi::OpenMpi),
            ("libmpich.so.12", Abi::Mpich),
            ("libmpi.so.12", Abi::Mpich),
            ("libmpifort.so.12", Abi::Mpich),
            ("libmpi_gnu_123.so.12", Abi::Mpich),
            ("libmpi_abi.so.0", Abi::Standard),
            ("libmpi_abi.so.1", Abi::Standard),
        ] {
            assert_eq!(abi_of(name), Some(Ok(abi)), "{name}");
        }
        assert_eq!(abi_of("libmpi.so.20"), Some(Err("libmpi.so.20".to_owned())));
        for name in [
            "libc.so.6",
            "libmpfr.so.6",
            "libopen-rte.so.40",
            "libmpl.so.0",
            "libmpi4py.so",
        ] {
            assert_eq!(abi_of(name), None, "{name}");
        }
    }

    #[test]
    fn programs_without_mpi_and_scripts_are_told_apart() {
        assert_eq!(of_file(&std::env::current_exe().unwrap()), Needs::NoMpi);
        assert_eq!(of_file(Path::new("/nonexistent")), Needs::NotElf);
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("script");
        std::fs::write(&script, "#!/bin/sh\n").unwrap();
        assert_eq!(of_file(&script), Needs::NotElf);
        std::fs::write(&script, b"\x7fELF and nothing more").unwrap();
        assert_eq!(of_file(&script), Needs::NotElf);
    }

    #[test]
    fn files_of_any_length_and_none_are_told_apart_by_their_first_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        for start in [&b"data"[..], b"#!", b"\x7fELF\x02\x01\x01"] {
            std::fs::write(&data, start).unwrap();
            // More than the machine has memory.
            let file = std::fs::OpenOptions::new().write(true).open(&data).unwrap();
            file.set_len(1 << 42).unwrap();
            assert!(matches!(of_file(&data), Needs::NotElf | Needs::NoMpi));
            assert_eq!(is_script(&data), start == b"#!");
        }
        let pipe = folder.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.unwrap().success());
        for path in [&pipe, Path::new("/dev/zero"), folder.path()] {
            assert_eq!((of_file(path), is_script(path)), (Needs::NotElf, false));
        }
    }

    #[test]
    fn runtimes_of_sanitizers_are_known_by_name() {
        for name in [
            "libasan.so.8",
            "/usr/lib/libtsan.so.2",
            "libclang_rt.asan-x86_64.so",
        ] {
            assert!(is_sanitizer(name), "{name}");
        }
        for name in ["libubsan.so.1", "libmpi.so.40", "libasanx.so"] {
            assert!(!is_sanitizer(name), "{name}");
        }
    }

    #[test]
    fn the_loaders_cache_is_read() {
        if Path::new("/etc/ld.so.cache").exists() {
            let cache = loader_cache();
            assert!(
                cache.get("libc.so.6").is_some_and(|path| path.is_file()),
                "{} entries",
                cache.len()
            );
        }
    }
}
