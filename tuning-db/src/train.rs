//! One training: ingest what is new, reduce it to evidence, learn every library that has something new, publish.
//!
//! A training learns from evidence alone, so its time does not grow with the records that were ever taken.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::Path;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use colltune_core::catalogue;
use colltune_core::context::{COLUMNS, DataKey};
use colltune_core::levers::learned::LearnedLever;
use colltune_core::model::{Model, Source};
use colltune_core::settings::Settings;
use colltune_core::space::Cell;
use colltune_core::variant::DEFAULT;
use colltune_models::spent::Spent;
use colltune_models::statistics::CellStatistics;
use colltune_models::{Context, learn};

use crate::database::{Database, DbError};
use crate::evidence::{Run, Said, Store};
use crate::gather;
use crate::generation::{self, Generation, Meta, shaped_by};
use crate::ingest::{IngestReport, Ingested, ingest, stale_before};
use crate::lock::Lock;
use crate::verdicts::Verdicts;
use crate::{levers, partition, runs, write};

/// What the caller of a training decides.
#[derive(Clone, Copy, Debug, Default)]
pub struct TrainOptions {
    /// Seed of the regressions.
    pub seed: Option<u64>,
    /// Publish a generation even if nothing is new.
    pub force: bool,
}

/// What a training did.
#[derive(Clone, Debug, PartialEq)]
pub struct TrainReport {
    pub ingest: IngestReport,
    pub libraries: Vec<LibraryReport>,
    /// What is in force of levers that programs ask about.
    pub levers: Vec<LearnedLever>,
}

/// What a training did for the data of one key.
#[derive(Clone, Debug, PartialEq)]
pub struct LibraryReport {
    pub library: DataKey,
    /// The generation in force now.
    pub generation: u64,
    /// Whether it is a new one.
    pub published: bool,
    pub runs: u64,
    pub records: u64,
    pub calls: u64,
    /// Rows of evidence: what the runs say of each variant at each shape.
    pub evidence: u64,
    /// Time of the recorded calls, mean over the ranks.
    pub seconds: f64,
    pub cells_measured: u64,
    /// Measured cells where another variant than `default` is best.
    pub cells_tuned: u64,
    /// Cells whose best variant is another one than in the generation before.
    pub cells_changed: u64,
    /// Raw partitions that were older than the site keeps them.
    pub partitions_removed: u64,
}

/// Trains a database. `progress` gets what goes on, in a few words at a time.
///
/// Errors: `Lock` while another training runs; `Io`, `Parquet`, `Learn`. Then nothing recorded is
/// lost and what was in force still is.
pub fn train(
    db: &Database,
    options: TrainOptions,
    progress: &dyn Fn(&str),
) -> Result<TrainReport, DbError> {
    let settings = db.settings()?;
    let lock = Lock::take(&db.lock_path())?;
    let mut warnings = Vec::new();
    let stale_before = stale_before(db, &settings);
    let mut stores: BTreeMap<DataKey, Store> = BTreeMap::new();
    let remove_unfinished = |folder: &Path| {
        if let Ok(folder) = db.folder(folder) {
            write::remove_unfinished(&folder);
        }
    };
    remove_unfinished(&db.runs());
    for key in db.keys()? {
        for folder in [
            db.data(&key),
            db.evidence(&key),
            db.generations(&key),
            db.library(&key),
        ] {
            remove_unfinished(&folder);
        }
        let store = Store::open(db, &key, &mut warnings)?;
        stores.insert(key, store);
    }
    let Ingested {
        mut report,
        mut footers,
    } = ingest(db, &lock, &settings, &stores, stale_before, progress)?;
    let refused = runs::take(db, stale_before, &mut warnings)?;
    report.quarantined.extend(refused);
    let levers = levers::learn(db, &mut warnings)?;
    let mut libraries = Vec::new();
    for key in db.keys()? {
        let mut store = match stores.remove(&key) {
            Some(store) => store,
            None => Store::open(db, &key, &mut warnings)?,
        };
        let mut footers = footers.remove(&key).unwrap_or_default();
        gather::reduce_new(db, &key, &mut store, &footers, &mut warnings, progress)?;
        let keep = settings.keep_raw;
        let removed = gather::remove_old(db, &mut footers, &store, keep, &mut warnings);
        partition::join_small(db, &footers, &mut warnings);
        store.compact(db, &key, &mut warnings)?;
        let mut training = Training {
            db,
            key: &key,
            settings: &settings,
            warnings: &mut warnings,
            progress,
        };
        let trained = training.run(&store, options)?;
        libraries.extend(trained.map(|trained| LibraryReport {
            partitions_removed: removed,
            ..trained
        }));
    }
    report.warnings.extend(warnings);
    let mut said = BTreeSet::new();
    report
        .warnings
        .retain(|warning| said.insert(warning.clone()));
    Ok(TrainReport {
        ingest: report,
        libraries,
        levers,
    })
}

/// The training of one key.
struct Training<'a> {
    db: &'a Database,
    key: &'a DataKey,
    settings: &'a Settings,
    warnings: &'a mut Vec<String>,
    progress: &'a dyn Fn(&str),
}

impl Training<'_> {
    fn run(
        &mut self,
        store: &Store,
        options: TrainOptions,
    ) -> Result<Option<LibraryReport>, DbError> {
        if store.runs().next().is_none() {
            return Ok(None);
        }
        self.warn_of_settings(store);
        let Training {
            db, key, settings, ..
        } = *self;
        let seed = options.seed.or(settings.seed).unwrap_or(1);
        let before = self.generation_before();
        let verdicts = Verdicts::of(db, key)?;
        let vetoes = verdicts.vetoes();
        let shaped_by = shaped_by(db, key, settings, seed, store.check_word(), &verdicts);
        if let Some(meta) = &before.meta
            && !options.force
            && meta.shaped_by == shaped_by
        {
            return Ok(Some(report(key, &before.cells, &before.cells, meta, false)));
        }
        (self.progress)(&format!("{key}: reading the evidence"));
        let started = Instant::now();
        let mut said = store.read(key.library, self.warnings);
        let began = said.started_unix_ms();
        verdicts.filter(&mut said.evidence, key.library, |run| {
            began.get(run as usize).copied().flatten()
        });
        (self.progress)(&format!("{key}: learning from {} runs", said.runs.len()));
        let machine = db.machine(settings);
        let number = Generation::next_number(db, key)?;
        let spent = self.spent(&said);
        let context = Context {
            settings,
            library: key.library,
            machine: &machine,
            generation: number,
            seed,
            previous: before.meta.is_some().then_some(&before.model),
            runs_before: said.n_runs_until(before.meta.as_ref().map_or(0, |meta| meta.sequence))
                as u32,
            copies: &said.copies,
            spent: Some(&spent),
            vetoes: &vetoes,
        };
        let learned = learn(&said.evidence, context).map_err(|error| DbError::Learn {
            key: key.clone(),
            error,
        })?;
        let notes = learned.notes.iter().map(|note| format!("{key}: {note}"));
        self.warnings.extend(notes);
        let measured = |cell: &&CellStatistics| cell.source == Source::Measured;
        let meta = Meta {
            machine,
            seed,
            cells_measured: learned.statistics.iter().filter(measured).count() as u64,
            shaped_by,
            work: learned.work,
            control: Some(learned.control),
            nothing_to_gain: learned.nothing_to_gain.clone(),
            learn_ms: started.elapsed().as_millis() as u64,
            ..self.meta(number, said)
        };
        (self.progress)(&format!("{key}: publishing generation {number}"));
        generation::publish(db, key, &learned, &settings.space, &meta)?;
        Ok(Some(report(
            key,
            &before.cells,
            &learned.statistics,
            &meta,
            true,
        )))
    }

    /// What the newest runs account for.
    fn spent(&mut self, said: &Said) -> Spent {
        let numbers = said.jobs.iter().zip(0..);
        let numbers: HashMap<&str, u32> = numbers.map(|(job, run)| (job.as_str(), run)).collect();
        let is_wanted = |job: &str| numbers.contains_key(job);
        let accounts = runs::newest(
            self.db,
            |run| runs::has_ended(run) && is_wanted(&run.job),
            self.warnings,
        );
        let those: HashSet<u32> = accounts
            .iter()
            .map(|run| numbers[run.job.as_str()])
            .collect();
        let accounted = accounts
            .iter()
            .flat_map(|run| &run.by_collective)
            .flat_map(|of| {
                let sizes = of.by_size.iter();
                sizes.map(|size| (of.collective, size.bytes, size.seconds))
            });
        let recorded = said.evidence.iter().filter(|row| those.contains(&row.run));
        Spent::new(accounted, recorded)
    }

    /// What `meta.json` says of what was learned from.
    fn meta(&self, generation: u64, said: Said) -> Meta {
        let sum = |count: fn(&Run) -> u64| said.runs.iter().map(count).sum();
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        Meta {
            schema: generation::SCHEMA,
            generation,
            library: self.key.to_string(),
            machine: String::new(),
            colltune_version: env!("CARGO_PKG_VERSION").to_owned(),
            created_unix_ms: now.unwrap_or_default().as_millis() as u64,
            seed: 0,
            runs: said.n_runs() as u64,
            records: sum(|run| run.records),
            calls: sum(|run| run.calls),
            evidence: said.evidence.len() as u64,
            sequence: said.sequences.last().copied().unwrap_or(0),
            seconds: said.seconds,
            cells_measured: 0,
            component: said.component().to_owned(),
            passed: said.passed,
            shaped_by: String::new(),
            work: 1.0,
            control: None,
            nothing_to_gain: String::new(),
            learn_ms: 0,
        }
    }

    fn generation_before(&mut self) -> Generation {
        let Training {
            db, key, settings, ..
        } = *self;
        Generation::load_known(db, key).unwrap_or_else(|error| {
            self.warnings
                .push(format!("failed to {error}; it is replaced"));
            Generation {
                number: 0,
                key: key.clone(),
                library: key.library,
                model: Model::initial(settings, key.library, &db.machine(settings)),
                cells: Vec::new(),
                meta: None,
            }
        })
    }

    /// Warns that runs with different settings of the library are one data set, or that this one is of runs whose
    /// users chose its algorithms.
    fn warn_of_settings(&mut self, store: &Store) {
        if self.key.told.is_some() {
            self.warnings.push(format!(
                "{}: in its runs the library was told which algorithms to run, by tables or by variables, or reductions \
                 kept a fixed order; they are learned from apart, and no tables are made of them",
                self.key
            ));
        }
        let place = COLUMNS.iter().position(|name| *name == "settings");
        let of = |run: &Run| place.map(|place| run.context[place].clone());
        let different: BTreeSet<String> = store.runs().filter_map(of).collect();
        if different.len() > 1 {
            let mut examples = different.iter().map(|text| format!("{text:?}"));
            let first: Vec<String> = examples.by_ref().take(2).collect();
            self.warnings.push(format!(
                "{}: its runs had {} different settings of the library ({}{}), which are learned from together",
                self.key,
                different.len(),
                first.join(", "),
                if different.len() > 2 { ", ..." } else { "" }
            ));
        }
    }
}

/// `before` and `after` are the cells of which something is known.
fn report(
    key: &DataKey,
    before: &[CellStatistics],
    after: &[CellStatistics],
    meta: &Meta,
    published: bool,
) -> LibraryReport {
    fn best(cells: &[CellStatistics]) -> BTreeMap<Cell, &str> {
        let best = cells.iter().map(|cell| (cell.cell, cell.best.as_str()));
        best.filter(|(_, best)| *best != DEFAULT).collect()
    }
    let (best_before, best_after) = (best(before), best(after));
    let of_either: BTreeSet<&Cell> = best_before.keys().chain(best_after.keys()).collect();
    let changed = |cell: &&&Cell| best_before.get(**cell) != best_after.get(**cell);
    let tuned = |cell: &&CellStatistics| {
        cell.source == Source::Measured && !catalogue::is_default(&cell.best)
    };
    LibraryReport {
        library: key.clone(),
        generation: meta.generation,
        published,
        runs: meta.runs,
        records: meta.records,
        calls: meta.calls,
        evidence: meta.evidence,
        seconds: meta.seconds,
        cells_measured: meta.cells_measured,
        cells_tuned: after.iter().filter(tuned).count() as u64,
        cells_changed: of_either.iter().filter(changed).count() as u64,
        partitions_removed: 0,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use colltune_core::collective::Collective;

    use super::*;
    use crate::test_support::{LIBRARY, Run as Job};
    use crate::verdicts::{CellChoice, ProgramVerdict};
    use crate::write::interruption;

    fn job(number: u64) -> Job {
        Job {
            calls: 60,
            recording_ranks: 2,
            ..Job::new(&format!("job{number}"), number)
        }
    }

    /// A database with so many trainings behind it that the next one joins its files.
    fn full(folder: &std::path::Path) -> Database {
        let settings = "machine = \"testing\"\nkeep_raw = \"0\"\n";
        fs::write(folder.join("colltune.toml"), settings).unwrap();
        let db = Database::create_or_open(folder).unwrap();
        for number in 0..16 {
            job(number).write(&db.incoming()).unwrap();
            train(&db, TrainOptions::default(), &|_| {}).unwrap();
        }
        job(16).write(&db.incoming()).unwrap();
        db
    }

    fn copy(from: &std::path::Path, to: &std::path::Path) {
        fs::create_dir_all(to).unwrap();
        for entry in fs::read_dir(from).unwrap() {
            let entry = entry.unwrap();
            let to = to.join(entry.file_name());
            if entry.path().is_dir() {
                copy(&entry.path(), &to);
            } else {
                fs::copy(entry.path(), to).unwrap();
            }
        }
    }

    fn said(db: &Database) -> Said {
        let mut warnings = Vec::new();
        let store = Store::open(db, &LIBRARY.into(), &mut warnings).unwrap();
        let said = store.read(LIBRARY, &mut warnings);
        assert_eq!(warnings, Vec::<String>::new());
        said
    }

    /// In two tests, which run beside each other.
    fn a_training_that_is_stopped_is_finished_rightly_by_the_next(first_step: u32) {
        let folder = tempfile::tempdir().unwrap();
        full(folder.path());
        let whole = tempfile::tempdir().unwrap();
        copy(folder.path(), whole.path());
        let whole = Database::open(whole.path()).unwrap();
        train(&whole, TrainOptions::default(), &|_| {}).unwrap();
        let expected = said(&whole);
        assert_eq!(expected.n_runs(), 17);
        for steps in (first_step..).step_by(2) {
            let other = tempfile::tempdir().unwrap();
            copy(folder.path(), other.path());
            let db = Database::open(other.path()).unwrap();
            interruption::after(steps);
            let stopped = train(&db, TrainOptions::default(), &|_| {});
            interruption::after(u32::MAX);
            let report = train(&db, TrainOptions::default(), &|_| {}).unwrap();
            let of_library = &report.libraries[0];
            let counts = (of_library.runs, of_library.records, of_library.calls);
            assert_eq!(counts, (17, 17 * 120, 17 * 60), "step {steps}");
            assert_eq!(said(&db).evidence, expected.evidence, "step {steps}");
            let raw = crate::partition::list(&db.data(LIBRARY)).unwrap();
            assert_eq!(raw, Vec::<std::path::PathBuf>::new(), "step {steps}");
            let left = fs::read_dir(db.incoming()).unwrap().count();
            assert_eq!(left, 0, "step {steps}");
            if stopped.is_ok_and(|report| report.ingest.warnings.is_empty()) {
                assert!(steps > 10, "the steps of a training: {steps}");
                return;
            }
        }
    }

    #[test]
    fn a_training_that_is_stopped_at_any_even_write_is_finished_rightly_by_the_next() {
        a_training_that_is_stopped_is_finished_rightly_by_the_next(0);
    }

    #[test]
    fn a_training_that_is_stopped_at_any_odd_write_is_finished_rightly_by_the_next() {
        a_training_that_is_stopped_is_finished_rightly_by_the_next(1);
    }

    /// What is chosen, with the share of the draws that it gets.
    fn chosen(db: &Database) -> Vec<(Cell, String, f64)> {
        let found = Generation::load(db, LIBRARY).unwrap();
        let tuned = found.cells.iter();
        let tuned = tuned.filter(|cell| !catalogue::is_default(&cell.best));
        let share = |cell: &CellStatistics| {
            let best = cell.variant(&cell.best).map_or(0.0, |one| one.probability);
            (cell.cell, cell.best.clone(), best)
        };
        tuned.map(share).collect()
    }

    #[test]
    fn a_choice_that_a_program_refuted_goes_back_to_the_default_and_is_earned_anew() {
        let folder = tempfile::tempdir().unwrap();
        let settings = "machine = \"testing\"\n";
        fs::write(folder.path().join("colltune.toml"), settings).unwrap();
        let db = Database::create_or_open(folder.path()).unwrap();
        let run = |numbers: std::ops::Range<u64>| {
            for number in numbers {
                let job = Job {
                    collectives: vec![Collective::Alltoall],
                    sizes: vec![8],
                    recording_ranks: 1,
                    ..Job::new(&format!("job{number}"), number)
                };
                job.write(&db.incoming()).unwrap();
            }
            train(&db, TrainOptions::default(), &|_| {}).unwrap()
        };
        run(0..6);
        let before = chosen(&db);
        assert!(!before.is_empty());
        let refute = |at_unix_ms| {
            let choices = before.iter().map(|(cell, variant, _)| CellChoice {
                cell: *cell,
                variant: variant.clone(),
            });
            let verdict = ProgramVerdict {
                at_unix_ms,
                ratio: 0.8,
                low: Some(0.75),
                high: Some(0.85),
                choices: choices.collect(),
                ..ProgramVerdict::default()
            };
            Verdicts::add(&db, &LIBRARY.into(), verdict).unwrap();
        };
        let refuted = |found: &[(Cell, String, f64)]| {
            let again = |(cell, variant, _): &(Cell, String, f64)| {
                found.iter().any(|one| one.0 == *cell && one.1 == *variant)
            };
            before.iter().filter(|one| !again(one)).count()
        };
        refute(1_700_000_000_000 + 10);
        // Without a new record: the verdict alone is news.
        let report = train(&db, TrainOptions::default(), &|_| {}).unwrap();
        assert!(report.libraries[0].published);
        assert_eq!(refuted(&chosen(&db)), before.len());
        let open = Generation::load(&db, LIBRARY).unwrap();
        for (cell, variant, _) in &before {
            let of_cell = open.cells.iter().find(|one| one.cell == *cell).unwrap();
            let share = of_cell.variant(variant).map(|one| one.probability);
            assert!(share.is_some_and(|share| share > 0.0), "{cell} {variant}");
            assert_eq!(of_cell.settled, "", "{cell}");
        }
        // Nothing older counts, however much of it there is; as much that is newer earns it.
        run(11..17);
        assert_eq!(refuted(&chosen(&db)), 0);
        // Refuted again it is earned again in the same way.
        refute(1_700_000_000_000 + 20);
        train(&db, TrainOptions::default(), &|_| {}).unwrap();
        assert_eq!(refuted(&chosen(&db)), before.len());
        run(21..27);
        assert_eq!(refuted(&chosen(&db)), 0);
    }
}
