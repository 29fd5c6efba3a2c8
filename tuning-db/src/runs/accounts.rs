//! Accounts, which jobs leave in `incoming/`: what their files are called, what stands in them, and what is believed.

use std::ffi::OsString;
use std::fs::Metadata;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use colltune_core::account::JobSummary;
use serde::Deserialize;

use crate::claim::believed;
use crate::database::Database;
use crate::folder::{Found, parts};
use crate::owners::Owners;

/// A line is 10 KB where a job calls every collective with messages of every size; a file has two.
const BYTES_MAX: u64 = 1 << 20;
/// What is read of them at once; the others wait for the next training.
const WAITING_MAX: usize = 100_000;

/// Whether an entry of `incoming/` is one of the ledger.
pub(crate) fn is_of_the_ledger(name: &str) -> bool {
    End::of(name).is_some()
}

/// Whether the job has said that it ended.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Said,
    Open,
}

impl End {
    fn of(name: &str) -> Option<End> {
        match name.strip_suffix(".open") {
            Some(name) => name.ends_with(".run").then_some(End::Open),
            None => name.ends_with(".run").then_some(End::Said),
        }
    }
}

pub(super) struct Entry {
    pub path: PathBuf,
    metadata: Option<Metadata>,
    /// What it says, or what is wrong with it.
    pub run: Result<JobSummary, Problem>,
    pub end: End,
}

impl Entry {
    pub fn written(&self) -> Option<SystemTime> {
        self.metadata.as_ref()?.modified().ok()
    }

    /// Whether what was read still stands there, and not an account that tells more.
    pub fn is_unchanged(&self, db: &Database) -> bool {
        let (folder, name) = parts(&self.path);
        let found = db.folder(folder).ok().and_then(|at| at.read(name).ok());
        let file = |metadata: &Metadata| (metadata.ino(), metadata.len(), metadata.modified().ok());
        let now = found.map(|found| file(&found.metadata));
        now == self.metadata.as_ref().map(file)
    }
}

/// What is wrong with an account.
pub(super) enum Problem {
    Unreadable(String),
    NotBelieved(String),
}

/// What jobs left in `incoming/`, by name.
pub(super) fn waiting(db: &Database, owners: &Owners) -> Vec<Entry> {
    let Ok(folder) = db.folder(&db.incoming()) else {
        return Vec::new();
    };
    let entry = |name: OsString| {
        let text = name.to_str()?.to_owned();
        let end = End::of(&text)?;
        let job = text.trim_end_matches(".open").strip_suffix(".run")?;
        let found = folder.read(&name).map_err(|error| error.to_string());
        let metadata = found.as_ref().ok().map(|found| found.metadata.clone());
        Some(Entry {
            metadata,
            path: folder.path().join(name),
            run: found
                .map_err(Problem::Unreadable)
                .and_then(|found| read(found, job, owners)),
            end,
        })
    };
    let names = folder.names().unwrap_or_default().into_iter();
    names.filter_map(entry).take(WAITING_MAX).collect()
}

/// What can be read of it; the others are warned of, but for jobs that have just begun to write.
pub(super) fn readable(entries: Vec<Entry>, warnings: &mut Vec<String>) -> Vec<JobSummary> {
    let mut runs = Vec::new();
    for entry in entries {
        match entry.run {
            Ok(run) => runs.push(run),
            Err(_) if entry.end == End::Open => {}
            Err(Problem::Unreadable(problem) | Problem::NotBelieved(problem)) => {
                warnings.push(format!(
                    "failed to read {}: {problem}; it is left out",
                    shown(&entry.path)
                ))
            }
        }
    }
    runs
}

/// A path whose last name another user chose, on one line.
pub(super) fn shown(path: &Path) -> impl std::fmt::Display {
    let path = path.to_string_lossy();
    path.escape_debug().to_string()
}

/// What a job said last.
///
/// Errors: a sentence about an invalid account, one of another version, or another name of some file; or why it is
/// not believed.
fn read(found: Found, job: &str, owners: &Owners) -> Result<JobSummary, Problem> {
    let owner = found.metadata.uid();
    let run = last(found).map_err(Problem::Unreadable)?;
    believed(run, job, owner, owners).map_err(Problem::NotBelieved)
}

fn last(Found { file, metadata }: Found) -> Result<JobSummary, String> {
    if metadata.len() > BYTES_MAX {
        return Err(format!("it has over {BYTES_MAX} bytes"));
    }
    if metadata.nlink() != 1 {
        return Err("it has another name, too".to_owned());
    }
    let mut text = String::new();
    let read = file.take(BYTES_MAX).read_to_string(&mut text);
    read.map_err(|error| error.to_string())?;
    // The last line may be cut off, where the disk was full.
    let mut problem = "nothing stands in it".to_owned();
    for line in text.lines().rev() {
        match parse(line) {
            Ok(run) => return Ok(run),
            Err(found) => problem = found,
        }
    }
    Err(problem)
}

/// What one line says.
pub(super) fn parse(line: &str) -> Result<JobSummary, String> {
    /// What every version has.
    #[derive(Deserialize)]
    struct Version {
        schema: u32,
    }
    let damaged = |error: serde_json::Error| format!("it is cut off or damaged: {error}");
    let Version { schema } = serde_json::from_str(line).map_err(damaged)?;
    let known = JobSummary::SCHEMA;
    // Files of version 1 lack what may be missing.
    if !(1..=known).contains(&schema) {
        return Err(format!(
            "it has version {schema}, this colltune reads up to {known}"
        ));
    }
    serde_json::from_str(line).map_err(damaged)
}
