//! Parquet files: what their footers say, and the rows of single columns.

use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use colltune_files::Links;
use parquet::basic::{ConvertedType, LogicalType, Type};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{ByteArray, DataType};
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, RowGroupReader};
use parquet::file::serialized_reader::SerializedFileReader;
use parquet::schema::types::ColumnDescriptor;
use rusqlite::types::ValueRef;

use crate::table::{BOOLEAN, Holds, INTEGER, Opened, Part, Put, REAL, Rows, TEXT, Trouble};

/// So many rows are in memory at once, whatever a file's row groups are.
const ROWS_AT_ONCE: usize = 1 << 14;

/// A file that is open.
pub struct ParquetFile(SerializedFileReader<File>);

impl ParquetFile {
    /// Errors: a sentence that names the file, such as one that was cut off.
    pub fn open(path: &Path) -> Result<ParquetFile, String> {
        let open = || {
            let file = colltune_files::open(path, Links::Follow).map_err(ParquetError::from)?;
            Ok(SerializedFileReader::new(file)?)
        };
        match whatever_it_holds(path, open) {
            Ok(reader) => Ok(ParquetFile(reader)),
            Err(Trouble::Unreadable(problem)) => Err(problem),
            Err(Trouble::Engine(error)) => Err(error.to_string()),
        }
    }

    /// The columns that a table can have, with their places in the file.
    pub fn columns(&self) -> impl Iterator<Item = (usize, &str, Holds)> {
        let metadata = self.0.metadata().file_metadata();
        let columns = metadata.schema_descr().columns().iter().enumerate();
        columns.filter_map(|(place, column)| Some((place, column.name(), holds(column)?)))
    }
}

/// `None` unless it is a plain value.
fn holds(column: &ColumnDescriptor) -> Option<Holds> {
    let is_plain = column.path().parts().len() == 1
        && column.max_rep_level() == 0
        && column.max_def_level() <= 1;
    match column.physical_type() {
        _ if !is_plain => None,
        Type::BOOLEAN => Some(BOOLEAN),
        Type::INT32 | Type::INT64 => Some(INTEGER),
        Type::FLOAT | Type::DOUBLE => Some(REAL),
        Type::BYTE_ARRAY => Some(TEXT),
        Type::INT96 | Type::FIXED_LEN_BYTE_ARRAY => None,
    }
}

/// A file as a part of a table. It is opened again when it is read: a database may hold more files than a process may
/// have open.
pub struct FilePart {
    pub path: PathBuf,
    /// Rows count whose value in a column is a place where `true` stands.
    pub counting: Option<(&'static str, Vec<bool>)>,
}

impl FilePart {
    /// Adds the file to a table, whose columns grow by what is new.
    pub fn add(
        self,
        table: &mut Opened,
        constants: Vec<(&'static str, rusqlite::types::Value)>,
    ) -> Result<(), String> {
        let file = ParquetFile::open(&self.path)?;
        file.columns()
            .for_each(|(_, name, holds)| table.column(name, holds));
        table.parts.push(Part {
            constants,
            rows: Box::new(self),
        });
        Ok(())
    }
}

impl Rows for FilePart {
    fn read(&self, wanted: &[&str], put: &mut Put<'_>) -> Result<(), Trouble> {
        let file = ParquetFile::open(&self.path).map_err(Trouble::Unreadable)?;
        whatever_it_holds(&self.path, || {
            for group in 0..file.0.num_row_groups() {
                self.read_group(&file, &*file.0.get_row_group(group)?, wanted, put)?;
            }
            Ok(())
        })
    }
}

impl FilePart {
    fn read_group(
        &self,
        file: &ParquetFile,
        group: &dyn RowGroupReader,
        wanted: &[&str],
        put: &mut Put<'_>,
    ) -> Result<(), Trouble> {
        let open = |name: &str| -> Result<Option<Reading>, ParquetError> {
            let found = file
                .columns()
                .find(|(_, other, _)| other.eq_ignore_ascii_case(name));
            let reading = |(place, ..): (usize, &str, Holds)| Reading::new(group, place);
            found.map(reading).transpose()
        };
        let mut columns = wanted
            .iter()
            .map(|name| open(name))
            .collect::<Result<Vec<_>, _>>()?;
        let mut places = match &self.counting {
            Some((column, _)) => open(column)?,
            None => None,
        };
        let mut left = usize::try_from(group.metadata().num_rows()).unwrap_or(0);
        while left > 0 {
            let n_rows = left.min(ROWS_AT_ONCE);
            left -= n_rows;
            for column in columns.iter_mut().chain([&mut places]).flatten() {
                column.next(n_rows)?;
            }
            let mut values = Vec::with_capacity(columns.len());
            for row in 0..n_rows {
                let counts = match (&self.counting, &places) {
                    (Some((_, counts)), Some(places)) => match places.value(row) {
                        ValueRef::Integer(place) => {
                            let place = usize::try_from(place).ok();
                            place.and_then(|place| counts.get(place)) == Some(&true)
                        }
                        _ => false,
                    },
                    _ => true,
                };
                if counts {
                    values.clear();
                    values.extend(columns.iter().map(|column| {
                        column
                            .as_ref()
                            .map_or(ValueRef::Null, |column| column.value(row))
                    }));
                    put(&values)?;
                }
            }
        }
        Ok(())
    }
}

/// A file may hold anything, and some of it makes the reader panic.
fn whatever_it_holds<T>(
    path: &Path,
    read: impl FnOnce() -> Result<T, Trouble>,
) -> Result<T, Trouble> {
    let read = catch_unwind(AssertUnwindSafe(read));
    let read = read.unwrap_or_else(|_| Err(Trouble::Unreadable("it is damaged".to_owned())));
    read.map_err(|trouble| match trouble {
        Trouble::Unreadable(problem) => Trouble::Unreadable(format!(
            "failed to read {}: {problem}; it is left out",
            path.display()
        )),
        engine => engine,
    })
}

/// A column of a row group that is read, some rows at a time.
struct Reading {
    reader: ColumnReader,
    is_unsigned: bool,
    may_be_unknown: bool,
    values: Values,
    /// Where in `values` a row has its own, where not every row has one.
    places: Vec<usize>,
}

enum Values {
    Whole(Vec<i64>),
    Real(Vec<f64>),
    Text(Vec<ByteArray>),
}

impl Reading {
    fn new(group: &dyn RowGroupReader, place: usize) -> Result<Reading, ParquetError> {
        let column = group.metadata().column(place).column_descr_ptr();
        Ok(Reading {
            reader: group.get_column_reader(place)?,
            is_unsigned: is_unsigned(&column),
            may_be_unknown: column.max_def_level() > 0,
            values: Values::Whole(Vec::new()),
            places: Vec::new(),
        })
    }

    fn next(&mut self, n_rows: usize) -> Result<(), ParquetError> {
        let mut levels = self.may_be_unknown.then(Vec::new);
        let known = &mut levels;
        let is_unsigned = self.is_unsigned;
        self.values = match &mut self.reader {
            ColumnReader::BoolColumnReader(reader) => {
                let values = some(reader, n_rows, known)?;
                Values::Whole(values.into_iter().map(i64::from).collect())
            }
            ColumnReader::Int32ColumnReader(reader) => {
                let whole = |value: i32| match is_unsigned {
                    true => i64::from(value.cast_unsigned()),
                    false => value.into(),
                };
                Values::Whole(
                    some(reader, n_rows, known)?
                        .into_iter()
                        .map(whole)
                        .collect(),
                )
            }
            ColumnReader::Int64ColumnReader(reader) => Values::Whole(some(reader, n_rows, known)?),
            ColumnReader::FloatColumnReader(reader) => {
                let values = some(reader, n_rows, known)?;
                Values::Real(values.into_iter().map(f64::from).collect())
            }
            ColumnReader::DoubleColumnReader(reader) => Values::Real(some(reader, n_rows, known)?),
            ColumnReader::ByteArrayColumnReader(reader) => {
                Values::Text(some(reader, n_rows, known)?)
            }
            _ => {
                return Err(ParquetError::General(
                    "a column is of a type that is not read".to_owned(),
                ));
            }
        };
        self.places.clear();
        let mut place = 0;
        for level in levels.into_iter().flatten() {
            self.places.push(if level > 0 { place } else { usize::MAX });
            place += usize::from(level > 0);
        }
        Ok(())
    }

    fn value(&self, row: usize) -> ValueRef<'_> {
        let place = self.places.get(row).map_or(row, |place| *place);
        let value = match &self.values {
            Values::Whole(values) => values.get(place).map(|value| ValueRef::Integer(*value)),
            Values::Real(values) => values.get(place).map(|value| ValueRef::Real(*value)),
            Values::Text(values) => values.get(place).map(|value| ValueRef::Text(value.data())),
        };
        value.unwrap_or(ValueRef::Null)
    }
}

fn some<T: DataType>(
    reader: &mut ColumnReaderImpl<T>,
    n_rows: usize,
    levels: &mut Option<Vec<i16>>,
) -> Result<Vec<T::T>, ParquetError> {
    let mut values = Vec::new();
    let (read, ..) = reader.read_records(n_rows, levels.as_mut(), None, &mut values)?;
    match read == n_rows {
        true => Ok(values),
        false => Err(ParquetError::General(
            "a column is shorter than the others".to_owned(),
        )),
    }
}

fn is_unsigned(column: &ColumnDescriptor) -> bool {
    let logical = matches!(
        column.logical_type_ref(),
        Some(LogicalType::Integer(of)) if !of.is_signed
    );
    logical
        || matches!(
            column.converted_type(),
            ConvertedType::UINT_8
                | ConvertedType::UINT_16
                | ConvertedType::UINT_32
                | ConvertedType::UINT_64
        )
}
