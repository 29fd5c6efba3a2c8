//! One job's raw records, rank by rank: for those who want to see when things happened.
//!
//! Records lie in `incoming/` until a training takes them, then in partitions for as long as the site keeps them. A
//! rank's records are read by themselves, so that a job of any length needs the memory of one rank.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use colltune_core::record::Manner;
use parquet::errors::ParquetError;

use crate::database::{Database, DbError, at};
use crate::folder::parts;
use crate::partition::{self, unreadable};
use crate::table::Table;
use crate::trace::{Accepts, Entry, Name, Trace, examine};

/// A job of which raw records are there.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordedJob {
    pub job: String,
    /// The database key of its library.
    pub library: String,
    pub started_unix_ms: u64,
    ranks: BTreeMap<u32, Vec<Place>>,
}

/// Where some of a rank's records are.
#[derive(Clone, Debug, PartialEq)]
enum Place {
    Partition {
        path: PathBuf,
        first_row: usize,
        rows: usize,
        /// The number of the first one in its trace.
        first: u64,
    },
    Trace(PathBuf),
}

/// What one rank recorded, in the order of its calls' starts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RankRecords {
    pub rank: u32,
    pub world_ranks: u32,
    pub host: String,
    /// Ranks with the same number here have comparable times.
    pub clock: u64,
    pub started_unix_ms: u64,
    pub generation: u64,
    pub calls: Vec<TimedCall>,
}

/// One recorded call as its rank saw it.
#[derive(Clone, Debug, PartialEq)]
pub struct TimedCall {
    pub comm: u64,
    pub call: u64,
    pub start_ns: u64,
    pub duration_ns: u64,
    /// The part of it that is not waiting for late ranks, where the ranks agreed on it.
    pub work_ns: Option<u64>,
    pub message_bytes: u64,
    pub n_ranks: u32,
    pub collective: String,
    pub variant: String,
    pub manner: Manner,
}

/// The jobs whose raw records are there, by name. What cannot be read is left out, with a warning.
///
/// Errors: `Io` for a folder that cannot be read; `Settings`.
pub fn recorded_jobs(
    db: &Database,
    warnings: &mut Vec<String>,
) -> Result<Vec<RecordedJob>, DbError> {
    let mut jobs: BTreeMap<(String, String), BTreeMap<u32, Vec<Place>>> = BTreeMap::new();
    for key in db.keys()? {
        for (path, held) in partition::standing(&db.data(&key), warnings)? {
            let mut first_row = 0;
            for one in held {
                let rows = one.count as usize;
                let ranks = jobs.entry((one.job, key.to_string())).or_default();
                ranks.entry(one.rank).or_default().push(Place::Partition {
                    path: path.clone(),
                    first_row,
                    rows,
                    first: one.first,
                });
                first_row += rows;
            }
        }
    }
    let accepts = accepts(db)?;
    for path in waiting(db)? {
        match examined(db, &path, &accepts) {
            Entry::Trace(trace) => {
                let job = (trace.header.job, trace.key.to_string());
                let places = jobs.entry(job).or_default();
                let of_rank = places.entry(trace.header.rank).or_default();
                of_rank.push(Place::Trace(path));
            }
            Entry::Refused(reason) => warnings.push(format!("{}: {reason}", path.display())),
            Entry::Left | Entry::Unreadable(_) => {}
            Entry::Failed(error) => {
                warnings.push(format!("failed to read {}: {error}", path.display()));
            }
        }
    }
    let mut found = Vec::new();
    for ((job, library), ranks) in jobs {
        let mut job = RecordedJob {
            job,
            library,
            started_unix_ms: 0,
            ranks,
        };
        match job.first_started(db, &accepts) {
            Ok(started) => {
                job.started_unix_ms = started;
                found.push(job);
            }
            Err(error) => warnings.push(format!("failed to {error}; {} is left out", job.job)),
        }
    }
    Ok(found)
}

fn accepts(db: &Database) -> Result<Accepts, DbError> {
    let settings = db.settings()?;
    Ok(Accepts {
        machine: db.machine(&settings),
        records_per_run: settings.records_per_run,
        stale_before: SystemTime::now(),
        include_running: true,
    })
}

/// Traces that no training has taken.
fn waiting(db: &Database) -> Result<Vec<PathBuf>, DbError> {
    let folder = db.incoming();
    let entries = match std::fs::read_dir(&folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(at("read the folder", &folder)(error)),
    };
    let mut paths = Vec::new();
    for entry in entries {
        let entry = entry.map_err(at("read the folder", &folder))?;
        if entry.file_name().to_str().and_then(Name::read).is_some() {
            paths.push(entry.path());
        }
    }
    paths.sort_unstable();
    Ok(paths)
}

impl RecordedJob {
    /// The ranks that recorded.
    pub fn ranks(&self) -> impl Iterator<Item = u32> + '_ {
        self.ranks.keys().copied()
    }

    /// Everything that one rank recorded; `None` for a rank that did not.
    ///
    /// Errors: `Parquet` for a damaged file, `Io` for a trace that is gone.
    pub fn read(&self, db: &Database, rank: u32) -> Result<Option<RankRecords>, DbError> {
        let Some(places) = self.ranks.get(&rank) else {
            return Ok(None);
        };
        let accepts = accepts(db)?;
        let mut read = RankRecords {
            rank,
            ..RankRecords::default()
        };
        // A trace may hold again what partitions hold already, after a crash.
        let mut held = 0;
        for place in places {
            match place {
                Place::Partition {
                    path,
                    first_row,
                    rows,
                    first,
                } => {
                    let from = Table::open(path)
                        .and_then(|table| read.add_rows(table, *first_row..first_row + rows));
                    from.map_err(unreadable(path))?;
                    held = held.max(first + *rows as u64);
                }
                Place::Trace(path) => match examined(db, path, &accepts) {
                    Entry::Trace(trace) => read.add_trace(*trace, held as usize),
                    // Taken by a training since it was listed, or no longer believed.
                    _ => {
                        let error = std::io::ErrorKind::NotFound.into();
                        return Err(at("read the trace", path)(error));
                    }
                },
            }
        }
        read.calls
            .sort_by_key(|call| (call.start_ns, std::cmp::Reverse(call.duration_ns)));
        Ok(Some(read))
    }

    fn first_started(&self, db: &Database, accepts: &Accepts) -> Result<u64, DbError> {
        let places = self.ranks.values().next();
        let Some(place) = places.and_then(|places| places.first()) else {
            return Ok(0);
        };
        match place {
            Place::Partition {
                path, first_row, ..
            } => {
                let started = Table::open(path).and_then(|mut table| {
                    table.read_only(*first_row..first_row + 1);
                    table.longs("started_unix_ms")
                });
                let started = started.map_err(unreadable(path))?;
                Ok(started.first().copied().unwrap_or(0))
            }
            Place::Trace(path) => Ok(match examined(db, path, accepts) {
                Entry::Trace(trace) => trace.header.started_unix_ms,
                _ => 0,
            }),
        }
    }
}

fn examined(db: &Database, path: &Path, accepts: &Accepts) -> Entry {
    let (folder, name) = parts(path);
    match db.folder(folder) {
        Ok(folder) => examine(&folder, name, accepts),
        Err(error) => Entry::Failed(std::io::Error::other(error)),
    }
}

impl RankRecords {
    fn add_rows(
        &mut self,
        mut table: Table,
        rows: std::ops::Range<usize>,
    ) -> Result<(), ParquetError> {
        table.read_only(rows);
        let first = |name: &str| {
            table
                .longs(name)
                .map(|all| all.first().copied().unwrap_or(0))
        };
        self.clock = first("clock")?;
        self.started_unix_ms = first("started_unix_ms")?;
        self.generation = first("generation")?;
        self.world_ranks = table.ints("world_ranks")?.first().copied().unwrap_or(0);
        let host = table.words("host")?;
        let word = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        self.host = host
            .first()
            .map_or_else(String::new, |host| word(host.data()));
        let (comm, call) = (table.longs("comm")?, table.longs("call")?);
        let (start, duration) = (table.longs("start_ns")?, table.longs("duration_ns")?);
        let (work, bytes) = (table.unknown("work_ns")?, table.longs("message_bytes")?);
        let n_ranks = table.ints("n_ranks")?;
        let (collective, variant) = (table.words("collective")?, table.words("variant")?);
        let manner = match table.has("manner") {
            true => Some(table.words("manner")?),
            false => None,
        };
        for row in 0..table.rows() {
            let manner = match &manner {
                None => Manner::Blocking,
                Some(manner) => {
                    let name = word(manner[row].data());
                    Manner::from_name(&name).ok_or_else(|| {
                        ParquetError::General(format!("no call is made in the manner {name:?}"))
                    })?
                }
            };
            self.calls.push(TimedCall {
                comm: comm[row],
                call: call[row],
                start_ns: start[row],
                duration_ns: duration[row],
                work_ns: work[row],
                message_bytes: bytes[row],
                n_ranks: n_ranks[row],
                collective: word(collective[row].data()),
                variant: word(variant[row].data()),
                manner,
            });
        }
        Ok(())
    }

    /// Takes the records behind the first `held` ones.
    fn add_trace(&mut self, trace: Trace, held: usize) {
        let header = trace.header;
        self.host = header.host;
        self.clock = header.clock;
        self.started_unix_ms = header.started_unix_ms;
        self.generation = header.generation;
        self.world_ranks = header.world_ranks;
        let calls = trace.records.iter().skip(held).map(|record| {
            let (collective, variant) = &header.variants[usize::from(record.variant)];
            TimedCall {
                comm: record.comm,
                call: record.call,
                start_ns: record.start_ns,
                duration_ns: record.duration_ns,
                work_ns: record.agreed.map(|agreed| agreed.work_ns),
                message_bytes: record.message_bytes,
                n_ranks: record.n_ranks,
                collective: collective.name().to_owned(),
                variant: variant.clone(),
                manner: record.manner,
            }
        });
        self.calls.extend(calls);
    }
}
