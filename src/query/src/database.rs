//! The tables of a tuning database.
//!
//! Records and evidence are Parquet and are read as such, where the database's own code finds that they count;
//! everything else is what that code reads.

use colltune_db::evidence::Store;
use colltune_db::{DataKey, DbError, Generation, evidence, generation, partition};
use rusqlite::types::Value;

use crate::decoded::Domain;
use crate::learned::{self, CELLS, GENERATIONS, OfCell, OfVariant, PASSED, VARIANTS};
use crate::ledger;
use crate::made::{Field, Made, empty, text, whole};
use crate::parquet_file::ParquetFile;
use crate::queried::Queried;
use crate::relation::{Journal, Named, Relation};
use crate::row_group::{self, Counting, Role};

/// Columns that say whose rows are.
const WHOSE: [(&str, Domain); 3] = [
    ("library", Domain::Text),
    ("machine", Domain::Text),
    ("told", Domain::Text),
];
/// The same for what a training published.
const OF_GENERATION: [(&str, Domain); 6] = [
    ("library", Domain::Text),
    ("machine", Domain::Text),
    ("told", Domain::Text),
    ("transport", Domain::Text),
    ("generation", Domain::Integer),
    ("in_force", Domain::Boolean),
];

/// All tables of a database; none has been read yet.
pub fn tables(asked: &Queried) -> Vec<Named> {
    let of = |name, about, open: fn(&Queried, &Journal) -> Relation| {
        let asked = asked.clone();
        Named::new(name, about, move |journal| open(&asked, journal))
    };
    vec![
        of(
            "records",
            "one row per recorded call and recording rank, for as long as the site keeps them",
            records,
        ),
        of(
            "evidence",
            "what each run says of each variant at each shape; times are divided by level_ns",
            evidence,
        ),
        of(
            "runs",
            "one row per job of whatever mode, also those that died",
            ledger::runs,
        ),
        of(
            "run_collectives",
            "where the time of each job that ended went: one row per collective and range of message sizes, from \
             message_bytes to less than 4 times as many",
            ledger::collectives,
        ),
        of(
            "generations",
            "one row per training that published something",
            generations,
        ),
        of(
            "cells",
            "what each generation knows of each cell; in_force = 1 for today's",
            cells,
        ),
        of(
            "variants",
            "what each generation knows of each variant in each cell",
            variants,
        ),
        of(
            "passed",
            "calls that passed through untuned, as each generation counted them",
            passed,
        ),
    ]
}

fn records(asked: &Queried, journal: &Journal) -> Relation {
    let mut relation = with_columns(&partition::layout());
    for key in &asked.keys {
        let paths = listed(partition::list(&asked.db.data(key)), journal);
        for path in paths {
            // The footer says whether it is a partition, and a whole one.
            let file = partition::held(&path)
                .map_err(|error| format!("failed to {error}; it is left out"));
            match file.and_then(|_| ParquetFile::open(&path)) {
                Ok(file) => row_group::add(&mut relation, file, of_key(asked, key)),
                Err(problem) => journal.warn(problem),
            }
        }
    }
    relation
}

fn evidence(asked: &Queried, journal: &Journal) -> Relation {
    let mut relation = with_columns(&evidence::layout());
    for key in &asked.keys {
        let mut warnings = Vec::new();
        match Store::open(&asked.db, key, &mut warnings) {
            Ok(store) => {
                for (path, counts) in store.files() {
                    let counting = Counting {
                        column: "run",
                        counts: counts.to_vec(),
                    };
                    let role = Role {
                        counting: Some(counting),
                        ..of_key(asked, key)
                    };
                    match ParquetFile::open(path) {
                        Ok(file) => row_group::add(&mut relation, file, role),
                        Err(problem) => journal.warn(problem),
                    }
                }
            }
            Err(error) => journal.warn(format!("failed to {error}")),
        }
        warnings.into_iter().for_each(|one| journal.warn(one));
    }
    relation
}

fn of_key(asked: &Queried, key: &DataKey) -> Role {
    Role {
        constants: asked.whose(key).to_vec(),
        counting: None,
    }
}

/// The table as it is before any file stands in it.
fn with_columns(layout: &[(&'static str, &'static str)]) -> Relation {
    let mut relation = empty::<()>(&WHOSE, &[]);
    for (name, domain) in layout {
        relation.place(name, Domain::from_name(domain).unwrap_or(Domain::Text));
    }
    relation
}

fn listed<T>(found: Result<Vec<T>, DbError>, journal: &Journal) -> Vec<T> {
    found.unwrap_or_else(|error| {
        journal.warn(format!("failed to {error}"));
        Vec::new()
    })
}

fn generations(asked: &Queried, journal: &Journal) -> Relation {
    of_generations(asked, journal, 1, GENERATIONS, |generation| {
        generation.meta.into_iter().collect()
    })
}

fn cells(asked: &Queried, journal: &Journal) -> Relation {
    of_generations(asked, journal, 1000, CELLS, |generation| {
        generation.cells.into_iter().map(OfCell).collect()
    })
}

fn variants(asked: &Queried, journal: &Journal) -> Relation {
    of_generations(asked, journal, 10_000, VARIANTS, |generation| {
        let of = |cell: &colltune_models::statistics::CellStatistics| -> Vec<OfVariant> {
            OfVariant::all(cell)
        };
        generation.cells.iter().flat_map(of).collect()
    })
}

fn passed(asked: &Queried, journal: &Journal) -> Relation {
    of_generations(asked, journal, 100, PASSED, |generation| {
        generation.meta.map_or_else(Vec::new, |meta| meta.passed)
    })
}

/// A part for each generation, which is read when a query wants rows of it. Before any training that is what the
/// prior says.
fn of_generations<T: 'static>(
    asked: &Queried,
    journal: &Journal,
    n_rows: u64,
    fields: &'static [Field<T>],
    rows: fn(Generation) -> Vec<T>,
) -> Relation {
    let mut relation = empty(&OF_GENERATION, fields);
    for key in &asked.keys {
        let in_force = match generation::current(&asked.db, key) {
            Ok(number) => number,
            Err(error) => {
                journal.warn(format!("failed to {error}"));
                continue;
            }
        };
        let mut numbers = listed(generation::numbers(&asked.db, key), journal);
        if in_force == 0 {
            numbers.insert(0, 0);
        }
        for number in numbers {
            let [(_, library), (_, machine), (_, told)] = asked.whose(key);
            let transport = text(key.transport.name());
            let (is_in_force, place) = (number == in_force, whole(number));
            let in_force = Value::Integer(is_in_force.into());
            let (db, key) = (asked.db.clone(), key.clone());
            relation.fragments.push(Box::new(Made {
                constants: vec![library, machine, told, transport, place, in_force],
                fields,
                n_rows,
                make: move || learned::read(&db, &key, number).map(rows),
            }));
        }
    }
    relation
}
