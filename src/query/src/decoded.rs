//! Values of one column, as they were read and as SQLite takes them.

use parquet::data_type::ByteArray;
use rusqlite::types::{Value, ValueRef};

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Domain {
    Integer,
    Real,
    Text,
    /// 0 and 1 to SQLite.
    Boolean,
}

impl Domain {
    pub fn name(self) -> &'static str {
        match self {
            Domain::Integer => "integer",
            Domain::Real => "real",
            Domain::Text => "text",
            Domain::Boolean => "boolean",
        }
    }

    pub fn from_name(name: &str) -> Option<Domain> {
        let all = [Domain::Integer, Domain::Real, Domain::Text, Domain::Boolean];
        all.into_iter().find(|one| one.name() == name)
    }

    /// The type in SQLite's words, which decides how values are compared with text.
    pub fn affinity(self) -> &'static str {
        match self {
            Domain::Integer | Domain::Boolean => "INTEGER",
            Domain::Real => "REAL",
            Domain::Text => "TEXT",
        }
    }
}

/// The values of one column in some rows.
///
/// Whole numbers above 2^63 - 1, which SQLite does not have, become negative: they name something (a communicator, a
/// block), and stay apart and equal as they were.
#[derive(Clone, Debug, PartialEq)]
pub enum Decoded {
    Integers(Vec<i64>),
    Reals(Vec<f64>),
    Words(Vec<ByteArray>),
    /// Values of which some are not known, with what says which are.
    Partly(Box<Decoded>, Vec<bool>),
    /// The same in all rows.
    Same(Value),
    Mixed(Vec<Value>),
}

impl Decoded {
    pub fn value(&self, row: usize) -> ValueRef<'_> {
        match self {
            Decoded::Integers(values) => ValueRef::Integer(values[row]),
            Decoded::Reals(values) => ValueRef::Real(values[row]),
            Decoded::Words(values) => ValueRef::Text(values[row].data()),
            Decoded::Partly(values, known) if known[row] => values.value(row),
            Decoded::Partly(..) => ValueRef::Null,
            Decoded::Same(value) => value.into(),
            Decoded::Mixed(values) => (&values[row]).into(),
        }
    }

    /// The rows that are wanted.
    pub fn only(self, wanted: &[bool]) -> Decoded {
        fn some<T>(values: Vec<T>, wanted: &[bool]) -> Vec<T> {
            let pairs = values.into_iter().zip(wanted);
            pairs
                .filter_map(|(value, &wanted)| wanted.then_some(value))
                .collect()
        }
        match self {
            Decoded::Integers(values) => Decoded::Integers(some(values, wanted)),
            Decoded::Reals(values) => Decoded::Reals(some(values, wanted)),
            Decoded::Words(values) => Decoded::Words(some(values, wanted)),
            Decoded::Partly(values, known) => {
                Decoded::Partly(Box::new(values.only(wanted)), some(known, wanted))
            }
            Decoded::Same(value) => Decoded::Same(value),
            Decoded::Mixed(values) => Decoded::Mixed(some(values, wanted)),
        }
    }
}
