//! Where the shim for a library lies.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use colltune_core::environment;
use colltune_core::library::Abi;
use thiserror::Error;

use crate::stamp;

/// Variables and their values, in the order in which they are set.
pub type Assignments = Vec<(String, OsString)>;

/// The file that is preloaded.
pub const FILE: &str = "libcolltune.so";
/// The file that records point-to-point messages; it lies beside the shim.
pub const MESSAGES: &str = "libcolltune_messages.so";

#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ShimError {
    #[error(
        "find the shim for {abi}: none of {looked} exists. `make build` builds it for every MPI library \
         whose compiler wrapper it finds; COLLTUNE_LIB names another place"
    )]
    NotBuilt { abi: &'static str, looked: String },
    #[error(
        "use COLLTUNE_LIB={0}: it is neither libcolltune.so nor a folder that holds openmpi/ or mpich/ with it"
    )]
    Variable(String),
    #[error("record messages: there is no {0}; `make build` builds it beside the shim")]
    NoMessages(String),
    #[error("preload {0}: the loader cannot take a path with blanks or colons")]
    Path(String),
}

/// The file of the shim for `abi`.
///
/// Looked for in COLLTUNE_LIB (the file, or the folder that holds `openmpi/` and `mpich/`), else
/// seen from the folder of this program in `../lib/colltune/` (installed) and `../` (built).
pub fn file(abi: Abi) -> Result<PathBuf, ShimError> {
    let own = std::env::current_exe()
        .and_then(|path| path.canonicalize())
        .ok();
    let folder = own.as_deref().and_then(Path::parent);
    choose(
        abi,
        std::env::var_os(environment::LIB).map(PathBuf::from),
        folder,
    )
}

/// The file that records point-to-point messages of programs for `abi`.
pub fn messages(abi: Abi) -> Result<PathBuf, ShimError> {
    let path = file(abi)?.with_file_name(MESSAGES);
    match path.is_file() {
        true => Ok(path),
        false => Err(ShimError::NoMessages(path.display().to_string())),
    }
}

/// Whether a path is one of a library that is preloaded here.
pub fn is_preloaded(path: &str) -> bool {
    let name = Path::new(path).file_name();
    [FILE, MESSAGES]
        .iter()
        .any(|file| name == Some(file.as_ref()))
}

/// The `N` of the newest `GLIBC_2.N` that a file asks the C library for.
pub fn glibc_floor(file: &Path) -> Option<u32> {
    const MARK: &[u8] = b"GLIBC_2.";
    let held = std::fs::read(file).ok()?;
    let strings = held.split(|byte| *byte == 0);
    let versions = strings.filter_map(|string| string.strip_prefix(MARK));
    versions
        .filter_map(|version| {
            let minor = version.split(|byte| *byte == b'.').next()?;
            std::str::from_utf8(minor).ok()?.parse().ok()
        })
        .max()
}

/// The sources of a shim that lies in a checkout, where they are newer than it is.
pub fn newer_sources(shim: &Path) -> Option<PathBuf> {
    let sources = shim.parent()?.join("../../shim").canonicalize().ok()?;
    let stamp = stamp::stamp(&sources).ok()?;
    let mark = format!("{}{stamp}", stamp::MARK);
    let held = std::fs::read(shim).ok()?;
    let mut places = held.windows(mark.len());
    let is_theirs = places.any(|bytes| bytes == mark.as_bytes());
    (!is_theirs).then_some(sources)
}

fn choose(
    abi: Abi,
    variable: Option<PathBuf>,
    folder: Option<&Path>,
) -> Result<PathBuf, ShimError> {
    if let Some(named) = variable.filter(|path| !path.as_os_str().is_empty()) {
        let within = [named.join(abi.name()).join(FILE), named.join(FILE)];
        let found = if named.is_file() {
            Some(named.clone()).filter(|file| is_ours(file))
        } else {
            within.into_iter().find(|path| path.is_file())
        };
        return loadable(found.ok_or_else(|| ShimError::Variable(named.display().to_string()))?);
    }
    let places: Vec<PathBuf> = folder
        .into_iter()
        .flat_map(|folder| [folder.join("../lib/colltune"), folder.join("..")])
        .map(|place| place.join(abi.name()).join(FILE))
        .collect();
    match places.iter().find(|path| path.is_file()) {
        Some(path) => loadable(path.clone()),
        None => {
            let looked: Vec<_> = places
                .iter()
                .map(|path| path.display().to_string())
                .collect();
            Err(ShimError::NotBuilt {
                abi: abi.name(),
                looked: looked.join(", "),
            })
        }
    }
}

/// Whether a file is a build of the shim.
fn is_ours(file: &Path) -> bool {
    let mark = stamp::MARK.as_bytes();
    let held = std::fs::read(file).unwrap_or_default();
    held.windows(mark.len()).any(|bytes| bytes == mark)
}

fn loadable(path: PathBuf) -> Result<PathBuf, ShimError> {
    let path = path.canonicalize().unwrap_or(path);
    let text = path.to_string_lossy();
    if text.contains([' ', '\t', '\n', ':']) || text.contains('\u{fffd}') {
        return Err(ShimError::Path(text.into_owned()));
    }
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shim_in_a_checkout_is_compared_with_the_sources_there() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        let (shim, sources) = (root.join("target/mpich").join(FILE), root.join("shim"));
        for folder in [shim.parent().unwrap(), &sources.join("src")] {
            std::fs::create_dir_all(folder).unwrap();
        }
        std::fs::write(&shim, "built of something").unwrap();
        // Installed: there are no sources.
        assert_eq!(newer_sources(&shim), None);
        for file in [
            "Cargo.toml",
            "Cargo.lock",
            "build.rs",
            "stamp.rs",
            "src/lib.rs",
        ] {
            std::fs::write(sources.join(file), "").unwrap();
        }
        assert_eq!(newer_sources(&shim), Some(sources.clone()));
        let stamp = stamp::stamp(&sources).unwrap();
        std::fs::write(&shim, format!("built, {}{stamp}, of these", stamp::MARK)).unwrap();
        assert_eq!(newer_sources(&shim), None);
        std::fs::write(sources.join("src/lib.rs"), "//! Newer.\n").unwrap();
        assert_eq!(newer_sources(&shim), Some(sources));
    }

    #[test]
    fn the_shim_is_found_in_each_layout_and_its_absence_names_the_way() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        let release = root.join("release");
        std::fs::create_dir_all(&release).unwrap();
        let error = choose(Abi::Mpich, None, Some(&release))
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("make build") && error.contains("mpich/libcolltune.so"),
            "{error}"
        );
        for place in ["mpich", "lib/colltune/mpich"] {
            std::fs::create_dir_all(root.join(place)).unwrap();
            std::fs::write(root.join(place).join(FILE), "").unwrap();
            assert_eq!(
                choose(Abi::Mpich, None, Some(&release)).unwrap(),
                root.join(place).join(FILE)
            );
        }
        let named = root.join("mpich").join(FILE);
        // Any other file is none of ours.
        assert!(matches!(
            choose(Abi::Mpich, Some(named.clone()), None),
            Err(ShimError::Variable(_))
        ));
        std::fs::write(&named, format!("of {}something", stamp::MARK)).unwrap();
        assert_eq!(
            choose(Abi::Mpich, Some(named.clone()), None).unwrap(),
            named
        );
        assert_eq!(choose(Abi::Mpich, Some(root.clone()), None).unwrap(), named);
        assert!(matches!(
            choose(Abi::OpenMpi, Some(root.clone()), None),
            Err(ShimError::Variable(_))
        ));
        let blank = root.join("a b/mpich");
        std::fs::create_dir_all(&blank).unwrap();
        std::fs::write(blank.join(FILE), "").unwrap();
        assert!(matches!(
            choose(Abi::Mpich, Some(root.join("a b")), None),
            Err(ShimError::Path(_))
        ));
    }
}
