//! Publication: whoever reads sees the old state or the new one, also after a power failure.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Write as _};

use rustix::fs::FileType;

use crate::error::{DbError, at};
use crate::folder::Folder;
use crate::unfinished::UNFINISHED;

/// Writes a file under another name, syncs it and moves it to its place.
///
/// Errors: `Io`; nothing is left behind then, and what stood there still does.
pub fn atomically(folder: &Folder, name: &str, bytes: &[u8]) -> Result<(), DbError> {
    let path = folder.path().join(name);
    filled(folder, name, |file| {
        write_all(file, bytes).map_err(at("write", &path))
    })
}

/// As [`atomically`], with what fills and syncs the file.
///
/// Errors: those of `fill`, and `Io`; nothing is left behind then, and what stood there still does.
pub fn filled<E: From<DbError>>(
    folder: &Folder,
    name: &str,
    fill: impl FnOnce(File) -> Result<(), E>,
) -> Result<(), E> {
    let path = folder.path().join(name);
    let allowed = interruption::here().and_then(|()| folder.draft(OsStr::new(name)));
    let (draft, file) = allowed.map_err(at("write", &path))?;
    let result =
        fill(file).and_then(|()| publish(folder, &draft, OsStr::new(name)).map_err(E::from));
    if result.is_err() {
        let _ = folder.remove(&draft);
    }
    result
}

/// Writes and syncs a new file, which has no reader yet.
pub fn synced(folder: &Folder, name: &str, bytes: &[u8]) -> Result<(), DbError> {
    let path = folder.path().join(name);
    let written = interruption::here()
        .and_then(|()| folder.create(OsStr::new(name)))
        .and_then(|file| write_all(file, bytes));
    written.map_err(at("write", &path))
}

fn write_all(mut file: File, bytes: &[u8]) -> io::Result<()> {
    file.write_all(bytes)?;
    file.sync_all()
}

/// Moves finished, synced work to its place.
pub fn publish(folder: &Folder, from: &OsStr, to: &OsStr) -> Result<(), DbError> {
    let path = folder.path().join(to);
    let moved = interruption::here()
        .and_then(|()| folder.rename(from, to))
        .and_then(|()| interruption::here());
    moved.map_err(at("publish", &path))?;
    sync(folder)
}

/// Removes a file for good.
pub fn remove(folder: &Folder, name: &OsStr) -> io::Result<()> {
    interruption::here()?;
    folder.remove(name)
}

/// Makes the names in a folder durable.
pub fn sync(folder: &Folder) -> Result<(), DbError> {
    folder.sync().map_err(at("sync", folder.path()))
}

/// Removes what an interrupted training left in a folder. Only the holder of the lock may call it.
pub fn remove_unfinished(folder: &Folder) {
    for name in folder.names().unwrap_or_default() {
        if is_unfinished(&name) {
            let _ = match folder.kind(&name) {
                Some(FileType::Directory) => folder.remove_folder(&name),
                _ => folder.remove(&name),
            };
        }
    }
}

fn is_unfinished(name: &OsStr) -> bool {
    name.to_string_lossy().starts_with(UNFINISHED)
}

/// Where a training can end: nothing outside this crate's own tests.
#[cfg(not(test))]
pub(crate) mod interruption {
    pub fn here() -> std::io::Result<()> {
        Ok(())
    }
}

/// Where a training can end: from the step that a test names on, every change of a database fails.
#[cfg(test)]
pub(crate) mod interruption {
    use std::cell::Cell;
    use std::io;

    thread_local! {
        static LEFT: Cell<u32> = const { Cell::new(u32::MAX) };
    }

    /// How many changes succeed; all before any test says so.
    pub fn after(steps: u32) {
        LEFT.set(steps);
    }

    pub fn here() -> io::Result<()> {
        match LEFT.get() {
            0 => Err(io::Error::other("interrupted")),
            u32::MAX => Ok(()),
            left => {
                LEFT.set(left - 1);
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::machine::host_name;

    #[test]
    fn a_failed_write_leaves_what_stood_there_and_nothing_else() {
        let temporary = tempfile::tempdir().unwrap();
        let folder = Folder::root(temporary.path()).unwrap();
        let path = temporary.path().join("file");
        atomically(&folder, "file", b"one").unwrap();
        atomically(&folder, "file", b"two").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"two");
        // A folder cannot be replaced by a file.
        fs::create_dir_all(temporary.path().join("taken/inside")).unwrap();
        assert!(atomically(&folder, "taken", b"three").is_err());
        assert_eq!(folder.names().unwrap().len(), 2, "{:?}", folder.names());
        let (mine, _) = folder.draft(OsStr::new("file")).unwrap();
        let mine = mine.to_string_lossy().into_owned();
        assert!(
            mine.contains(&host_name()),
            "two hosts may have one process number: {mine}"
        );
        let (other, inside) = folder.draft_folder(OsStr::new("file")).unwrap();
        assert_ne!(*mine, *other);
        synced(&inside, "part", b"").unwrap();
        remove_unfinished(&folder);
        assert_eq!(folder.names().unwrap().len(), 2, "{:?}", folder.names());
        assert!(path.exists());
    }
}
