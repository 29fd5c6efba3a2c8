//! What can go wrong with a database.

use std::path::{Path, PathBuf};

use colltune_core::context::DataKey;
use colltune_core::settings::SettingsError;
use colltune_core::spelling::quoted;
use thiserror::Error;

/// A path as a shell reads it back.
pub fn in_shell(path: &Path) -> String {
    quoted(&path.to_string_lossy())
}

/// How another user's database can be shared.
fn shared(error: &std::io::Error) -> &'static str {
    match error.kind() {
        std::io::ErrorKind::PermissionDenied => {
            "; a database of another user's is shared by its owner: `colltune db init --shared GROUP DIR`"
        }
        _ => "",
    }
}

fn kind_of(path: &Path) -> &'static str {
    match path.is_file() {
        true => "a file",
        false => "a device, a pipe or a socket",
    }
}

/// What can go wrong; the messages read after "failed to".
#[derive(Debug, Error)]
pub enum DbError {
    #[error("{action} {path}: {error}{}", shared(error), path = path.display())]
    Io {
        action: &'static str,
        path: PathBuf,
        error: std::io::Error,
    },
    #[error(
        "open the database {path}: there is no such folder; name another one by --db or COLLTUNE_DB, or make it: \
         `colltune tune --db {} -- mpirun ...`",
        in_shell(path),
        path = path.display()
    )]
    Missing { path: PathBuf },
    #[error(
        "open the database {path}: it is no folder, but {}; name another one by --db or COLLTUNE_DB",
        kind_of(path),
        path = path.display()
    )]
    NoFolder { path: PathBuf },
    #[error(
        "use {path} as a database: it holds other things, and neither colltune.toml nor incoming/; name a new or an empty folder",
        path = path.display()
    )]
    Foreign { path: PathBuf },
    #[error("{error} (in {path})", path = path.display())]
    Settings { path: PathBuf, error: SettingsError },
    #[error("{0}")]
    Environment(SettingsError),
    #[error("{problem}; `colltune train` makes {path} anew", path = path.display())]
    Levers { path: PathBuf, problem: String },
    #[error("read {path}: {problem}", path = path.display())]
    Owners { path: PathBuf, problem: String },
    #[error(transparent)]
    Lock(#[from] crate::lock::LockError),
    #[error("{action} {path}: {error}", path = path.display())]
    Parquet {
        action: &'static str,
        path: PathBuf,
        error: String,
    },
    #[error("read the generation {path}: {problem}", path = path.display())]
    Generation { path: PathBuf, problem: String },
    #[error("use the site folder {path}: {problem}", path = path.display())]
    Site { path: PathBuf, problem: String },
    #[error(
        "use {path} as a database: it is a site folder, which `colltune publish` alone writes{remedy}",
        path = path.display()
    )]
    IsSite { path: PathBuf, remedy: String },
    #[error("train {key}: {error}")]
    Learn {
        key: DataKey,
        error: colltune_models::LearnError,
    },
}

/// Puts what was tried and where beside an error of the system.
pub(crate) fn at<'a>(
    action: &'static str,
    path: &'a Path,
) -> impl FnOnce(std::io::Error) -> DbError + 'a {
    move |error| DbError::Io {
        action,
        path: path.to_owned(),
        error,
    }
}
