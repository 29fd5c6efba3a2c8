//! Files that appear whole or not at all.

use std::fs::File;
use std::io::{self, BufWriter};
use std::path::Path;

use super::OutputError;

/// Writes a file under a temporary name beside it and moves it to its place.
///
/// Errors: `OutputError` with the file's name and the system's reason, such as a full disk; the temporary file is then
///         removed and what stood under the name still does.
pub fn publish(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
) -> Result<(), OutputError> {
    colltune_files::publish::publish(path, write).map_err(|error| OutputError {
        path: path.to_owned(),
        error,
    })
}

/// Makes a folder for output, unless it is there.
pub fn make_folder(folder: &Path) -> Result<(), String> {
    let made = std::fs::create_dir_all(folder);
    made.map_err(|error| format!("failed to create {}: {error}", folder.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

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
