//! `colltune db list`, `drop` and `restore`: whose runs there are, and which of them are learned from.

use colltune_db::manage::list::{self, Listed, State, Wanted};
use colltune_db::manage::remove;
use colltune_db::users;

use super::at::At;
use crate::command::train::counted;
use colltune_output::failure::{usage, wrong};
use colltune_output::table;

#[derive(clap::Args, Debug)]
pub struct Filter {
    /// Runs of this user, by name or number; may be repeated
    #[arg(long, value_name = "USER")]
    owner: Vec<String>,
    /// The run of this job; may be repeated
    #[arg(long, value_name = "JOB")]
    job: Vec<String>,
    /// Runs that say to be of this host; may be repeated
    #[arg(long, value_name = "HOST")]
    host: Vec<String>,
}

impl Filter {
    pub fn wanted(&self) -> anyhow::Result<Wanted> {
        let uid = |text: &String| {
            let found = users::uid(text);
            found.ok_or_else(|| wrong(format!("no user {text} on this host; give the uid")))
        };
        let owners: anyhow::Result<_> = self.owner.iter().map(uid).collect();
        Ok(Wanted {
            owners: owners?,
            jobs: self.job.iter().cloned().collect(),
            hosts: self.host.iter().cloned().collect(),
        })
    }
}

#[derive(clap::Args, Debug)]
pub struct Listing {
    #[command(flatten)]
    at: At,
    #[command(flatten)]
    filter: Filter,
}

impl Listing {
    pub fn list(&self) -> anyhow::Result<()> {
        let mut warnings = Vec::new();
        let runs = list::runs(&self.at.open()?, &self.filter.wanted()?, &mut warnings)?;
        self.at.tell(&runs, &warnings, || lines(&runs))
    }

    pub fn drop_runs(&self) -> anyhow::Result<()> {
        let wanted = self.filter.wanted()?;
        if wanted.is_all() {
            return Err(usage("drop runs: say which, with --owner, --job or --host"));
        }
        let mut warnings = Vec::new();
        let runs = remove::drop_runs(&self.at.open()?, &wanted, &mut warnings)?;
        self.at.tell(&runs, &warnings, || {
            format!(
                "dropped {}; the next `colltune train` learns without {}\n",
                counted(runs.len() as u64, "run"),
                if runs.len() == 1 { "it" } else { "them" }
            )
        })
    }
}

/// Who owns a run, for people.
pub fn owner(run: &Listed) -> String {
    let number = run.owner.map_or("-".to_owned(), |owner| owner.to_string());
    run.user.clone().unwrap_or(number)
}

fn lines(runs: &[Listed]) -> String {
    let rows: Vec<Vec<String>> = runs
        .iter()
        .map(|run| {
            vec![
                run.job.clone(),
                owner(run),
                run.host.escape_debug().to_string(),
                run.library.clone(),
                format!("{} on {}", run.ranks, run.nodes),
                run.records.to_string(),
                run.state.name().to_owned(),
            ]
        })
        .collect();
    let header = [
        "job",
        "owner",
        "host",
        "library",
        "ranks on nodes",
        "records",
        "state",
    ];
    let left = runs.iter().filter(|run| run.state != State::Counts).count();
    let all = counted(runs.len() as u64, "run");
    table(&header, &rows) + &format!("{all}, {left} of them not learned from\n")
}

#[derive(clap::Args, Debug)]
pub struct Restore {
    #[command(flatten)]
    at: At,
    #[command(flatten)]
    filter: Filter,
    /// Traces in quarantine, these or all: the next training looks at them again
    #[arg(long, value_name = "NAME", num_args = 0.., conflicts_with_all = ["owner", "job", "host"])]
    quarantined: Option<Vec<String>>,
}

impl Restore {
    pub fn run(&self) -> anyhow::Result<()> {
        let db = self.at.open()?;
        if let Some(names) = &self.quarantined {
            let restored = remove::restore_refused(&db, names)?;
            return self.at.tell(&restored, &[], || {
                let n = counted(restored.len() as u64, "trace");
                format!("moved {n} back to {}\n", db.incoming().display())
            });
        }
        let wanted = self.filter.wanted()?;
        if wanted.is_all() {
            return Err(usage(
                "restore: say what, with --owner, --job or --host, or with --quarantined",
            ));
        }
        let mut warnings = Vec::new();
        let runs = remove::restore_runs(&db, &wanted, &mut warnings)?;
        self.at.tell(&runs, &warnings, || {
            format!("restored {}\n", counted(runs.len() as u64, "run"))
        })
    }
}
