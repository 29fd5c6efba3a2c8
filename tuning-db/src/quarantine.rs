//! Where refused entries go: moved, never opened, each with `NAME.reason`.

use std::ffi::{OsStr, OsString};
use std::io::{self, Write as _};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use crate::check_word::check_word;
use crate::database::{Database, DbError, at};
use crate::folder::Folder;
use crate::write;

pub const REASON: &str = ".reason";
/// Longer names, of which no trace has one, are cut, so that there is room for what is put behind them: names have at most 255 bytes.
const NAME_BYTES_MAX: usize = 230;
/// Entries of one name that are kept apart.
const SAME_MAX: u32 = 10_000;

/// Moves an entry of `incoming` into `quarantine/`; an earlier one of the same name stays.
///
/// Errors: `Io`; the entry is then where it was.
pub fn refuse(db: &Database, incoming: &Folder, name: &OsStr, reason: &str) -> Result<(), DbError> {
    let folder = db.make_folder(&db.quarantine())?;
    let path = incoming.path().join(name);
    let moved = write::interruption::here().and_then(|()| put(&folder, incoming, name, reason));
    moved.map_err(at("quarantine", &path))?;
    write::sync(&folder)
}

fn put(folder: &Folder, incoming: &Folder, name: &OsStr, reason: &str) -> io::Result<()> {
    let short = shortened(name);
    for number in 0..SAME_MAX {
        let mut target = short.clone();
        if number > 0 {
            target.push(format!(".{number}"));
        }
        if folder.kind(&target).is_some() {
            continue;
        }
        let mut reason_name = target.clone();
        reason_name.push(REASON);
        // Made new: the reason must not go into a file that another user put there beforehand.
        let mut file = match folder.create(&reason_name) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
            created => created?,
        };
        let moved = file
            .write_all(format!("{reason}\n").as_bytes())
            .and_then(|()| incoming.move_new(name, folder, &target));
        if moved.is_ok() {
            return Ok(());
        }
        let _ = folder.remove(&reason_name);
        if !matches!(&moved, Err(error) if error.kind() == io::ErrorKind::AlreadyExists) {
            return moved;
        }
    }
    Err(io::Error::other("too many of that name are there"))
}

/// A name that is short enough, and still another one for another name.
fn shortened(name: &OsStr) -> OsString {
    let bytes = name.as_bytes();
    if bytes.len() <= NAME_BYTES_MAX {
        return name.to_owned();
    }
    let mut short = bytes[..NAME_BYTES_MAX - 17].to_vec();
    short.extend(format!("-{:016x}", check_word(bytes)).bytes());
    OsString::from_vec(short)
}
