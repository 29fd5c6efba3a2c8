//! An answer as CSV with a header line; what is unknown is empty.

use std::io::Write;

use rusqlite::types::ValueRef;

use crate::answer::{Sink, text};
use crate::error::QueryError;

pub struct CsvLines<W: Write>(csv::Writer<W>);

impl<W: Write> CsvLines<W> {
    pub fn new(out: W) -> CsvLines<W> {
        CsvLines(csv::Writer::from_writer(out))
    }
}

impl<W: Write> Sink for CsvLines<W> {
    fn begin(&mut self, columns: &[String]) -> Result<(), QueryError> {
        self.0.write_record(columns).map_err(failed)
    }

    fn row(&mut self, values: &[ValueRef<'_>]) -> Result<(), QueryError> {
        let values = values.iter().map(|value| text(*value));
        self.0.write_record(values).map_err(failed)
    }

    fn end(&mut self) -> Result<(), QueryError> {
        Ok(self.0.flush()?)
    }
}

fn failed(error: csv::Error) -> QueryError {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error.into(),
        other => std::io::Error::other(format!("{other:?}")).into(),
    }
}
