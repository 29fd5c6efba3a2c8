//! `colltune-lab placement`: policies that place the blocks of an adaptive mesh on ranks, tried out.
//!
//! ```text
//! $ colltune-lab placement policies
//! $ colltune-lab placement bench --ranks 512,4096 --policies contiguous,lpt,cplx:50
//! $ colltune-lab placement replay telemetry/ --ranks 64 --policies contiguous,lpt-swap
//! ```

mod policies;

mod ranks;
pub mod scene;

mod recorded;

mod bench;
mod replay;

use clap::Subcommand;
use colltune_placement::Policy;
use colltune_placement::policy::TABLE;

use colltune_output::parse::Listed;

/// Runs one of the subcommands.
pub fn run(args: &Args) -> anyhow::Result<()> {
    match &args.command {
        Command::Policies(args) => policies::run(args),
        Command::Bench(args) => bench::run(args),
        Command::Replay(args) => replay::run(args),
    }
}

#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  colltune-lab placement policies                          what there is, and what each needs
  colltune-lab placement bench --policies lpt,cplx:50      quality and time on seeded costs
  colltune-lab placement replay costs.csv --ranks 64       recorded costs, policies side by side")]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// List the policies, what may follow their names and what they need
    Policies(policies::Args),
    /// Place seeded random costs: makespan, proved bound, locality and time of each policy
    Bench(bench::Args),
    /// Place recorded costs step by step, policies side by side
    Replay(replay::Args),
}

/// A policy, which may have parameters. The names are listed.
pub fn policy() -> Listed<Policy> {
    Listed {
        names: TABLE.iter().map(|row| row.name).collect(),
        read: |name| name.parse().map_err(|error| format!("failed to {error}")),
    }
}
