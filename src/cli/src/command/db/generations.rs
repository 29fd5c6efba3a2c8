//! `colltune db rollback` and `prune`: what was published, taken back or removed for good.

use std::time::Duration;

use anyhow::bail;
use colltune_db::manage::remove::{self, Keep, Pruned};
use colltune_db::{DataKey, Database, generation};
use serde::Serialize;

use super::at::At;
use crate::command::train::counted;
use colltune_output::failure::{usage, wrong};

#[derive(clap::Args, Debug)]
pub struct Rollback {
    #[command(flatten)]
    at: At,
    /// The library, where the database has several: openmpi-4.1.4
    #[arg(long, value_name = "KEY")]
    library: Option<String>,
    /// The generation to put in force [default: the one before that in force]
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
    /// Remove what the usual limits leave out: all but 8 generations, refused files older than 30 days
    #[arg(long)]
    yes: bool,
    /// Generations of each library that are kept; the one in force always is [default: 8]
    #[arg(long, value_name = "N")]
    generations: Option<usize>,
    /// Refused files that came within this time are kept [default: 30d]
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    quarantine: Option<Duration>,
}

/// What is kept by default.
const KEPT: Keep = Keep {
    generations: 8,
    quarantine: Duration::from_secs(30 * 86_400),
};

impl Prune {
    pub fn run(&self) -> anyhow::Result<()> {
        let keep = Keep {
            generations: self.generations.unwrap_or(KEPT.generations),
            quarantine: self.quarantine.unwrap_or(KEPT.quarantine),
        };
        let db = self.at.open()?;
        let told = |pruned: &Pruned| {
            format!(
                "{}, {} and {}",
                counted(pruned.runs, "dropped run"),
                counted(pruned.generations, "generation"),
                counted(pruned.quarantined, "refused file")
            )
        };
        if !self.yes && self.generations.is_none() && self.quarantine.is_none() {
            // Removal for good takes --yes, or limits that the user names.
            let would = remove::would_prune(&db, keep)?;
            if would != Pruned::default() {
                return Err(wrong(format!(
                    "nothing was removed: {} would go for good; --yes removes them, --generations N and --quarantine TIME \
                     say what is kept",
                    told(&would)
                )));
            }
        }
        let pruned = remove::prune(&db, keep)?;
        self.at.tell(&pruned, &pruned.warnings, || {
            format!("removed {} for good\n", told(&pruned))
        })
    }
}
