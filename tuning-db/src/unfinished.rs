//! What unfinished work is called.

use std::path::{Path, PathBuf};

use crate::machine::host_name;

/// What unfinished work is called; readers and [`crate::ingest`] know to ignore it.
pub const UNFINISHED: &str = ".unfinished-";

/// A name for unfinished work beside `path`: no other process has it, on whichever host.
pub fn unfinished(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let (host, process) = (host_name(), std::process::id());
    path.with_file_name(format!("{UNFINISHED}{host}-{process}-{name}"))
}
