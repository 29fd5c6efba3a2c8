//! The ledger: what jobs said of themselves, in every mode. No training learns from it which variants are fast; a
//! training asks it how programs spend their time, and users look at it.
//!
//! An account belongs to its file's owner; it is believed as far as a trace of that user (`claim.rs`).
//!
//! A job leaves `incoming/JOB.run`, or `JOB.run.open` while it runs and where it died. A training takes what has ended
//! into `DB/runs/*.parquet`, which are immutable but for small ones being joined. A run may stand in several files:
//! after a crash, where it was taken for dead, or where it said more behind a training. A reader counts it once.

mod accounts;
mod tables;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use colltune_core::account::{Exit, JobSummary};
use parquet::errors::ParquetError;

use accounts::{End, Entry, Problem, readable, shown, waiting};

pub(crate) use accounts::is_of_the_ledger;
pub use tables::Times;

use crate::database::{Database, DbError};
use crate::owners::Owners;
use crate::partition::{self, unreadable};
use crate::quarantine;

/// So many files of less than so many bytes become one. A file that has grown past that is never written again, so that
/// a training's cost does not grow with the runs that were ever taken.
const SMALL_FILES_MAX: usize = 16;
const SMALL_FILE_BYTES: u64 = 1 << 20;
/// So many runs tell how programs spend their time; they are looked for among so many, of 10 KB each.
const NEWEST: usize = 256;
const LOOKED_AT: usize = 1024;

/// All runs of a database, those in `incoming/` included, the oldest first. A file that cannot be read is left out,
/// with a warning.
pub fn all(db: &Database, warnings: &mut Vec<String>) -> Vec<JobSummary> {
    let mut found = Found::default();
    match partition::list(&db.runs()) {
        Ok(paths) => found.add_tables(&paths, warnings),
        Err(error) => warnings.push(format!("failed to {error}")),
    }
    found.extend(readable(waiting(db, &known(db, warnings)), warnings));
    found.into_runs()
}

/// The times of all runs, those in `incoming/` included, by name: of tables a few columns, where [`all`] reads what
/// each run said of every collective. A file that cannot be read is left out, with a warning.
pub fn times(db: &Database, warnings: &mut Vec<String>) -> Vec<Times> {
    let mut found: BTreeMap<String, Times> = BTreeMap::new();
    let mut take = |run: Times| {
        let known = found.get(&run.job);
        if known.is_none_or(|known| known.exit == Exit::Missing) {
            found.insert(run.job.clone(), run);
        }
    };
    match partition::list(&db.runs()) {
        Ok(paths) => {
            for path in paths {
                match tables::times_of(&path) {
                    Ok(runs) => runs.into_iter().for_each(&mut take),
                    Err(error) => warnings.push(left_out(&path, error)),
                }
            }
        }
        Err(error) => warnings.push(format!("failed to {error}")),
    }
    for run in readable(waiting(db, &known(db, warnings)), warnings) {
        take(run.into());
    }
    found.into_values().collect()
}

/// What the newest runs of some jobs said, at most [`NEWEST`] and of the newest [`LOOKED_AT`] alone; of what a training
/// took, which is read in parts.
pub(crate) fn newest(
    db: &Database,
    is_wanted: impl Fn(&JobSummary) -> bool,
    warnings: &mut Vec<String>,
) -> Vec<JobSummary> {
    let paths = partition::list(&db.runs()).unwrap_or_else(|error| {
        warnings.push(format!("failed to {error}"));
        Vec::new()
    });
    let (mut found, mut left) = (BTreeMap::new(), LOOKED_AT);
    // Their names begin with the time of their first run.
    for path in paths.iter().rev() {
        if left == 0 || found.len() >= NEWEST {
            break;
        }
        if let Err(error) = add_newest(path, &is_wanted, &mut found, &mut left) {
            warnings.push(left_out(path, error));
        }
    }
    found.into_values().collect()
}

/// The newest runs of some kind that ended as they should, those in `incoming/` included, the oldest first.
pub fn newest_and_waiting(
    db: &Database,
    is_wanted: impl Fn(&JobSummary) -> bool,
    warnings: &mut Vec<String>,
) -> Vec<JobSummary> {
    let waiting = readable(waiting(db, &known(db, warnings)), warnings).into_iter();
    let waiting = waiting.filter(|run| has_ended(run) && is_wanted(run));
    let waiting: BTreeMap<String, JobSummary> = waiting.map(|run| (run.job.clone(), run)).collect();
    // Waiting accounts are the newest.
    let mut found = newest(
        db,
        |run| has_ended(run) && is_wanted(run) && !waiting.contains_key(&run.job),
        warnings,
    );
    found.extend(waiting.into_values());
    found.sort_by_key(|run| run.started_unix_ms);
    found
}

/// Whether it ended as it should.
pub(crate) fn has_ended(run: &JobSummary) -> bool {
    run.exit == Exit::Finalized
}

/// How many epochs of levers it has reported.
fn epochs(run: &JobSummary) -> u64 {
    run.asked.iter().map(|asked| asked.all).sum()
}

fn add_newest(
    path: &Path,
    is_wanted: &impl Fn(&JobSummary) -> bool,
    found: &mut BTreeMap<String, JobSummary>,
    left: &mut usize,
) -> Result<(), ParquetError> {
    let mut table = tables::open(path)?;
    let mut end = table.rows();
    while end > 0 && *left > 0 && found.len() < NEWEST {
        let start = end.saturating_sub(NEWEST.min(*left));
        table.read_only(start..end);
        *left -= end - start;
        end = start;
        let runs = tables::read_rows(&table)?.into_iter().rev();
        for run in runs.filter(is_wanted) {
            let known = found.get(&run.job);
            // What a job said at its end counts, though it had been taken for dead; before that what it said last.
            let tells_more = |known: &JobSummary| {
                !has_ended(known) && (has_ended(&run) || epochs(&run) >= epochs(known))
            };
            if known.map_or(found.len() < NEWEST, tells_more) {
                found.insert(run.job.clone(), run);
            }
        }
    }
    Ok(())
}

/// The owners whom a reader of the ledger believes; all, with a warning, where the rules cannot be read.
fn known(db: &Database, warnings: &mut Vec<String>) -> Owners {
    Owners::of(db, warnings).unwrap_or_else(|error| {
        warnings.push(format!("failed to {error}; all owners are believed"));
        Owners::default()
    })
}

/// Takes the runs that have ended out of `incoming/`, and those that began before `stale_before` and never ended.
/// Only the holder of the lock may call it. Returns what went to quarantine, with the reasons.
///
/// Errors: `Io`, `Owners` and `Parquet` (a full disk, for one); nothing is lost then.
pub(crate) fn take(
    db: &Database,
    stale_before: SystemTime,
    warnings: &mut Vec<String>,
) -> Result<Vec<(String, String)>, DbError> {
    let mut found = Found::default();
    let mut taken = Vec::new();
    let mut refused = Vec::new();
    // A training has read them before, and warned of what is wrong with them.
    let owners = Owners::of(db, &mut Vec::new())?;
    for entry in waiting(db, &owners) {
        let is_stale = |entry: &Entry| entry.written().is_some_and(|at| at <= stale_before);
        if entry.end == End::Open && !is_stale(&entry) {
            continue;
        }
        match &entry.run {
            Ok(run) => {
                found.extend([run.clone()]);
                taken.push(entry);
            }
            Err(Problem::NotBelieved(reason)) => {
                refused.extend(refuse(db, &entry.path, reason, warnings));
            }
            // It may be a newer colltune's.
            Err(Problem::Unreadable(_)) => {}
        }
    }
    let mut replaced = partition::list(&db.runs())?;
    replaced.retain(|path| {
        path.metadata()
            .is_ok_and(|found| found.len() < SMALL_FILE_BYTES)
    });
    if replaced.len() < SMALL_FILES_MAX {
        replaced.clear();
    }
    if taken.is_empty() && replaced.is_empty() {
        return Ok(refused);
    }
    let before = warnings.len();
    found.add_tables(&replaced, warnings);
    if warnings.len() > before {
        replaced.clear();
    }
    let published = tables::publish(db, &found.into_runs())?;
    replaced.retain(|path| *path != published);
    // An account that has grown meanwhile is for the next training.
    taken.retain(|entry| entry.is_unchanged(db));
    let taken = taken.iter().map(|entry| &entry.path);
    for path in taken.chain(&replaced) {
        if let Err(error) = db.remove(path) {
            warnings.push(format!(
                "failed to remove {}: {error}; its runs count once",
                path.display()
            ));
        }
    }
    Ok(refused)
}

/// Puts an account into quarantine: its name, and why. One that cannot be moved stays, with a warning.
fn refuse(
    db: &Database,
    path: &Path,
    reason: &str,
    warnings: &mut Vec<String>,
) -> Option<(String, String)> {
    let name = path.file_name()?;
    let moved = db
        .folder(&db.incoming())
        .and_then(|incoming| quarantine::refuse(db, &incoming, name, reason));
    match moved {
        Ok(()) => Some((name.to_string_lossy().into_owned(), reason.to_owned())),
        Err(error) => {
            warnings.push(format!(
                "{} is left where it is: {reason}; failed to {error}",
                shown(path)
            ));
            None
        }
    }
}

/// Runs by name.
#[derive(Default)]
struct Found(BTreeMap<String, JobSummary>);

impl Found {
    fn add_tables(&mut self, paths: &[PathBuf], warnings: &mut Vec<String>) {
        for path in paths {
            match tables::read_table(path) {
                Ok(runs) => self.extend(runs),
                Err(error) => warnings.push(left_out(path, error)),
            }
        }
    }

    fn extend(&mut self, runs: impl IntoIterator<Item = JobSummary>) {
        for run in runs {
            let known = self.0.get(&run.job);
            if known.is_none_or(|known| tells_more(&run, known)) {
                self.0.insert(run.job.clone(), run);
            }
        }
    }

    fn into_runs(self) -> Vec<JobSummary> {
        let mut runs: Vec<JobSummary> = self.0.into_values().collect();
        runs.sort_by_key(|run| run.started_unix_ms);
        runs
    }
}

/// Whether an account tells more of a job than a known one: how it ended, and then how long its launcher ran.
fn tells_more(run: &JobSummary, known: &JobSummary) -> bool {
    let told = |run: &JobSummary| (run.exit == Exit::Finalized, run.whole_s.is_some());
    known.exit == Exit::Missing || told(run) > told(known)
}

fn left_out(path: &Path, error: ParquetError) -> String {
    format!("failed to {}; it is left out", unreadable(path)(error))
}

#[cfg(test)]
mod tests;
