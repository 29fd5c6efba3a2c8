//! Whose runs there are, what they claim to be, and whether they count.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::database::{Database, DbError};
use crate::dropped::Dropped;
use crate::evidence::{Standing, Store};
use crate::{partition, users};

/// A run of one library.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Listed {
    pub job: String,
    pub library: String,
    /// Who owned its traces, by number and by name; unknown of what earlier versions took.
    pub owner: Option<u32>,
    pub user: Option<String>,
    /// What the traces say.
    pub host: String,
    pub ranks: u32,
    pub nodes: u32,
    pub ppn: u32,
    pub started_unix_ms: u64,
    pub records: u64,
    pub calls: u64,
    pub state: State,
    /// Whether raw records of it are there.
    pub has_raw: bool,
}

/// What a run is to the next training.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// It is learned from.
    Counts,
    /// It was learned from, and newer runs of its kind say enough.
    Thinned,
    /// A person has dropped it.
    Dropped,
    /// `owners.toml` leaves it out: its owner is not trusted, or it is not in his share.
    LeftOut,
}

impl State {
    pub fn name(self) -> &'static str {
        match self {
            State::Counts => "counts",
            State::Thinned => "thinned",
            State::Dropped => "dropped",
            State::LeftOut => "left out",
        }
    }
}

/// Which runs are meant; all where nothing is said.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    pub owners: BTreeSet<u32>,
    pub jobs: BTreeSet<String>,
    pub hosts: BTreeSet<String>,
}

impl Wanted {
    pub fn is_all(&self) -> bool {
        self.owners.is_empty() && self.jobs.is_empty() && self.hosts.is_empty()
    }

    fn has(&self, run: &Listed) -> bool {
        let owner = run.owner.is_some_and(|owner| self.owners.contains(&owner));
        (self.owners.is_empty() || owner)
            && (self.jobs.is_empty() || self.jobs.contains(&run.job))
            && (self.hosts.is_empty() || self.hosts.contains(&run.host))
    }
}

/// The runs that were taken, the oldest first. A file that cannot be read is left out, with a warning.
///
/// Errors: `Io`, `Owners`.
pub fn runs(
    db: &Database,
    wanted: &Wanted,
    warnings: &mut Vec<String>,
) -> Result<Vec<Listed>, DbError> {
    let dropped = Dropped::of(db)?;
    let mut names: BTreeMap<u32, Option<String>> = BTreeMap::new();
    let mut all = Vec::new();
    for key in db.keys()? {
        let mut raw = BTreeSet::new();
        for path in partition::list(&db.data(&key))? {
            match partition::held(&path) {
                Ok(held) => raw.extend(held.into_iter().map(|held| held.job)),
                Err(error) => warnings.push(format!("failed to {error}; it is left out")),
            }
        }
        let store = Store::open(db, &key, warnings)?;
        for (run, standing) in store.all_runs() {
            let user = run.owner.and_then(|owner| {
                let known = names.entry(owner).or_insert_with(|| users::name(owner));
                known.clone()
            });
            all.push(Listed {
                job: run.job.clone(),
                library: key.to_string(),
                owner: run.owner,
                user,
                host: run.host.clone(),
                ranks: run.ranks,
                nodes: run.nodes,
                ppn: run.ppn,
                started_unix_ms: run.started_unix_ms,
                records: run.records,
                calls: run.calls,
                state: match standing {
                    _ if dropped.has(&run.job) => State::Dropped,
                    Standing::Counts => State::Counts,
                    Standing::Thinned => State::Thinned,
                    Standing::LeftOut => State::LeftOut,
                },
                has_raw: raw.contains(&run.job),
            });
        }
    }
    all.retain(|run| wanted.has(run));
    all.sort_by(|a, b| (a.started_unix_ms, &a.job).cmp(&(b.started_unix_ms, &b.job)));
    Ok(all)
}

/// An entry of the quarantine.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Refused {
    pub name: String,
    pub owner: Option<u32>,
    pub reason: String,
}

/// What is in quarantine, by name.
///
/// Errors: `Io`.
pub fn refused(db: &Database) -> Result<Vec<Refused>, DbError> {
    /// A reason is a sentence.
    const REASON_BYTES_MAX: u64 = 4096;
    if !db.quarantine().exists() {
        return Ok(Vec::new());
    }
    let folder = db.folder(&db.quarantine())?;
    let names = folder.names();
    let names = names.map_err(crate::error::at("read the folder", folder.path()))?;
    let reason_of = |name: &std::ffi::OsStr| {
        let mut name = name.to_owned();
        name.push(crate::quarantine::REASON);
        let read = |name: &std::ffi::OsStr| {
            use std::io::Read;
            let mut text = String::new();
            let file = folder.read(name)?.file;
            file.take(REASON_BYTES_MAX).read_to_string(&mut text)?;
            std::io::Result::Ok(text.trim().to_owned())
        };
        read(&name).unwrap_or_default()
    };
    let entries = names
        .iter()
        .filter(|name| !name.to_string_lossy().ends_with(crate::quarantine::REASON));
    Ok(entries
        .map(|name| Refused {
            name: name.to_string_lossy().into_owned(),
            owner: folder.owner(name).ok(),
            reason: reason_of(name),
        })
        .collect())
}
