//! Which database is meant, and how it is answered.

use std::path::PathBuf;

use anyhow::Context;
use colltune_db::Database;
use serde::Serialize;

use colltune_output::print;
use colltune_output::progress;

#[derive(clap::Args, Debug)]
pub struct At {
    /// The tuning database
    #[arg(long, env = "COLLTUNE_DB", hide_env_values = true, value_name = "DIR")]
    pub db: PathBuf,
    /// As JSON, for programs
    #[arg(long)]
    pub json: bool,
}

impl At {
    pub fn open(&self) -> anyhow::Result<Database> {
        Ok(Database::open_to_change(&self.db)?)
    }

    /// Says what was found, as text or JSON, and warnings apart from it.
    pub fn tell<T: Serialize>(
        &self,
        found: &T,
        warnings: &[String],
        text: impl FnOnce() -> String,
    ) -> anyhow::Result<()> {
        for warning in warnings {
            progress::hint(warning);
        }
        match self.json {
            true => print(&(serde_json::to_string(found).context("write JSON")? + "\n")),
            false => print(&text()),
        }
    }
}
