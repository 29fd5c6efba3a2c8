//! SQL over a tuning database and telemetry, by SQLite, which is part of this crate.
//!
//! A query is prepared over tables without rows. SQLite says then which columns it uses, and only those are read, into
//! tables in memory ([`engine`]). Nothing can be changed by a query.
//!
//! Modules stand in the order of the data: tables of files and of what other code reads, those of a database and of
//! telemetry, what SQLite can reckon, what is asked and what is answered.
#![forbid(unsafe_code)]

mod table;

mod parquet_file;

mod learned;

mod ledger;

mod calls;

mod database;

mod telemetry;

mod functions;

mod error;

mod complaint;

mod planning;

mod fill;

mod engine;

pub mod schema;

pub mod examples;

pub mod answer;

use std::path::{Path, PathBuf};

pub use complaint::{OF_DATABASES, OF_TELEMETRY};
pub use engine::Engine;
pub use error::QueryError;

/// Opens what is asked: a database, folders with telemetry, or both. Nothing is read before a query names it.
///
/// Errors: `Db` for a database that is not there; `NoTelemetry`.
pub fn open(db: Option<&Path>, folders: &[PathBuf]) -> Result<Engine, QueryError> {
    let asked = db.map(database::Queried::open).transpose()?;
    let folders = folders.iter().map(|path| telemetry::Folder::open(path));
    let folders = folders.collect::<Result<Vec<_>, QueryError>>()?;
    let mut tables = asked.as_ref().map_or_else(Vec::new, database::tables);
    // A file may have any name; what a database has comes first.
    for table in telemetry::tables(&folders) {
        if tables.iter().all(|other| other.name != table.name) {
            tables.push(table);
        }
    }
    let engine = Engine::new(tables);
    for folder in folders.iter().filter(|folder| folder.is_empty()) {
        engine.warnings.borrow_mut().push(format!(
            "there is no telemetry in {}: files such as phases.0000.parquet, which colltune-amr writes at its end",
            folder.name()
        ));
    }
    Ok(engine)
}
