//! Which runs have records that no evidence covers, and all records of each of them.
//!
//! A run whose records came in parts is reduced again from all that is there. Where raw records have aged out, what
//! was reduced from them stays, and what came later is reduced apart from it.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, SystemTime};

use colltune_core::context::DataKey;

use crate::coverage::Coverage;
use crate::database::{Database, DbError};
use crate::evidence::{Fresh, Run, Store};
use crate::partition::{self, Columns, Footers, Held};
use crate::reduce::{Names, Observation, Reader, reduce_run};

/// Rows of evidence that are gathered before they become a file.
const ROWS_MAX: usize = 1 << 17;

/// A run that is being put together.
#[derive(Default)]
struct Gathered {
    run: Run,
    /// Records that are not taken: other evidence covers them, or they were taken already.
    skip: Coverage,
    covers: Coverage,
    observations: Vec<Observation>,
    /// The last partition with records of it.
    last: usize,
}

/// Reduces every run with records that no evidence covers, and publishes what that gives.
///
/// Errors: `Io` and `Parquet` for a database that cannot be written; nothing is lost then.
pub(crate) fn reduce_new(
    db: &Database,
    key: &DataKey,
    store: &mut Store,
    footers: &Footers,
    warnings: &mut Vec<String>,
    progress: &dyn Fn(&str),
) -> Result<(), DbError> {
    let mut names = Names::new(key.library);
    let mut open = runs_to_reduce(footers, store);
    let mut fresh: Vec<Fresh> = Vec::new();
    for (place, (path, held)) in footers.iter().enumerate() {
        let here = open.values().filter(|run| run.last == place).count();
        if !held.iter().any(|held| open.contains_key(&held.job)) {
            continue;
        }
        progress(&format!("{key}: reducing the records of {here} runs"));
        match partition::read(path) {
            Ok((held, columns)) => take(&held, &columns, &mut names, &mut open),
            Err(error) => warnings.push(format!("failed to {error}; it is left out")),
        }
        let whole: Vec<String> = open
            .iter()
            .filter(|(_, run)| run.last == place)
            .map(|(job, _)| job.clone())
            .collect();
        for job in whole {
            let gathered = open.remove(&job).unwrap_or_default();
            fresh.extend(finish(gathered, store));
        }
        if fresh.iter().map(|one| one.rows.len()).sum::<usize>() > ROWS_MAX {
            progress(&format!("{key}: writing evidence"));
            store.publish(db, key, &names, std::mem::take(&mut fresh))?;
        }
    }
    if !fresh.is_empty() {
        progress(&format!("{key}: writing evidence"));
        store.publish(db, key, &names, fresh)?;
    }
    Ok(())
}

/// The runs with records that no evidence covers.
fn runs_to_reduce(footers: &Footers, store: &Store) -> BTreeMap<String, Gathered> {
    let mut raw: BTreeMap<String, (Coverage, usize)> = BTreeMap::new();
    for (place, held) in footers.values().enumerate() {
        for held in held {
            let (coverage, last) = raw.entry(held.job.clone()).or_default();
            coverage.add(held.rank, held.first, held.first + held.count);
            *last = place;
        }
    }
    let covered = store.covered();
    let to_reduce = raw.into_iter().filter_map(|(job, (raw, last))| {
        let known = covered.get(job.as_str()).map_or(&[][..], Vec::as_slice);
        let (mut all, mut skip) = (Coverage::default(), Coverage::default());
        for one in known {
            all.join(one);
            // Some of these records are gone, so what was reduced from them cannot be made again.
            if !raw.contains(one) {
                skip.join(one);
            }
        }
        let run = Gathered {
            skip,
            last,
            ..Gathered::default()
        };
        (!all.contains(&raw)).then_some((job, run))
    });
    to_reduce.collect()
}

/// Takes the records of open runs out of a partition.
fn take(
    held: &[Held],
    columns: &Columns,
    names: &mut Names,
    open: &mut BTreeMap<String, Gathered>,
) {
    let mut reader = Reader::new(columns, names);
    let mut row = 0;
    for held in held {
        let rows = row..row + held.count as usize;
        row = rows.end;
        let Some(gathered) = open.get_mut(&held.job) else {
            continue;
        };
        if gathered.run.job.is_empty() && !rows.is_empty() {
            gathered.run = Run {
                job: held.job.clone(),
                started_unix_ms: columns.started_unix_ms[rows.start],
                generation: columns.generation[rows.start],
                context: std::array::from_fn(|column| {
                    let word = columns.context[column][rows.start].data();
                    String::from_utf8_lossy(word).into_owned()
                }),
                owner: held.owner,
                component: held.component.clone(),
                host: held.host.clone(),
                ..Run::default()
            };
        }
        let largest = |all: &[u32]| all[rows.clone()].iter().copied().max().unwrap_or(0);
        let run = &mut gathered.run;
        run.ranks = run.ranks.max(held.world_ranks);
        run.nodes = run.nodes.max(largest(&columns.nodes));
        run.ppn = run.ppn.max(largest(&columns.ppn));
        for (row, number) in rows.zip(held.first..) {
            if !gathered.skip.has(held.rank, number) {
                gathered.observations.extend(reader.observation(row));
                // Joined below; records of one piece are apart from each other.
            }
        }
        let end = held.first + held.count;
        cover(gathered, held.rank, held.first, end);
    }
}

fn cover(gathered: &mut Gathered, rank: u32, first: u64, end: u64) {
    // Of what other evidence covers, nothing was taken.
    let mut from = first;
    for number in first..=end {
        if number == end || gathered.skip.has(rank, number) {
            gathered.covers.add(rank, from, number);
            from = number + 1;
        }
    }
    gathered.skip.add(rank, first, end);
}

/// Reduces a run of which all records are there. `None` where that says nothing new.
fn finish(gathered: Gathered, store: &Store) -> Option<Fresh> {
    if gathered.covers.is_empty() {
        return None;
    }
    // No run began after its records were there: a clock that is ahead would make it the newest for ever.
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let now = now.map_or(u64::MAX, |now| now.as_millis() as u64);
    let run = Run {
        held: gathered.covers.to_string(),
        started_unix_ms: gathered.run.started_unix_ms.min(now),
        ..gathered.run
    };
    let fresh = Fresh::new(run, reduce_run(gathered.observations));
    let same = |one: &Run| {
        let new = &fresh.run;
        one.job == new.job && one.held == new.held && one.content == new.content
    };
    (!store.all_runs().any(|(run, _)| same(run))).then_some(fresh)
}

/// Removes raw partitions that are older than they are kept, where evidence on disk covers all their records.
/// Returns how many.
/// One that cannot be removed stays.
pub(crate) fn remove_old(
    db: &Database,
    footers: &mut Footers,
    store: &Store,
    keep: Option<Duration>,
    warnings: &mut Vec<String>,
) -> u64 {
    let Some(before) = keep.and_then(|keep| SystemTime::now().checked_sub(keep)) else {
        return 0;
    };
    let covered = store.covered();
    let is_safe = |held: &Held| {
        let known = covered.get(held.job.as_str()).into_iter().flatten();
        let mut all = Coverage::default();
        known.for_each(|one| all.join(one));
        all.contains_range(held.rank, held.first, held.first + held.count)
    };
    let is_old = |path: &Path| {
        let written = path.metadata().and_then(|metadata| metadata.modified());
        written.is_ok_and(|written| written <= before)
    };
    let mut removed = 0;
    footers.retain(|path, held| {
        if !is_old(path) || !held.iter().all(is_safe) {
            return true;
        }
        let gone = db.remove(path);
        match &gone {
            Ok(()) => removed += 1,
            Err(error) => warnings.push(format!("failed to remove {}: {error}", path.display())),
        }
        gone.is_err()
    });
    removed
}
