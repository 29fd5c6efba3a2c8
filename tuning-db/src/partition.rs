//! Partitions of the data set: immutable Parquet files that anybody's tools can read.
//!
//! One row per record, with the raw message size and layout, so that a new tuning space loses
//! nothing. The footer lists the traces that a partition holds (key `colltune.traces`): a trace
//! that is found again in `incoming/` after a crash is known by it.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use colltune_core::record::{Header, Manner, Record};
use colltune_files::Links;
use parquet::basic::{Compression, Encoding};
use parquet::column::reader::ColumnReader;
use parquet::data_type::{ByteArray, ByteArrayType, DataType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::reader::{FileReader, RowGroupReader, SerializedFileReader};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::ColumnPath;
use serde::{Deserialize, Serialize};

use crate::check_word::check_word;
use crate::database::{Database, DbError, at};
use crate::write;

const TRACES_KEY: &str = "colltune.traces";

/// The columns, in order. Times are nanoseconds; `start_ns` compares only where `job` and `clock`
/// are equal; `call` counts the tuned calls of `comm`; `manner` says which calls are tuned (`blocking`)
/// and which only passed through. Partitions without that column hold blocking calls.
const SCHEMA: &str = "message record {
    REQUIRED BYTE_ARRAY job (UTF8);
    REQUIRED INT32 rank (INTEGER(32, false));
    REQUIRED INT32 world_ranks (INTEGER(32, false));
    REQUIRED BYTE_ARRAY host (UTF8);
    REQUIRED INT64 clock (INTEGER(64, false));
    REQUIRED INT64 generation (INTEGER(64, false));
    REQUIRED INT64 started_unix_ms (INTEGER(64, false));
    REQUIRED INT64 comm (INTEGER(64, false));
    REQUIRED INT64 call (INTEGER(64, false));
    REQUIRED BYTE_ARRAY collective (UTF8);
    REQUIRED BYTE_ARRAY variant (UTF8);
    REQUIRED INT64 message_bytes (INTEGER(64, false));
    REQUIRED INT32 nodes (INTEGER(32, false));
    REQUIRED INT32 ppn (INTEGER(32, false));
    REQUIRED INT32 n_ranks (INTEGER(32, false));
    REQUIRED INT64 start_ns (INTEGER(64, false));
    REQUIRED INT64 duration_ns (INTEGER(64, false));
    REQUIRED BOOLEAN drawn;
    REQUIRED BYTE_ARRAY manner (UTF8);
}";

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
}

/// What a new partition is made of: traces, each with the number of records held already.
#[derive(Clone, Debug)]
pub struct Piece {
    pub header: Header,
    pub first: u64,
    pub records: Vec<Record>,
}

/// What training reads, column by column; all are equally long.
#[derive(Clone, Debug, PartialEq)]
pub struct Columns {
    pub job: Vec<ByteArray>,
    pub comm: Vec<u64>,
    pub call: Vec<u64>,
    pub clock: Vec<u64>,
    pub start_ns: Vec<u64>,
    pub duration_ns: Vec<u64>,
    pub message_bytes: Vec<u64>,
    pub nodes: Vec<u32>,
    pub ppn: Vec<u32>,
    pub n_ranks: Vec<u32>,
    pub collective: Vec<ByteArray>,
    pub variant: Vec<ByteArray>,
    pub manner: Vec<Manner>,
}

/// The partitions of a library's data set, by name.
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

/// Publishes a partition; returns where. Its name begins with the time of its first run and ends
/// with a check word over what it holds.
///
/// Errors: `Io` and `Parquet` (a full disk, for one); nothing is left behind then.
pub fn publish(
    db: &Database,
    library: colltune_core::library::Library,
    pieces: &[Piece],
) -> Result<PathBuf, DbError> {
    let folder = db.data(library);
    std::fs::create_dir_all(&folder).map_err(at("make the folder", &folder))?;
    let held: Vec<Held> = pieces.iter().map(Piece::held).collect();
    let held = serde_json::to_string(&held).expect("numbers and names");
    let started = pieces
        .iter()
        .map(|piece| piece.header.started_unix_ms)
        .min()
        .unwrap_or(0);
    let path = folder.join(format!(
        "{started:015}-{:016x}.parquet",
        check_word(held.as_bytes())
    ));
    let temporary = write::unfinished(&path);
    let written = write_file(&temporary, pieces, held).map_err(|error| DbError::Parquet {
        action: "write",
        path: path.clone(),
        error: error.to_string(),
    });
    let result = written.and_then(|()| write::publish(&temporary, &path));
    if result.is_err() {
        let _ = std::fs::remove_file(&temporary);
    }
    result.map(|()| path)
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
        }
    }
}

fn write_file(path: &Path, pieces: &[Piece], held: String) -> Result<(), ParquetError> {
    let schema = Arc::new(parse_message_type(SCHEMA)?);
    let mut properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_created_by(format!("colltune {}", env!("CARGO_PKG_VERSION")))
        .set_key_value_metadata(Some(vec![KeyValue::new(TRACES_KEY.to_owned(), held)]));
    for column in ["start_ns", "call", "duration_ns"] {
        let column = ColumnPath::from(column);
        properties = properties
            .set_column_dictionary_enabled(column.clone(), false)
            .set_column_encoding(column, Encoding::DELTA_BINARY_PACKED);
    }
    let file = File::create(path)?;
    let mut writer = SerializedFileWriter::new(file, schema, Arc::new(properties.build()))?;
    let mut group = writer.next_row_group()?;
    let per_trace = |value: &dyn Fn(&Header) -> u64| -> Vec<i64> {
        pieces
            .iter()
            .flat_map(|piece| std::iter::repeat_n(value(&piece.header) as i64, piece.records.len()))
            .collect()
    };
    let per_record = |value: fn(&Record) -> u64| -> Vec<i64> {
        pieces
            .iter()
            .flat_map(|piece| piece.records.iter().map(move |record| value(record) as i64))
            .collect()
    };
    let narrow =
        |values: Vec<i64>| -> Vec<i32> { values.into_iter().map(|value| value as i32).collect() };
    let words = |word: &dyn Fn(&Header) -> String| -> Vec<ByteArray> {
        pieces
            .iter()
            .flat_map(|piece| {
                std::iter::repeat_n(
                    ByteArray::from(word(&piece.header).into_bytes()),
                    piece.records.len(),
                )
            })
            .collect()
    };
    let named = |name: &dyn Fn(&Header, usize) -> String| -> Vec<ByteArray> {
        let mut values = Vec::new();
        for piece in pieces {
            let names: Vec<ByteArray> = (0..piece.header.variants.len())
                .map(|place| name(&piece.header, place).into_bytes().into())
                .collect();
            values.extend(
                piece
                    .records
                    .iter()
                    .map(|record| names[usize::from(record.variant)].clone()),
            );
        }
        values
    };
    column::<ByteArrayType>(&mut group, &words(&|header| header.job.clone()))?;
    column::<Int32Type>(&mut group, &narrow(per_trace(&|header| header.rank.into())))?;
    column::<Int32Type>(
        &mut group,
        &narrow(per_trace(&|header| header.world_ranks.into())),
    )?;
    column::<ByteArrayType>(&mut group, &words(&|header| header.host.clone()))?;
    column::<Int64Type>(&mut group, &per_trace(&|header| header.clock))?;
    column::<Int64Type>(&mut group, &per_trace(&|header| header.generation))?;
    column::<Int64Type>(&mut group, &per_trace(&|header| header.started_unix_ms))?;
    column::<Int64Type>(&mut group, &per_record(|record| record.comm))?;
    column::<Int64Type>(&mut group, &per_record(|record| record.call))?;
    column::<ByteArrayType>(
        &mut group,
        &named(&|header, place| header.variants[place].0.name().to_owned()),
    )?;
    column::<ByteArrayType>(
        &mut group,
        &named(&|header, place| header.variants[place].1.clone()),
    )?;
    column::<Int64Type>(&mut group, &per_record(|record| record.message_bytes))?;
    column::<Int32Type>(
        &mut group,
        &narrow(per_record(|record| record.nodes.into())),
    )?;
    column::<Int32Type>(&mut group, &narrow(per_record(|record| record.ppn.into())))?;
    column::<Int32Type>(
        &mut group,
        &narrow(per_record(|record| record.n_ranks.into())),
    )?;
    column::<Int64Type>(&mut group, &per_record(|record| record.start_ns))?;
    column::<Int64Type>(&mut group, &per_record(|record| record.duration_ns))?;
    let drawn: Vec<bool> = pieces
        .iter()
        .flat_map(|piece| piece.records.iter().map(|record| record.drawn))
        .collect();
    column::<parquet::data_type::BoolType>(&mut group, &drawn)?;
    let names = Manner::ALL.map(|manner| ByteArray::from(manner.name()));
    let manners: Vec<ByteArray> = pieces
        .iter()
        .flat_map(|piece| {
            piece
                .records
                .iter()
                .map(|record| names[record.manner as usize].clone())
        })
        .collect();
    column::<ByteArrayType>(&mut group, &manners)?;
    group.close()?;
    let file = writer.into_inner()?;
    file.sync_all()?;
    Ok(())
}

/// Writes the next column.
fn column<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, File>,
    values: &[T::T],
) -> Result<(), ParquetError> {
    let mut column = group
        .next_column()?
        .ok_or_else(|| ParquetError::General("too many columns".to_owned()))?;
    column.typed::<T>().write_batch(values, None, None)?;
    column.close()
}

/// The traces that a partition holds.
///
/// Errors: `Parquet` for a file that is none, or was not written by colltune.
pub fn held(path: &Path) -> Result<Vec<Held>, DbError> {
    let unreadable = |error: String| DbError::Parquet {
        action: "read",
        path: path.to_owned(),
        error,
    };
    let reader = open(path).map_err(|error| unreadable(error.to_string()))?;
    let pairs = reader.metadata().file_metadata().key_value_metadata();
    let text = pairs
        .into_iter()
        .flatten()
        .find(|pair| pair.key == TRACES_KEY)
        .and_then(|pair| pair.value.as_ref());
    let text = text.ok_or_else(|| unreadable(format!("its footer has no {TRACES_KEY}")))?;
    serde_json::from_str(text).map_err(|error| unreadable(error.to_string()))
}

/// Reads what training needs.
///
/// Errors: `Parquet` for a damaged file.
pub fn read(path: &Path) -> Result<Columns, DbError> {
    read_columns(path).map_err(|error| DbError::Parquet {
        action: "read",
        path: path.to_owned(),
        error: error.to_string(),
    })
}

fn open(path: &Path) -> Result<SerializedFileReader<File>, ParquetError> {
    SerializedFileReader::new(colltune_files::open(path, Links::Follow)?)
}

fn read_columns(path: &Path) -> Result<Columns, ParquetError> {
    let reader = open(path)?;
    let names: Vec<String> = reader
        .metadata()
        .file_metadata()
        .schema_descr()
        .columns()
        .iter()
        .map(|column| column.name().to_owned())
        .collect();
    let all = |name: &str| Source {
        reader: &reader,
        column: names.iter().position(|other| other == name),
        name: name.to_owned(),
    };
    let job = all("job").words()?;
    let manner = if names.iter().any(|name| name == "manner") {
        manners(&all("manner").words()?)?
    } else {
        vec![Manner::Blocking; job.len()]
    };
    Ok(Columns {
        job,
        comm: all("comm").longs()?,
        call: all("call").longs()?,
        clock: all("clock").longs()?,
        start_ns: all("start_ns").longs()?,
        duration_ns: all("duration_ns").longs()?,
        message_bytes: all("message_bytes").longs()?,
        nodes: all("nodes").ints()?,
        ppn: all("ppn").ints()?,
        n_ranks: all("n_ranks").ints()?,
        collective: all("collective").words()?,
        variant: all("variant").words()?,
        manner,
    })
}

fn manners(names: &[ByteArray]) -> Result<Vec<Manner>, ParquetError> {
    let manner = |name: &ByteArray| {
        let name = String::from_utf8_lossy(name.data());
        Manner::from_name(&name)
            .ok_or_else(|| ParquetError::General(format!("no call is made in the manner {name:?}")))
    };
    names.iter().map(manner).collect()
}

/// One column of all row groups.
struct Source<'a> {
    reader: &'a SerializedFileReader<File>,
    column: Option<usize>,
    name: String,
}

impl Source<'_> {
    fn longs(self) -> Result<Vec<u64>, ParquetError> {
        let mut values = Vec::new();
        self.each(|group, column| match group {
            ColumnReader::Int64ColumnReader(mut reader) => reader
                .read_records(column, None, None, &mut values)
                .map(|_| ()),
            _ => Err(ParquetError::General(
                "a column has another type".to_owned(),
            )),
        })?;
        Ok(values.into_iter().map(|value: i64| value as u64).collect())
    }

    fn ints(self) -> Result<Vec<u32>, ParquetError> {
        let mut values = Vec::new();
        self.each(|group, column| match group {
            ColumnReader::Int32ColumnReader(mut reader) => reader
                .read_records(column, None, None, &mut values)
                .map(|_| ()),
            _ => Err(ParquetError::General(
                "a column has another type".to_owned(),
            )),
        })?;
        Ok(values.into_iter().map(|value: i32| value as u32).collect())
    }

    fn words(self) -> Result<Vec<ByteArray>, ParquetError> {
        let mut values = Vec::new();
        self.each(|group, column| match group {
            ColumnReader::ByteArrayColumnReader(mut reader) => reader
                .read_records(column, None, None, &mut values)
                .map(|_| ()),
            _ => Err(ParquetError::General(
                "a column has another type".to_owned(),
            )),
        })?;
        Ok(values)
    }

    fn each(
        &self,
        mut take: impl FnMut(ColumnReader, usize) -> Result<(), ParquetError>,
    ) -> Result<(), ParquetError> {
        let column = self
            .column
            .ok_or_else(|| ParquetError::General(format!("there is no column {:?}", self.name)))?;
        for index in 0..self.reader.num_row_groups() {
            let group: Box<dyn RowGroupReader + '_> = self.reader.get_row_group(index)?;
            let rows = usize::try_from(group.metadata().num_rows()).unwrap_or(0);
            take(group.get_column_reader(column)?, rows)?;
        }
        Ok(())
    }
}
