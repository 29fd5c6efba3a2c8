//! `colltune-lab emulate`: the time axes of the mini-app's ranks on a machine, a policy and collectives that need not be here.
//!
//! ```text
//! $ mpirun -n 2 colltune-amr --deck four-spheres --placement contiguous --telemetry t --telemetry_blocks
//! $ colltune-lab emulate fit --telemetry t -o costs.toml
//! $ colltune-lab emulate run --mesh four-spheres --costs costs.toml --policy lpt-swap --ranks 64 --machine hera
//! ```

pub mod recording;

pub mod draw;
pub mod given;
mod placing;
pub use placing::seconds_of;

mod fit;
mod run;
pub mod whatif;

use clap::Subcommand;

/// Runs one of the subcommands.
pub fn run(args: &Args) -> anyhow::Result<()> {
    match &args.command {
        Command::Fit(args) => fit::run(args),
        Command::Run(args) => run::run(args),
        Command::Whatif(args) => whatif::run(args),
    }
}

#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  colltune-lab emulate fit --telemetry t -o costs.toml     what blocks and messages cost, from telemetry
  colltune-lab emulate run --mesh four-spheres --costs costs.toml --policy cplx:50 --ranks 8 --machine m.toml")]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Fit costs to telemetry of the mini-app
    Fit(fit::Args),
    /// Run a mesh's time axes under policies, and say where the time goes
    Run(run::Args),
    /// Emulate policies by variants of allreduce: which lever gives how much
    Whatif(whatif::Args),
}
