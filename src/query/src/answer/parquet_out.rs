//! An answer as a Parquet file. A column holds whole numbers, numbers or text, by what its values are.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use colltune_files::publish::Draft;
use parquet::basic::{Compression, ConvertedType, LogicalType, Repetition, Type as Physical};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::Type;
use rusqlite::types::ValueRef;

use crate::engine::Sink;
use crate::error::QueryError;

/// So many rows lie in one row group.
const GROUP_ROWS: usize = 1 << 18;

pub struct ParquetOut {
    path: PathBuf,
    columns: Vec<Column>,
}

struct Column {
    name: String,
    values: Vec<Entry>,
}

enum Entry {
    Unknown,
    Whole(i64),
    Real(f64),
    Text(String),
}

/// What a column holds: the least that takes all its values.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Holds {
    Whole,
    Real,
    Text,
}

impl ParquetOut {
    pub fn new(path: &Path) -> ParquetOut {
        ParquetOut {
            path: path.to_owned(),
            columns: Vec::new(),
        }
    }

    /// Nobody sees half a file.
    fn write(&self) -> Result<(), ParquetError> {
        let (draft, file) = Draft::create(&self.path)?;
        let file = self.write_to(file)?;
        Ok(draft.publish(&file)?)
    }

    fn write_to(&self, file: File) -> Result<File, ParquetError> {
        let held: Vec<Holds> = self.columns.iter().map(Column::holds).collect();
        let fields = self.columns.iter().zip(&held);
        let fields = fields
            .map(|(column, holds)| holds.field(&column.name).map(Arc::new))
            .collect::<Result<_, _>>()?;
        let schema = Type::group_type_builder("answer")
            .with_fields(fields)
            .build()?;
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_created_by(format!("colltune {}", env!("CARGO_PKG_VERSION")))
            .build();
        let mut writer = SerializedFileWriter::new(file, Arc::new(schema), Arc::new(properties))?;
        let rows = self.columns.first().map_or(0, |column| column.values.len());
        for begin in (0..rows).step_by(GROUP_ROWS) {
            let mut group = writer.next_row_group()?;
            for (column, holds) in self.columns.iter().zip(&held) {
                let end = (begin + GROUP_ROWS).min(rows);
                write_column(&mut group, &column.values[begin..end], *holds)?;
            }
            group.close()?;
        }
        writer.into_inner()
    }
}

impl Column {
    fn holds(&self) -> Holds {
        let holds = self.values.iter().map(|value| match value {
            Entry::Unknown | Entry::Whole(_) => Holds::Whole,
            Entry::Real(_) => Holds::Real,
            Entry::Text(_) => Holds::Text,
        });
        holds.max().unwrap_or(Holds::Whole)
    }
}

impl Holds {
    fn field(self, name: &str) -> Result<Type, ParquetError> {
        let physical = match self {
            Holds::Whole => Physical::INT64,
            Holds::Real => Physical::DOUBLE,
            Holds::Text => Physical::BYTE_ARRAY,
        };
        let field = Type::primitive_type_builder(name, physical);
        let field = field.with_repetition(Repetition::OPTIONAL);
        match self {
            Holds::Text => field
                .with_converted_type(ConvertedType::UTF8)
                .with_logical_type(Some(LogicalType::String))
                .build(),
            Holds::Whole | Holds::Real => field.build(),
        }
    }
}

fn write_column(
    group: &mut SerializedRowGroupWriter<'_, File>,
    values: &[Entry],
    holds: Holds,
) -> Result<(), ParquetError> {
    match holds {
        Holds::Whole => put::<Int64Type>(group, values, |value| match value {
            Entry::Whole(value) => Some(*value),
            _ => None,
        }),
        Holds::Real => put::<DoubleType>(group, values, |value| match value {
            Entry::Whole(value) => Some(*value as f64),
            Entry::Real(value) => Some(*value),
            _ => None,
        }),
        Holds::Text => put::<ByteArrayType>(group, values, |value| match value {
            Entry::Unknown => None,
            Entry::Whole(value) => Some(ByteArray::from(value.to_string().into_bytes())),
            Entry::Real(value) => Some(ByteArray::from(value.to_string().into_bytes())),
            Entry::Text(text) => Some(ByteArray::from(text.as_str())),
        }),
    }
}

fn put<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, File>,
    values: &[Entry],
    value: impl Fn(&Entry) -> Option<T::T>,
) -> Result<(), ParquetError> {
    let mut levels = Vec::with_capacity(values.len());
    let mut known = Vec::new();
    for entry in values {
        let value = value(entry);
        levels.push(i16::from(value.is_some()));
        known.extend(value);
    }
    let column = group.next_column()?;
    let too_many = || ParquetError::General("there are too many columns".to_owned());
    let mut column = column.ok_or_else(too_many)?;
    column
        .typed::<T>()
        .write_batch(&known, Some(&levels), None)?;
    column.close()
}

impl Sink for ParquetOut {
    fn begin(&mut self, columns: &[String]) -> Result<(), QueryError> {
        let column = |name: &String| Column {
            name: name.clone(),
            values: Vec::new(),
        };
        self.columns = columns.iter().map(column).collect();
        Ok(())
    }

    fn row(&mut self, values: &[ValueRef<'_>]) -> Result<(), QueryError> {
        for (column, value) in self.columns.iter_mut().zip(values) {
            column.values.push(match value {
                ValueRef::Null => Entry::Unknown,
                ValueRef::Integer(value) => Entry::Whole(*value),
                ValueRef::Real(value) => Entry::Real(*value),
                ValueRef::Text(bytes) | ValueRef::Blob(bytes) => {
                    Entry::Text(String::from_utf8_lossy(bytes).into_owned())
                }
            });
        }
        Ok(())
    }

    fn end(&mut self) -> Result<(), QueryError> {
        self.write().map_err(|error| QueryError::File {
            path: self.path.clone(),
            problem: error.to_string(),
        })
    }
}
