//! Where refused entries go: moved, never opened, each with `NAME.reason`.

use std::fs;
use std::path::Path;

use crate::database::{Database, DbError, at};
use crate::write;

/// Moves an entry of `incoming/` into `quarantine/`; an earlier one of the same name stays.
///
/// Errors: `Io`; the entry is then where it was, or in quarantine without a reason.
pub fn refuse(db: &Database, path: &Path, reason: &str) -> Result<(), DbError> {
    let folder = db.quarantine();
    fs::create_dir_all(&folder).map_err(at("make the folder", &folder))?;
    let name = path.file_name().unwrap_or_default();
    let numbered = |number: u32| {
        let mut name = name.to_owned();
        if number > 0 {
            name.push(format!(".{number}"));
        }
        folder.join(name)
    };
    let target = (0..)
        .map(numbered)
        .find(|target| target.symlink_metadata().is_err())
        .unwrap_or_else(|| folder.join(name));
    let mut reason_path = target.clone().into_os_string();
    reason_path.push(".reason");
    let reason_path = std::path::PathBuf::from(reason_path);
    fs::write(&reason_path, format!("{reason}\n")).map_err(at("write", &reason_path))?;
    if let Err(error) = fs::rename(path, &target) {
        let _ = fs::remove_file(&reason_path);
        return Err(at("quarantine", path)(error));
    }
    write::sync_folder(&folder)
}
