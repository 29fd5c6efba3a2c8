//! Tables that can be asked: columns by name, and rows in parts that are read when a query needs them.

use std::cell::OnceCell;
use std::collections::BTreeSet;

use parquet::errors::ParquetError;
use rusqlite::types::{Value, ValueRef};

/// What a column holds, in a word that SQLite takes as its type. A boolean is 0 or 1.
pub type Holds = &'static str;
pub const INTEGER: Holds = "integer";
pub const REAL: Holds = "real";
pub const TEXT: Holds = "text";
pub const BOOLEAN: Holds = "boolean";

/// A table that is opened when a query names it.
pub struct Table {
    pub name: String,
    /// What a row is.
    pub about: &'static str,
    open: Opening,
    opened: OnceCell<Opened>,
}

type Opening = Box<dyn Fn(&mut Vec<String>) -> Opened>;

/// What is known of a table before any row is read.
#[derive(Default)]
pub struct Opened {
    pub columns: Vec<(String, Holds)>,
    pub parts: Vec<Part>,
    /// Where the rows are those of a query over other tables.
    pub query: Option<Query>,
}

/// What stands for each column, and what follows them.
pub struct Query {
    pub columns: &'static [(&'static str, Holds, &'static str)],
    pub from: &'static str,
}

impl Query {
    /// The query for some of the columns; the others are unknown.
    pub fn select(&self, wanted: &BTreeSet<usize>) -> String {
        let columns = self.columns.iter().enumerate();
        let columns =
            columns.map(|(place, (.., of))| if wanted.contains(&place) { of } else { "NULL" });
        let columns: Vec<&str> = columns.collect();
        format!("SELECT {} {}", columns.join(", "), self.from)
    }
}

/// Some rows of a table: a file, or what was learned at one time.
pub struct Part {
    /// Columns with the same value in all rows.
    pub constants: Vec<(&'static str, Value)>,
    pub rows: Box<dyn Rows>,
}

/// Takes the values of one row, in the order in which columns were wanted.
pub type Put<'a> = dyn FnMut(&[ValueRef<'_>]) -> rusqlite::Result<()> + 'a;

impl Part {
    /// False where a later training has replaced it.
    pub fn is_in_force(&self) -> bool {
        !self.constants.contains(&("in_force", Value::Integer(0)))
    }
}

pub trait Rows {
    /// Reads these columns; what a part lacks is unknown.
    fn read(&self, wanted: &[&str], put: &mut Put<'_>) -> Result<(), Trouble>;
}

/// Why rows could not be read.
pub enum Trouble {
    /// A sentence about a part, which is left out.
    Unreadable(String),
    Engine(rusqlite::Error),
}

impl From<ParquetError> for Trouble {
    fn from(error: ParquetError) -> Trouble {
        Trouble::Unreadable(error.to_string())
    }
}

impl From<rusqlite::Error> for Trouble {
    fn from(error: rusqlite::Error) -> Trouble {
        Trouble::Engine(error)
    }
}

impl Table {
    /// What cannot be read while a table is opened is said in `warnings`, which `open` is given.
    pub fn new(
        name: &str,
        about: &'static str,
        open: impl Fn(&mut Vec<String>) -> Opened + 'static,
    ) -> Table {
        Table {
            name: name.to_owned(),
            about,
            open: Box::new(open),
            opened: OnceCell::new(),
        }
    }

    pub fn opened(&self, warnings: &mut Vec<String>) -> &Opened {
        self.opened.get_or_init(|| (self.open)(warnings))
    }
}

impl Opened {
    pub fn new(columns: impl IntoIterator<Item = (&'static str, Holds)>) -> Opened {
        let columns = columns.into_iter();
        Opened {
            columns: columns
                .map(|(name, holds)| (name.to_owned(), holds))
                .collect(),
            ..Opened::default()
        }
    }

    /// Adds a column unless there is one of that name. To SQLite `Step` and `step` are one.
    pub fn column(&mut self, name: &str, holds: Holds) {
        let mut known = self.columns.iter();
        if !known.any(|(other, _)| other.eq_ignore_ascii_case(name)) {
            self.columns.push((name.to_owned(), holds));
        }
    }
}

/// A column of rows that other code reads: its name, what it holds, and its value.
pub struct Field<T: 'static>(pub &'static str, pub Holds, pub fn(&T) -> Value);

/// Rows of a type, read when a query needs them. Errors: a sentence that names the file.
pub struct Made<T: 'static, F> {
    pub fields: &'static [Field<T>],
    pub make: F,
}

impl<T, I: IntoIterator<Item = T>, F: Fn() -> Result<I, String>> Rows for Made<T, F> {
    fn read(&self, wanted: &[&str], put: &mut Put<'_>) -> Result<(), Trouble> {
        let field = |name: &&str| self.fields.iter().find(|field| field.0 == *name);
        let fields: Vec<&Field<T>> = wanted.iter().filter_map(field).collect();
        for row in (self.make)().map_err(Trouble::Unreadable)? {
            let values: Vec<Value> = fields.iter().map(|field| field.2(&row)).collect();
            put(&values.iter().map(ValueRef::from).collect::<Vec<_>>())?;
        }
        Ok(())
    }
}

/// A table of such rows, all in one part.
pub fn made<T, I: IntoIterator<Item = T> + 'static>(
    fields: &'static [Field<T>],
    make: impl Fn() -> Result<I, String> + 'static,
) -> Opened {
    let mut opened = Opened::new(fields.iter().map(|field| (field.0, field.1)));
    opened.parts.push(Part {
        constants: Vec::new(),
        rows: Box::new(Made { fields, make }),
    });
    opened
}

/// A whole number. Above 2^63 - 1, which SQLite does not have, it is negative: such numbers name something (a
/// communicator, a block), and stay apart and equal as they were.
pub fn whole(value: u64) -> Value {
    Value::Integer(value.cast_signed())
}

pub fn text(value: &str) -> Value {
    Value::Text(value.to_owned())
}
