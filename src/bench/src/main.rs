//! `colltune-bench`, for developers: how fast colltune is here, and published results beside ours. It is not installed.
#![forbid(unsafe_code)]
#![deny(clippy::print_stdout)]

mod suites;

mod comm;

mod study;

mod validate;

mod evidence;

mod evaluate;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use colltune_output::globals::Globals;
use colltune_output::program;

/// Measures colltune on this machine, and sets published results beside ours.
#[derive(Parser)]
#[command(
    name = "colltune-bench",
    version,
    args_conflicts_with_subcommands = true
)]
struct Cli {
    #[command(flatten)]
    globals: Globals,
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    suites: suites::line::Args,
}

#[derive(Subcommand)]
enum Command {
    /// Emulate a published study, and say what of it is reproduced
    Study(study::Args),
    /// Run every study and list in one file what they found
    Evidence(evidence::Args),
    /// Judge learners by recorded jobs: what each would have cost
    Evaluate(evaluate::Args),
    /// Run the mini-app here, and say how near emulated runs come to it
    Validate(validate::Args),
    /// Exchange the messages of an octree's neighbours under each policy and time the rounds
    Comm(comm::Args),
}

fn main() -> ExitCode {
    let cli: Cli = program::read(|error, _| error);
    cli.globals.take_effect();
    program::ended(match cli.command {
        Some(Command::Study(args)) => study::run(&args),
        Some(Command::Evidence(args)) => evidence::run(&args),
        Some(Command::Evaluate(args)) => evaluate::run(&args),
        Some(Command::Validate(args)) => validate::run(&args),
        Some(Command::Comm(args)) => comm::run(&args),
        None => suites::line::run(&cli.suites),
    })
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;
    use colltune_output::lines;

    #[test]
    fn the_line_has_no_faults() {
        assert_eq!(lines::faults(super::Cli::command(), &[]), [""; 0]);
    }
}
