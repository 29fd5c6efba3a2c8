//! A check word over the sources that a build of the shim is made of: its own and those of the crates beside it.
//!
//! `build.rs` puts it into the library; the tests' harness and `colltune doctor` compare it with the sources that they
//! find: a library that is older than they are would be taken for theirs.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// What stands before the check word in the library.
pub const MARK: &str = "colltune made of ";

/// Folders and files that a build in the folder `shim` reads.
pub fn inputs(shim: &Path) -> Vec<PathBuf> {
    let manifest = shim.join("Cargo.toml");
    let text = fs::read_to_string(&manifest).unwrap_or_default();
    let beside = text.lines().filter_map(|line| {
        let (_, path) = line.split_once("{ path = \"")?;
        Some(shim.join(path.split('"').next()?))
    });
    let crates: Vec<PathBuf> = [shim.to_owned()].into_iter().chain(beside).collect();
    let of_crate = |folder: &PathBuf| [folder.join("Cargo.toml"), folder.join("src")];
    let own = ["Cargo.lock", "build.rs", "stamp.rs"].map(|name| shim.join(name));
    crates.iter().flat_map(of_crate).chain(own).collect()
}

/// The check word, as 16 digits.
pub fn stamp(shim: &Path) -> io::Result<String> {
    let mut word = 0xcbf2_9ce4_8422_2325_u64;
    for input in inputs(shim) {
        add(&mut word, &input)?;
    }
    Ok(format!("{word:016x}"))
}

/// Adds a file, or the files below a folder in the order of their names (FNV-1a, by bytes).
fn add(word: &mut u64, path: &Path) -> io::Result<()> {
    let name = path.file_name().unwrap_or_default();
    let mut bytes = name.as_encoded_bytes().to_vec();
    if path.is_dir() {
        let entries = fs::read_dir(path)?;
        let below: io::Result<Vec<_>> = entries.map(|entry| Ok(entry?.path())).collect();
        let mut below = below?;
        below.sort();
        for path in &below {
            add(word, path)?;
        }
    } else {
        bytes.extend(fs::read(path)?);
    }
    for byte in bytes {
        *word = (*word ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    Ok(())
}
