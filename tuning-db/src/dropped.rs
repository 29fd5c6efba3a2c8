//! Runs that a person has dropped: nothing is learned from them, and until they are pruned they can be restored.
//!
//! `DB/dropped.json` names them. Their records and evidence stay where they are, so a trace that comes back is known.

use std::collections::BTreeMap;

use colltune_files::{MODEL_BYTES_MAX, read_text};
use serde::{Deserialize, Serialize};

use crate::database::{DROPPED, Database, DbError, at};
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
        let text = match read_text(&path, MODEL_BYTES_MAX) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Ok(Dropped::default());
            }
            read => read.map_err(at("read", &path))?,
        };
        let problem = |problem: String| DbError::Owners {
            path: path.clone(),
            problem,
        };
        let dropped: Dropped =
            serde_json::from_str(&text).map_err(|error| problem(error.to_string()))?;
        match dropped.schema {
            SCHEMA => Ok(dropped),
            other => Err(problem(format!(
                "it has version {other}, this colltune reads {SCHEMA}"
            ))),
        }
    }

    pub fn has(&self, job: &str) -> bool {
        self.jobs.contains_key(job)
    }

    /// Remembers it. The lock shows that nobody else changes the database.
    ///
    /// Errors: `Io`; then what was dropped before still is.
    pub fn save(&self, db: &Database, _lock: &Lock) -> Result<(), DbError> {
        let text = serde_json::to_string_pretty(self).expect("numbers and names");
        write::atomically(&db.folder(db.root())?, DROPPED, text.as_bytes())
    }
}
