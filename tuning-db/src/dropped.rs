//! Runs that a person has dropped: nothing is learned from them, and until they are pruned they can be restored.
//!
//! `DB/dropped.json` names them. Their records and evidence stay where they are, so a trace that comes back is known.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::database::{DROPPED, Database, DbError, read_versioned};
use crate::lock::Lock;
use crate::write;

const SCHEMA: u32 = 1;

/// The runs that are dropped, by job, each with when that was, in milliseconds since 1970.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dropped {
    schema: u32,
    pub jobs: BTreeMap<String, u64>,
}

impl Default for Dropped {
    fn default() -> Dropped {
        Dropped {
            schema: SCHEMA,
            jobs: BTreeMap::new(),
        }
    }
}

impl Dropped {
    /// Errors: `Io` and `Owners` for a file that cannot be used: what is dropped must not come back by that.
    pub fn of(db: &Database) -> Result<Dropped, DbError> {
        let path = db.root().join(DROPPED);
        read_versioned(&path, SCHEMA, |found: &Dropped| found.schema, "")
    }

    pub fn has(&self, job: &str) -> bool {
        self.jobs.contains_key(job)
    }

    /// Remembers it. The lock shows that no other process changes the database.
    ///
    /// Errors: `Io`; then what was dropped before still is.
    pub fn save(&self, db: &Database, _lock: &Lock) -> Result<(), DbError> {
        let text = serde_json::to_string_pretty(self).expect("numbers and names");
        write::atomically(&db.folder(db.root())?, DROPPED, text.as_bytes())
    }
}
