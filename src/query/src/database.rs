//! The tables of a tuning database.
//!
//! Records and evidence are Parquet and are read as such, where the database's own code finds that they count;
//! everything else is what that code reads.

use std::path::Path;
use std::rc::Rc;

use colltune_db::evidence::Store;
use colltune_db::{DataKey, Database, DbError, Generation, evidence, generation, partition};
use rusqlite::types::Value;

use crate::calls;
use crate::learned::{self, CELLS, GENERATIONS, OfCell, OfVariant, PASSED, VARIANTS};
use crate::ledger;
use crate::parquet_file::FilePart;
use crate::table::{BOOLEAN, Field, Holds, INTEGER, Made, Opened, Part, TEXT, Table, text, whole};

/// Columns that say whose rows are.
const WHOSE: [(&str, Holds); 3] = [("library", TEXT), ("machine", TEXT), ("told", TEXT)];
/// The further ones of what a training published.
const OF_GENERATION: [(&str, Holds); 3] = [
    ("transport", TEXT),
    ("generation", INTEGER),
    ("in_force", BOOLEAN),
];

/// A database that is asked: where it is, what it holds, and whose it is.
pub struct Queried {
    pub db: Database,
    pub keys: Vec<DataKey>,
    machine: String,
}

impl Queried {
    /// Errors: as `Database::open`; `Io` for its folder; `Settings`.
    pub fn open(path: &Path) -> Result<Rc<Queried>, DbError> {
        let db = Database::open(path)?;
        let keys = db.keys()?;
        let machine = db.machine(&db.settings()?);
        Ok(Rc::new(Queried { db, keys, machine }))
    }

    /// The columns that say whose rows are, with their values. The last one is empty where the library itself chose its
    /// algorithms.
    fn whose(&self, key: &DataKey) -> Vec<(&'static str, Value)> {
        let told = key
            .told
            .as_ref()
            .map(ToString::to_string)
            .unwrap_or_default();
        let values = [&key.library.to_string(), &self.machine, &told].map(|one| text(one));
        WHOSE
            .map(|(name, _)| name)
            .into_iter()
            .zip(values)
            .collect()
    }
}

/// All tables of a database; none has been read yet.
pub fn tables(asked: &Rc<Queried>) -> Vec<Table> {
    let of = |name, about, open: fn(&Rc<Queried>, &mut Vec<String>) -> Opened| {
        let asked = Rc::clone(asked);
        Table::new(name, about, move |warnings| open(&asked, warnings))
    };
    vec![
        of(
            "records",
            "one row per recorded call and recording rank, for as long as the site keeps them",
            records,
        ),
        calls::table(),
        of(
            "evidence",
            "what each run says of each variant at each shape; times are divided by level_ns",
            evidence,
        ),
        of(
            "runs",
            "one row per job of whatever mode, also those that died",
            |asked, warnings| ledger::runs(&asked.db, warnings),
        ),
        of(
            "run_collectives",
            "where the time of each job that ended went: one row per collective and range of message sizes, from \
             message_bytes to less than 4 times as many",
            |asked, warnings| ledger::collectives(&asked.db, warnings),
        ),
        of(
            "generations",
            "one row per training that published something",
            |asked, warnings| {
                of_generations(asked, warnings, GENERATIONS, |generation| {
                    generation.meta.into_iter().collect()
                })
            },
        ),
        of(
            "cells",
            "what each generation knows of each cell; in_force = 1 for today's",
            |asked, warnings| {
                of_generations(asked, warnings, CELLS, |generation| {
                    generation.cells.into_iter().map(OfCell).collect()
                })
            },
        ),
        of(
            "variants",
            "what each generation knows of each variant in each cell",
            |asked, warnings| {
                of_generations(asked, warnings, VARIANTS, |generation| {
                    generation.cells.iter().flat_map(OfVariant::all).collect()
                })
            },
        ),
        of(
            "passed",
            "calls that passed through untuned, as each generation counted them",
            |asked, warnings| {
                of_generations(asked, warnings, PASSED, |generation| {
                    generation.meta.map_or_else(Vec::new, |meta| meta.passed)
                })
            },
        ),
    ]
}

fn records(asked: &Rc<Queried>, warnings: &mut Vec<String>) -> Opened {
    let mut table = with_columns(&partition::layout());
    for key in &asked.keys {
        let found = partition::standing(&asked.db.data(key), warnings);
        let found = found.unwrap_or_else(|error| {
            warnings.push(format!("failed to {error}"));
            Default::default()
        });
        for path in found.into_keys() {
            let counting = None;
            let added = FilePart { path, counting }.add(&mut table, asked.whose(key));
            warnings.extend(added.err());
        }
    }
    table
}

fn evidence(asked: &Rc<Queried>, warnings: &mut Vec<String>) -> Opened {
    let mut table = with_columns(&evidence::layout());
    for key in &asked.keys {
        match Store::open(&asked.db, key, warnings) {
            Ok(store) => {
                for (path, counts) in store.files() {
                    let (path, counting) = (path.to_owned(), Some(("run", counts.to_vec())));
                    let added = FilePart { path, counting }.add(&mut table, asked.whose(key));
                    warnings.extend(added.err());
                }
            }
            Err(error) => warnings.push(format!("failed to {error}")),
        }
    }
    table
}

/// The table as it is before any file stands in it.
fn with_columns(layout: &[(&'static str, &'static str)]) -> Opened {
    Opened::new(WHOSE.into_iter().chain(layout.iter().copied()))
}

/// A part for each generation, which is read when a query wants rows of it. Before any training that is what the
/// prior says.
fn of_generations<T: 'static>(
    asked: &Rc<Queried>,
    warnings: &mut Vec<String>,
    fields: &'static [Field<T>],
    rows: fn(Generation) -> Vec<T>,
) -> Opened {
    let of_rows = fields.iter().map(|field| (field.0, field.1));
    let mut table = Opened::new(WHOSE.into_iter().chain(OF_GENERATION).chain(of_rows));
    for key in &asked.keys {
        let found = generation::current(&asked.db, key)
            .and_then(|in_force| Ok((in_force, generation::numbers(&asked.db, key)?)));
        let (in_force, mut numbers) = found.unwrap_or_else(|error| {
            warnings.push(format!("failed to {error}"));
            (1, Vec::new())
        });
        if in_force == 0 {
            numbers.insert(0, 0);
        }
        for number in numbers {
            let mut constants = asked.whose(key);
            let is_in_force = Value::Integer((number == in_force).into());
            let values = [text(key.transport.name()), whole(number), is_in_force];
            constants.extend(OF_GENERATION.map(|(name, _)| name).into_iter().zip(values));
            let (asked, key) = (Rc::clone(asked), key.clone());
            let make = move || learned::read(&asked.db, &key, number).map(rows);
            let rows = Box::new(Made { fields, make });
            table.parts.push(Part { constants, rows });
        }
    }
    table
}
