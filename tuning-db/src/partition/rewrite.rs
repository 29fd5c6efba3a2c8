//! Partitions written anew: without some jobs, or many small ones as one.
//!
//! The new file is complete before the old ones go. Where a training ends between the two, both hold the same records:
//! who reads leaves the old ones out ([`standing`]), and the next training removes them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::{Footers, Held, TRACES_KEY, columns, footers, held_by, publish_table, unreadable};
use crate::check_word::check_word;
use crate::database::{Database, DbError, at};
use crate::folder::parts;
use crate::table::{self, Column, Table};

/// So many partitions of fewer than so many records stay as they are.
const SMALL_FILES_MAX: usize = 16;
const SMALL_RECORDS: u64 = 1 << 17;
/// What one training joins of a key: one file of so many records, out of so many files.
const JOINED_RECORDS: u64 = 1 << 19;
const JOINED_FILES_MAX: usize = 128;
/// Only what was written in the same week is joined, so that no record stays for longer than that beyond its time.
const WEEK_S: u64 = 7 * 86_400;

/// A partition to be written anew.
struct Part {
    path: PathBuf,
    table: Table,
    held: Vec<Held>,
}

impl Part {
    fn open(path: &Path) -> Result<Part, DbError> {
        let table = Table::open(path).map_err(unreadable(path))?;
        let held = held_by(&table).map_err(unreadable(path))?;
        let path = path.to_owned();
        Ok(Part { path, table, held })
    }

    /// By column whether the file has it.
    fn layout(&self) -> Vec<bool> {
        let columns = columns(&[]);
        let has = columns.iter().map(|column| self.table.has(column.name));
        has.collect()
    }
}

/// Writes a partition anew without some jobs, and removes it; one without any of them stays as it is.
///
/// Errors: `Io` and `Parquet`; then the partition is still there.
pub(crate) fn remove_jobs(
    db: &Database,
    path: &Path,
    is_wanted: impl Fn(&str) -> bool,
) -> Result<(), DbError> {
    let part = Part::open(path)?;
    match part.held.iter().all(|held| is_wanted(&held.job)) {
        true => Ok(()),
        false => rewrite(db, &[part], |held| is_wanted(&held.job)),
    }
}

/// Joins small partitions where there are many, and removes those whose records another one holds. Only the holder of
/// the lock may call it. What fails leaves the partitions as they are, with a warning.
pub(crate) fn join_small(db: &Database, footers: &Footers, warnings: &mut Vec<String>) {
    let past = superseded(footers);
    for path in &past {
        if let Err(error) = db.remove(path) {
            let path = path.display();
            warnings.push(format!("failed to remove {path}: {error}"));
        }
    }
    let mut by_week: BTreeMap<u64, Vec<(&Path, u64)>> = BTreeMap::new();
    for (path, held) in footers.iter().filter(|(path, _)| !past.contains(*path)) {
        let records = held.iter().map(|held| held.count).sum();
        // One that is gone had its time.
        if let Some(week) = week(path).filter(|_| records < SMALL_RECORDS) {
            by_week.entry(week).or_default().push((path, records));
        }
    }
    let last = by_week.keys().last().copied();
    for (week, files) in by_week {
        let is_over = Some(week) != last;
        if files.len() <= SMALL_FILES_MAX && !(is_over && files.len() > 1) {
            continue;
        }
        match join(db, &files) {
            Ok(false) => {}
            Ok(true) => return,
            Err(error) => warnings.push(format!("failed to {error}; small files stay")),
        }
    }
}

/// Whether some of these files have become one. Those of other versions' columns are not joined with them.
fn join(db: &Database, files: &[(&Path, u64)]) -> Result<bool, DbError> {
    let mut by_layout: BTreeMap<Vec<bool>, Vec<Part>> = BTreeMap::new();
    let mut left = JOINED_RECORDS;
    for (path, records) in files.iter().take(JOINED_FILES_MAX) {
        let Some(rest) = left.checked_sub(*records) else {
            break;
        };
        left = rest;
        let part = Part::open(path)?;
        by_layout.entry(part.layout()).or_default().push(part);
    }
    let most = by_layout.into_values().max_by_key(Vec::len);
    let Some(parts) = most.filter(|parts| parts.len() > 1) else {
        return Ok(false);
    };
    let mut taken = BTreeSet::new();
    rewrite(db, &parts, |held| taken.insert(held.clone()))?;
    Ok(true)
}

/// Writes partitions of the same columns as one, with the traces that are wanted, and removes them. It is as old as the
/// newest of them.
fn rewrite(
    db: &Database,
    old: &[Part],
    mut is_wanted: impl FnMut(&Held) -> bool,
) -> Result<(), DbError> {
    let (parent, name) = parts(&old[0].path);
    let mut left = Vec::new();
    let mut rows: Vec<Vec<bool>> = Vec::new();
    for part in old {
        let mut of_part = Vec::with_capacity(part.table.rows());
        for held in &part.held {
            let wanted = is_wanted(held);
            of_part.extend(std::iter::repeat_n(wanted, held.count as usize));
            left.extend(wanted.then_some(held));
        }
        rows.push(of_part);
    }
    let mut published = None;
    if !left.is_empty() {
        let text = serde_json::to_string(&left).expect("numbers and names");
        let word = check_word(text.as_bytes());
        let name = name.to_string_lossy();
        // Partitions are listed by the times of their first runs.
        let started = name.split('-').next().unwrap_or("0");
        let name = format!("{started}-{word:016x}.parquet");
        let written = old.iter().filter_map(|part| written(&part.path)).max();
        let columns = columns_of(old, &rows);
        publish_table(&db.folder(parent)?, &name, |file| {
            let same_file = file.try_clone()?;
            table::write(file, "record", vec![(TRACES_KEY, text)], &columns)?;
            written.map_or(Ok(()), |written| Ok(same_file.set_modified(written)?))
        })?;
        published = Some(parent.join(name));
    }
    for part in old
        .iter()
        .filter(|part| Some(&part.path) != published.as_ref())
    {
        db.remove(&part.path).map_err(at("remove", &part.path))?;
    }
    Ok(())
}

/// Columns of the rows that are wanted, each read when it is written.
fn columns_of<'a>(old: &'a [Part], rows: &'a [Vec<bool>]) -> Vec<Column<'a>> {
    let of = |(name, kind)| {
        Column::read(name, kind, move || {
            let mut all = kind.none();
            for (part, rows) in old.iter().zip(rows) {
                let values = part.table.values(name, kind)?;
                all.append(values.only(|row| rows[row]));
            }
            Ok(all)
        })
    };
    let all = columns(&[]).into_iter();
    let there = all.filter(|column| old[0].table.has(column.name));
    there.map(|column| of((column.name, column.kind))).collect()
}

fn written(path: &Path) -> Option<SystemTime> {
    path.metadata().and_then(|found| found.modified()).ok()
}

fn week(path: &Path) -> Option<u64> {
    let since = written(path)?.duration_since(SystemTime::UNIX_EPOCH);
    Some(since.map_or(0, |since| since.as_secs() / WEEK_S))
}

/// As [`footers`], each record once: without the partitions whose records another one holds, too, as while small ones are
/// joined.
///
/// Errors: as [`list`].
pub fn standing(folder: &Path, warnings: &mut Vec<String>) -> Result<Footers, DbError> {
    let mut footers = footers(folder, warnings)?;
    let past = superseded(&footers);
    footers.retain(|path, _| !past.contains(path));
    Ok(footers)
}

/// The partitions of which another one holds every trace.
fn superseded(footers: &Footers) -> BTreeSet<PathBuf> {
    let mut holders: BTreeMap<&Held, Vec<&Path>> = BTreeMap::new();
    for (path, held) in footers {
        for held in held {
            holders.entry(held).or_default().push(path);
        }
    }
    let mut past: BTreeSet<PathBuf> = BTreeSet::new();
    for (path, held) in footers {
        let first = held.first().map_or(&[][..], |held| &holders[held]);
        let others = first
            .iter()
            .filter(|other| **other != path && !past.contains(**other));
        let mut others = others.filter(|other| footers[**other].len() >= held.len());
        let is_held = |other: &&Path| held.iter().all(|one| holders[one].contains(other));
        if others.any(is_held) {
            past.insert(path.clone());
        }
    }
    past
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::Duration;

    use tempfile::TempDir;

    use super::*;
    use crate::ingest::ingest;
    use crate::lock::Lock;
    use crate::partition::{footers, list, read};
    use crate::test_support::{LIBRARY, Run};
    use crate::write::interruption;

    /// A database with so many partitions, each of one job.
    fn partitions(count: u64) -> (TempDir, Database) {
        let folder = tempfile::tempdir().unwrap();
        fs::write(
            folder.path().join("colltune.toml"),
            "machine = \"testing\"\n",
        )
        .unwrap();
        let db = Database::create_or_open(folder.path()).unwrap();
        let settings = db.settings().unwrap();
        let lock = Lock::take(&db.lock_path()).unwrap();
        for number in 0..count {
            let run = Run {
                calls: 6 + number,
                recording_ranks: 2,
                ..Run::new(&format!("job{number}"), number)
            };
            run.write(&db.incoming()).unwrap();
            ingest(
                &db,
                &lock,
                &settings,
                &BTreeMap::new(),
                SystemTime::UNIX_EPOCH,
                &|_| {},
            )
            .unwrap();
        }
        assert_eq!(files(&db).len() as u64, count);
        (folder, db)
    }

    fn files(db: &Database) -> Vec<PathBuf> {
        list(&db.data(LIBRARY)).unwrap()
    }

    fn joined(db: &Database) -> Vec<String> {
        let mut warnings = Vec::new();
        let found = footers(&db.data(LIBRARY), &mut warnings).unwrap();
        join_small(db, &found, &mut warnings);
        warnings
    }

    /// What a reader finds, by trace: some numbers and some words.
    fn records(db: &Database) -> Vec<(Held, Vec<String>)> {
        let mut all = Vec::new();
        let found = standing(&db.data(LIBRARY), &mut Vec::new()).unwrap();
        for path in found.keys() {
            let (held, columns) = read(path).unwrap();
            let mut rows = 0..columns.call.len();
            for held in held {
                let of_trace = rows.by_ref().take(held.count as usize).map(|row| {
                    let (start, variant) = (columns.start_ns[row], &columns.variant[row]);
                    let (time, first) = (columns.mean_time_ns[row], &columns.context[0][row]);
                    format!("{start} {variant:?} {time:?} {first:?}")
                });
                let of_trace = of_trace.collect();
                all.push((held, of_trace));
            }
        }
        all.sort();
        all
    }

    fn set_written(path: &Path, written: SystemTime) {
        let file = fs::File::options().write(true).open(path).unwrap();
        file.set_modified(written).unwrap();
    }

    #[test]
    fn many_small_partitions_become_one_of_the_same_records_and_a_few_stay() {
        let (_few, few) = partitions(SMALL_FILES_MAX as u64);
        assert_eq!(joined(&few), Vec::<String>::new());
        assert_eq!(files(&few).len(), SMALL_FILES_MAX);
        let (_many, many) = partitions(SMALL_FILES_MAX as u64 + 1);
        let before = records(&many);
        assert_eq!(before.len(), 2 * (SMALL_FILES_MAX + 1));
        assert_eq!(joined(&many), Vec::<String>::new());
        assert_eq!((files(&many).len(), records(&many)), (1, before));
    }

    /// Raw records have their time, which a new file must not prolong.
    #[test]
    fn only_what_was_written_in_one_week_is_joined_and_it_is_as_old_as_the_newest_of_it() {
        let (_folder, db) = partitions(5);
        let before = records(&db);
        let monday = SystemTime::UNIX_EPOCH + Duration::from_secs(2800 * WEEK_S);
        let hours = |hours: u64| monday + Duration::from_secs(3600 * hours);
        for (path, at) in files(&db).iter().zip([1, 160, 80, 169, 170].map(hours)) {
            set_written(path, at);
        }
        assert_eq!(joined(&db), Vec::<String>::new());
        let times: Vec<_> = files(&db).iter().filter_map(|path| written(path)).collect();
        assert_eq!(times, [160, 169, 170].map(hours));
        assert_eq!(records(&db), before);
        assert_eq!(joined(&db), Vec::<String>::new());
        assert_eq!(files(&db).len(), 3, "the newest week goes on");
    }

    #[test]
    fn where_joining_ends_at_any_write_each_record_is_there_once_and_the_next_goes_on() {
        let (folder, db) = partitions(SMALL_FILES_MAX as u64 + 1);
        let before = records(&db);
        let old = files(&db);
        let aside = folder.path().join("aside");
        fs::create_dir(&aside).unwrap();
        for path in &old {
            fs::copy(path, aside.join(path.file_name().unwrap())).unwrap();
        }
        for steps in 0.. {
            for path in files(&db) {
                fs::remove_file(path).unwrap();
            }
            for path in &old {
                fs::copy(aside.join(path.file_name().unwrap()), path).unwrap();
            }
            interruption::after(steps);
            let warnings = joined(&db);
            interruption::after(u32::MAX);
            let found = footers(&db.data(LIBRARY), &mut Vec::new()).unwrap();
            assert_eq!(records(&db), before, "step {steps}: {:?}", found.keys());
            assert_eq!(joined(&db), Vec::<String>::new(), "step {steps}");
            assert_eq!((files(&db).len(), records(&db)), (1, before.clone()));
            if warnings.is_empty() {
                assert!(steps > old.len() as u32, "the steps: {steps}");
                return;
            }
        }
    }
}
