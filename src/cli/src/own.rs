//! This program's own files: what it starts of itself.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context as _;

/// The program with the benches. It lies beside `colltune` where that was built, and is not installed.
const BENCH: &str = "colltune-bench";

/// The file of `colltune`, whichever of the two programs this is.
///
/// Errors: where the system does not say what this program's file is.
pub fn colltune() -> anyhow::Result<PathBuf> {
    let own = own()?;
    Ok(match own.file_name().is_some_and(|name| name == BENCH) {
        true => own.with_file_name("colltune"),
        false => own,
    })
}

fn own() -> anyhow::Result<PathBuf> {
    std::env::current_exe().context("find this program's own file")
}

/// The words behind `colltune bench`, all of them for the program that is started in its place.
#[derive(clap::Args, Debug)]
pub struct Words {
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "OPTIONS"
    )]
    words: Vec<OsString>,
}

/// `colltune bench`: the program that has the benches takes this one's place, with the same line.
///
/// Errors: where it was not built, as below a prefix; it returns only then.
pub fn bench() -> anyhow::Result<()> {
    let bench = own()?.with_file_name(BENCH);
    let mut words: Vec<OsString> = std::env::args_os().skip(1).collect();
    // Options of every subcommand may stand before it.
    if let Some(place) = words.iter().position(|word| word == "bench") {
        words.remove(place);
    }
    Err(unstarted(&bench, Command::new(&bench).args(words).exec()))
}

fn unstarted(bench: &Path, error: io::Error) -> anyhow::Error {
    let way = match error.kind() {
        io::ErrorKind::NotFound => {
            ": the benches are not installed; `make build` in the sources makes them, and target/release/colltune finds them"
        }
        _ => "",
    };
    anyhow::Error::new(error).context(format!("start {}{way}", bench.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_the_benches_are_not_built_the_way_to_them_is_said() {
        let gone = Path::new("/opt/colltune/bin/colltune-bench");
        let said = |kind: io::ErrorKind| format!("{:#}", unstarted(gone, kind.into()));
        assert!(said(io::ErrorKind::NotFound).contains("not installed; `make build`"));
        assert!(!said(io::ErrorKind::PermissionDenied).contains("installed"));
    }
}
