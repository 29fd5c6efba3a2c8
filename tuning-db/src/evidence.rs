//! Evidence: what each run says of each variant; all that a training reads.
//!
//! `DB/KEY/evidence/*.parquet` are immutable. Their footer (key `colltune.runs`) lists the runs that they speak of, each
//! with the records behind it (its [`Coverage`]); a row names its run by its place there. So a trainer may be killed
//! anywhere. A run that is on disk twice is known by what it covers, and counts once. The next training reduces a
//! missing run from its raw records. Names of collectives and variants are words, so that a catalogue of another
//! version loses nothing. Many small files are joined into one now and then.
//!
//! Of old runs ever fewer are learned from ([`thin`]). The others' rows go, and their entries in the footers stay: what was
//! learned once is known for ever, and not reduced from raw records again.

mod columns;
mod rows;
mod run;
mod thin;

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use colltune_core::context::DataKey;
use colltune_core::library::Library;
use parquet::errors::ParquetError;

use columns::{Joined, columns};
use rows::Gathering;
use run::Stored;

pub(crate) use run::Fresh;
pub use run::{Run, Said, Standing};

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
/// What one training rewrites of files at most, and how much of it at a time: in memory it takes ten times as much.
const REWRITTEN_BYTES_MAX: u64 = 64 << 20;
const JOINED_BYTES: u64 = 16 << 20;

/// The evidence of one library, by what it covers; rows are read when they are asked for.
pub struct Store {
    files: Vec<Stored>,
    owners: Owners,
    dropped: Dropped,
}

impl Store {
    /// Looks at every file's footer. A file that cannot be read is left out, with a warning: where the raw records
    /// are there, what it said is reduced again.
    ///
    /// Errors: `Io` for a folder that cannot be read; `Owners` where the lists of left-out users and runs cannot.
    pub fn open(
        db: &Database,
        key: &DataKey,
        warnings: &mut Vec<String>,
    ) -> Result<Store, DbError> {
        let mut files = Vec::new();
        for path in partition::list(&db.evidence(key))? {
            match runs_of(&path) {
                Ok(runs) => files.push(Stored::new(path, runs)),
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
    /// the newest. What is provisional never counts.
    fn judge(&mut self) {
        let mut lost = Vec::new();
        let mut by_job: BTreeMap<&str, Vec<(u64, usize, usize)>> = BTreeMap::new();
        for (file, stored) in self.files.iter().enumerate() {
            for (place, run) in stored.runs.iter().enumerate() {
                if run.provisional {
                    lost.push((file, place));
                    continue;
                }
                by_job
                    .entry(&run.job)
                    .or_default()
                    .push((run.sequence, file, place));
            }
        }
        for (_, mut same) in by_job.into_iter().filter(|(_, same)| same.len() > 1) {
            same.sort_unstable();
            let run = |&(_, file, place): &(u64, usize, usize)| &self.files[file].runs[place];
            let covers: Vec<Coverage> = same.iter().map(|one| covered(run(one))).collect();
            for (index, one) in same.iter().enumerate() {
                let is_contained = |(other, cover): (usize, &Coverage)| {
                    let more = cover.contains(&covers[index]) && cover != &covers[index];
                    let again = other > index && cover == &covers[index];
                    other != index && (more || again)
                };
                if covers.iter().enumerate().any(is_contained) {
                    lost.push((one.1, one.2));
                }
            }
        }
        for (file, place) in lost {
            self.files[file].superseded[place] = true;
        }
        thin::thin(&mut self.files);
        let Store {
            files,
            owners,
            dropped,
        } = self;
        for file in files {
            let counts = (0..file.runs.len()).map(|place| {
                let run = &file.runs[place];
                let is_wanted = !dropped.has(&run.job) && owners.counts(run.owner, &run.job);
                file.keeps_rows(place) && is_wanted
            });
            file.counts = counts.collect();
        }
    }

    /// Every run of which nothing else speaks, each with what it is to a training.
    pub fn all_runs(&self) -> impl Iterator<Item = (&Run, Standing)> {
        self.files.iter().flat_map(|file| {
            let places = (0..file.runs.len()).filter(|&place| !file.superseded[place]);
            places.map(|place| {
                let standing = match (file.counts[place], file.thinned[place]) {
                    (true, _) => Standing::Counts,
                    (false, true) => Standing::Thinned,
                    (false, false) => Standing::LeftOut,
                };
                (&file.runs[place], standing)
            })
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
        self.files.push(Stored::new(path, runs));
        Ok(())
    }

    /// Joins small files where there are many, and rewrites those of which most may go. Files of which all may go are not
    /// read; of the others no more than so many bytes are in one training.
    ///
    /// Errors: as [`Store::publish`]; a file that cannot be read or removed stays, with a warning.
    pub fn compact(
        &mut self,
        db: &Database,
        key: &DataKey,
        warnings: &mut Vec<String>,
    ) -> Result<(), DbError> {
        let is_small = |file: &Stored| file.bytes < SMALL_FILE_BYTES;
        let are_many = self.files.iter().filter(|file| is_small(file)).count() > SMALL_FILES_MAX;
        let mut left = REWRITTEN_BYTES_MAX;
        let wanted = self.files.iter().filter(|file| {
            let (kept, spare) = file.kept_and_spare();
            let cost = if kept > 0 { file.bytes } else { 0 };
            let wanted = (spare > kept || are_many && is_small(file)) && cost <= left;
            left -= if wanted { cost } else { 0 };
            wanted
        });
        let wanted: Vec<PathBuf> = wanted.map(|file| file.path.clone()).collect();
        self.join(db, key, &wanted, warnings)
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
        let speaks = |file: &&Stored| file.runs.iter().any(|run| jobs.has(&run.job));
        let wanted = self.files.iter().filter(speaks);
        let wanted: Vec<PathBuf> = wanted.map(|file| file.path.clone()).collect();
        self.join(db, key, &wanted, warnings)
    }

    /// Makes some files fewer, without what something else speaks of and without the rows that may go.
    fn join(
        &mut self,
        db: &Database,
        key: &DataKey,
        wanted: &[PathBuf],
        warnings: &mut Vec<String>,
    ) -> Result<(), DbError> {
        let mut wanted = wanted;
        while !wanted.is_empty() {
            let mut joined = Joined::new();
            let mut paths = Vec::new();
            let mut bytes = 0;
            while let Some((path, rest)) = wanted.split_first().filter(|_| bytes < JOINED_BYTES) {
                wanted = rest;
                let Some(file) = self.files.iter().find(|file| file.path == *path) else {
                    continue;
                };
                bytes += file.bytes;
                match joined.add(file) {
                    Ok(()) => paths.push(path.clone()),
                    Err(error) => {
                        let error = unreadable(path)(error);
                        warnings.push(format!("failed to {error}; it is left alone"));
                    }
                }
            }
            self.replace(db, key, joined, &paths, warnings)?;
        }
        self.judge();
        Ok(())
    }

    /// Puts one file in the place of others, which go when it is there.
    fn replace(
        &mut self,
        db: &Database,
        key: &DataKey,
        Joined { runs, columns }: Joined,
        paths: &[PathBuf],
        warnings: &mut Vec<String>,
    ) -> Result<(), DbError> {
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
            let is_new = newest.is_some_and(|file| file.path == *path);
            if !is_new && let Err(error) = db.remove(path) {
                warnings.push(format!("failed to remove {}: {error}", path.display()));
            }
            self.files.retain(|file| is_new || file.path != *path);
        }
        Ok(())
    }

    /// Reads every row that counts. A file without any is not opened.
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
        let counting = |file: &&Stored| file.counts.contains(&true);
        for file in self.files.iter().filter(counting) {
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
