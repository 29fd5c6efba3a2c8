//! Traces in: what jobs left in `incoming/` becomes partitions of the data set.
//!
//! A trace is removed only after the partition that holds it is on disk under its name, and a
//! partition says which traces it holds. So a crash at any point neither loses a record nor lets
//! it in twice. Nothing that lies in `incoming/` can stop the rest.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use colltune_core::library::Library;
use colltune_core::settings::Settings;

use crate::database::{Database, DbError, at};
use crate::lock::Lock;
use crate::partition::{self, Piece};
use crate::trace::{Accepts, Entry, Name, Trace, examine};
use crate::{quarantine, write};

/// Records that are gathered in memory before they become a partition: 64 MB.
const PARTITION_RECORDS: usize = 1 << 20;

/// What an ingest did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IngestReport {
    pub traces: u64,
    pub records: u64,
    /// Entries that were refused, with the reason.
    pub quarantined: Vec<(String, String)>,
    /// Traces of jobs that still run.
    pub running: u64,
    /// What else a person should know; the rest went on.
    pub warnings: Vec<String>,
}

/// Takes what is new. The lock shows that nobody else does.
///
/// Errors: `Io` and `Parquet` for a database that cannot be written; nothing is lost then.
pub fn ingest(
    db: &Database,
    _lock: &Lock,
    settings: &Settings,
    include_running: bool,
    progress: &dyn Fn(&str),
) -> Result<IngestReport, DbError> {
    let accepts = Accepts {
        machine: db.machine(settings),
        records_per_run: settings.records_per_run,
        stale_before: SystemTime::now()
            .checked_sub(settings.stale_after)
            .unwrap_or(SystemTime::UNIX_EPOCH),
        include_running,
    };
    let mut report = IngestReport::default();
    let mut ingested = known(db, &mut report)?;
    let mut waiting: BTreeMap<Library, Batch> = BTreeMap::new();
    let entries = entries(&db.incoming())?;
    for (index, path) in entries.iter().enumerate() {
        if index % 16 == 0 {
            progress(&format!("reading traces: {index} of {}", entries.len()));
        }
        match examine(path, &accepts) {
            Entry::Trace(trace) => {
                let library = trace.library;
                let batch = waiting.entry(library).or_default();
                batch.add(
                    path,
                    *trace,
                    &accepts,
                    ingested.entry(library).or_default(),
                    &mut report,
                );
                if batch.records >= PARTITION_RECORDS {
                    progress(&format!("writing {} records of {library}", batch.records));
                    std::mem::take(batch).publish(db, library, &mut report, progress)?;
                }
            }
            Entry::Refused(reason) => refuse(db, path, reason, &mut report)?,
            Entry::Left => report.running += 1,
            Entry::Failed(error) => report
                .warnings
                .push(format!("failed to read {}: {error}", path.display())),
        }
    }
    for (library, batch) in waiting {
        progress(&format!("writing {} records of {library}", batch.records));
        batch.publish(db, library, &mut report, progress)?;
    }
    Ok(report)
}

/// How many records of each trace the data set holds, by run and rank.
type Ingested = HashMap<(String, u32), u64>;

fn known(db: &Database, report: &mut IngestReport) -> Result<BTreeMap<Library, Ingested>, DbError> {
    let mut known = BTreeMap::new();
    for library in db.libraries()? {
        write::remove_unfinished(&db.data(library));
        let ingested: &mut Ingested = known.entry(library).or_default();
        for path in partition::list(&db.data(library))? {
            match partition::held(&path) {
                Ok(traces) => {
                    for held in traces {
                        let count = ingested.entry((held.job, held.rank)).or_default();
                        *count = (*count).max(held.first + held.count);
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
                if !name.starts_with('.') && !is_of_the_ledger(&name) {
                    paths.push(entry.path());
                }
            }
        }
    }
    paths.sort_unstable();
    Ok(paths)
}

/// Whether an entry is what a job says of itself at its end, or is about to: no trace.
fn is_of_the_ledger(name: &str) -> bool {
    name.strip_suffix(".open").unwrap_or(name).ends_with(".run")
}

fn refuse(
    db: &Database,
    path: &Path,
    reason: String,
    report: &mut IngestReport,
) -> Result<(), DbError> {
    quarantine::refuse(db, path, &reason)?;
    report.quarantined.push((
        path.file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned(),
        reason,
    ));
    Ok(())
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
    fn add(
        &mut self,
        path: &Path,
        trace: Trace,
        accepts: &Accepts,
        ingested: &mut Ingested,
        report: &mut IngestReport,
    ) {
        let Trace {
            header,
            mut records,
            damage,
            ..
        } = trace;
        let total = records.len() as u64;
        let count = ingested
            .entry((header.job.clone(), header.rank))
            .or_default();
        let first = (*count).min(total);
        let records = records.split_off(first as usize);
        *count = (*count).max(total);
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
        let name = path
            .file_name()
            .and_then(|name| name.to_str())
            .and_then(Name::read);
        let written = path
            .symlink_metadata()
            .and_then(|metadata| metadata.modified());
        let runs = name.is_some_and(|name| name.open)
            && written.map_or(true, |written| written > accepts.stale_before);
        if runs {
            // Its job goes on writing; the next training takes the rest.
            report.running += 1;
        } else {
            self.done.push((path.to_owned(), damage));
        }
    }

    fn publish(
        self,
        db: &Database,
        library: Library,
        report: &mut IngestReport,
        progress: &dyn Fn(&str),
    ) -> Result<(), DbError> {
        if !self.pieces.is_empty() {
            partition::publish(db, library, &self.pieces)?;
        }
        progress(&format!("removing {} traces of {library}", self.done.len()));
        for (path, damage) in self.done {
            match damage {
                Some(reason) => refuse(db, &path, reason, report)?,
                None => match fs::remove_file(&path) {
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
