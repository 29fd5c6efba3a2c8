//! Opening a tuning database, or what a site folder has of one, for a job or to look at it.

use std::path::{Path, PathBuf};

use anyhow::{anyhow, bail};
use colltune_core::settings::Settings;
use colltune_core::site::{self, OFF};
use colltune_db::Database;
use colltune_files::site::{Look, is_site, look, state, version};

/// Makes sure that a job can use the database `db`: makes it if it does not exist, reads its settings without the prior.
/// Of a site folder nothing is made.
pub fn prepare(db: &Path) -> anyhow::Result<Settings> {
    if db.to_str().is_none() {
        bail!(
            "use {} as a database: ranks take only names that are valid UTF-8; name another folder",
            db.display()
        );
    }
    match is_site(db) {
        true => {
            if let Look::Off(reason) = look(db) {
                bail!(
                    "use the site folder {}: {OFF} is there ({reason})",
                    db.display()
                );
            }
            Ok(open(db)?.settings_without_prior()?)
        }
        false => Ok(Database::create_or_open(db)?.settings_without_prior()?),
    }
}

/// A database that exists; of a site folder the version that a job would take that is started here.
pub fn open(db: &Path) -> anyhow::Result<Database> {
    if !is_site(db) {
        return Ok(Database::open(db)?);
    }
    let job = site::job_name(|name| std::env::var(name).ok());
    let state = state(db).map_err(anyhow::Error::msg)?;
    let taken = match job {
        Some(job) => state.version_of(&job),
        None => site::SiteState {
            canary: None,
            ..state
        }
        .version_of(""),
    };
    let taken = taken.map_err(|error| anyhow!("use the site folder {}: {error}", db.display()))?;
    Ok(Database::open(version(db, taken.version))?)
}

/// Where the database is by default: in the folder that the job is started from.
pub const USUAL: &str = "colltune-db";

/// The database that was named, else the usual one.
pub fn usual(told: Option<&Path>) -> PathBuf {
    told.map_or_else(|| PathBuf::from(USUAL), Path::to_owned)
}
