//! What is asked: a database, folders with telemetry, or both.

use std::path::{Path, PathBuf};

use crate::database;
use crate::engine::Engine;
use crate::error::QueryError;
use crate::files;
use crate::queried::Queried;
use crate::telemetry::{self, Folder};

/// Opens what is asked. Nothing is read before a query names it.
///
/// Errors: `Db` for a database that is not there; `NoTelemetry`.
pub fn open(db: Option<&Path>, folders: &[PathBuf]) -> Result<Engine, QueryError> {
    let asked = db.map(Queried::open).transpose()?;
    let folders = folders.iter().map(|path| Folder::open(path));
    let folders = folders.collect::<Result<Vec<Folder>, QueryError>>()?;
    let mut tables = asked.as_ref().map_or_else(Vec::new, database::tables);
    let of_telemetry = telemetry::tables(&folders);
    let of_telemetry = of_telemetry.into_iter();
    // A file may have any name; what a database has comes first.
    let is_new = |name: &str| name != "files" && tables.iter().all(|table| table.name != name);
    let new: Vec<_> = of_telemetry.filter(|table| is_new(&table.name)).collect();
    tables.extend(new);
    tables.push(files::table(asked.as_ref(), &folders));
    let engine = Engine::new(tables)?;
    for folder in folders.iter().filter(|folder| folder.is_empty()) {
        engine.journal.warn(format!(
            "there is no telemetry in {}: files such as phases.0000.parquet, which colltune-amr writes at its end",
            folder.name()
        ));
    }
    Ok(engine)
}
