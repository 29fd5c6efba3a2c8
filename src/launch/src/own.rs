//! The file of `colltune`: what the programs start of it.

use std::path::PathBuf;

use anyhow::Context as _;

/// The file of `colltune`: this program's own, or the one beside `colltune-lab` and `colltune-bench`.
///
/// Errors: where the system does not say what this program's file is.
pub fn colltune() -> anyhow::Result<PathBuf> {
    let own = std::env::current_exe().context("find this program's own file")?;
    let name = own.file_name().unwrap_or_default().to_string_lossy();
    Ok(match name.starts_with("colltune-") {
        true => own.with_file_name("colltune"),
        false => own,
    })
}
