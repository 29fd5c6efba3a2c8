//! `colltune-lab`, for people who study placement and adaptive meshes.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use clap::{CommandFactory as _, Parser, Subcommand};
use colltune_lab::{emulate, placement, simulate, telemetry};
use colltune_output::globals::Globals;
use colltune_output::{manual, program};

/// Studies placement and collectives of adaptive meshes: tries out policies, emulates runs on machines that are not here,
/// analyses what the mini-app recorded.
#[derive(Parser)]
#[command(
    name = "colltune-lab",
    version,
    after_help = "\
Examples:
  colltune-lab placement bench --policies lpt,cplx:50     quality and time on seeded costs
  colltune-lab emulate run --mesh four-spheres --ranks 8 --machine m.toml --costs costs.toml
  colltune-lab telemetry summary telemetry/               where the ranks' time went

`colltune` tunes programs; this program needs no MPI and tunes nothing.
Exit codes: 0 done, 1 failed, 2 wrong usage."
)]
struct Cli {
    #[command(flatten)]
    globals: Globals,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Try out policies that place the blocks of an adaptive mesh on ranks
    Placement(placement::Args),
    /// Emulate the mini-app on machines that are not here: costs, placement, messages, collectives
    Emulate(emulate::Args),
    /// Analyse what the mini-app's ranks recorded: waiting, critical paths, slow hosts, noise, messages
    Telemetry(telemetry::Args),
    /// Predict how long colltune's own algorithms take on a machine of any size
    Simulate(simulate::Args),
    /// Print what a shell needs to complete lines of this command
    Completions(manual::Completions),
    /// Write manual pages, one of each subcommand
    Manual(manual::Pages),
}

fn main() -> ExitCode {
    let cli: Cli = program::read(|error, _| error);
    cli.globals.take_effect();
    program::ended(match cli.command {
        Command::Placement(args) => placement::run(&args),
        Command::Emulate(args) => emulate::run(&args),
        Command::Telemetry(args) => telemetry::run(&args),
        Command::Simulate(args) => simulate::run(&args),
        Command::Completions(args) => manual::completions(&args, Cli::command()),
        Command::Manual(args) => manual::pages(&args, Cli::command()),
    })
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;
    use colltune_output::lines;

    #[test]
    fn the_line_has_no_faults() {
        let without_json = ["completions", "manual"];
        assert_eq!(lines::faults(super::Cli::command(), &without_json), [""; 0]);
    }
}
