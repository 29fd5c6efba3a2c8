//! Files that a test makes and then runs.
//!
//! A file that is open for writing cannot be run, and what a test's own process opens is for a moment open in each
//! child that another test starts. So another process writes them.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Copies a file to where everybody can run it.
pub fn copy_to_run(file: &Path, to: &Path) {
    let status = install().args([file, to]).status();
    assert!(
        status.is_ok_and(|status| status.success()),
        "failed to copy {} to {}",
        file.display(),
        to.display()
    );
}

/// Writes a script that everybody can run.
pub fn write_to_run(text: &str, to: &Path) {
    let mut child = install()
        .arg("/dev/stdin")
        .arg(to)
        .stdin(Stdio::piped())
        .spawn()
        .expect("install starts");
    let mut input = child.stdin.take().expect("a pipe");
    input.write_all(text.as_bytes()).expect("install reads");
    drop(input);
    let status = child.wait().expect("install ends");
    assert!(status.success(), "failed to write {}", to.display());
}

/// A copy of each of these files below a folder: the build may lie where other users cannot look.
pub fn open_to_all<const N: usize>(files: [&Path; N], folder: &Path) -> [PathBuf; N] {
    files.map(|file| {
        let copy = folder.join(file.file_name().expect("a file"));
        if !copy.exists() {
            copy_to_run(file, &copy);
        }
        copy
    })
}

fn install() -> Command {
    let mut command = Command::new("install");
    command.args(["-m", "755"]);
    command
}
