//! `DB/levers.json`, which trainings and jobs read.

use std::path::PathBuf;

use colltune_core::levers::asked::LeverPlace;
use colltune_core::levers::learned::{FILE, LearnedLever, LearnedLevers, SCHEMA};
use colltune_files::{MODEL_BYTES_MAX, read_text};

use crate::database::{Database, DbError};
use crate::write;

/// What belongs together: a program's lever with one library.
pub(super) type Key = (String, String, LeverPlace);

/// What was measured; empty where nothing was learned, or, with a warning, where the file cannot be read.
pub fn learned(db: &Database, warnings: &mut Vec<String>) -> Vec<LearnedLever> {
    measured(read(db).unwrap_or_else(|problem| {
        warnings.push(format!("failed to {problem}"));
        Vec::new()
    }))
}

pub(super) fn measured(mut levers: Vec<LearnedLever>) -> Vec<LearnedLever> {
    levers.retain(|one| !one.is_expected());
    levers
}

/// What is in force, what is expected as well.
pub(super) fn read(db: &Database) -> Result<Vec<LearnedLever>, String> {
    let path = path(db);
    let text = match read_text(&path, MODEL_BYTES_MAX) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(format!("read {}: {error}", path.display())),
    };
    let known = LearnedLevers::from_json(&text);
    let known = known.map_err(|error| format!("{error}, in {}", path.display()))?;
    Ok(known.levers)
}

pub(super) fn path(db: &Database) -> PathBuf {
    db.root().join(FILE)
}

/// Puts what is known of levers in force.
pub(super) fn write_down(db: &Database, mut levers: Vec<LearnedLever>) -> Result<(), DbError> {
    levers.sort_by_key(key_of);
    let schema = SCHEMA;
    let text = LearnedLevers { schema, levers }.to_json();
    write::atomically(&db.folder(db.root())?, FILE, text.as_bytes())
}

pub(super) fn key_of(one: &LearnedLever) -> Key {
    let place = LeverPlace {
        lever: one.lever.clone(),
        class: one.class,
        nodes: one.nodes,
        ppn: one.ppn,
        ranks: one.ranks,
    };
    (one.program.clone(), one.library.clone(), place)
}
