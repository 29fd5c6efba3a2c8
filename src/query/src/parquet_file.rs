//! Parquet files: what their footers say, and single columns of single row groups.

use std::fmt::Display;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use colltune_files::Links;
use parquet::basic::{ConvertedType, LogicalType, Type};
use parquet::column::reader::{ColumnReader, get_column_reader};
use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;
use parquet::file::metadata::ParquetMetaData;
use parquet::file::reader::FileReader;
use parquet::file::serialized_reader::{SerializedFileReader, SerializedPageReader};
use parquet::file::statistics::Statistics;
use parquet::schema::types::ColumnDescriptor;
use rusqlite::types::Value;

use crate::decoded::{Decoded, Domain};
use crate::pruning::MinMax;

/// A file by its footer. It is opened again for each row group: a database may hold more files than a process may.
pub struct ParquetFile {
    path: PathBuf,
    metadata: Arc<ParquetMetaData>,
}

impl ParquetFile {
    /// Errors: a sentence that names the file, such as one that was cut off.
    pub fn open(path: &Path) -> Result<ParquetFile, String> {
        let open = || -> Result<_, ParquetError> {
            let file = colltune_files::open(path, Links::Follow)?;
            Ok(SerializedFileReader::new(file)?.metadata().clone())
        };
        let metadata = whatever_it_holds(path, open)?;
        Ok(ParquetFile {
            path: path.to_owned(),
            metadata: Arc::new(metadata),
        })
    }

    pub fn n_rows(&self) -> i64 {
        self.metadata.file_metadata().num_rows()
    }

    pub fn n_row_groups(&self) -> usize {
        self.metadata.num_row_groups()
    }

    pub fn created_by(&self) -> &str {
        self.metadata.file_metadata().created_by().unwrap_or("")
    }

    /// The columns that a table can have, with their places in the file.
    pub fn columns(&self) -> impl Iterator<Item = (usize, &str, Domain)> {
        let schema = self.metadata.file_metadata().schema_descr();
        let columns = schema.columns().iter().enumerate();
        columns.filter_map(|(place, column)| Some((place, column.name(), domain(column)?)))
    }

    fn descriptor(&self, column: usize) -> &ColumnDescriptor {
        let schema = self.metadata.file_metadata().schema_descr();
        &schema.columns()[column]
    }

    /// The least and greatest value of a column in a row group, where they are known.
    pub fn bounds(&self, group: usize, column: usize) -> Option<MinMax> {
        let statistics = self.metadata.row_group(group).column(column).statistics()?;
        // Earlier writers compared unsigned numbers and text as if they were signed.
        if statistics.is_min_max_deprecated() {
            return None;
        }
        let unsigned = is_unsigned(self.descriptor(column));
        let whole = |value: i64| (!unsigned || value >= 0).then_some(Value::Integer(value));
        let short = |value: i32| match unsigned {
            true => Value::Integer(i64::from(value.cast_unsigned())),
            false => Value::Integer(value.into()),
        };
        let text = |value: &ByteArray| {
            value
                .as_utf8()
                .ok()
                .map(|text| Value::Text(text.to_owned()))
        };
        let (min, max) = match statistics {
            Statistics::Boolean(of) => {
                let flag = |value: &bool| Value::Integer((*value).into());
                (flag(of.min_opt()?), flag(of.max_opt()?))
            }
            Statistics::Int32(of) => (short(*of.min_opt()?), short(*of.max_opt()?)),
            Statistics::Int64(of) => (whole(*of.min_opt()?)?, whole(*of.max_opt()?)?),
            Statistics::Float(of) => {
                let real = |value: &f32| Value::Real((*value).into());
                (real(of.min_opt()?), real(of.max_opt()?))
            }
            Statistics::Double(of) => (Value::Real(*of.min_opt()?), Value::Real(*of.max_opt()?)),
            Statistics::ByteArray(of) => (text(of.min_opt()?)?, text(of.max_opt()?)?),
            _ => return None,
        };
        Some(MinMax { min, max })
    }

    pub fn n_rows_of(&self, group: usize) -> u64 {
        u64::try_from(self.metadata.row_group(group).num_rows()).unwrap_or(0)
    }

    /// Reads columns of a row group.
    ///
    /// Errors: a sentence that names the file.
    pub fn read(&self, group: usize, columns: &[usize]) -> Result<Vec<Decoded>, String> {
        whatever_it_holds(&self.path, || self.decoded(group, columns))
    }

    fn decoded(&self, group: usize, columns: &[usize]) -> Result<Vec<Decoded>, ParquetError> {
        let file = Arc::new(colltune_files::open(&self.path, Links::Follow)?);
        let of_group = self.metadata.row_group(group);
        let rows = usize::try_from(of_group.num_rows())?;
        let read = |&column: &usize| {
            let chunk = of_group.column(column);
            let pages = SerializedPageReader::new(Arc::clone(&file), chunk, rows, None)?;
            let reader = get_column_reader(chunk.column_descr_ptr(), Box::new(pages));
            decode(reader, self.descriptor(column), rows)
        };
        columns.iter().map(read).collect()
    }
}

/// A file may hold anything, and nobody above takes a panic: SQLite is C.
fn whatever_it_holds<T>(
    path: &Path,
    read: impl FnOnce() -> Result<T, ParquetError>,
) -> Result<T, String> {
    let left_out = |problem: &dyn Display| {
        format!(
            "failed to read {}: {problem}; it is left out",
            path.display()
        )
    };
    match catch_unwind(AssertUnwindSafe(read)) {
        Ok(read) => read.map_err(|error| left_out(&error)),
        Err(_) => Err(left_out(&"it is damaged")),
    }
}

/// `None` for what is no plain value.
fn domain(column: &ColumnDescriptor) -> Option<Domain> {
    let is_plain = column.path().parts().len() == 1
        && column.max_rep_level() == 0
        && column.max_def_level() <= 1;
    match column.physical_type() {
        _ if !is_plain => None,
        Type::BOOLEAN => Some(Domain::Boolean),
        Type::INT32 | Type::INT64 => Some(Domain::Integer),
        Type::FLOAT | Type::DOUBLE => Some(Domain::Real),
        Type::BYTE_ARRAY => Some(Domain::Text),
        Type::INT96 | Type::FIXED_LEN_BYTE_ARRAY => None,
    }
}

fn is_unsigned(column: &ColumnDescriptor) -> bool {
    let logical = matches!(
        column.logical_type_ref(),
        Some(LogicalType::Integer(of)) if !of.is_signed
    );
    let converted = matches!(
        column.converted_type(),
        ConvertedType::UINT_8
            | ConvertedType::UINT_16
            | ConvertedType::UINT_32
            | ConvertedType::UINT_64
    );
    logical || converted
}

fn decode(
    reader: ColumnReader,
    column: &ColumnDescriptor,
    rows: usize,
) -> Result<Decoded, ParquetError> {
    macro_rules! values {
        ($reader:expr, $wrap:expr) => {{
            let mut reader = $reader;
            let (mut values, mut levels) = (Vec::new(), Vec::new());
            let wanted = (column.max_def_level() > 0).then_some(&mut levels);
            let (read, ..) = reader.read_records(rows, wanted, None, &mut values)?;
            if read != rows {
                return Err(ParquetError::General(
                    "a column is shorter than the others".to_owned(),
                ));
            }
            partly(values, &levels, rows, $wrap)
        }};
    }
    let unsigned = is_unsigned(column);
    match reader {
        ColumnReader::BoolColumnReader(reader) => values!(reader, |values: Vec<bool>| {
            Decoded::Integers(values.into_iter().map(i64::from).collect())
        }),
        ColumnReader::Int32ColumnReader(reader) => values!(reader, |values: Vec<i32>| {
            let whole = |value: i32| match unsigned {
                true => i64::from(value.cast_unsigned()),
                false => value.into(),
            };
            Decoded::Integers(values.into_iter().map(whole).collect())
        }),
        ColumnReader::Int64ColumnReader(reader) => values!(reader, Decoded::Integers),
        ColumnReader::FloatColumnReader(reader) => values!(reader, |values: Vec<f32>| {
            Decoded::Reals(values.into_iter().map(f64::from).collect())
        }),
        ColumnReader::DoubleColumnReader(reader) => values!(reader, Decoded::Reals),
        ColumnReader::ByteArrayColumnReader(reader) => values!(reader, Decoded::Words),
        _ => Err(ParquetError::General(
            "a column is of a type that is not read".to_owned(),
        )),
    }
}

/// Spreads the values that are known over all rows.
fn partly<T: Default>(
    values: Vec<T>,
    levels: &[i16],
    rows: usize,
    wrap: impl FnOnce(Vec<T>) -> Decoded,
) -> Result<Decoded, ParquetError> {
    if values.len() == rows {
        return Ok(wrap(values));
    }
    let known: Vec<bool> = levels.iter().map(|&level| level > 0).collect();
    let n_known = known.iter().filter(|&&known| known).count();
    if known.len() != rows || n_known != values.len() {
        return Err(ParquetError::General(
            "a column is shorter than the others".to_owned(),
        ));
    }
    let mut values = values.into_iter();
    let spread = known
        .iter()
        .map(|&known| known.then(|| values.next()).flatten().unwrap_or_default());
    let spread = spread.collect();
    Ok(Decoded::Partly(Box::new(wrap(spread)), known))
}
