//! Files that a job leaves in a database's `incoming/`, to which others may write, too. So no link is followed. Where
//! a group shares the database, its trainer must read the files: they get the modes for that, whatever the user's
//! umask.

use std::fs::{File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

/// What a folder has that `colltune db init --shared` made: its group is handed on, and all members write there.
const SHARED: u32 = 0o2020;
const FOR_GROUP: u32 = 0o640;

/// Makes a file that was not there.
///
/// Errors: `AlreadyExists` for whatever has its name, links included; as of the system.
pub fn create(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().write(true).create_new(true).open(path)?;
    hand_on(&file, path);
    Ok(file)
}

/// Opens a file of the user's own to write at its end, and makes it where there is none.
///
/// Errors: for a link, another user's file or one with several names; as of the system.
pub fn append(path: &Path) -> io::Result<File> {
    match create(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        created => return created,
    }
    let file = OpenOptions::new()
        .append(true)
        .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
        .open(path)?;
    let found = file.metadata()?;
    // SAFETY: it has no preconditions and cannot fail.
    let me = unsafe { libc::geteuid() };
    match found.is_file() && found.nlink() == 1 && found.uid() == me {
        true => Ok(file),
        false => Err(io::Error::other("somebody else put it there")),
    }
}

fn hand_on(file: &File, path: &Path) {
    let folder = path.parent().and_then(|folder| folder.metadata().ok());
    if folder.is_some_and(|folder| folder.mode() & SHARED == SHARED) {
        // Else the trainer says that the file cannot be read.
        let _ = file.set_permissions(Permissions::from_mode(FOR_GROUP));
    }
}
