//! `colltune db show`: one run, the generations, or what was refused.

use colltune_db::manage::list::{self, Listed, Wanted};
use colltune_db::{Database, generation, users};
use serde::Serialize;

use super::at::At;
use super::runs::owner;
use crate::command::train::counted;
use colltune_output::failure::wrong;

#[derive(clap::Args, Debug)]
pub struct Show {
    #[command(flatten)]
    at: At,
    /// What was refused, and why
    #[arg(long, conflicts_with = "job")]
    quarantine: bool,
    /// One run; without it the generations
    #[arg(value_name = "JOB")]
    job: Option<String>,
}

/// A generation, as `show` says it.
#[derive(Serialize)]
struct Shown {
    library: String,
    generation: u64,
    in_force: bool,
    created_unix_ms: u64,
    runs: u64,
    cells_measured: u64,
    /// Why it cannot be read.
    problem: Option<String>,
}

impl Show {
    pub fn run(&self) -> anyhow::Result<()> {
        let db = self.at.open()?;
        if self.quarantine {
            let refused = list::refused(&db)?;
            return self.at.tell(&refused, &[], || {
                let line = |one: &list::Refused| {
                    let owner = one.owner.map_or("-".to_owned(), users::user);
                    let (name, reason) = (one.name.escape_debug(), one.reason.escape_debug());
                    format!("{name} ({owner}): {reason}\n")
                };
                refused.iter().map(line).collect()
            });
        }
        match &self.job {
            Some(job) => self.one(&db, job),
            None => self.generations(&db),
        }
    }

    fn one(&self, db: &Database, job: &str) -> anyhow::Result<()> {
        let wanted = Wanted {
            jobs: [job.to_owned()].into(),
            ..Wanted::default()
        };
        let mut warnings = Vec::new();
        let runs = list::runs(db, &wanted, &mut warnings)?;
        if runs.is_empty() {
            return Err(wrong(format!(
                "no run {job} in this database: `colltune db list --db {}` lists them",
                db.in_shell()
            )));
        }
        self.at.tell(&runs, &warnings, || {
            let text = |run: &Listed| {
                format!(
                    "{} of {} on {}: {} ranks, {} on one of at most {} nodes, host {}\n  {} of {}, {}, raw records {}\n",
                    run.job,
                    owner(run),
                    run.library,
                    run.ranks,
                    run.ppn,
                    run.nodes,
                    run.host.escape_debug(),
                    counted(run.records, "record"),
                    counted(run.calls, "call"),
                    run.state.name(),
                    if run.has_raw { "are kept" } else { "are gone" }
                )
            };
            runs.iter().map(text).collect()
        })
    }

    fn generations(&self, db: &Database) -> anyhow::Result<()> {
        let mut all = Vec::new();
        for key in db.keys()? {
            let current = generation::current(db, &key)?;
            for number in generation::numbers(db, &key)? {
                let loaded = colltune_db::Generation::load_number(db, key.clone(), number);
                let meta = loaded.as_ref().ok().and_then(|loaded| loaded.meta.as_ref());
                all.push(Shown {
                    library: key.to_string(),
                    generation: number,
                    in_force: number == current,
                    created_unix_ms: meta.map_or(0, |meta| meta.created_unix_ms),
                    runs: meta.map_or(0, |meta| meta.runs),
                    cells_measured: meta.map_or(0, |meta| meta.cells_measured),
                    problem: loaded.as_ref().err().map(ToString::to_string),
                });
            }
        }
        self.at.tell(&all, &[], || {
            let line = |one: &Shown| {
                let force = if one.in_force { ", in force" } else { "" };
                let what = match &one.problem {
                    Some(problem) => format!("failed to {problem}"),
                    None => format!(
                        "from {}, {} measured",
                        counted(one.runs, "run"),
                        counted(one.cells_measured, "cell")
                    ),
                };
                format!(
                    "{}: generation {}{force}: {what}\n",
                    one.library, one.generation
                )
            };
            match all.is_empty() {
                true => "nothing was learned yet\n".to_owned(),
                false => all.iter().map(line).collect(),
            }
        })
    }
}
