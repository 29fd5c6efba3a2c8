//! Publication: whoever reads sees the old state or the new one, also after a power failure.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::Path;

use crate::error::{DbError, at};
use crate::unfinished::{UNFINISHED, unfinished};

/// Writes a file under another name, syncs it and moves it to its place.
///
/// Errors: `Io`; nothing is left behind then, and what stood there still does.
pub fn atomically(path: &Path, bytes: &[u8]) -> Result<(), DbError> {
    let temporary = unfinished(path);
    let result = synced(&temporary, bytes).and_then(|()| publish(&temporary, path));
    if result.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    result
}

/// Writes and syncs a file that nobody looks at yet.
pub fn synced(path: &Path, bytes: &[u8]) -> Result<(), DbError> {
    interruption::here().map_err(at("write", path))?;
    let mut file = File::create(path).map_err(at("write", path))?;
    file.write_all(bytes)
        .and_then(|()| file.sync_all())
        .map_err(at("write", path))
}

/// Moves finished, synced work to its place.
pub fn publish(from: &Path, to: &Path) -> Result<(), DbError> {
    interruption::here().map_err(at("publish", to))?;
    fs::rename(from, to).map_err(at("publish", to))?;
    interruption::here().map_err(at("publish", to))?;
    sync_folder(to.parent().unwrap_or(Path::new(".")))
}

/// Removes a file for good.
pub fn remove(path: &Path) -> io::Result<()> {
    interruption::here()?;
    fs::remove_file(path)
}

/// Makes the names in a folder durable.
pub fn sync_folder(folder: &Path) -> Result<(), DbError> {
    File::open(folder)
        .and_then(|folder| folder.sync_all())
        .map_err(at("sync", folder))
}

/// Removes what an interrupted training left in a folder. Only the holder of the lock may call it.
pub fn remove_unfinished(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(UNFINISHED) {
            let path = entry.path();
            let _ = if path.is_dir() {
                fs::remove_dir_all(&path)
            } else {
                fs::remove_file(&path)
            };
        }
    }
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
    use super::*;
    use crate::machine::host_name;

    #[test]
    fn a_failed_write_leaves_what_stood_there_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        atomically(&path, b"one").unwrap();
        atomically(&path, b"two").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"two");
        // A folder cannot be replaced by a file.
        let taken = folder.path().join("taken");
        fs::create_dir_all(taken.join("inside")).unwrap();
        assert!(atomically(&taken, b"three").is_err());
        let names: Vec<_> = fs::read_dir(folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        assert_eq!(names.len(), 2, "{names:?}");
        fs::write(folder.path().join(".unfinished-1-x"), "").unwrap();
        let mine = unfinished(&path).to_string_lossy().into_owned();
        assert!(
            mine.contains(&host_name()),
            "two hosts may have one process number: {mine}"
        );
        remove_unfinished(folder.path());
        assert!(!folder.path().join(".unfinished-1-x").exists() && path.exists());
    }
}
