//! One training: ingest what is new, learn every library that has something new, publish.

use std::collections::{BTreeMap, HashMap};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use colltune_core::catalogue;
use colltune_core::collective::Collective;
use colltune_core::library::Library;
use colltune_core::model::{Model, Source};
use colltune_core::record::Manner;
use colltune_core::settings::Settings;
use colltune_core::variant::DEFAULT;
use colltune_models::baseline::call::Row;
use colltune_models::baseline::{Context, learn};
use colltune_models::statistics::CellStatistics;

use crate::database::{Database, DbError};
use crate::generation::{self, Generation, Meta, settings_line};
use crate::ingest::{IngestReport, ingest};
use crate::lock::Lock;
use crate::partition::{self, Columns};
use crate::passed::{self, Passed};
use crate::write;

/// How many records one training learns from; of more, the newest.
const RECORDS_MAX: usize = 1 << 23;
/// How many runs `meta.json` names.
const JOBS_NAMED: usize = 1000;

/// What the caller of a training decides.
#[derive(Clone, Copy, Debug, Default)]
pub struct TrainOptions {
    /// Take what running jobs recorded so far.
    pub include_running: bool,
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
}

/// What a training did for one library.
#[derive(Clone, Debug, PartialEq)]
pub struct LibraryReport {
    pub library: Library,
    /// The generation in force now.
    pub generation: u64,
    /// Whether it is a new one.
    pub published: bool,
    pub runs: u64,
    pub records: u64,
    pub calls: u64,
    pub cells_measured: u64,
    /// Measured cells where another variant than `default` is best.
    pub cells_tuned: u64,
    /// Cells whose best variant is another one than in the generation before.
    pub cells_changed: u64,
}

/// Trains a database. `progress` is told what goes on, in a few words at a time.
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
    let mut ingest = ingest(db, &lock, &settings, options.include_running, progress)?;
    let mut libraries = Vec::new();
    for library in db.libraries()? {
        write::remove_unfinished(&db.generations(library));
        write::remove_unfinished(&db.library(library));
        libraries.extend(train_library(
            db,
            library,
            &settings,
            options,
            &mut ingest.warnings,
            progress,
        )?);
    }
    Ok(TrainReport { ingest, libraries })
}

fn train_library(
    db: &Database,
    library: Library,
    settings: &Settings,
    options: TrainOptions,
    warnings: &mut Vec<String>,
    progress: &dyn Fn(&str),
) -> Result<Option<LibraryReport>, DbError> {
    let paths = partition::list(&db.data(library))?;
    let partitions: Vec<String> = paths
        .iter()
        .map(|path| {
            path.file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned()
        })
        .collect();
    if partitions.is_empty() {
        return Ok(None);
    }
    let machine = db.machine(settings);
    let seed = options.seed.or(settings.seed).unwrap_or(1);
    let before = Generation::load(db, library).unwrap_or_else(|error| {
        warnings.push(format!("failed to {error}; it is replaced"));
        let model = Model::initial(settings, library, &machine);
        Generation {
            number: 0,
            library,
            model,
            cells: Vec::new(),
            meta: None,
        }
    });
    let shape = settings_line(settings, &machine);
    if let Some(meta) = &before.meta
        && !options.force
        && (&meta.partitions, &meta.settings, meta.seed) == (&partitions, &shape, seed)
        && meta.colltune_version == env!("CARGO_PKG_VERSION")
    {
        return Ok(Some(report(&before, &before, meta, false)));
    }
    progress(&format!("{library}: reading the data set"));
    let started = Instant::now();
    let Read { rows, jobs, passed } = read_rows(&paths, library, warnings);
    let records = rows.len() as u64;
    progress(&format!(
        "{library}: learning from {records} records of {} runs",
        jobs.len()
    ));
    let number = Generation::next_number(db, library)?;
    let context = Context {
        settings,
        library,
        machine: &machine,
        generation: number,
        seed,
    };
    let learned = learn(rows, context).map_err(|error| DbError::Learn { library, error })?;
    let measured = |cell: &&CellStatistics| cell.source == Source::Measured;
    let meta = Meta {
        schema: generation::SCHEMA,
        generation: number,
        library: library.to_string(),
        machine: machine.clone(),
        colltune_version: env!("CARGO_PKG_VERSION").to_owned(),
        created_unix_ms: SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default()
            .as_millis() as u64,
        seed,
        runs: jobs.len() as u64,
        records,
        calls: learned.calls,
        cells_measured: learned.statistics.iter().filter(measured).count() as u64,
        jobs: if jobs.len() <= JOBS_NAMED {
            jobs
        } else {
            Vec::new()
        },
        partitions,
        passed,
        settings: shape,
        learn_ms: started.elapsed().as_millis() as u64,
        checks: HashMap::new(),
    };
    progress(&format!("{library}: publishing generation {number}"));
    generation::publish(db, library, &learned, &settings.space, meta)?;
    let after = Generation::load(db, library)?;
    let meta = after.meta.clone().expect("a published generation has one");
    Ok(Some(report(&before, &after, &meta, true)))
}

fn report(before: &Generation, after: &Generation, meta: &Meta, published: bool) -> LibraryReport {
    let best_before: HashMap<_, &str> = before
        .cells
        .iter()
        .map(|cell| (cell.cell, cell.best.as_str()))
        .collect();
    let changed = |cell: &&CellStatistics| {
        best_before.get(&cell.cell).copied().unwrap_or(DEFAULT) != cell.best
    };
    let tuned = |cell: &&CellStatistics| {
        cell.source == Source::Measured && !catalogue::is_default(&cell.best)
    };
    LibraryReport {
        library: after.library,
        generation: after.number,
        published,
        runs: meta.runs,
        records: meta.records,
        calls: meta.calls,
        cells_measured: meta.cells_measured,
        cells_tuned: after.cells.iter().filter(tuned).count() as u64,
        cells_changed: after.cells.iter().filter(changed).count() as u64,
    }
}

/// What a training learns from.
struct Read {
    rows: Vec<Row>,
    /// Sorted.
    jobs: Vec<String>,
    passed: Vec<Passed>,
}

/// The records of all partitions, newest first up to [`RECORDS_MAX`], and the sorted runs.
///
/// Variants that this colltune does not know are left out; their records stay in the data set.
fn read_rows(paths: &[std::path::PathBuf], library: Library, warnings: &mut Vec<String>) -> Read {
    let mut passed = passed::Count::default();
    let mut jobs: BTreeMap<String, u32> = BTreeMap::new();
    let mut rows = Vec::new();
    for path in paths.iter().rev() {
        if rows.len() >= RECORDS_MAX {
            warnings.push(format!(
                "{library} has more records than one training reads; the oldest were left out"
            ));
            break;
        }
        match partition::read(path) {
            Ok(columns) => {
                passed.add(&columns);
                append(&columns, library, &mut jobs, &mut rows);
            }
            Err(error) => warnings.push(format!("failed to {error}; it is left out")),
        }
    }
    // Numbers in the order of the names, however the partitions were cut.
    let mut place = vec![0; jobs.len()];
    for (sorted, first_seen) in jobs.values().enumerate() {
        place[*first_seen as usize] = sorted as u32;
    }
    rows.iter_mut()
        .for_each(|row| row.job = place[row.job as usize]);
    Read {
        rows,
        jobs: jobs.into_keys().collect(),
        passed: passed.finish(),
    }
}

/// What a pair of names stands for in the catalogue, if anything.
type Found = Option<(Collective, u16)>;

fn append(
    columns: &Columns,
    library: Library,
    jobs: &mut BTreeMap<String, u32>,
    rows: &mut Vec<Row>,
) {
    let mut variants: HashMap<(Vec<u8>, Vec<u8>), Found> = HashMap::new();
    let mut find = |collective: &[u8], variant: &[u8]| {
        *variants
            .entry((collective.to_vec(), variant.to_vec()))
            .or_insert_with(|| {
                let collective = Collective::from_name(std::str::from_utf8(collective).ok()?)?;
                let names = catalogue::variants(library, collective);
                let place = names
                    .iter()
                    .position(|known| known.name.to_string().as_bytes() == variant)?;
                Some((collective, place as u16))
            })
    };
    rows.reserve(columns.job.len());
    let mut last_job: Option<(&[u8], u32)> = None;
    let mut last_variant: Option<(&[u8], &[u8], Found)> = None;
    for index in 0..columns.job.len() {
        let job = columns.job[index].data();
        let job = match last_job {
            Some((name, number)) if name == job => number,
            _ => {
                let next = jobs.len() as u32;
                let number = *jobs
                    .entry(String::from_utf8_lossy(job).into_owned())
                    .or_insert(next);
                last_job = Some((job, number));
                number
            }
        };
        let (collective, variant) = (
            columns.collective[index].data(),
            columns.variant[index].data(),
        );
        let found = match last_variant {
            Some((a, b, found)) if (a, b) == (collective, variant) => found,
            _ => {
                let found = find(collective, variant);
                last_variant = Some((collective, variant, found));
                found
            }
        };
        let Some((collective, variant)) = found else {
            continue;
        };
        if columns.manner[index] != Manner::Blocking {
            continue;
        }
        rows.push(Row {
            job,
            comm: columns.comm[index],
            call: columns.call[index],
            duration_ns: columns.duration_ns[index],
            bytes: columns.message_bytes[index],
            nodes: columns.nodes[index],
            ppn: columns.ppn[index],
            n_ranks: columns.n_ranks[index],
            variant,
            collective,
        });
    }
}
