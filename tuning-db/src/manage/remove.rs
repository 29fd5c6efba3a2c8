//! Runs dropped and restored, generations taken back, and removal for good.

use std::ffi::{OsStr, OsString};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use colltune_core::context::DataKey;
use serde::Serialize;

use crate::database::{Database, DbError, at};
use crate::dropped::Dropped;
use crate::evidence::Store;
use crate::folder::Folder;
use crate::generation::{self, Generation};
use crate::lock::Lock;
use crate::manage::list::{self, Listed, State, Wanted};
use crate::quarantine::REASON;
use crate::trace::Name;
use crate::{partition, write};

/// Leaves runs out of what is learned from now on; they can be restored until they are pruned.
///
/// Errors: `Lock` while a training runs; `Io`, `Owners`.
pub fn drop_runs(
    db: &Database,
    wanted: &Wanted,
    warnings: &mut Vec<String>,
) -> Result<Vec<Listed>, DbError> {
    let lock = Lock::take(&db.lock_path())?;
    let mut runs = list::runs(db, wanted, warnings)?;
    runs.retain(|run| run.state != State::Dropped);
    let mut dropped = Dropped::of(db)?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now = now.unwrap_or_default().as_millis() as u64;
    for run in &mut runs {
        dropped.jobs.insert(run.job.clone(), now);
        run.state = State::Dropped;
    }
    if !runs.is_empty() {
        dropped.save(db, &lock)?;
    }
    Ok(runs)
}

/// Takes that back.
///
/// Errors: as of [`drop_runs`].
pub fn restore_runs(
    db: &Database,
    wanted: &Wanted,
    warnings: &mut Vec<String>,
) -> Result<Vec<Listed>, DbError> {
    let lock = Lock::take(&db.lock_path())?;
    let mut dropped = Dropped::of(db)?;
    let mut runs = list::runs(db, wanted, warnings)?;
    runs.retain(|run| dropped.has(&run.job));
    for run in &runs {
        dropped.jobs.remove(&run.job);
    }
    if !runs.is_empty() {
        dropped.save(db, &lock)?;
    }
    let restored: Vec<String> = runs.into_iter().map(|run| run.job).collect();
    let mut runs = list::runs(db, wanted, warnings)?;
    runs.retain(|run| restored.contains(&run.job));
    Ok(runs)
}

/// Moves traces out of quarantine, for the next training to look at them again; all, or those of these names. Returns
/// their names. Other entries stay.
///
/// Errors: `Lock` while a training runs; `Io` for the first that cannot be moved; those before it are restored.
pub fn restore_refused(db: &Database, names: &[String]) -> Result<Vec<String>, DbError> {
    let _lock = Lock::take(&db.lock_path())?;
    let mut restored = Vec::new();
    for refused in list::refused(db)? {
        let trace = trace_of(&refused.name);
        let is_wanted = names.is_empty() || names.contains(&refused.name);
        let Some(trace) = trace.filter(|_| is_wanted) else {
            continue;
        };
        let quarantine = db.folder(&db.quarantine())?;
        let incoming = db.folder(&db.incoming())?;
        let path = quarantine.path().join(&refused.name);
        let moved = quarantine.move_new(OsStr::new(&refused.name), &incoming, OsStr::new(trace));
        moved.map_err(at("restore", &path))?;
        let mut reason = OsString::from(&refused.name);
        reason.push(REASON);
        let _ = quarantine.remove(&reason);
        restored.push(refused.name);
    }
    Ok(restored)
}

/// What the trace was called that is in quarantine, where it may be the second of its name: `NAME.1`.
fn trace_of(name: &str) -> Option<&str> {
    let first = || {
        let (first, number) = name.rsplit_once('.')?;
        number
            .bytes()
            .all(|byte| byte.is_ascii_digit())
            .then_some(first)
    };
    [Some(name), first()]
        .into_iter()
        .flatten()
        .find(|name| Name::read(name).is_some())
}

/// Puts an earlier generation in force: the one before, or the one of that number. Returns which was and which is.
///
/// Errors: `Lock` while a training runs; `Generation` for one that is not there or cannot be read; `Io`.
pub fn roll_back(db: &Database, key: &DataKey, to: Option<u64>) -> Result<(u64, u64), DbError> {
    let _lock = Lock::take(&db.lock_path())?;
    let from = generation::current(db, key)?;
    let before = || {
        let numbers = generation::numbers(db, key)?;
        let last = numbers.into_iter().rfind(|number| *number < from);
        last.ok_or_else(|| DbError::Generation {
            path: db.generations(key),
            problem: format!("there is none before {from}"),
        })
    };
    let to = to.map_or_else(before, Ok)?;
    Generation::load_number(db, key, to)?;
    generation::put_in_force(db, key, to)?;
    Ok((from, to))
}

/// What [`prune`] keeps.
#[derive(Clone, Copy, Debug)]
pub struct Keep {
    /// The newest generations of each library; the one in force stays, too.
    pub generations: usize,
    /// Entries of the quarantine that are younger.
    pub quarantine: Duration,
}

/// What a [`prune`] removes.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Pruned {
    /// Dropped runs, whose records and evidence are gone.
    pub runs: u64,
    pub generations: u64,
    pub quarantined: u64,
    pub warnings: Vec<String>,
}

/// What [`prune`] would remove now; nothing is changed.
///
/// Errors: `Io`.
pub fn would_prune(db: &Database, keep: Keep) -> Result<Pruned, DbError> {
    let mut pruned = Pruned {
        runs: Dropped::of(db)?.jobs.len() as u64,
        ..Pruned::default()
    };
    for key in db.keys()? {
        pruned.generations += old_generations(db, &key, keep.generations)?.len() as u64;
    }
    if db.quarantine().exists() {
        let folder = db.folder(&db.quarantine())?;
        pruned.quarantined = old_refused(&folder, keep.quarantine)?.len() as u64;
    }
    Ok(pruned)
}

/// Removes for good dropped runs, old generations, and old entries of the quarantine.
///
/// Errors: `Lock` while a training runs; `Io`, `Parquet`. What is left is whole, and the next one goes on.
pub fn prune(db: &Database, keep: Keep) -> Result<Pruned, DbError> {
    let lock = Lock::take(&db.lock_path())?;
    let mut pruned = Pruned::default();
    let dropped = Dropped::of(db)?;
    for key in db.keys()? {
        if !dropped.jobs.is_empty() {
            // Raw records first: from these evidence would be made again.
            for path in partition::list(&db.data(&key))? {
                partition::remove_jobs(db, &path, |job| !dropped.has(job))?;
            }
            let mut store = Store::open(db, &key, &mut pruned.warnings)?;
            store.forget(db, &key, &dropped, &mut pruned.warnings)?;
        }
        pruned.generations += prune_generations(db, &key, keep.generations)?;
    }
    pruned.runs = dropped.jobs.len() as u64;
    if pruned.runs > 0 && pruned.warnings.is_empty() {
        Dropped::default().save(db, &lock)?;
    }
    prune_quarantine(db, keep.quarantine, &mut pruned)?;
    Ok(pruned)
}

/// The generations that are neither among the newest nor in force.
fn old_generations(db: &Database, key: &DataKey, keep: usize) -> Result<Vec<u64>, DbError> {
    let in_force = generation::current(db, key)?;
    let mut numbers = generation::numbers(db, key)?;
    // Without the newest its number would be given out again.
    numbers.truncate(numbers.len().saturating_sub(keep.max(1)));
    numbers.retain(|number| *number != in_force);
    Ok(numbers)
}

fn prune_generations(db: &Database, key: &DataKey, keep: usize) -> Result<u64, DbError> {
    let old = old_generations(db, key, keep)?;
    for number in &old {
        let folder = db.folder(&db.generations(key))?;
        let name = format!("{number:06}");
        let path = folder.path().join(&name);
        let gone = folder.remove_folder(OsStr::new(&name));
        gone.map_err(at("remove", &path))?;
    }
    Ok(old.len() as u64)
}

/// The entries of the quarantine that did not come of late, each with the name of its reason.
fn old_refused(folder: &Folder, younger: Duration) -> Result<Vec<(OsString, OsString)>, DbError> {
    let before = SystemTime::now().checked_sub(younger);
    let names = folder.names();
    let names = names.map_err(at("read the folder", folder.path()))?;
    let old = names.into_iter().filter_map(|reason| {
        let entry = OsString::from(reason.to_string_lossy().strip_suffix(REASON)?);
        // The reason was written when the entry came; its own time is its owner's word.
        let found = folder
            .read(&reason)
            .and_then(|found| found.metadata.modified());
        let is_old = found.is_ok_and(|came| before.is_some_and(|before| came <= before));
        is_old.then_some((entry, reason))
    });
    Ok(old.collect())
}

fn prune_quarantine(db: &Database, younger: Duration, pruned: &mut Pruned) -> Result<(), DbError> {
    if !db.quarantine().exists() {
        return Ok(());
    }
    let folder = db.folder(&db.quarantine())?;
    for (entry, reason) in old_refused(&folder, younger)? {
        let gone = match folder.kind(&entry) {
            Some(rustix::fs::FileType::Directory) => folder.remove_folder(&entry),
            Some(_) => folder.remove(&entry),
            None => Ok(()),
        };
        // Another user's folder, for one, may not let itself be removed.
        if let Err(error) = gone.and_then(|()| write::remove(&folder, &reason)) {
            let path = folder.path().join(&entry);
            let path = path.display();
            pruned
                .warnings
                .push(format!("failed to remove {path}: {error}"));
            continue;
        }
        pruned.quarantined += 1;
    }
    Ok(())
}
