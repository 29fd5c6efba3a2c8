//! Files that appear whole or not at all.
//!
//! For what a user writes into his own folders. What lies where others may write, as a shared database, is opened by
//! handles of its folders (`tuning-db`), so that no link leads elsewhere.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};

const BUFFER_BYTES: usize = 1 << 18;

/// A file that is being written, beside its place. Where it is not finished, nothing is left of it and what stood in
/// its place still does.
#[derive(Debug)]
pub struct Draft {
    /// Where it belongs.
    place: PathBuf,
    /// Where it is until then; `None` for others than files, as `/dev/stdout`, which are written as it goes.
    unfinished: Option<PathBuf>,
}

impl Draft {
    /// Opens the file. A link in its place stays one: what it leads to is written anew.
    ///
    /// Errors: as `File::create`.
    pub fn create(path: &Path) -> io::Result<(Draft, File)> {
        let found = fs::metadata(path);
        let is_special = found.is_ok_and(|found| !found.is_file() && !found.is_dir());
        if is_special {
            let file = File::options().write(true).open(path)?;
            let place = path.to_owned();
            let unfinished = None;
            return Ok((Draft { place, unfinished }, file));
        }
        let place = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let unfinished = unfinished(&place);
        let file = File::create(&unfinished)?;
        let unfinished = Some(unfinished);
        Ok((Draft { place, unfinished }, file))
    }

    /// Moves it to its place, so that it is there after a power failure, too.
    ///
    /// Errors: of the file system, such as a full disk, of which some tell only now.
    pub fn publish(mut self, file: &File) -> io::Result<()> {
        let Some(unfinished) = &self.unfinished else {
            return Ok(());
        };
        // A test's full disk is a device, which cannot be synced.
        if file.metadata()?.is_file() {
            file.sync_all()?;
        }
        fs::rename(unfinished, &self.place)?;
        self.unfinished = None;
        // Not every file system lets a folder be synced.
        let folder = self
            .place
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty());
        if let Ok(folder) = File::open(folder.unwrap_or(Path::new("."))) {
            let _ = folder.sync_all();
        }
        Ok(())
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if let Some(unfinished) = &self.unfinished {
            let _ = fs::remove_file(unfinished);
        }
    }
}

/// Writes a file beside its place and moves it there.
///
/// Errors: those of `fill` and of the file system; nothing is left behind then, and what stood there still does.
pub fn publish<T, E: From<io::Error>>(
    path: &Path,
    fill: impl FnOnce(&mut BufWriter<File>) -> Result<T, E>,
) -> Result<T, E> {
    let (draft, file) = Draft::create(path)?;
    let mut file = BufWriter::with_capacity(BUFFER_BYTES, file);
    let filled = fill(&mut file);
    if filled.is_err() {
        // What did not get out is of no use.
        drop(file.into_parts());
        return filled;
    }
    file.flush()?;
    draft.publish(file.get_ref())?;
    filled
}

/// The name of a file until it is finished: one per file, so what a killed process left is written over by the next one.
fn unfinished(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.unfinished"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(path: &Path, bytes: &[u8]) -> io::Result<()> {
        publish(path, |file| file.write_all(bytes))
    }

    fn count(folder: &Path) -> usize {
        fs::read_dir(folder).unwrap().count()
    }

    #[test]
    fn a_full_disk_leaves_the_old_file_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mesh.vtu");
        fs::write(&path, "old").unwrap();
        // Whatever is written to /dev/full ends with the error of a full disk.
        std::os::unix::fs::symlink("/dev/full", unfinished(&path)).unwrap();
        let error = written(&path, &[7; 1 << 20]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(count(folder.path()), 1);
    }

    #[test]
    fn a_write_that_gives_up_half_way_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("slice.png");
        let half: io::Result<()> = publish(&path, |file| {
            file.write_all(b"half")
                .and(Err(io::Error::other("no more")))
        });
        assert!(half.is_err());
        assert_eq!(count(folder.path()), 0);
        written(&path, b"whole").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"whole");
    }

    #[test]
    fn a_link_stays_one_and_a_device_is_written_as_it_goes() {
        let folder = tempfile::tempdir().unwrap();
        let (path, link) = (folder.path().join("newest"), folder.path().join("link"));
        fs::write(&path, "old").unwrap();
        std::os::unix::fs::symlink(&path, &link).unwrap();
        written(&link, b"new").unwrap();
        assert!(link.is_symlink());
        assert_eq!(fs::read(&path).unwrap(), b"new");
        written(Path::new("/dev/null"), b"gone").unwrap();
        let full = written(Path::new("/dev/full"), b"gone").unwrap_err();
        assert_eq!(full.kind(), io::ErrorKind::StorageFull);
        assert_eq!(count(folder.path()), 2);
    }

    #[test]
    fn neither_a_folder_that_is_missing_nor_one_in_its_place_is_written() {
        let folder = tempfile::tempdir().unwrap();
        assert!(written(&folder.path().join("no/x"), b"x").is_err());
        fs::create_dir(folder.path().join("taken")).unwrap();
        assert!(written(&folder.path().join("taken"), b"x").is_err());
        assert_eq!(count(folder.path()), 1);
    }
}
