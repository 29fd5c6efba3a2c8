//! An answer as JSON: a list of objects, one a line.

use std::io::Write;

use rusqlite::types::ValueRef;
use serde_json::Value;

use crate::answer::{Sink, text};
use crate::error::QueryError;

pub struct JsonRows<W: Write> {
    out: W,
    columns: Vec<String>,
    rows: u64,
}

impl<W: Write> JsonRows<W> {
    pub fn new(out: W) -> JsonRows<W> {
        JsonRows {
            out,
            columns: Vec::new(),
            rows: 0,
        }
    }
}

impl<W: Write> Sink for JsonRows<W> {
    fn begin(&mut self, columns: &[String]) -> Result<(), QueryError> {
        // An object has each name once.
        for (place, name) in columns.iter().enumerate() {
            let before = columns[..place].iter().filter(|other| *other == name);
            self.columns.push(match before.count() {
                0 => name.clone(),
                more => format!("{name}:{more}"),
            });
        }
        Ok(self.out.write_all(b"[")?)
    }

    fn row(&mut self, values: &[ValueRef<'_>]) -> Result<(), QueryError> {
        let begin = if self.rows == 0 { "\n{" } else { ",\n{" };
        self.out.write_all(begin.as_bytes())?;
        for (place, (name, value)) in self.columns.iter().zip(values).enumerate() {
            let sign = if place == 0 { "" } else { ", " };
            let value = match *value {
                ValueRef::Null => Value::Null,
                ValueRef::Integer(value) => value.into(),
                // JSON has no infinity.
                ValueRef::Real(value) => value.into(),
                word => text(word).into(),
            };
            let name = Value::from(name.as_str());
            write!(self.out, "{sign}{name}: {value}")?;
        }
        self.rows += 1;
        Ok(self.out.write_all(b"}")?)
    }

    fn end(&mut self) -> Result<(), QueryError> {
        let end = if self.rows == 0 { "]\n" } else { "\n]\n" };
        self.out.write_all(end.as_bytes())?;
        Ok(self.out.flush()?)
    }
}
