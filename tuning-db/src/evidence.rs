//! Evidence: what each run says of each variant, kept for ever; all that a training reads.
//!
//! `DB/KEY/evidence/*.parquet` are immutable. Their footer (key `colltune.runs`) lists the runs that they speak of, each
//! with the records behind it (its [`Coverage`]); a row names its run by its place there. So a trainer may be killed
//! anywhere: what is on disk twice is known by what it covers, and counts once; what is not there yet is reduced by the
//! next training from the raw records. Names of collectives and variants are words, so that a catalogue of another
//! version loses nothing. Many small files are joined into one now and then.

mod columns;
mod rows;
mod run;

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use colltune_core::context::DataKey;
use colltune_core::library::Library;
use parquet::errors::ParquetError;

use columns::{Joined, columns};
use rows::Gathering;
use run::Stored;

pub(crate) use run::Fresh;
pub use run::{Run, Said};

use crate::check_word::check_word;
use crate::coverage::Coverage;
use crate::database::{Database, DbError};
use crate::dropped::Dropped;
use crate::owners::Owners;
use crate::partition::{self, publish_table, unreadable};
use crate::reduce::Names;
use crate::table::{self, Column, Table};

/// The version of the rows' meaning.
const SCHEMA: u32 = 1;
const RUNS_KEY: &str = "colltune.runs";
const SCHEMA_KEY: &str = "colltune.evidence";
/// So many files of less than so many bytes become one.
const SMALL_FILES_MAX: usize = 16;
const SMALL_FILE_BYTES: u64 = 8 << 20;

/// The evidence of one library, by what it covers; rows are on disk until somebody asks for them.
pub struct Store {
    files: Vec<Stored>,
    owners: Owners,
    dropped: Dropped,
}

impl Store {
    /// Looks at every file's footer. A file that cannot be read is left out, with a warning: where the raw records
    /// are there, what it said is reduced again.
    ///
    /// Errors: `Io` for a folder that cannot be read; `Owners` where nobody knows who and what is left out.
    pub fn open(
        db: &Database,
        key: &DataKey,
        warnings: &mut Vec<String>,
    ) -> Result<Store, DbError> {
        let mut files = Vec::new();
        for path in partition::list(&db.evidence(key))? {
            let bytes = path.metadata().map_or(0, |metadata| metadata.len());
            match runs_of(&path) {
                Ok(runs) => files.push(Stored {
                    superseded: vec![false; runs.len()],
                    counts: vec![true; runs.len()],
                    path,
                    bytes,
                    runs,
                }),
                Err(error) => warnings.push(format!("failed to {error}; it is left out")),
            }
        }
        let mut store = Store {
            files,
            owners: Owners::of(db, warnings)?,
            dropped: Dropped::of(db)?,
        };
        store.judge();
        Ok(store)
    }

    /// Finds out which runs count: of several that speak of the same records, the one that speaks of the most, else
    /// the newest. What is provisional counts only while nothing newer speaks of its run.
    fn judge(&mut self) {
        let mut by_job: BTreeMap<&str, Vec<(u64, usize, usize)>> = BTreeMap::new();
        for (file, stored) in self.files.iter().enumerate() {
            for (place, run) in stored.runs.iter().enumerate() {
                by_job
                    .entry(&run.job)
                    .or_default()
                    .push((run.sequence, file, place));
            }
        }
        let mut lost = Vec::new();
        for (_, mut same) in by_job.into_iter().filter(|(_, same)| same.len() > 1) {
            same.sort_unstable();
            let run = |&(_, file, place): &(u64, usize, usize)| &self.files[file].runs[place];
            let covers: Vec<Coverage> = same.iter().map(|one| covered(run(one))).collect();
            let newest = same.len() - 1;
            for (index, one) in same.iter().enumerate() {
                let is_contained = |(other, cover): (usize, &Coverage)| {
                    let stands = !run(&same[other]).provisional || other == newest;
                    let more = cover.contains(&covers[index]) && cover != &covers[index];
                    let again = other > index && cover == &covers[index];
                    other != index && stands && (more || again)
                };
                let is_past = run(one).provisional && index < newest;
                let kept = run(one).provisional && index == newest;
                if is_past || !kept && covers.iter().enumerate().any(is_contained) {
                    lost.push((one.1, one.2));
                }
            }
        }
        for (file, place) in lost {
            self.files[file].superseded[place] = true;
        }
        let Store {
            files,
            owners,
            dropped,
        } = self;
        for file in files {
            let runs = file.runs.iter().zip(&file.superseded);
            let counts = runs.map(|(run, superseded)| {
                !superseded && !dropped.has(&run.job) && owners.counts(run.owner, &run.job)
            });
            file.counts = counts.collect();
        }
    }

    /// Every run of which nothing else speaks, each with whether it counts.
    pub fn all_runs(&self) -> impl Iterator<Item = (&Run, bool)> {
        self.files.iter().flat_map(|file| {
            let runs = file.runs.iter().zip(&file.counts).zip(&file.superseded);
            let runs = runs.filter(|(_, superseded)| !**superseded);
            runs.map(|((run, counts), _)| (run, *counts))
        })
    }

    /// Whose each job is, where that is known.
    pub fn owners(&self) -> BTreeMap<&str, u32> {
        let runs = self.files.iter().flat_map(|file| &file.runs);
        let known = runs.filter_map(|run| Some((run.job.as_str(), run.owner?)));
        known.collect()
    }

    /// The runs that count.
    pub fn runs(&self) -> impl Iterator<Item = &Run> {
        self.files.iter().flat_map(|file| {
            let pairs = file.runs.iter().zip(&file.counts);
            pairs.filter_map(|(run, &counts)| counts.then_some(run))
        })
    }

    /// The files that can be read, each with which of its runs count, by their places in its footer.
    pub fn files(&self) -> impl Iterator<Item = (&Path, &[bool])> {
        let files = self.files.iter();
        files.map(|file| (file.path.as_path(), file.counts.as_slice()))
    }

    /// What is covered of each run, apart from what is provisional.
    pub fn covered(&self) -> BTreeMap<&str, Vec<Coverage>> {
        let mut by_job: BTreeMap<&str, Vec<Coverage>> = BTreeMap::new();
        for run in self.files.iter().flat_map(|file| &file.runs) {
            if !run.provisional {
                by_job.entry(&run.job).or_default().push(covered(run));
            }
        }
        by_job
    }

    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    fn next_sequence(&self) -> u64 {
        let runs = self.files.iter().flat_map(|file| &file.runs);
        runs.map(|run| run.sequence).max().unwrap_or(0) + 1
    }

    /// A word that is the same as long as the runs that count are.
    pub fn check_word(&self) -> u64 {
        let line = |run: &Run| format!("{} {} {:016x}", run.job, run.held, run.content);
        let mut lines: Vec<String> = self.runs().map(line).collect();
        lines.sort_unstable();
        check_word(lines.join("\n").as_bytes())
    }

    /// Publishes what was reduced, as one file.
    ///
    /// Errors: `Io` and `Parquet` (a full disk, for one); nothing is left behind then.
    pub(crate) fn publish(
        &mut self,
        db: &Database,
        key: &DataKey,
        names: &Names,
        mut fresh: Vec<Fresh>,
    ) -> Result<(), DbError> {
        if fresh.is_empty() {
            return Ok(());
        }
        let sequence = self.next_sequence();
        fresh.iter_mut().for_each(|one| one.run.sequence = sequence);
        let runs: Vec<Run> = fresh.iter().map(|one| one.run.clone()).collect();
        let columns = columns(key, names, &fresh);
        self.add(db, key, runs, &columns)?;
        self.judge();
        Ok(())
    }

    fn add(
        &mut self,
        db: &Database,
        key: &DataKey,
        runs: Vec<Run>,
        columns: &[Column<'_>],
    ) -> Result<(), DbError> {
        let folder = db.make_folder(&db.evidence(key))?;
        let text = serde_json::to_string(&runs).expect("numbers and names");
        let sequence = runs.iter().map(|run| run.sequence).max().unwrap_or(0);
        let word = check_word(text.as_bytes());
        let name = format!("{sequence:08}-{word:016x}.parquet");
        let path = folder.path().join(&name);
        let footer = vec![(SCHEMA_KEY, SCHEMA.to_string()), (RUNS_KEY, text)];
        publish_table(&folder, &name, |file| {
            table::write(file, "evidence", footer, columns)
        })?;
        self.files.retain(|file| file.path != path);
        self.files.push(Stored {
            bytes: path.metadata().map_or(0, |metadata| metadata.len()),
            superseded: vec![false; runs.len()],
            counts: vec![true; runs.len()],
            path,
            runs,
        });
        Ok(())
    }

    /// Joins small files where there are many, and leaves out what no longer counts.
    ///
    /// Errors: as [`Store::publish`]; a file that cannot be read or removed stays, with a warning.
    pub fn compact(
        &mut self,
        db: &Database,
        key: &DataKey,
        warnings: &mut Vec<String>,
    ) -> Result<(), DbError> {
        let small = |file: &Stored| file.bytes < SMALL_FILE_BYTES;
        if self.files.iter().filter(|file| small(file)).count() <= SMALL_FILES_MAX {
            return Ok(());
        }
        self.join(db, key, small, warnings)
    }

    /// Removes for good what files say of these jobs.
    ///
    /// Errors: as [`Store::publish`]; a file that cannot be read or removed stays, with a warning.
    pub(crate) fn forget(
        &mut self,
        db: &Database,
        key: &DataKey,
        jobs: &Dropped,
        warnings: &mut Vec<String>,
    ) -> Result<(), DbError> {
        for file in &mut self.files {
            for (run, superseded) in file.runs.iter().zip(&mut file.superseded) {
                *superseded |= jobs.has(&run.job);
            }
        }
        let speaks = |file: &Stored| file.runs.iter().any(|run| jobs.has(&run.job));
        self.join(db, key, speaks, warnings)
    }

    /// Makes some files one, without what something else speaks of.
    fn join(
        &mut self,
        db: &Database,
        key: &DataKey,
        wanted: impl Fn(&Stored) -> bool,
        warnings: &mut Vec<String>,
    ) -> Result<(), DbError> {
        let mut joined = Joined::default();
        let mut paths = Vec::new();
        for file in self.files.iter().filter(|file| wanted(file)) {
            match joined.add(file) {
                Ok(()) => paths.push(file.path.clone()),
                Err(error) => {
                    let error = unreadable(&file.path)(error);
                    warnings.push(format!("failed to {error}; it is left alone"));
                }
            }
        }
        let Joined { runs, columns } = joined;
        let columns = columns
            .iter()
            .map(|(name, kind, values)| Column::new(name, *kind, move || values.clone()));
        let is_left = !runs.is_empty();
        if is_left {
            self.add(db, key, runs, &columns.collect::<Vec<_>>())?;
        }
        for path in paths {
            // The file that holds them all may have one's name, where it holds nothing else.
            let newest = self.files.last().filter(|_| is_left);
            let is_new = newest.is_some_and(|file| file.path == path);
            if !is_new && let Err(error) = db.remove(&path) {
                warnings.push(format!("failed to remove {}: {error}", path.display()));
            }
            self.files.retain(|file| is_new || file.path != path);
        }
        self.judge();
        Ok(())
    }

    /// Reads every row that counts.
    ///
    /// A file that cannot be read is left out, with a warning.
    pub fn read(&self, library: Library, warnings: &mut Vec<String>) -> Said {
        let runs: Vec<Run> = self.runs().cloned().collect();
        // Parts of one run are one run; what was reduced later comes behind what was learned from before.
        let mut jobs: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
        for run in &runs {
            let (sequence, started) = jobs.entry(&run.job).or_insert((0, u64::MAX));
            *sequence = run.sequence.max(*sequence);
            *started = run.started_unix_ms.min(*started);
        }
        let mut jobs: Vec<_> = jobs.into_iter().map(|(job, when)| (when, job)).collect();
        jobs.sort_unstable();
        let places = jobs.iter().zip(0..);
        let places: HashMap<&str, u32> = places.map(|((_, job), place)| (*job, place)).collect();
        let mut said = Gathering::default();
        for file in &self.files {
            let wanted = file.runs.iter().zip(&file.counts);
            let wanted: Vec<Option<u32>> = wanted
                .map(|(run, &counts)| places.get(run.job.as_str()).copied().filter(|_| counts))
                .collect();
            if let Err(error) = said.add(&file.path, &wanted, library) {
                let error = unreadable(&file.path)(error);
                warnings.push(format!("failed to {error}; it is left out"));
            }
        }
        let sequences = jobs.iter().map(|((sequence, _), _)| *sequence).collect();
        let jobs = jobs.iter().map(|(_, job)| (*job).to_owned()).collect();
        said.finish((runs.clone(), jobs), sequences)
    }
}

/// The names of the columns, each with what it holds: `integer`, `real` or `text`.
pub fn layout() -> Vec<(&'static str, &'static str)> {
    let layout = columns::layout().into_iter();
    layout.map(|(name, kind)| (name, kind.holds())).collect()
}

fn covered(run: &Run) -> Coverage {
    run.held.parse().unwrap_or_default()
}

fn runs_of(path: &Path) -> Result<Vec<Run>, DbError> {
    let read = || -> Result<_, ParquetError> {
        let table = Table::open(path)?;
        let problem = |text: String| ParquetError::General(text);
        let schema = table.footer(SCHEMA_KEY).unwrap_or("none");
        if schema != SCHEMA.to_string() {
            return Err(problem(format!(
                "it has version {schema}, this colltune reads {SCHEMA}"
            )));
        }
        let text = table.footer(RUNS_KEY);
        let text = text.ok_or_else(|| problem(format!("its footer has no {RUNS_KEY}")))?;
        let runs: Vec<Run> =
            serde_json::from_str(text).map_err(|error| problem(error.to_string()))?;
        match runs.iter().all(|run| run.held.parse::<Coverage>().is_ok()) {
            true => Ok(runs),
            false => Err(problem(
                "its footer does not say which records it covers".to_owned(),
            )),
        }
    };
    read().map_err(unreadable(path))
}
