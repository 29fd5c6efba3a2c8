//! A database that is asked.

use std::path::Path;

use colltune_db::{DataKey, Database, DbError};
use rusqlite::types::Value;

use crate::made::text;

/// A database that is asked: where it is, what it holds, and whose it is.
#[derive(Clone)]
pub struct Queried {
    pub db: Database,
    pub keys: Vec<DataKey>,
    pub machine: String,
}

impl Queried {
    /// Errors: as `Database::open`; `Io` for its folder; `Settings`.
    pub fn open(path: &Path) -> Result<Queried, DbError> {
        let db = Database::open(path)?;
        let keys = db.keys()?;
        let machine = db.machine(&db.settings()?);
        Ok(Queried { db, keys, machine })
    }

    /// The columns that say whose rows are, with their values. The last one is empty where the library itself chose its
    /// algorithms.
    pub fn whose(&self, key: &DataKey) -> [(&'static str, Value); 3] {
        let told = key.told.as_ref().map(ToString::to_string);
        [
            ("library", text(&key.library.to_string())),
            ("machine", text(&self.machine)),
            ("told", text(&told.unwrap_or_default())),
        ]
    }
}
