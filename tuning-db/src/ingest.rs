//! Traces in: what jobs left in `incoming/` becomes partitions of the data set.
//!
//! A trace is removed only after the partition that holds it is on disk under its name, and partitions and evidence
//! say which records they hold. So a crash at any point neither loses a record nor lets it in twice. Nothing that lies
//! in `incoming/` can stop the rest. Traces of running jobs are left alone: their ranks may still write over them.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::time::SystemTime;

use colltune_core::context::DataKey;
use colltune_core::settings::Settings;

use crate::coverage::Coverage;
use crate::database::{Database, DbError, at};
use crate::evidence::Store;
use crate::folder::Folder;
use crate::lock::Lock;
use crate::owners::Owners;
use crate::partition::{self, Footers, Piece};
use crate::trace::{Accepts, Entry, Trace, examine};
use crate::{quarantine, runs, users, write};

/// Files of `incoming/` that one training looks at.
const ENTRIES_MAX: usize = 1 << 20;
/// Records that are gathered in memory before they become a partition: 80 MB.
const PARTITION_RECORDS: usize = 1 << 19;

/// What an ingest did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IngestReport {
    pub traces: u64,
    pub records: u64,
    /// Entries that were refused, with the reason.
    pub quarantined: Vec<(String, String)>,
    /// Traces of jobs that still run, which are left alone.
    pub running: u64,
    /// What else a person should know; the rest went on.
    pub warnings: Vec<String>,
}

/// What an ingest found.
#[derive(Default)]
pub(crate) struct Ingested {
    pub report: IngestReport,
    /// What the raw data of each key hold now.
    pub footers: BTreeMap<DataKey, Footers>,
}

/// Takes what is new. The lock shows that no other process does; `stores` is the evidence that is there.
///
/// Errors: `Io` and `Parquet` for a database that cannot be written; nothing is lost then.
pub(crate) fn ingest(
    db: &Database,
    _lock: &Lock,
    settings: &Settings,
    stores: &BTreeMap<DataKey, Store>,
    stale_before: SystemTime,
    progress: &dyn Fn(&str),
) -> Result<Ingested, DbError> {
    let accepts = Accepts {
        machine: db.machine(settings),
        records_per_run: settings.records_per_run,
        stale_before,
        include_running: false,
    };
    let mut ingested = Ingested::default();
    let report = &mut ingested.report;
    let owners = Owners::of(db, &mut report.warnings)?;
    let footers = &mut ingested.footers;
    for key in stores.keys() {
        let of_key = partition::footers(&db.data(key), &mut report.warnings)?;
        footers.insert(key.clone(), of_key);
    }
    let mut known = known(stores, footers);
    let mut waiting: BTreeMap<DataKey, Batch> = BTreeMap::new();
    let mut unreadable: BTreeMap<u32, u64> = BTreeMap::new();
    let incoming = db.make_folder(&db.incoming())?;
    let mut entries = entries(&incoming)?;
    if entries.len() > ENTRIES_MAX {
        let more = entries.len() - ENTRIES_MAX;
        entries.truncate(ENTRIES_MAX);
        report.warnings.push(format!(
            "{more} files of {} are left for the next training",
            incoming.path().display()
        ));
    }
    for (index, name) in entries.iter().enumerate() {
        if index % 16 == 0 {
            progress(&format!("reading traces: {index} of {}", entries.len()));
        }
        let examined = match examine(&incoming, name, &accepts) {
            Entry::Trace(trace) => match owners.judge(&trace) {
                Ok(()) => Entry::Trace(trace),
                Err(reason) => Entry::Refused(reason),
            },
            other => other,
        };
        match examined {
            Entry::Trace(mut trace) => {
                let key = trace.key.clone();
                let of_key = known.entry(key.clone()).or_default();
                of_key.claim(&mut trace);
                let batch = waiting.entry(key.clone()).or_default();
                batch.add(name, *trace, of_key, report);
                if batch.records >= PARTITION_RECORDS {
                    progress(&format!("writing {} records of {key}", batch.records));
                    let batch = std::mem::take(batch);
                    let new = batch.publish(db, &incoming, &key, report, progress)?;
                    footers.entry(key).or_default().extend(new);
                }
            }
            Entry::Refused(reason) => refuse(db, &incoming, name, reason, report),
            Entry::Left => report.running += 1,
            Entry::Unreadable(owner) => *unreadable.entry(owner).or_default() += 1,
            Entry::Failed(error) => {
                let path = incoming.path().join(name);
                let path = path.display();
                let warning = format!("failed to read {path}: {error}");
                report.warnings.push(warning);
            }
        }
    }
    for (key, batch) in waiting {
        progress(&format!("writing {} records of {key}", batch.records));
        let new = batch.publish(db, &incoming, &key, report, progress)?;
        footers.entry(key).or_default().extend(new);
    }
    for (owner, files) in unreadable {
        report.warnings.push(format!(
            "{files} traces of {} cannot be read and are left in incoming/: their modes keep them from who trains",
            users::user(owner)
        ));
    }
    Ok(ingested)
}

/// What jobs wrote last before this is of jobs that died; by the clock of the database's files, since a trainer's clock
/// that is ahead would make every running job a dead one.
pub(crate) fn stale_before(db: &Database, settings: &Settings) -> SystemTime {
    let theirs = db.folder(db.root()).map(|root| root.now());
    let now = match theirs {
        Ok(Ok(now)) => now,
        _ => SystemTime::now(),
    };
    let before = now.checked_sub(settings.stale_after);
    before.unwrap_or(SystemTime::UNIX_EPOCH)
}

/// Which records of each run are in the raw data, or were reduced to evidence.
#[derive(Default)]
struct Known(BTreeMap<String, OfRun>);

#[derive(Default)]
struct OfRun {
    /// Whose its first trace was, where that is known.
    owner: Option<u32>,
    coverage: Coverage,
}

impl Known {
    fn run(&mut self, job: &str, owner: Option<u32>) -> &mut OfRun {
        let run = self.0.entry(job.to_owned()).or_default();
        run.owner = run.owner.or(owner);
        run
    }

    /// A job's name is its first owner's. Another owner's of that name is another run: both are kept.
    fn claim(&mut self, trace: &mut Trace) {
        let job = &trace.header.job;
        let owner = self.0.get(job).and_then(|run| run.owner);
        if owner.is_some_and(|owner| owner != trace.owner) {
            trace.header.job = format!("{job}@{}", trace.owner);
        }
        self.run(&trace.header.job, Some(trace.owner));
    }
}

fn known(
    stores: &BTreeMap<DataKey, Store>,
    footers: &BTreeMap<DataKey, Footers>,
) -> BTreeMap<DataKey, Known> {
    let mut known = BTreeMap::new();
    for (key, store) in stores {
        let of_key: &mut Known = known.entry(key.clone()).or_default();
        let owners = store.owners();
        for (job, covered) in store.covered() {
            let all = &mut of_key.run(job, owners.get(job).copied()).coverage;
            covered.iter().for_each(|one| all.join(one));
        }
        for held in footers
            .get(key)
            .into_iter()
            .flat_map(Footers::values)
            .flatten()
        {
            let all = &mut of_key.run(&held.job, held.owner).coverage;
            all.add(held.rank, held.first, held.first + held.count);
        }
    }
    known
}

fn entries(folder: &Folder) -> Result<Vec<OsString>, DbError> {
    let names = folder.names();
    let mut names = names.map_err(at("read the folder", folder.path()))?;
    names.retain(|name| {
        // Network file systems keep files that are still open under such names.
        let name = name.to_string_lossy();
        !name.starts_with('.') && !runs::is_of_the_ledger(&name)
    });
    Ok(names)
}

/// Puts an entry into quarantine. One that cannot be moved, as another user's in a folder for all, stays.
fn refuse(
    db: &Database,
    incoming: &Folder,
    name: &OsStr,
    reason: String,
    report: &mut IngestReport,
) {
    let shown = name.to_string_lossy().into_owned();
    if let Err(error) = quarantine::refuse(db, incoming, name, &reason) {
        report.warnings.push(format!(
            "{} is left where it is: {reason}; failed to {error}",
            incoming
                .path()
                .join(shown.escape_debug().to_string())
                .display()
        ));
        return;
    }
    report.quarantined.push((shown, reason));
}

/// Traces that wait to become a partition.
#[derive(Default)]
struct Batch {
    pieces: Vec<Piece>,
    records: usize,
    /// What to do with the files afterwards: away with them, or into quarantine with a reason.
    done: Vec<(OsString, Option<String>)>,
}

impl Batch {
    fn add(&mut self, name: &OsStr, trace: Trace, known: &mut Known, report: &mut IngestReport) {
        let Trace {
            header,
            owner,
            mut records,
            damage,
            ..
        } = trace;
        let total = records.len() as u64;
        let owner = Some(owner);
        let coverage = &mut known.run(&header.job, owner).coverage;
        let first = coverage.end(header.rank).min(total);
        let records = records.split_off(first as usize);
        coverage.add(header.rank, first, total);
        if !records.is_empty() {
            report.traces += 1;
            report.records += records.len() as u64;
            self.records += records.len();
            self.pieces.push(Piece {
                header,
                owner,
                first,
                records,
            });
        }
        self.done.push((name.to_owned(), damage));
    }

    /// Returns what the new partition holds.
    fn publish(
        self,
        db: &Database,
        incoming: &Folder,
        key: &DataKey,
        report: &mut IngestReport,
        progress: &dyn Fn(&str),
    ) -> Result<Footers, DbError> {
        let mut new = Footers::new();
        if !self.pieces.is_empty() {
            let (path, held) = partition::publish(db, key, &self.pieces)?;
            new.insert(path, held);
        }
        progress(&format!("removing {} traces of {key}", self.done.len()));
        for (name, damage) in self.done {
            match damage {
                Some(reason) => refuse(db, incoming, &name, reason, report),
                None => match write::remove(incoming, &name) {
                    Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                        report.warnings.push(format!(
                            "failed to remove {}: {error}; it will not be taken twice",
                            incoming.path().join(&name).display()
                        ));
                    }
                    _ => {}
                },
            }
        }
        Ok(new)
    }
}
