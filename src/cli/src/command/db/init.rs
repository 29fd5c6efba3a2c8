//! `colltune db init`: a database, for a group or for oneself.

use std::path::PathBuf;

use clap::ValueEnum;
use colltune_db::lock::Lock;
use colltune_db::manage::init::init;
use colltune_db::share::{Shared, Trainers};
use colltune_db::{Database, users};

use colltune_output::failure::wrong;
use colltune_output::progress;
use colltune_output::{json, print};

#[derive(Clone, Copy, Debug, ValueEnum)]
enum WhoTrains {
    /// Who made it, and root
    Owner,
    /// Every member of the group
    Members,
}

impl WhoTrains {
    const fn name(self) -> &'static str {
        match self {
            WhoTrains::Owner => "owner",
            WhoTrains::Members => "members",
        }
    }
}

#[derive(clap::Args, Debug)]
pub struct Init {
    /// The group whose members record and exploit, by name or number
    #[arg(long, value_name = "GROUP")]
    shared: Option<String>,
    /// Who trains: with `members` each can change all that was learned
    #[arg(long, value_enum, default_value = "owner", requires = "shared")]
    trainers: WhoTrains,
    /// As JSON, for programs
    #[arg(long)]
    json: bool,
    /// The folder of the database
    #[arg(value_name = "DIR")]
    db: PathBuf,
}

fn no_group(group: &str) -> String {
    format!(
        "no group {group} on this host: name one of `id -Gn`, or ask an administrator to make it"
    )
}

/// A database's lock; `None` for an empty folder, where no training can run yet.
fn lock(db: &Database) -> anyhow::Result<Option<Lock>> {
    match db.settings_path().exists() {
        true => Ok(Some(Lock::take(&db.lock_path())?)),
        false => Ok(None),
    }
}

impl Init {
    pub fn run(&self) -> anyhow::Result<()> {
        let shared = match &self.shared {
            None => None,
            Some(group) => Some(Shared {
                group: users::gid(group).ok_or_else(|| wrong(no_group(group)))?,
                trainers: match self.trainers {
                    WhoTrains::Owner => Trainers::Owner,
                    WhoTrains::Members => Trainers::Members,
                },
            }),
        };
        let is_new = !self.db.exists();
        // No training may change an existing database's files meanwhile.
        let _lock = match is_new {
            true => None,
            false => lock(&Database::open_to_change(&self.db)?)?,
        };
        let mut warnings = Vec::new();
        let db = init(&self.db, shared, &mut warnings)?;
        for warning in &warnings {
            progress::hint(warning);
        }
        if self.json {
            return json(&serde_json::json!({
                "schema": 1, "db": db.root(), "made": is_new, "shared": self.shared,
                "trainers": self.shared.as_ref().map(|_| self.trainers.name()), "warnings": warnings,
            }));
        }
        let place = db.root().display();
        let made = if is_new { "made" } else { "there is" };
        print(&match (&self.shared, self.trainers) {
            (None, _) => format!("{made} {place}, yours alone\n"),
            (Some(group), WhoTrains::Owner) => format!(
                "{made} {place} for group {group}: members record and exploit, its owner trains\n"
            ),
            (Some(group), WhoTrains::Members) => {
                format!("{made} {place} for group {group}: members record, exploit and train\n")
            }
        })
    }
}
