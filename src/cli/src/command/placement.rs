//! `colltune placement`: policies that place the blocks of an adaptive mesh on ranks, tried out.
//!
//! ```text
//! $ colltune placement policies
//! $ colltune placement bench --ranks 512,4096 --policies contiguous,lpt,cplx:50
//! $ colltune placement replay telemetry/ --ranks 64 --policies contiguous,lpt-swap
//! $ colltune placement comm --ranks 2 --policies contiguous,lpt
//! ```

mod policies;

mod ranks;
mod scene;

mod recorded;

mod bench;
mod comm;
mod replay;

use clap::Subcommand;
use colltune_placement::Policy;
use colltune_placement::policy::TABLE;

use crate::parse::Listed;

/// Runs one of the subcommands.
pub fn run(args: &Args) -> anyhow::Result<()> {
    match &args.command {
        Command::Policies(args) => policies::run(args),
        Command::Bench(args) => bench::run(args),
        Command::Replay(args) => replay::run(args),
        Command::Comm(args) => comm::run(args),
    }
}

#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  colltune placement policies                          what there is, and what each needs
  colltune placement bench --policies lpt,cplx:50      quality and time on seeded costs
  colltune placement replay costs.csv --ranks 64       recorded costs, policies side by side
  colltune placement comm --ranks 2                    real messages under each policy")]
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
    /// Exchange the messages of an octree's neighbours under each policy and time the rounds
    Comm(comm::Args),
}

/// A policy, which may have parameters. The names are listed.
fn policy() -> Listed<Policy> {
    Listed {
        names: TABLE.iter().map(|row| row.name).collect(),
        read: |name| name.parse().map_err(|error| format!("failed to {error}")),
    }
}
