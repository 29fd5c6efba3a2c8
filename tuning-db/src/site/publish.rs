//! A new version: copied from what is in force in a database, whole or not at all.

use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use colltune_core::context::DataKey;
use colltune_core::levers::learned::{self, LearnedLevers};
use colltune_core::settings::Settings;
use colltune_core::site::{self, Canary, SiteError, SiteState, folder_of};
use colltune_files::{MODEL_BYTES_MAX, SETTINGS_BYTES_MAX, read_text};
use rustix::fs::FileType;

use super::folder::{ABOUT, ABOUT_SCHEMA, About, Contained, SiteFolder, problem};
use crate::database::{CURRENT, Database, DbError, SETTINGS, at};
use crate::folder::Folder;
use crate::generation::{self, Generation};
use crate::machine::host_name;
use crate::unfinished::UNFINISHED;
use crate::{levers, users, write};

/// The folder of tables for the libraries themselves.
const TABLES: &str = "tables";
/// The folders of a version lie in folders in folders in it, and no deeper.
const DEPTH_MAX: u32 = 4;

/// Which jobs take a version that is published.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ForJobs {
    All,
    /// A share of them, until it is promoted or taken back.
    Share(f64),
}

/// Files for a library itself.
#[derive(Clone, Debug)]
pub struct Tables {
    pub key: DataKey,
    /// Names and contents.
    pub files: Vec<(&'static str, String)>,
}

/// Publishes what is in force in a database. Returns the site and the version's number.
///
/// Errors: `Site` for a folder that is not to be written to, for a first version that only some jobs are to take, for a
/// database in which nothing was learned; those of [`Generation::load`]; `Io`. Then the site is as it was.
pub fn publish(
    path: &Path,
    db: &Database,
    tables: &[Tables],
    jobs: ForJobs,
) -> Result<(SiteFolder, u64), DbError> {
    let keys = generation::trained(db)?;
    if keys.is_empty() {
        let root = db.root().display();
        let what = format!(
            "nothing was learned in {root} yet; run some jobs, then `colltune train --db {root}`"
        );
        return Err(problem(path, what));
    }
    let site = SiteFolder::make(path)?;
    let _lock = site.lock()?;
    let before = match site.state() {
        // Whatever was in force, jobs could not take it.
        Err(_) if is_damaged(path) => SiteState::default(),
        state => state?,
    };
    if before.current == 0 && matches!(jobs, ForJobs::Share(_)) {
        let what = "no version is in force that the other jobs could keep to; publish the first one without --canary";
        return Err(problem(path, what));
    }
    let versions = site.make_folder(&site.folder, site::VERSIONS)?;
    remove_unfinished(&versions);
    let last = site.numbers()?.last().copied().unwrap_or(0);
    let tried = before.canary.map_or(0, |canary| canary.version);
    let version = last.max(before.current).max(tried) + 1;
    let name = OsString::from(folder_of(version));
    let drafted = versions.draft_folder(&name);
    let (draft, inside) = drafted.map_err(at("make the folder", &versions.path().join(&name)))?;
    let result = fill(&site, &inside, version, db, &keys, tables)
        .and_then(|()| write::publish(&versions, &draft, &name));
    if let Err(error) = result {
        let _ = versions.remove_tree(&draft, DEPTH_MAX);
        return Err(error);
    }
    let after = match jobs {
        ForJobs::All => SiteState {
            current: version,
            canary: None,
            ..before
        },
        ForJobs::Share(share) => SiteState {
            canary: Some(Canary { version, share }),
            ..before
        },
    };
    site.save(&after)?;
    Ok((site, version))
}

fn fill(
    site: &SiteFolder,
    folder: &Folder,
    version: u64,
    db: &Database,
    keys: &[DataKey],
    tables: &[Tables],
) -> Result<(), DbError> {
    let mut libraries = Vec::new();
    for key in keys {
        libraries.push(Contained {
            library: key.to_string(),
            generation: copy_generation(site, folder, db, key)?,
            tables: tables.iter().any(|one| one.key == *key),
        });
    }
    if !tables.is_empty() {
        let parent = site.make_folder(folder, TABLES)?;
        for one in tables {
            let inside = site.make_folder(&parent, &one.key.to_string())?;
            for (name, text) in &one.files {
                write::synced(&inside, name, text.as_bytes())?;
            }
            write::sync(&inside)?;
        }
        write::sync(&parent)?;
    }
    copy_settings(folder, db)?;
    copy_levers(folder, db)?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let root = std::path::absolute(db.root());
    let about = About {
        schema: ABOUT_SCHEMA,
        version,
        colltune_version: env!("CARGO_PKG_VERSION").to_owned(),
        published_unix_ms: now.map_or(0, |time| time.as_millis() as u64),
        publisher: users::user(rustix::process::geteuid().as_raw()),
        host: host_name(),
        database: root.unwrap_or_else(|_| db.root().to_owned()),
        libraries,
    };
    let about = serde_json::to_string_pretty(&about).expect("numbers and names") + "\n";
    write::synced(folder, ABOUT, about.as_bytes())?;
    write::sync(folder)
}

/// Copies what is in force for a library, once it was read: what is damaged is not published.
fn copy_generation(
    site: &SiteFolder,
    folder: &Folder,
    db: &Database,
    key: &DataKey,
) -> Result<u64, DbError> {
    let generation = Generation::load(db, key.clone())?;
    let number = format!("{:06}", generation.number);
    let from = db.generations(key).join(&number);
    let library = site.make_folder(folder, &key.to_string())?;
    let generations = site.make_folder(&library, "generations")?;
    let to = site.make_folder(&generations, &number)?;
    for name in ["probabilities.json", "cells.json", "meta.json"] {
        let file = from.join(name);
        let text = read_text(&file, MODEL_BYTES_MAX).map_err(at("read", &file))?;
        write::synced(&to, name, text.as_bytes())?;
    }
    write::synced(&library, CURRENT, format!("{number}\n").as_bytes())?;
    for folder in [&to, &generations, &library] {
        write::sync(folder)?;
    }
    Ok(generation.number)
}

/// What is known of levers that programs ask about, where anything is.
///
/// Errors: `Io`, and for a file that jobs could not read.
fn copy_levers(folder: &Folder, db: &Database) -> Result<(), DbError> {
    let mut warnings = Vec::new();
    let known = levers::learned(db, &mut warnings);
    if let Some(warning) = warnings.pop() {
        return Err(problem(
            db.root(),
            format!("{warning}; `colltune train` makes it anew"),
        ));
    }
    if known.is_empty() {
        return Ok(());
    }
    let text = LearnedLevers {
        schema: learned::SCHEMA,
        levers: known,
    }
    .to_json();
    write::synced(folder, learned::FILE, text.as_bytes())
}

fn copy_settings(folder: &Folder, db: &Database) -> Result<(), DbError> {
    let path = db.settings_path();
    match read_text(&path, SETTINGS_BYTES_MAX) {
        Ok(text) => {
            Settings::from_toml(&text).map_err(|error| DbError::Settings { path, error })?;
            write::synced(folder, SETTINGS, text.as_bytes())
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(at("read", &path)(error)),
    }
}

/// What publishers that ended before their time have left. Only the holder of the lock may call it.
fn remove_unfinished(versions: &Folder) {
    for name in versions.names().unwrap_or_default() {
        let is_unfinished = name.to_string_lossy().starts_with(UNFINISHED);
        if is_unfinished && versions.kind(&name) == Some(FileType::Directory) {
            let _ = versions.remove_tree(&name, DEPTH_MAX);
        }
    }
}

fn is_damaged(path: &Path) -> bool {
    let text = read_text(&path.join(site::FILE), SETTINGS_BYTES_MAX);
    let read = text.map(|text| SiteState::from_json(&text));
    matches!(read, Ok(Err(SiteError::Damaged(_) | SiteError::Share(_))))
}
