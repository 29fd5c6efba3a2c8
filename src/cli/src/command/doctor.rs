//! `colltune doctor`: diagnoses installation, environment and command line before a job meets what is wrong.
//!
//! ```text
//! $ colltune doctor --db ./hydra.db -- mpirun -n 8 ./solver
//! ok    mpirun.openmpi: mpirun (Open MPI) 4.1.4
//! fail  shim for mpich: not built; `make build` ...
//! ```

mod findings;

mod launchers;

mod shims;

mod machine;

mod variables;

mod limits;

mod generations;

mod database;

mod site;

mod line;

mod self_test;

mod nodes;

use std::ffi::OsString;
use std::path::PathBuf;

use colltune_core::settings::Settings;
use colltune_files::site::is_site;

use self::findings::Findings;
use self::variables::with_variables;
use colltune_launch::trial::Interrupt;
use colltune_launch::trial::interrupted;
use colltune_output::failure::Reported;
use colltune_output::parse::{RunsOn, runs_on};

/// Prints one line per check; fails when one of them did.
pub fn run(args: &Args) -> anyhow::Result<()> {
    if args.nodes {
        return nodes::run(&nodes::Asked {
            line: &args.line,
            db: args.db.as_deref(),
            hostfile: args.write_hostfile.as_deref(),
            mpi: args.mpi.map(|told| told.abi),
            json: args.json,
        });
    }
    let mut report = Findings::new(args.json);
    let launchers = launchers::check(&mut report, &args.line);
    shims::check(&mut report, &launchers);
    shims::check_standard(&mut report);
    machine::check(&mut report);
    variables::check(&mut report);
    match &args.db {
        Some(db) if is_site(db) => site::check(&mut report, db),
        Some(db) => database::check(&mut report, db),
        None => limits::tell(&mut report, &with_variables(Settings::default())),
    }
    if !args.line.is_empty() {
        line::check(&mut report, &args.line, args.mpi.map(|told| told.abi));
    }
    if !args.no_self_test {
        let interrupt = Interrupt::listen()?;
        for (abi, name) in &launchers {
            self_test::run(&mut report, *abi, name, &interrupt);
            if let Some(signal) = interrupt.signal() {
                return Err(interrupted(signal));
            }
        }
    }
    match report.end()? {
        true => Err(Reported.into()),
        false => Ok(()),
    }
}

#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  colltune doctor
      Launchers, shims, scheduling, disturbing variables, limits, and a self test with two ranks.
  colltune doctor --no-self-test
      The same without the jobs, for a node on which none may run.
  colltune doctor --db ./hydra.db
      The database as well: readable, writable, space, generations.
  colltune doctor -- mpirun -n 8 ./solver
      Also whether this line can be tuned. The line is not started.
  colltune doctor --nodes --db ./hydra.db --write-hostfile healthy -- mpirun -n 64 ./solver
      Instead: whether nodes of this job are sick. A measurement of about a second runs in the
      place of ./solver, on as many ranks: computing, memory, messages between neighbours,
      throttling, beside the other nodes and what hosts were.

Each line begins with ok, warn or fail; what is not well ends with the command or the step that
mends it. Exit codes: 0 no check failed, 1 one did, 2 wrong usage, 3 a node is sick.")]
pub struct Args {
    /// The tuning database, or a site folder
    #[arg(long, env = "COLLTUNE_DB", hide_env_values = true, value_name = "DIR")]
    db: Option<PathBuf>,
    /// Start no job: for login nodes
    #[arg(long, conflicts_with = "nodes")]
    no_self_test: bool,
    /// Measure the nodes of the line's job instead, and say which are sick
    #[arg(long, requires = "line")]
    nodes: bool,
    /// Write a host file without what is sick, and without `exclude_hosts` of the database's colltune.toml
    #[arg(long, value_name = "FILE", requires = "nodes")]
    write_hostfile: Option<PathBuf>,
    /// The MPI library of the line, where program and launcher do not tell
    #[arg(long, value_parser = runs_on(), value_name = "LIBRARY", requires = "line")]
    mpi: Option<RunsOn>,
    /// Print JSON: of each check its verdict, what was found, and the remedy
    #[arg(long)]
    json: bool,
    /// A line that starts a job; it is read, not started (but for --nodes)
    #[arg(last = true, value_name = "mpirun ...")]
    line: Vec<OsString>,
}
