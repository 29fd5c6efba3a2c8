//! Opening a tuning database for a job.

use std::path::{Path, PathBuf};

use colltune_core::settings::Settings;
use colltune_db::{Database, DbError};

/// Makes sure that a job can use the database `db`: makes it if it does not exist, reads its settings.
pub fn prepare(db: &Path) -> Result<Settings, DbError> {
    Database::create_or_open(db)?.settings()
}

/// Where the database is if nobody says it: in the folder that the job is started from.
pub const USUAL: &str = "colltune-db";

/// The database that was named, else the usual one.
pub fn usual(told: Option<&Path>) -> PathBuf {
    told.map_or_else(|| PathBuf::from(USUAL), Path::to_owned)
}
