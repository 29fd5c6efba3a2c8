//! Messages to the person who runs the job: on stderr, never on stdout, each one line.

use std::fs::File;
use std::mem::ManuallyDrop;
use std::os::fd::FromRawFd;
use std::os::unix::fs::MetadataExt;
use std::sync::OnceLock;

/// What its descriptor was when the job began: device and inode.
static STDERR: OnceLock<Option<(u64, u64)>> = OnceLock::new();

/// Notes where messages go. A program may close its stderr later, and the next file that it opens gets the number.
pub fn note_stderr() {
    STDERR.get_or_init(stderr);
}

/// Prints one line, unless stderr has become another file. The caller sees to it that one rank alone says it, and once.
pub fn say(text: &str) {
    use std::io::Write;
    if STDERR.get().is_some_and(|noted| *noted != stderr()) {
        return;
    }
    // Written in one piece, so that the lines of several programs do not mix.
    let line = format!("colltune: {}\n", text.replace('\n', " "));
    let _ = crate::quiet::quietly(|| std::io::stderr().write_all(line.as_bytes()));
}

fn stderr() -> Option<(u64, u64)> {
    // SAFETY: it is asked about and left open; of one that is not open the answer is an error.
    let file = ManuallyDrop::new(unsafe { File::from_raw_fd(libc::STDERR_FILENO) });
    let found = file.metadata().ok()?;
    Some((found.dev(), found.ino()))
}
