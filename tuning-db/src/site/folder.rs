//! The folder itself: what is in force, which versions are there, and what is changed about that.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use colltune_core::context::DataKey;
use colltune_core::site::{self, SiteState};
use colltune_files::{SETTINGS_BYTES_MAX, read_text};
use serde::{Deserialize, Serialize};

use crate::database::{Database, DbError, at};
use crate::folder::Folder;
use crate::generation::Generation;
use crate::lock::{Lock, LockError};
use crate::unfinished::UNFINISHED;
use crate::write;

/// What a version says of itself.
pub(super) const ABOUT: &str = "about.json";
pub(super) const ABOUT_SCHEMA: u32 = 1;
pub const MODULES: &str = "modulefiles";
/// Names the publisher at work.
const LOCK: &str = "publish.lock";
/// `about.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct About {
    pub schema: u32,
    pub version: u64,
    pub colltune_version: String,
    pub published_unix_ms: u64,
    pub publisher: String,
    pub host: String,
    /// The database that it came from.
    pub database: PathBuf,
    pub libraries: Vec<Contained>,
}

/// What a version holds for a library.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Contained {
    pub library: String,
    pub generation: u64,
    /// Whether there are tables that the library reads itself.
    pub tables: bool,
}

/// A version as it is listed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct VersionListed {
    pub version: u64,
    pub in_force: bool,
    /// The share of the jobs that tries it.
    pub canary: Option<f64>,
    pub about: Option<About>,
    /// Why it cannot be used.
    pub problem: Option<String>,
}

/// A site folder that exists.
#[derive(Debug)]
pub struct SiteFolder {
    pub(super) folder: Folder,
}

impl SiteFolder {
    /// Errors: `Site` for what is none.
    pub fn open(path: &Path) -> Result<SiteFolder, DbError> {
        if !path.is_dir() {
            return Err(problem(path, "there is no such folder"));
        }
        if !colltune_files::site::is_site(path) {
            let what = "nothing was published there; `colltune publish --db DIR SITE` does so";
            return Err(problem(path, what));
        }
        let folder = Folder::root_for_readers(path).map_err(at("open the folder", path))?;
        Ok(SiteFolder { folder })
    }

    /// As [`SiteFolder::open`]; made where there is none, or an empty folder.
    ///
    /// Errors: `Site` for a folder that holds other things, or that everybody may write to; `Io`.
    pub(super) fn make(path: &Path) -> Result<SiteFolder, DbError> {
        if fs::symlink_metadata(path).is_err() {
            if let Some(parent) = path.parent().filter(|parent| *parent != Path::new("")) {
                fs::create_dir_all(parent).map_err(at("make the folder", parent))?;
            }
            let mut made = fs::DirBuilder::new();
            let made = made.mode(0o755).create(path);
            made.map_err(at("make the folder", path))?;
            // The umask has taken what it wanted.
            let mode = fs::Permissions::from_mode(0o755);
            fs::set_permissions(path, mode).map_err(at("make the folder", path))?;
        }
        let folder = Folder::root_for_readers(path).map_err(at("open the folder", path))?;
        let site = SiteFolder { folder };
        site.refuse_others()?;
        if !colltune_files::site::is_site(path) {
            let names = site.folder.names();
            let names = names.map_err(at("read the folder", path))?;
            let is_ours = |name: &OsString| {
                let name = name.to_string_lossy();
                name == LOCK || name == site::OFF || name.starts_with(UNFINISHED)
            };
            if !names.iter().all(is_ours) {
                let what =
                    "it holds other things and is no site folder; name a new or an empty one";
                return Err(problem(path, what));
            }
            site.save(&SiteState::default())?;
        }
        Ok(site)
    }

    /// What lies there decides what runs in everybody's jobs.
    pub(super) fn refuse_others(&self) -> Result<(), DbError> {
        let path = self.folder.path();
        let found = self.folder.metadata();
        let mode = found.map_err(at("open the folder", path))?.mode();
        if mode & 0o002 == 0 {
            return Ok(());
        }
        let what = format!(
            "everybody may write to it, so anybody could decide what runs in everybody's jobs; `chmod o-w {}`",
            path.display()
        );
        Err(problem(path, what))
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Errors: `Site` for a `site.json` that is of no use.
    pub fn state(&self) -> Result<SiteState, DbError> {
        let name = OsStr::new(site::FILE);
        let found = self.folder.read(name);
        found.map_err(at("read", &self.path().join(name)))?;
        let state = colltune_files::site::state(self.path());
        state.map_err(|what| problem(self.path(), what))
    }

    pub(super) fn save(&self, state: &SiteState) -> Result<(), DbError> {
        write::atomically(&self.folder, site::FILE, state.to_json().as_bytes())
    }

    pub(super) fn lock(&self) -> Result<Lock, DbError> {
        self.refuse_others()?;
        Lock::take(&self.path().join(LOCK)).map_err(|error| match error {
            LockError::Held { holder, .. } => {
                problem(self.path(), format!("{holder} is publishing; wait for it"))
            }
            error => error.into(),
        })
    }

    /// The versions that are there, whole or not, with what is in force; sorted.
    ///
    /// Errors: as of [`SiteFolder::state`]; `Io`.
    pub fn versions(&self) -> Result<Vec<VersionListed>, DbError> {
        let state = self.state()?;
        let mut listed = Vec::new();
        for version in self.numbers()? {
            let about = self.about(version);
            let canary = state.canary.filter(|canary| canary.version == version);
            listed.push(VersionListed {
                version,
                in_force: version == state.current,
                canary: canary.map(|canary| canary.share),
                problem: about.as_ref().err().map(ToString::to_string),
                about: about.ok(),
            });
        }
        Ok(listed)
    }

    pub(super) fn numbers(&self) -> Result<Vec<u64>, DbError> {
        let name = OsStr::new(site::VERSIONS);
        if self.folder.kind(name).is_none() {
            return Ok(Vec::new());
        }
        let path = self.path().join(name);
        let names = self.folder.inside(name).and_then(|folder| folder.names());
        let names = names.map_err(at("read the folder", &path))?;
        let number = |name: &OsString| name.to_str()?.parse().ok();
        let mut numbers: Vec<u64> = names.iter().filter_map(number).collect();
        numbers.sort_unstable();
        Ok(numbers)
    }

    /// What a version says of itself, where jobs of this colltune can use all that it says it holds.
    ///
    /// Errors: `Site` with the remedy; those of [`Generation::load`].
    pub fn about(&self, version: u64) -> Result<About, DbError> {
        let folder = colltune_files::site::version(self.path(), version);
        let file = folder.join(ABOUT);
        let named = |what: String| problem(&folder, what);
        let text = read_text(&file, SETTINGS_BYTES_MAX);
        let text = text.map_err(|error| named(format!("read {ABOUT}: {error}")))?;
        let about: About =
            serde_json::from_str(&text).map_err(|error| named(format!("read {ABOUT}: {error}")))?;
        if about.schema != ABOUT_SCHEMA {
            return Err(named(format!(
                "colltune {} made it, in layout {}; this one reads {ABOUT_SCHEMA}: publish anew",
                about.colltune_version, about.schema
            )));
        }
        let db = Database::open(&folder)?;
        for one in &about.libraries {
            let key: DataKey = one
                .library
                .parse()
                .map_err(|error| named(format!("{error}")))?;
            Generation::load(&db, key)?;
        }
        Ok(about)
    }

    /// Puts the version on trial in force for all jobs. Returns what was in force before, and what is.
    ///
    /// Errors: `Site` where there is none, or it cannot be used.
    pub fn promote(&self) -> Result<(SiteState, SiteState), DbError> {
        let _lock = self.lock()?;
        let before = self.state()?;
        let Some(canary) = before.canary else {
            let what = "no version is on trial; `colltune publish --canary SHARE` begins one";
            return Err(problem(self.path(), what));
        };
        self.put_in_force(before, canary.version)
    }

    /// Ends a trial, or puts an earlier version in force: the one before, or the one of that number.
    ///
    /// Errors: `Site` for a version that is not there or cannot be used.
    pub fn roll_back(&self, to: Option<u64>) -> Result<(SiteState, SiteState), DbError> {
        let _lock = self.lock()?;
        let before = self.state()?;
        if before.canary.is_some() && to.is_none() {
            let after = SiteState {
                canary: None,
                ..before
            };
            self.save(&after)?;
            return Ok((before, after));
        }
        let numbers = self.numbers()?;
        let earlier = || {
            let last = numbers.iter().rfind(|number| **number < before.current);
            let what = format!("there is no version before {}", before.current);
            last.copied().ok_or_else(|| problem(self.path(), what))
        };
        let to = to.map_or_else(earlier, Ok)?;
        if !numbers.contains(&to) {
            let what = format!("it has no version {to}; `--list` shows those that are there");
            return Err(problem(self.path(), what));
        }
        self.put_in_force(before, to)
    }

    fn put_in_force(
        &self,
        before: SiteState,
        version: u64,
    ) -> Result<(SiteState, SiteState), DbError> {
        self.about(version)?;
        let after = SiteState {
            current: version,
            canary: None,
            ..before
        };
        self.save(&after)?;
        Ok((before, after))
    }

    /// Why jobs run untuned; `None` where they do not.
    pub fn is_off(&self) -> Option<String> {
        match colltune_files::site::look(self.path()) {
            colltune_files::site::Look::Off(reason) => Some(reason),
            _ => None,
        }
    }

    /// New jobs run untuned from now on, running ones from some seconds later on.
    ///
    /// Errors: `Io`.
    pub fn switch_off(&self, reason: &str) -> Result<(), DbError> {
        self.refuse_others()?;
        let line: String = reason.chars().filter(|one| !one.is_control()).collect();
        write::atomically(&self.folder, site::OFF, format!("{line}\n").as_bytes())
    }

    /// New jobs are tuned again. Returns whether they were not.
    ///
    /// Errors: `Io`.
    pub fn switch_on(&self) -> Result<bool, DbError> {
        self.refuse_others()?;
        match self.folder.kind(OsStr::new(site::OFF)) {
            None => Ok(false),
            Some(_) => {
                let path = self.path().join(site::OFF);
                let gone = write::remove(&self.folder, OsStr::new(site::OFF));
                gone.map_err(at("remove", &path))?;
                write::sync(&self.folder).map(|()| true)
            }
        }
    }

    /// Writes a file below the folder of module files, each name of `path` a folder.
    ///
    /// Errors: `Io`.
    pub fn write_module(&self, folders: &[&str], name: &str, text: &str) -> Result<(), DbError> {
        let mut folder = self.make_folder(&self.folder, MODULES)?;
        for name in folders {
            folder = self.make_folder(&folder, name)?;
        }
        write::atomically(&folder, name, text.as_bytes())
    }

    pub(super) fn make_folder(&self, folder: &Folder, name: &str) -> Result<Folder, DbError> {
        let path = folder.path().join(name);
        folder
            .make(OsStr::new(name))
            .map_err(at("make the folder", &path))
    }
}

pub(super) fn problem(path: &Path, what: impl Into<String>) -> DbError {
    DbError::Site {
        path: path.to_owned(),
        problem: what.into(),
    }
}
