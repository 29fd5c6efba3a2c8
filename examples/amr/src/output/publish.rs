//! Files that appear whole or not at all.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};

use super::OutputError;

/// Writes a file under a temporary name beside it and moves it to its place.
///
/// Errors: `OutputError` with the file's name and the system's reason, such as a full disk; the temporary file is then
///         removed and what stood under the name still does.
pub fn publish(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
) -> Result<(), OutputError> {
    let unfinished = unfinished(path);
    let written = File::create(&unfinished).and_then(|file| {
        let mut file = BufWriter::with_capacity(1 << 18, file);
        write(&mut file)?;
        file.flush()?;
        // Some file systems tell of a full disk only now. Special files cannot be synced, and need not be.
        let file = file.get_ref();
        if file.metadata()?.is_file() {
            file.sync_all()
        } else {
            Ok(())
        }
    });
    written
        .and_then(|()| fs::rename(&unfinished, path))
        .map_err(|error| {
            let _ = fs::remove_file(&unfinished);
            OutputError {
                path: path.to_owned(),
                error,
            }
        })
}

/// Makes a folder for output, unless it is there.
pub fn make_folder(folder: &Path) -> Result<(), String> {
    let made = std::fs::create_dir_all(folder);
    made.map_err(|error| format!("failed to create {}: {error}", folder.display()))
}

/// The name of a file until it is finished: one per file, so what a killed run left is written over by the next one.
fn unfinished(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.unfinished"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_leaves_the_old_file_and_nothing_else() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("mesh.vtu");
        fs::write(&path, "old").expect("written");
        // Whatever is written to /dev/full ends with the error of a full disk.
        std::os::unix::fs::symlink("/dev/full", unfinished(&path)).expect("a link");
        let error = publish(&path, |file| file.write_all(&[7; 1 << 20])).expect_err("a full disk");
        assert_eq!(error.error.kind(), io::ErrorKind::StorageFull);
        assert!(
            error
                .to_string()
                .contains("mesh.vtu: No space left on device"),
            "{error}"
        );
        assert_eq!(fs::read(&path).expect("still there"), b"old");
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 1);
    }

    #[test]
    fn a_write_that_gives_up_half_way_leaves_nothing() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("slice.png");
        let half = |file: &mut BufWriter<File>| {
            file.write_all(b"half")
                .and(Err(io::Error::other("no more")))
        };
        assert!(publish(&path, half).is_err());
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 0);
        publish(&path, |file| file.write_all(b"whole")).expect("written");
        assert_eq!(fs::read(&path).expect("there"), b"whole");
    }

    #[test]
    fn a_folder_that_does_not_exist_is_named() {
        let error = publish(Path::new("/no/such/folder/x.vtu"), |_| Ok(())).expect_err("no folder");
        assert!(
            error
                .to_string()
                .starts_with("failed to write /no/such/folder/x.vtu: "),
            "{error}"
        );
    }
}
