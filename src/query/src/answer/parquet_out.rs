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
use rusqlite::types::{Value, ValueRef};

use crate::answer::{Sink, text};
use crate::error::QueryError;

/// So many rows lie in one row group.
const GROUP_ROWS: usize = 1 << 18;

/// All of it is in memory until its end: only then is it known what a column holds.
pub struct ParquetOut {
    path: PathBuf,
    columns: Vec<(String, Vec<Value>)>,
    bytes: u64,
    bytes_max: u64,
}

impl ParquetOut {
    pub fn new(path: &Path, bytes_max: u64) -> ParquetOut {
        ParquetOut {
            path: path.to_owned(),
            columns: Vec::new(),
            bytes: 0,
            bytes_max,
        }
    }

    /// No reader sees half a file.
    fn write(&self) -> Result<(), ParquetError> {
        let (draft, file) = Draft::create(&self.path)?;
        Ok(draft.publish(&self.write_to(file)?)?)
    }

    fn write_to(&self, file: File) -> Result<File, ParquetError> {
        let columns = || {
            self.columns
                .iter()
                .map(|(name, values)| (name, values, holds(values)))
        };
        let fields = columns().map(|(name, _, holds)| Ok(Arc::new(field(name, holds)?)));
        let fields = fields.collect::<Result<_, ParquetError>>()?;
        let schema = Type::group_type_builder("answer")
            .with_fields(fields)
            .build()?;
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_created_by(format!("colltune {}", env!("CARGO_PKG_VERSION")))
            .build();
        let mut writer = SerializedFileWriter::new(file, Arc::new(schema), Arc::new(properties))?;
        let rows = self.columns.first().map_or(0, |(_, values)| values.len());
        for begin in (0..rows).step_by(GROUP_ROWS) {
            let mut group = writer.next_row_group()?;
            for (_, values, holds) in columns() {
                let values = &values[begin..(begin + GROUP_ROWS).min(rows)];
                match holds {
                    Physical::INT64 => put::<Int64Type>(&mut group, values, whole)?,
                    Physical::DOUBLE => put::<DoubleType>(&mut group, values, real)?,
                    _ => put::<ByteArrayType>(&mut group, values, word)?,
                }
            }
            group.close()?;
        }
        writer.into_inner()
    }
}

/// The least that takes all values.
fn holds(values: &[Value]) -> Physical {
    let has = |of: fn(&Value) -> bool| values.iter().any(of);
    if has(|value| matches!(value, Value::Text(_))) {
        Physical::BYTE_ARRAY
    } else if has(|value| matches!(value, Value::Real(_))) {
        Physical::DOUBLE
    } else {
        Physical::INT64
    }
}

fn field(name: &str, holds: Physical) -> Result<Type, ParquetError> {
    let field = Type::primitive_type_builder(name, holds).with_repetition(Repetition::OPTIONAL);
    match holds {
        Physical::BYTE_ARRAY => field
            .with_converted_type(ConvertedType::UTF8)
            .with_logical_type(Some(LogicalType::String))
            .build(),
        _ => field.build(),
    }
}

fn whole(value: &Value) -> Option<i64> {
    match value {
        Value::Integer(value) => Some(*value),
        _ => None,
    }
}

fn real(value: &Value) -> Option<f64> {
    match value {
        Value::Integer(value) => Some(*value as f64),
        Value::Real(value) => Some(*value),
        _ => None,
    }
}

fn word(value: &Value) -> Option<ByteArray> {
    (*value != Value::Null).then(|| ByteArray::from(text(value.into()).into_bytes()))
}

fn put<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, File>,
    values: &[Value],
    value: impl Fn(&Value) -> Option<T::T>,
) -> Result<(), ParquetError> {
    let values: Vec<Option<T::T>> = values.iter().map(value).collect();
    let levels: Vec<i16> = values.iter().map(|value| value.is_some().into()).collect();
    let known: Vec<T::T> = values.into_iter().flatten().collect();
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
        self.columns = columns
            .iter()
            .map(|name| (name.clone(), Vec::new()))
            .collect();
        Ok(())
    }

    fn row(&mut self, values: &[ValueRef<'_>]) -> Result<(), QueryError> {
        for ((_, column), value) in self.columns.iter_mut().zip(values) {
            let value = match value {
                ValueRef::Text(_) | ValueRef::Blob(_) => Value::Text(text(*value)),
                ValueRef::Real(value) => Value::Real(*value),
                ValueRef::Integer(value) => Value::Integer(*value),
                ValueRef::Null => Value::Null,
            };
            self.bytes += size_of::<Value>() as u64;
            if let Value::Text(text) = &value {
                self.bytes += text.capacity() as u64;
            }
            column.push(value);
        }
        if self.bytes > self.bytes_max {
            Err(QueryError::Memory)
        } else {
            Ok(())
        }
    }

    fn end(&mut self) -> Result<(), QueryError> {
        self.write().map_err(|error| QueryError::File {
            path: self.path.clone(),
            problem: error.to_string(),
        })
    }
}
