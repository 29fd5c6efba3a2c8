//! Where everything is in a database, and what the site decided.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use colltune_core::context::DataKey;
use colltune_core::library::Library;
use colltune_core::prior::ratios;
use colltune_core::prior::simulated::Simulated;
use colltune_core::settings::{self, LearnerKind, Settings};
use colltune_files::{MODEL_BYTES_MAX, SETTINGS_BYTES_MAX, read_text, site};
use serde::de::DeserializeOwned;

pub(crate) use crate::error::at;
pub use crate::error::{DbError, in_shell};
pub use crate::machine::machine_here;

use crate::folder::{Folder, parts};
use crate::{share, write};

pub(crate) const SETTINGS: &str = "colltune.toml";
/// The file that names the generation in force of a library.
pub(crate) const CURRENT: &str = "CURRENT";
/// The runs that a person has dropped.
pub(crate) const DROPPED: &str = "dropped.json";
pub(crate) const HOSTS: &str = "hosts.parquet";
pub(crate) const INCOMING: &str = "incoming";
pub(crate) const LOCK: &str = "train.lock";

/// A database folder. Opening one reads nothing; jobs may be writing to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Database {
    root: PathBuf,
    /// Who learns, whatever the settings say.
    learner: Option<LearnerKind>,
}

/// Whether a name may stand in an empty folder: file systems', and that of a lock alone.
pub(crate) fn is_in_an_empty_folder(name: &OsStr) -> bool {
    ["lost+found", ".snapshot", LOCK]
        .iter()
        .any(|one| name == *one)
}

/// A file of JSON, whose version is `schema` where this colltune reads it; the default where there is none.
///
/// Errors: `Io` and `Owners` for a file that cannot be used, with `hint` behind the reason.
pub(crate) fn read_versioned<T: Default + DeserializeOwned>(
    path: &Path,
    schema: u32,
    schema_of: fn(&T) -> u32,
    hint: &str,
) -> Result<T, DbError> {
    let text = match read_text(path, MODEL_BYTES_MAX) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(T::default()),
        read => read.map_err(at("read", path))?,
    };
    let problem = |problem: String| DbError::Owners {
        path: path.to_owned(),
        problem: problem + hint,
    };
    let found: T = serde_json::from_str(&text).map_err(|error| problem(error.to_string()))?;
    let other = schema_of(&found);
    match other == schema {
        true => Ok(found),
        false => Err(problem(format!(
            "it has version {other}, this colltune reads {schema}"
        ))),
    }
}

impl Database {
    /// A database that exists.
    ///
    /// Errors: `Missing` where there is no folder, `IsSite` for what is published from one.
    pub fn open(root: impl Into<PathBuf>) -> Result<Database, DbError> {
        let root = root.into();
        refuse_site(&root)?;
        match root.symlink_metadata() {
            _ if root.is_dir() => Ok(Database {
                root,
                learner: None,
            }),
            // A link that leads nowhere is something, too.
            Ok(_) => Err(DbError::NoFolder { path: root }),
            Err(_) => Err(DbError::Missing { path: root }),
        }
    }

    /// A database, made now where there is none: folders, and a `colltune.toml` that explains
    /// every key and names this machine, so that login and compute nodes mean the same one.
    ///
    /// Errors: `Io` naming what cannot be made, `IsSite`, `Foreign` for a folder of other things.
    pub fn create_or_open(root: impl Into<PathBuf>) -> Result<Database, DbError> {
        let db = Database {
            root: root.into(),
            learner: None,
        };
        refuse_site(&db.root)?;
        if db.root.metadata().is_ok_and(|about| !about.is_dir()) {
            return Err(DbError::NoFolder { path: db.root });
        }
        fs::create_dir_all(&db.root).map_err(at("make the folder", &db.root))?;
        db.refuse_foreign()?;
        if !db.incoming().is_dir() {
            let root = db.open_root()?;
            let made = share::make_incoming(&root, OsStr::new(INCOMING));
            made.map_err(at("make the folder", &db.incoming()))?;
        }
        // A user's link to a file that is gone for the moment stays.
        if is_missing(&db.settings_path()) {
            let text = settings::explained(&machine_here());
            write::atomically(&db.open_root()?, SETTINGS, text.as_bytes())?;
        }
        Ok(db)
    }

    /// A database that is there, to be changed.
    ///
    /// Errors: as [`Database::open`]; `Foreign` for a folder of other things, as by a mistyped name.
    pub fn open_to_change(root: impl Into<PathBuf>) -> Result<Database, DbError> {
        let db = Database::open(root)?;
        db.refuse_foreign()?;
        Ok(db)
    }

    /// Nothing is made or removed in a folder that never was a database: a user's home, for one.
    fn refuse_foreign(&self) -> Result<(), DbError> {
        let has_settings = self.settings_path().symlink_metadata().is_ok();
        if has_settings || self.incoming().is_dir() || !self.keys()?.is_empty() {
            return Ok(());
        }
        let names = self.open_root()?.names();
        let names = names.map_err(at("read the folder", &self.root))?;
        match names.iter().all(|name| is_in_an_empty_folder(name)) {
            true => Ok(()),
            false => Err(DbError::Foreign {
                path: self.root.clone(),
            }),
        }
    }

    fn open_root(&self) -> Result<Folder, DbError> {
        Folder::root(&self.root).map_err(at("open the folder", &self.root))
    }

    /// Opens a folder of the database, without following a link below the database itself.
    ///
    /// Errors: `Io` for other files, and for a folder of a user whom the database does not trust.
    pub fn folder(&self, path: &Path) -> Result<Folder, DbError> {
        self.walk(path, Folder::inside)
    }

    /// As [`Database::folder`]; missing folders are made.
    ///
    /// Errors: the same.
    pub fn make_folder(&self, path: &Path) -> Result<Folder, DbError> {
        self.walk(path, Folder::make)
    }

    fn walk(
        &self,
        path: &Path,
        step: fn(&Folder, &OsStr) -> io::Result<Folder>,
    ) -> Result<Folder, DbError> {
        let mut folder = self.open_root()?;
        let below = path.strip_prefix(&self.root).unwrap_or(path);
        for name in below {
            let inside = folder.path().join(name);
            folder = step(&folder, name).map_err(at("open the folder", &inside))?;
        }
        Ok(folder)
    }

    /// Removes a file of the database for good.
    pub(crate) fn remove(&self, path: &Path) -> io::Result<()> {
        let (folder, name) = parts(path);
        let folder = self.folder(folder).map_err(io::Error::other)?;
        write::remove(&folder, name)
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Its folder as a shell reads it back.
    pub fn in_shell(&self) -> String {
        in_shell(&self.root)
    }

    /// The same, whose settings name this learner, if any is given.
    pub fn learning_by(self, learner: Option<LearnerKind>) -> Database {
        Database { learner, ..self }
    }

    pub fn settings_path(&self) -> PathBuf {
        self.root.join(SETTINGS)
    }

    pub fn incoming(&self) -> PathBuf {
        self.root.join(INCOMING)
    }

    /// Where what jobs said of themselves is, once a training took it.
    pub fn runs(&self) -> PathBuf {
        self.root.join("runs")
    }

    /// What hosts were measured to be, by [`crate::hosts`].
    pub fn hosts(&self) -> PathBuf {
        self.root.join(HOSTS)
    }

    /// Whose traces are believed, by [`crate::owners`].
    pub fn owners(&self) -> PathBuf {
        self.root.join("owners.toml")
    }

    pub fn quarantine(&self) -> PathBuf {
        self.root.join("quarantine")
    }

    pub fn lock_path(&self) -> PathBuf {
        self.root.join(LOCK)
    }

    pub fn library(&self, key: impl Into<DataKey>) -> PathBuf {
        self.root.join(key.into().to_string())
    }

    /// Where the partitions of the raw data are.
    pub fn data(&self, key: impl Into<DataKey>) -> PathBuf {
        self.library(key).join("data")
    }

    /// Where what the runs say of the variants is.
    pub fn evidence(&self, key: impl Into<DataKey>) -> PathBuf {
        self.library(key).join("evidence")
    }

    pub fn generations(&self, key: impl Into<DataKey>) -> PathBuf {
        self.library(key).join("generations")
    }

    pub fn current(&self, key: impl Into<DataKey>) -> PathBuf {
        self.library(key).join(CURRENT)
    }

    /// Where the parameters measured with a library are.
    pub fn calibration(&self, key: impl Into<DataKey>) -> PathBuf {
        self.library(key).join(colltune_core::calibration::FILE)
    }

    /// Where what the simulator found for a library is.
    pub fn simulated(&self, key: impl Into<DataKey>) -> PathBuf {
        self.library(key)
            .join(colltune_core::prior::simulated::FILE)
    }

    /// Where it is said how all variants compare there.
    fn ratios(&self, key: impl Into<DataKey>) -> PathBuf {
        self.library(key).join(ratios::FILE)
    }

    /// What the simulator found for each library that was calibrated. A file that cannot be used
    /// is passed over: without it the prior goes by shapes, or does not know how all variants compare.
    fn all_simulated(&self) -> BTreeMap<Library, Simulated> {
        let libraries = self.libraries().unwrap_or_default();
        let read = |library: Library| {
            let text = read_text(&self.simulated(library), MODEL_BYTES_MAX).ok()?;
            let mut found = Simulated::from_json(&text, library).ok()?;
            if let Ok(ratios) = read_text(&self.ratios(library), MODEL_BYTES_MAX) {
                let _ = found.add_ratios(&ratios);
            }
            Some((library, found))
        };
        libraries.into_iter().filter_map(read).collect()
    }

    /// The libraries that have data or generations here, with whatever transport; sorted.
    pub fn libraries(&self) -> Result<Vec<Library>, DbError> {
        let mut libraries: Vec<Library> = self.keys()?.iter().map(|key| key.library).collect();
        libraries.dedup();
        Ok(libraries)
    }

    /// What has data or generations here: each library with each transport and each set of user settings; sorted.
    pub fn keys(&self) -> Result<Vec<DataKey>, DbError> {
        let mut found = Vec::new();
        for entry in fs::read_dir(&self.root).map_err(at("read the folder", &self.root))? {
            let entry = entry.map_err(at("read the folder", &self.root))?;
            let name = entry.file_name();
            let key = name.to_str().and_then(|name| name.parse::<DataKey>().ok());
            // A link is none: nothing would be written there.
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            found.extend(key.filter(|_| is_folder));
        }
        found.sort_unstable();
        Ok(found)
    }

    /// `colltune.toml` with the variables `COLLTUNE_<KEY>` over it, and what the simulator found; the defaults without a
    /// file.
    ///
    /// Errors: `Settings` and `Environment` naming line or variable, value and what is allowed.
    pub fn settings(&self) -> Result<Settings, DbError> {
        let mut settings = self.settings_without_prior()?;
        settings.simulated = self.all_simulated();
        settings.learner = self.learner.unwrap_or(settings.learner);
        Ok(settings)
    }

    /// [`Database::settings`] without what the simulator found, which takes milliseconds to read: a job's start has none.
    ///
    /// Errors: those of [`Database::settings`].
    pub fn settings_without_prior(&self) -> Result<Settings, DbError> {
        let path = self.settings_path();
        let mut settings = match read_text(&path, SETTINGS_BYTES_MAX) {
            Ok(text) => {
                Settings::from_toml(&text).map_err(|error| DbError::Settings { path, error })?
            }
            Err(_) if is_missing(&path) => Settings::default(),
            Err(error) => return Err(at("read", &path)(error)),
        };
        for (variable, value) in std::env::vars_os() {
            if let (Some(variable), Some(value)) = (variable.to_str(), value.to_str()) {
                settings
                    .override_with(variable, value)
                    .map_err(DbError::Environment)?;
            }
        }
        Ok(settings)
    }

    /// Keys of `colltune.toml` by former names, with today's. None where the file cannot be read: [`Database::settings`] says so.
    pub fn former_keys(&self) -> Vec<(String, &'static str)> {
        let text = read_text(&self.settings_path(), SETTINGS_BYTES_MAX).unwrap_or_default();
        let table: toml::Table = toml::from_str(&text).unwrap_or_default();
        let today = |name: String| settings::renamed(&name).map(|today| (name, today));
        table
            .into_iter()
            .filter_map(|(name, _)| today(name))
            .collect()
    }

    /// The machine that the database serves.
    pub fn machine(&self, settings: &Settings) -> String {
        settings.machine.clone().unwrap_or_else(machine_here)
    }
}

/// What was learned lies in a site folder's versions; nothing else of a database is there.
fn refuse_site(path: &Path) -> Result<(), DbError> {
    if !site::is_site(path) {
        return Ok(());
    }
    let in_force = site::state(path).ok().filter(|state| state.current > 0);
    let remedy = in_force.map_or(String::new(), |state| {
        let version = site::version(path, state.current);
        format!("; the version in force is {}", version.display())
    });
    Err(DbError::IsSite {
        path: path.to_owned(),
        remedy,
    })
}

/// Whether there is nothing of that name; a link to a file that is gone is something.
fn is_missing(path: &Path) -> bool {
    let found = path.symlink_metadata();
    found.is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound)
}

#[cfg(test)]
mod tests;
