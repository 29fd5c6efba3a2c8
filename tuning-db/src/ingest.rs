//! Traces in: what jobs left in `incoming/` becomes partitions of the data set.
//!
//! A trace is removed only after the partition that holds it is on disk under its name, and partitions and evidence
//! say which records they hold. So a crash at any point neither loses a record nor lets it in twice. Nothing that lies
//! in `incoming/` can stop the rest. What a running job has recorded so far is handed on and not kept: its ranks may
//! still write over it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use colltune_core::context::DataKey;
use colltune_core::settings::Settings;

use crate::coverage::Coverage;
use crate::database::{Database, DbError, at};
use crate::evidence::Store;
use crate::lock::Lock;
use crate::partition::{self, Piece};
use crate::trace::{Accepts, Entry, Name, Trace, examine};
use crate::{quarantine, runs, write};

/// Records that are gathered in memory before they become a partition: 80 MB.
const PARTITION_RECORDS: usize = 1 << 19;

/// What an ingest did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IngestReport {
    pub traces: u64,
    pub records: u64,
    /// Entries that were refused, with the reason.
    pub quarantined: Vec<(String, String)>,
    /// Traces of jobs that still run, and the records of those that were asked for.
    pub running: u64,
    pub records_of_running: u64,
    /// What else a person should know; the rest went on.
    pub warnings: Vec<String>,
}

/// What an ingest found.
#[derive(Default)]
pub(crate) struct Ingested {
    pub report: IngestReport,
    /// What running jobs recorded so far.
    pub running: BTreeMap<DataKey, Vec<Piece>>,
}

/// Takes what is new. The lock shows that nobody else does; `stores` is the evidence that is there.
///
/// Errors: `Io` and `Parquet` for a database that cannot be written; nothing is lost then.
pub(crate) fn ingest(
    db: &Database,
    _lock: &Lock,
    settings: &Settings,
    stores: &BTreeMap<DataKey, Store>,
    include_running: bool,
    progress: &dyn Fn(&str),
) -> Result<Ingested, DbError> {
    let accepts = Accepts {
        machine: db.machine(settings),
        records_per_run: settings.records_per_run,
        stale_before: stale_before(settings),
        include_running,
    };
    let mut ingested = Ingested::default();
    let report = &mut ingested.report;
    let mut known = known(db, stores, report)?;
    let mut waiting: BTreeMap<DataKey, Batch> = BTreeMap::new();
    let entries = entries(&db.incoming())?;
    for (index, path) in entries.iter().enumerate() {
        if index % 16 == 0 {
            progress(&format!("reading traces: {index} of {}", entries.len()));
        }
        match examine(path, &accepts) {
            Entry::Trace(trace) if goes_on(path, &accepts) => {
                report.running += 1;
                report.records_of_running += trace.records.len() as u64;
                let running = ingested.running.entry(trace.key).or_default();
                running.push(Piece {
                    header: trace.header,
                    first: 0,
                    records: trace.records,
                });
            }
            Entry::Trace(trace) => {
                let key = trace.key.clone();
                let batch = waiting.entry(key.clone()).or_default();
                batch.add(path, *trace, known.entry(key.clone()).or_default(), report);
                if batch.records >= PARTITION_RECORDS {
                    progress(&format!("writing {} records of {key}", batch.records));
                    std::mem::take(batch).publish(db, &key, report, progress)?;
                }
            }
            Entry::Refused(reason) => refuse(db, path, reason, report),
            Entry::Left => report.running += 1,
            Entry::Failed(error) => report
                .warnings
                .push(format!("failed to read {}: {error}", path.display())),
        }
    }
    for (key, batch) in waiting {
        progress(&format!("writing {} records of {key}", batch.records));
        batch.publish(db, &key, report, progress)?;
    }
    Ok(ingested)
}

/// What jobs wrote last before this is of jobs that died.
pub(crate) fn stale_before(settings: &Settings) -> SystemTime {
    let now = SystemTime::now();
    let before = now.checked_sub(settings.stale_after);
    before.unwrap_or(SystemTime::UNIX_EPOCH)
}

/// Which records of each run are in the raw data, or were reduced to evidence.
type Known = BTreeMap<String, Coverage>;

fn known(
    db: &Database,
    stores: &BTreeMap<DataKey, Store>,
    report: &mut IngestReport,
) -> Result<BTreeMap<DataKey, Known>, DbError> {
    let mut known = BTreeMap::new();
    for (key, store) in stores {
        let of_key: &mut Known = known.entry(key.clone()).or_default();
        for (job, covered) in store.covered() {
            let all = of_key.entry(job.to_owned()).or_default();
            covered.iter().for_each(|one| all.join(one));
        }
        for path in partition::list(&db.data(key))? {
            match partition::held(&path) {
                Ok(traces) => {
                    for held in traces {
                        let all = of_key.entry(held.job).or_default();
                        all.add(held.rank, held.first, held.first + held.count);
                    }
                }
                Err(error) => report
                    .warnings
                    .push(format!("failed to {error}; it is left out")),
            }
        }
    }
    Ok(known)
}

/// Whether the job that writes this trace goes on.
fn goes_on(path: &Path, accepts: &Accepts) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    let is_open = name.and_then(Name::read).is_some_and(|name| name.open);
    let written = path
        .symlink_metadata()
        .and_then(|metadata| metadata.modified());
    is_open && written.map_or(true, |written| written > accepts.stale_before)
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>, DbError> {
    let mut paths = Vec::new();
    match fs::read_dir(folder) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => return Err(at("read the folder", folder)(error)),
        Ok(entries) => {
            for entry in entries {
                let entry = entry.map_err(at("read the folder", folder))?;
                // Network file systems keep files that are still open under such names.
                let name = entry.file_name();
                let name = name.to_string_lossy();
                if !name.starts_with('.') && !runs::is_of_the_ledger(&name) {
                    paths.push(entry.path());
                }
            }
        }
    }
    paths.sort_unstable();
    Ok(paths)
}

/// Puts an entry into quarantine. One that cannot be moved, as somebody else's in a folder for all, stays.
fn refuse(db: &Database, path: &Path, reason: String, report: &mut IngestReport) {
    if let Err(error) = quarantine::refuse(db, path, &reason) {
        let path = path.display();
        report.warnings.push(format!(
            "{path} is left where it is: {reason}; failed to {error}"
        ));
        return;
    }
    let name = path.file_name().unwrap_or_default();
    report
        .quarantined
        .push((name.to_string_lossy().into_owned(), reason));
}

/// Traces that wait to become a partition.
#[derive(Default)]
struct Batch {
    pieces: Vec<Piece>,
    records: usize,
    /// What to do with the files afterwards: away with them, or into quarantine with a reason.
    done: Vec<(PathBuf, Option<String>)>,
}

impl Batch {
    fn add(&mut self, path: &Path, trace: Trace, known: &mut Known, report: &mut IngestReport) {
        let Trace {
            header,
            mut records,
            damage,
            ..
        } = trace;
        let total = records.len() as u64;
        let coverage = known.entry(header.job.clone()).or_default();
        let first = coverage.end(header.rank).min(total);
        let records = records.split_off(first as usize);
        coverage.add(header.rank, first, total);
        if !records.is_empty() {
            report.traces += 1;
            report.records += records.len() as u64;
            self.records += records.len();
            self.pieces.push(Piece {
                header,
                first,
                records,
            });
        }
        self.done.push((path.to_owned(), damage));
    }

    fn publish(
        self,
        db: &Database,
        key: &DataKey,
        report: &mut IngestReport,
        progress: &dyn Fn(&str),
    ) -> Result<(), DbError> {
        if !self.pieces.is_empty() {
            partition::publish(db, key, &self.pieces)?;
        }
        progress(&format!("removing {} traces of {key}", self.done.len()));
        for (path, damage) in self.done {
            match damage {
                Some(reason) => refuse(db, &path, reason, report),
                None => match write::remove(&path) {
                    Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                        report.warnings.push(format!(
                            "failed to remove {}: {error}; it will not be taken twice",
                            path.display()
                        ));
                    }
                    _ => {}
                },
            }
        }
        Ok(())
    }
}
