//! What becomes of an answer: a table for people, or lines and files for programs.

mod csv_lines;

mod grid;

mod json;

mod parquet_out;

use rusqlite::types::ValueRef;

use crate::error::QueryError;

/// What takes an answer.
pub trait Sink {
    /// Errors: `Output` or `File`, as all of them.
    fn begin(&mut self, columns: &[String]) -> Result<(), QueryError>;
    fn row(&mut self, values: &[ValueRef<'_>]) -> Result<(), QueryError>;
    fn end(&mut self) -> Result<(), QueryError>;
}

pub use csv_lines::CsvLines;
pub use grid::Grid;
pub use json::JsonRows;
pub use parquet_out::ParquetOut;

/// A value as a program reads it: of a number as many digits as tell it from all others, of what is unknown nothing.
fn text(value: ValueRef<'_>) -> String {
    match value {
        ValueRef::Null => String::new(),
        ValueRef::Integer(value) => value.to_string(),
        ValueRef::Real(value) => value.to_string(),
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => {
            String::from_utf8_lossy(bytes).into_owned()
        }
    }
}
