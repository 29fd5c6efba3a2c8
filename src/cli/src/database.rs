//! Opening a tuning database for a job.

use std::path::Path;

use colltune_core::settings::Settings;
use colltune_db::{Database, DbError};

/// Makes sure that a job can use the database `db`: makes it if it does not exist, reads its settings.
pub fn prepare(db: &Path) -> Result<Settings, DbError> {
    Database::create_or_open(db)?.settings()
}
