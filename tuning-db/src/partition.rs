//! Partitions of the raw data: immutable Parquet files that anybody's tools can read.
//!
//! One row per record, with the exact message size, layout and context. The footer lists the traces that a partition
//! holds (key `colltune.traces`), in the order of its rows: a trace that is found again in `incoming/` after a crash is
//! known by it. Partitions of earlier versions lack columns; those are unknown then.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};

use colltune_core::component;
use colltune_core::context::{COLUMNS, DataKey};
use colltune_core::record::{CallClass, CallTimes, Header, Manner, Probability, Record};
use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;
use serde::{Deserialize, Serialize};

mod rewrite;

use crate::check_word::check_word;
use crate::database::{Database, DbError, at};
use crate::folder::Folder;
use crate::table::{self, Column, Kind, Table, Values};
use crate::write;

pub use rewrite::standing;
pub(crate) use rewrite::{join_small, remove_jobs};

const TRACES_KEY: &str = "colltune.traces";
/// How often a folder is looked at again that changes while it is read.
const LOOKS_MAX: u32 = 3;

/// Which records of which trace a partition holds.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Held {
    pub job: String,
    pub rank: u32,
    /// Records of the trace that earlier partitions hold.
    pub first: u64,
    pub count: u64,
    pub machine: String,
    pub colltune_version: String,
    /// Who owned the trace's file, by number; what was taken by earlier versions does not say.
    #[serde(default)]
    pub owner: Option<u32>,
    /// The component that its library's own choice is of, where the library says so.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub component: String,
    /// The host that it says to be of.
    #[serde(default)]
    pub host: String,
    #[serde(default)]
    pub world_ranks: u32,
}

/// What a new partition is made of: traces, each with the number of records held already.
#[derive(Clone, Debug)]
pub struct Piece {
    pub header: Header,
    pub owner: Option<u32>,
    pub first: u64,
    pub records: Vec<Record>,
}

/// What the footers of a folder's partitions say, by name: a training opens each once.
pub type Footers = BTreeMap<PathBuf, Vec<Held>>;

/// What is reduced to evidence, column by column; all are equally long.
#[derive(Clone, Debug, PartialEq)]
pub struct Columns {
    pub comm: Vec<u64>,
    pub call: Vec<u64>,
    pub clock: Vec<u64>,
    pub started_unix_ms: Vec<u64>,
    pub generation: Vec<u64>,
    pub start_ns: Vec<u64>,
    pub duration_ns: Vec<u64>,
    pub shift_ns: Vec<Option<u64>>,
    pub after_ns: Vec<Option<u64>>,
    /// Where the ranks agreed on the call's mean time, it is known; then the others of the four may be.
    pub mean_time_ns: Vec<Option<u64>>,
    pub mean_shift_ns: Vec<Option<u64>>,
    pub mean_after_ns: Vec<Option<u64>>,
    pub work_ns: Vec<Option<u64>>,
    pub message_bytes: Vec<u64>,
    pub nodes: Vec<u32>,
    pub ppn: Vec<u32>,
    pub n_ranks: Vec<u32>,
    pub collective: Vec<ByteArray>,
    pub variant: Vec<ByteArray>,
    /// With which each was drawn; 0 where that is unknown.
    pub probability: Vec<f64>,
    /// Flags of the calls' classes.
    pub class: Vec<u8>,
    pub manner: Vec<Manner>,
    /// In the order of the core's names of context columns.
    pub context: [Vec<ByteArray>; COLUMNS.len()],
}

/// The partitions of a folder, by name.
///
/// Errors: `Io` for a folder that cannot be read; one that does not exist has none.
pub fn list(folder: &Path) -> Result<Vec<PathBuf>, DbError> {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(at("read the folder", folder)(error)),
    };
    let mut paths = Vec::new();
    for entry in entries {
        let entry = entry.map_err(at("read the folder", folder))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.ends_with(".parquet") && !name.starts_with('.') {
            paths.push(entry.path());
        }
    }
    paths.sort_unstable();
    Ok(paths)
}

/// Opens the footers of a folder's partitions. What cannot be read is left out, with a warning.
///
/// Errors: as [`list`].
pub(crate) fn footers(folder: &Path, warnings: &mut Vec<String>) -> Result<Footers, DbError> {
    for attempt in 0.. {
        let (mut footers, mut failed) = (Footers::new(), Vec::new());
        let mut is_changing = false;
        for path in list(folder)? {
            match held(&path) {
                Ok(held) => drop(footers.insert(path, held)),
                Err(error) => {
                    // A training may put one file in the place of many meanwhile.
                    is_changing |= attempt < LOOKS_MAX && !path.exists();
                    failed.push(format!("failed to {error}; it is left out"));
                }
            }
        }
        if !is_changing {
            warnings.extend(failed);
            return Ok(footers);
        }
    }
    unreachable!("the last look counts")
}

/// Publishes a partition; returns where, and what it holds. Its name begins with the time of its first run and ends
/// with a check word over what it holds.
///
/// Errors: `Io` and `Parquet` (a full disk, for one); nothing is left behind then.
pub fn publish(
    db: &Database,
    key: &DataKey,
    pieces: &[Piece],
) -> Result<(PathBuf, Vec<Held>), DbError> {
    let folder = db.make_folder(&db.data(key))?;
    let traces: Vec<Held> = pieces.iter().map(Piece::held).collect();
    let held = serde_json::to_string(&traces).expect("numbers and names");
    let starts = pieces.iter().map(|piece| piece.header.started_unix_ms);
    let started = starts.min().unwrap_or(0);
    let word = check_word(held.as_bytes());
    let name = format!("{started:015}-{word:016x}.parquet");
    publish_table(&folder, &name, |file| {
        table::write(file, "record", vec![(TRACES_KEY, held)], &columns(pieces))
    })?;
    Ok((folder.path().join(name), traces))
}

/// Writes a table under another name and moves it to its place.
///
/// Errors: `Io` and `Parquet`; nothing is left behind then.
pub(crate) fn publish_table(
    folder: &Folder,
    name: &str,
    fill: impl FnOnce(File) -> Result<(), ParquetError>,
) -> Result<(), DbError> {
    write::filled(folder, name, |file| {
        fill(file).map_err(|error| DbError::Parquet {
            action: "write",
            path: folder.path().join(name),
            error: error.to_string(),
        })
    })
}

impl Piece {
    fn held(&self) -> Held {
        Held {
            job: self.header.job.clone(),
            rank: self.header.rank,
            first: self.first,
            count: self.records.len() as u64,
            machine: self.header.machine.clone(),
            colltune_version: self.header.colltune_version.clone(),
            owner: self.owner,
            component: self.context(component::COLUMN).to_owned(),
            host: self.header.host.clone(),
            world_ranks: self.header.world_ranks,
        }
    }

    /// A word of the context; empty where the trace says none.
    fn context(&self, name: &str) -> &str {
        let columns = self.header.context.iter();
        columns
            .into_iter()
            .find_map(|(other, value)| (other == name).then_some(value.as_str()))
            .unwrap_or("")
    }
}

/// The columns, in order. Times are nanoseconds; `start_ns` compares only where `job` and `clock` are equal. `call`
/// counts the tuned calls of `comm`. `manner` says which calls are tuned (`blocking`) and which only passed through.
/// `probability` is that with which the variant was drawn, 0 where it is unknown. `mean_time_ns`, `mean_shift_ns`,
/// `mean_after_ns` and `work_ns` are what all ranks of the communicator agreed on.
fn columns(pieces: &[Piece]) -> Vec<Column<'_>> {
    let long = |name, value: fn(&Record) -> u64| per_record(pieces, name, Kind::Long, value);
    let growing = |name, value: fn(&Record) -> u64| per_record(pieces, name, Kind::Growing, value);
    let unknown = |name, value: fn(&Record) -> Option<u64>| {
        let all = move || all(pieces).map(value);
        Column::new(name, Kind::Unknown, move || {
            Values::Unknown(all().collect())
        })
    };
    let agreed = |name, value: fn(CallTimes) -> Option<u64>| {
        let all = move || all(pieces).map(move |record| record.agreed.and_then(value));
        Column::new(name, Kind::Unknown, move || {
            Values::Unknown(all().collect())
        })
    };
    let int = |name, value: fn(&Record) -> u32| {
        let all = move || all(pieces).map(value);
        Column::new(name, Kind::Int, move || Values::Int(all().collect()))
    };
    let flag = |name, value: fn(&Record) -> bool| {
        let all = move || all(pieces).map(value);
        Column::new(name, Kind::Bool, move || Values::Bool(all().collect()))
    };
    let mut columns = vec![
        words(pieces, "job", |piece| piece.header.job.as_str()),
        ints(pieces, "rank", |header| header.rank),
        ints(pieces, "world_ranks", |header| header.world_ranks),
        words(pieces, "host", |piece| piece.header.host.as_str()),
        longs(pieces, "clock", |header| header.clock),
        longs(pieces, "generation", |header| header.generation),
        longs(pieces, "started_unix_ms", |header| header.started_unix_ms),
        long("comm", |record| record.comm),
        growing("call", |record| record.call),
        variants(pieces, "collective", |header, place| {
            header.variants[place].0.name()
        }),
        variants(pieces, "variant", |header, place| {
            header.variants[place].1.as_str()
        }),
        long("message_bytes", |record| record.message_bytes),
        int("nodes", |record| record.nodes),
        int("ppn", |record| record.ppn),
        int("n_ranks", |record| record.n_ranks),
        growing("start_ns", |record| record.start_ns),
        growing("duration_ns", |record| record.duration_ns),
        flag("drawn", |record| record.drawn),
        Column::new("probability", Kind::Float, || {
            let value = |record: &Record| record.probability.map_or(0.0, Probability::value);
            Values::Float(all(pieces).map(value).collect())
        }),
        Column::new("manner", Kind::Word, || {
            let names = Manner::ALL.map(|manner| ByteArray::from(manner.name()));
            Values::Word(
                all(pieces)
                    .map(|record| names[record.manner as usize].clone())
                    .collect(),
            )
        }),
        unknown("shift_ns", |record| record.shift_ns),
        unknown("after_ns", |record| record.after_ns),
        agreed("mean_time_ns", |times| Some(times.time_ns)),
        agreed("mean_shift_ns", |times| times.shift_ns),
        agreed("mean_after_ns", |times| times.after_ns),
        agreed("slowest_ns", |times| Some(times.slowest_ns)),
        agreed("work_ns", |times| Some(times.work_ns)),
        flag("in_place", |record| record.class.in_place),
        Column::new("call_class", Kind::Word, || {
            Values::Word(
                all(pieces)
                    .map(|record| record.class.names().as_str().into())
                    .collect(),
            )
        }),
        int("element_bytes", |record| record.class.element_bytes.into()),
        words(pieces, "transport", |piece| piece.header.transport.as_str()),
    ];
    columns.extend(COLUMNS.map(|name| words(pieces, name, move |piece| piece.context(name))));
    columns
}

/// The names of the columns, each with what it holds, a word: `integer`, `real`, `text` or `boolean`.
pub fn layout() -> Vec<(&'static str, &'static str)> {
    let columns = columns(&[]);
    let layout = columns.iter().map(|one| (one.name, one.kind.holds()));
    layout.collect()
}

fn all(pieces: &[Piece]) -> impl Iterator<Item = &Record> {
    pieces.iter().flat_map(|piece| &piece.records)
}

fn per_record<'a>(
    pieces: &'a [Piece],
    name: &'static str,
    kind: Kind,
    value: fn(&Record) -> u64,
) -> Column<'a> {
    let all = move || all(pieces).map(value);
    Column::new(name, kind, move || Values::Long(all().collect()))
}

/// One value of each trace, for all its records.
fn repeated<'a, T: Clone + 'a>(
    pieces: &'a [Piece],
    value: impl Fn(&'a Piece) -> T + 'a,
) -> impl Iterator<Item = T> + 'a {
    pieces
        .iter()
        .flat_map(move |piece| std::iter::repeat_n(value(piece), piece.records.len()))
}

fn longs<'a>(pieces: &'a [Piece], name: &'static str, value: fn(&Header) -> u64) -> Column<'a> {
    Column::new(name, Kind::Long, move || {
        Values::Long(repeated(pieces, |piece| value(&piece.header)).collect())
    })
}

fn ints<'a>(pieces: &'a [Piece], name: &'static str, value: fn(&Header) -> u32) -> Column<'a> {
    Column::new(name, Kind::Int, move || {
        Values::Int(repeated(pieces, |piece| value(&piece.header)).collect())
    })
}

fn words<'a>(
    pieces: &'a [Piece],
    name: &'static str,
    word: impl Fn(&'a Piece) -> &'a str + Copy + 'a,
) -> Column<'a> {
    Column::new(name, Kind::Word, move || {
        Values::Word(repeated(pieces, move |piece| ByteArray::from(word(piece))).collect())
    })
}

fn variants<'a>(
    pieces: &'a [Piece],
    name: &'static str,
    word: for<'h> fn(&'h Header, usize) -> &'h str,
) -> Column<'a> {
    Column::new(name, Kind::Word, move || {
        let mut values = Vec::new();
        for Piece {
            header, records, ..
        } in pieces
        {
            let places = 0..header.variants.len();
            let names: Vec<ByteArray> = places.map(|place| word(header, place).into()).collect();
            values.extend(
                records
                    .iter()
                    .map(|record| names[usize::from(record.variant)].clone()),
            );
        }
        Values::Word(values)
    })
}

/// The traces that a partition holds, in the order of its rows.
///
/// Errors: `Parquet` for a file that is none, or was not written by colltune.
pub fn held(path: &Path) -> Result<Vec<Held>, DbError> {
    let table = Table::open(path).map_err(unreadable(path))?;
    held_by(&table).map_err(unreadable(path))
}

fn held_by(table: &Table) -> Result<Vec<Held>, ParquetError> {
    let text = table.footer(TRACES_KEY);
    let text =
        text.ok_or_else(|| ParquetError::General(format!("its footer has no {TRACES_KEY}")))?;
    let held: Vec<Held> =
        serde_json::from_str(text).map_err(|error| ParquetError::External(error.into()))?;
    let rows = held
        .iter()
        .try_fold(0u64, |rows, held| rows.checked_add(held.count));
    if rows != Some(table.rows() as u64) {
        return Err(ParquetError::General(
            "its footer lists other records than it holds".to_owned(),
        ));
    }
    Ok(held)
}

pub(crate) fn unreadable(path: &Path) -> impl FnOnce(ParquetError) -> DbError + '_ {
    move |error| DbError::Parquet {
        action: "read",
        path: path.to_owned(),
        error: error.to_string(),
    }
}

/// Reads what is reduced to evidence, and whose it is.
///
/// Errors: `Parquet` for a damaged file.
pub fn read(path: &Path) -> Result<(Vec<Held>, Columns), DbError> {
    let read = || -> Result<_, ParquetError> {
        let table = Table::open(path)?;
        Ok((held_by(&table)?, read_columns(&table)?))
    };
    read().map_err(unreadable(path))
}

fn read_columns(table: &Table) -> Result<Columns, ParquetError> {
    let rows = table.rows();
    let manner = match table.has("manner") {
        true => manners(&table.words("manner")?)?,
        false => vec![Manner::Blocking; rows],
    };
    let word = |name: &str| match table.has(name) {
        true => table.words(name),
        false => Ok(vec![ByteArray::from(""); rows]),
    };
    let in_place = match table.has("in_place") {
        true => table.flags("in_place")?,
        false => vec![false; rows],
    };
    let [processor, kernel, binding, settings] = COLUMNS;
    let columns = Columns {
        comm: table.longs("comm")?,
        call: table.longs("call")?,
        clock: table.longs("clock")?,
        started_unix_ms: table.longs("started_unix_ms")?,
        generation: table.longs("generation")?,
        start_ns: table.longs("start_ns")?,
        duration_ns: table.longs("duration_ns")?,
        shift_ns: table.unknown("shift_ns")?,
        after_ns: table.unknown("after_ns")?,
        mean_time_ns: table.unknown("mean_time_ns")?,
        mean_shift_ns: table.unknown("mean_shift_ns")?,
        mean_after_ns: table.unknown("mean_after_ns")?,
        work_ns: table.unknown("work_ns")?,
        message_bytes: table.longs("message_bytes")?,
        nodes: table.ints("nodes")?,
        ppn: table.ints("ppn")?,
        n_ranks: table.ints("n_ranks")?,
        collective: table.words("collective")?,
        variant: table.words("variant")?,
        probability: match table.has("probability") {
            true => table.floats("probability")?,
            false => vec![0.0; rows],
        },
        class: classes(&in_place, &word("call_class")?),
        manner,
        context: [
            word(processor)?,
            word(kernel)?,
            word(binding)?,
            word(settings)?,
        ],
    };
    Ok(columns)
}

/// By row the flags of its call's class.
fn classes(in_place: &[bool], names: &[ByteArray]) -> Vec<u8> {
    let rows = in_place.iter().zip(names);
    let flags = |(&in_place, names): (&bool, &ByteArray)| {
        CallClass::flags_named(in_place, &String::from_utf8_lossy(names.data()))
    };
    rows.map(flags).collect()
}

fn manners(names: &[ByteArray]) -> Result<Vec<Manner>, ParquetError> {
    let manner = |name: &ByteArray| {
        let name = String::from_utf8_lossy(name.data());
        Manner::from_name(&name)
            .ok_or_else(|| ParquetError::General(format!("no call is made in the manner {name:?}")))
    };
    names.iter().map(manner).collect()
}
