//! `colltune db`: a database for a group, and what its owner does with it.
//!
//! ```text
//! $ colltune db init --shared hpc /site/hydra.db         # members record and exploit, who made it trains
//! $ colltune db list --db /site/hydra.db --owner bob     # whose runs are there
//! $ colltune db drop --db /site/hydra.db --owner bob     # nothing is learned from them any longer
//! $ colltune db rollback --db /site/hydra.db             # the generation before is in force again
//! $ colltune db check --db /site/hydra.db
//! ```

mod at;

mod init;

mod runs;

mod show;

mod generations;

mod check;

use clap::Subcommand;

use check::Looking;
use generations::{Prune, Rollback};
use init::Init;
use runs::{Listing, Restore};
use show::Show;

pub fn run(args: &Args) -> anyhow::Result<()> {
    match &args.action {
        Action::Init(asked) => asked.run(),
        Action::List(asked) => asked.list(),
        Action::Show(asked) => asked.run(),
        Action::Drop(asked) => asked.drop_runs(),
        Action::Restore(asked) => asked.run(),
        Action::Rollback(asked) => asked.run(),
        Action::Prune(asked) => asked.run(),
        Action::Check(asked) => asked.run(),
    }
}

#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  colltune db init --shared hpc /site/hydra.db
      Members of the group hpc record into it and exploit it, you train. Modes are set once and kept
      by all that colltune writes, whatever a user's umask is.
  colltune db list --db /site/hydra.db --owner bob --owner 1003
  colltune db drop --db /site/hydra.db --owner bob && colltune train --db /site/hydra.db
      Nothing is learned from bob's runs; `restore` takes that back, `prune` makes it final.
  colltune db prune --db /site/hydra.db
      Says what would be removed for good; --yes, --generations or --quarantine removes it.
  colltune db restore --db /site/hydra.db --quarantined
      After `machine` or owners.toml was mended: the next training looks at refused traces again.

DB/owners.toml says whose traces are believed and what they may claim: see SECURITY.md.
Exit codes: 0 done, 1 failed (`check`: faults were found), 2 wrong usage.")]
pub struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand, Debug)]
enum Action {
    /// Make a database, or make one that is there a group's
    Init(Init),
    /// List the runs: whose they are, where they ran, whether they count
    List(Listing),
    /// Show one run, the generations, or what is in quarantine
    Show(Show),
    /// Leave runs out of what is learned
    Drop(Listing),
    /// Take a drop back, or bring traces back from quarantine
    Restore(Restore),
    /// Put an earlier generation in force
    Rollback(Rollback),
    /// Remove dropped runs, old generations and old quarantine for good
    Prune(Prune),
    /// Say what is wrong with a database, and the remedy
    Check(Looking),
}
