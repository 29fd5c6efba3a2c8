//! `colltune db rollback` and `prune`: what was published, taken back or removed for good.

use std::time::Duration;

use anyhow::bail;
use colltune_db::manage::remove::{self, Keep};
use colltune_db::{DataKey, Database, generation};
use serde::Serialize;

use super::at::At;
use crate::command::train::counted;
use crate::failure::usage;

#[derive(clap::Args, Debug)]
pub struct Rollback {
    #[command(flatten)]
    at: At,
    /// The library, where the database has several: openmpi-4.1.4
    #[arg(long, value_name = "KEY")]
    library: Option<String>,
    /// The generation; without it the one before that in force
    #[arg(long, value_name = "N")]
    to: Option<u64>,
}

#[derive(Serialize)]
struct RolledBack {
    library: String,
    from: u64,
    to: u64,
}

impl Rollback {
    pub fn run(&self) -> anyhow::Result<()> {
        let db = self.at.open()?;
        let key = self.key(&db)?;
        let (from, to) = remove::roll_back(&db, &key, self.to)?;
        let library = key.to_string();
        let done = RolledBack { library, from, to };
        self.at.tell(&done, &[], || {
            format!(
                "{key}: generation {to} is in force instead of {from}, until the next training: drop first what misled it\n"
            )
        })
    }

    fn key(&self, db: &Database) -> anyhow::Result<DataKey> {
        if let Some(name) = &self.library {
            let key: DataKey = name.parse().map_err(usage)?;
            return Ok(key);
        }
        match &DataKey::usual(generation::trained(db)?)[..] {
            [key] => Ok(key.clone()),
            [] => bail!("roll back: nothing was learned yet"),
            keys => {
                let names: Vec<String> = keys.iter().map(DataKey::to_string).collect();
                let names = names.join(", ");
                Err(usage(format!(
                    "roll back: the database holds {names}; name one with --library"
                )))
            }
        }
    }
}

#[derive(clap::Args, Debug)]
pub struct Prune {
    #[command(flatten)]
    at: At,
    /// Generations of each library that are kept; the one in force always is
    #[arg(long, value_name = "N", default_value_t = 8)]
    generations: usize,
    /// Refused files that came within this time are kept
    #[arg(long, value_name = "TIME", default_value = "30d", value_parser = humantime::parse_duration)]
    quarantine: Duration,
}

impl Prune {
    pub fn run(&self) -> anyhow::Result<()> {
        let keep = Keep {
            generations: self.generations,
            quarantine: self.quarantine,
        };
        let pruned = remove::prune(&self.at.open()?, keep)?;
        self.at.tell(&pruned, &pruned.warnings, || {
            format!(
                "removed {}, {} and {} for good\n",
                counted(pruned.runs, "dropped run"),
                counted(pruned.generations, "generation"),
                counted(pruned.quarantined, "refused file")
            )
        })
    }
}
