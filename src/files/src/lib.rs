//! Reads files that others may have replaced by anything: never waits, never reads without an end. And writes one's own
//! so that they appear whole or not at all ([`publish`]).
//!
//! The shim's rank 0 and the command read one database, which many people may write to, and data files that stand
//! on a command line. Opening a pipe waits for its other end, opening a device may do anything, and some files end
//! nowhere. So a path is looked at before it is opened, looked at again once it is open, and read up to a limit.
#![forbid(unsafe_code)]

pub mod publish;
pub mod site;

use std::fs::{File, FileType, Metadata, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{FileExt, FileTypeExt, OpenOptionsExt};
use std::path::Path;

/// The longest `colltune.toml`, calibration and `CURRENT` that are read.
pub const SETTINGS_BYTES_MAX: u64 = 1 << 20;
/// The longest model, and what else a training or a calibration publishes.
pub const MODEL_BYTES_MAX: u64 = 64 << 20;

/// What to do where a path is a symbolic link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Links {
    Follow,
    Refuse,
}

/// Opens a regular file for reading, without waiting for anything.
///
/// Errors: as `File::open`; `InvalidInput` saying what is there where it is no file.
pub fn open(path: &Path, links: Links) -> io::Result<File> {
    let (found, refused) = match links {
        Links::Follow => (path.metadata()?, 0),
        Links::Refuse => (path.symlink_metadata()?, libc::O_NOFOLLOW),
    };
    regular(&found)?;
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY | refused)
        .open(path)?;
    // Whatever took its place meanwhile.
    regular(&file.metadata()?)?;
    Ok(file)
}

fn regular(found: &Metadata) -> io::Result<()> {
    if found.is_file() {
        return Ok(());
    }
    let problem = format!("it is {}, not a file", kind(found.file_type()));
    Err(io::Error::new(io::ErrorKind::InvalidInput, problem))
}

fn kind(found: FileType) -> &'static str {
    if found.is_symlink() {
        "a symbolic link"
    } else if found.is_dir() {
        "a folder"
    } else if found.is_fifo() {
        "a pipe"
    } else if found.is_socket() {
        "a socket"
    } else {
        "a device"
    }
}

/// Reads a whole regular file of at most `bytes_max` bytes, which is UTF-8.
///
/// Errors: as [`open`]; `FileTooLarge` naming the limit; `InvalidData` for other text.
pub fn read_text(path: &Path, bytes_max: u64) -> io::Result<String> {
    let file = open(path, Links::Follow)?;
    let mut bytes = Vec::new();
    file.take(bytes_max + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > bytes_max {
        let problem = format!("it is longer than {bytes_max} bytes, the most that is read");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, problem));
    }
    let no_text = |_| io::Error::new(io::ErrorKind::InvalidData, "it is not valid UTF-8");
    String::from_utf8(bytes).map_err(no_text)
}

/// Reads up to `length` bytes from `at` on; fewer where the file ends before.
pub fn read_part(file: &File, at: u64, length: usize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; length];
    let mut done = 0;
    while done < length {
        match file.read_at(&mut bytes[done..], at.saturating_add(done as u64)) {
            Ok(0) => break,
            Ok(count) => done += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    bytes.truncate(done);
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;
    use std::process::Command;

    #[test]
    fn what_is_no_file_is_refused_at_once_and_named() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        assert!(
            Command::new("mkfifo")
                .arg(at("pipe"))
                .status()
                .unwrap()
                .success()
        );
        let _listener = UnixListener::bind(at("socket")).unwrap();
        std::os::unix::fs::symlink("/dev/zero", at("endless")).unwrap();
        for (name, kind) in [
            ("pipe", "a pipe"),
            ("socket", "a socket"),
            ("endless", "a device"),
            (".", "a folder"),
        ] {
            let error = read_text(&at(name), 10).unwrap_err().to_string();
            assert!(error.contains(kind), "{name}: {error}");
        }
        let error = open(&at("endless"), Links::Refuse).unwrap_err().to_string();
        assert!(error.contains("a symbolic link"), "{error}");
        assert_eq!(
            read_text(&at("none"), 10).unwrap_err().kind(),
            io::ErrorKind::NotFound
        );
    }

    #[test]
    fn a_file_is_read_to_its_limit_and_not_beyond() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, "0123456789").unwrap();
        assert_eq!(read_text(&path, 10).unwrap(), "0123456789");
        let error = read_text(&path, 9).unwrap_err().to_string();
        assert!(error.contains("longer than 9 bytes"), "{error}");
        let file = open(&path, Links::Refuse).unwrap();
        assert_eq!(read_part(&file, 8, 4).unwrap(), b"89");
        // As long as its name says, and with nothing in it.
        file_of(&path, 20 << 30);
        assert!(read_text(&path, MODEL_BYTES_MAX).is_err());
        assert_eq!(
            read_part(&open(&path, Links::Follow).unwrap(), 1 << 40, 4).unwrap(),
            b""
        );
    }

    fn file_of(path: &Path, bytes: u64) {
        File::create(path).unwrap().set_len(bytes).unwrap();
    }
}
