//! The command `colltune`: it never links MPI, so that it runs on a login node and serves every library.
#![forbid(unsafe_code)]
// A closed pipe would end the command in the middle of its work: `colltune_output` prints.
#![deny(clippy::print_stdout)]

mod variables;

mod published;

mod export;

mod comparison;

mod asked;
mod together;

mod ledger;

#[cfg(test)]
mod golden;

mod command;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, Parser, Subcommand};
use colltune_launch::line::is_launcher;
use colltune_output::globals::Globals;
use colltune_output::{manual, program};

fn main() -> ExitCode {
    let cli: Cli = program::read(with_dashes);
    cli.globals.take_effect();
    let result = match cli.command {
        Command::Tune(args) => command::tune::run(&args),
        Command::Run(args) => command::run::run(&args),
        Command::Compare(args) => command::compare::run(&args),
        Command::Train(args) => command::train::run(&args),
        Command::Db(args) => command::db::run(&args),
        Command::Status(args) => command::status::run(&args),
        Command::Report(args) => command::report::run(&args),
        Command::Query(args) => command::query::run(&args),
        Command::Trace(args) => command::trace::run(&args),
        Command::Export(args) => command::export::run(&args),
        Command::Publish(args) => command::publish::run(&args),
        Command::Variants(args) => command::variants::run(&args),
        Command::Doctor(args) => command::doctor::run(&args),
        Command::Explain(args) => command::explain::run(&args),
        Command::Calibrate(args) => command::calibrate::run(&args),
        Command::Completions(args) => manual::completions(&args, Cli::command()),
        Command::Manual(args) => manual::pages(&args, Cli::command()),
    };
    program::ended(result)
}

/// Says what is missing where a launcher's line stands without the `--` before it.
fn with_dashes(mut error: clap::Error, words: &[String]) -> clap::Error {
    let found = error.get(ContextKind::InvalidArg);
    let Some(ContextValue::String(found)) =
        found.filter(|_| error.kind() == ErrorKind::UnknownArgument)
    else {
        return error;
    };
    let Some(place) = words.iter().position(|word| word == found) else {
        return error;
    };
    let rest = words[place..]
        .iter()
        .map(OsString::from)
        .collect::<Vec<_>>();
    if is_launcher(&rest) && !words.iter().any(|word| word == "--") {
        let mut line = words.to_vec();
        line.insert(place, "--".to_owned());
        line[0] = "colltune".to_owned();
        let tip = format!(
            "the line that starts the job stands behind `--`: {}",
            line.join(" ")
        );
        let tip = ContextValue::StyledStrs(vec![tip.into()]);
        error.insert(ContextKind::Suggested, tip);
    }
    error
}

/// Makes MPI programs faster without touching them: tries the variants of their collective
/// operations while they run, learns which are fast, and runs those.
#[derive(Parser)]
#[command(
    name = "colltune",
    version,
    after_help = "\
Examples:
  colltune doctor -- mpirun -n 2 ./solver             is everything there?
  colltune tune -- mpirun -n 8 ./solver               all that follows, for one program
  colltune run --db ./hydra.db -- mpirun -n 8 ./solver    run it ten times, recording
  colltune train --db ./hydra.db                      learn from the runs
  colltune status --db ./hydra.db                     what was learned
  colltune compare --db ./hydra.db -- mpirun -n 8 ./solver    does it help?
  colltune export --db ./hydra.db --format openmpi -o tables    tables for jobs without colltune

Exit codes: 0 done, 1 failed, 2 wrong usage; `run` passes on the job's own."
)]
struct Cli {
    #[command(flatten)]
    globals: Globals,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Tune one program: batches of its jobs, learning, and whether it helped
    Tune(command::tune::Args),
    /// Start a job with the tuner in its ranks
    Run(command::run::Args),
    /// Say whether it helps: a job's whole time with and without the tuner
    Compare(command::compare::Args),
    /// Learn from what the jobs recorded
    Train(command::train::Args),
    /// Share a database, look at whose runs it holds, and take back what went wrong
    Db(command::db::Args),
    /// Show what is known and chosen in each cell
    Status(command::status::Args),
    /// Write a page for a browser: where the time goes, what was learned, whether it helped
    Report(command::report::Args),
    /// Ask a database and telemetry in SQL
    Query(command::query::Args),
    /// Write a time line of a job's collectives, or of the mini-app's phases
    Trace(command::trace::Args),
    /// Write tables that the MPI libraries read themselves
    Export(command::export::Args),
    /// Publish what was learned for everybody's jobs, try it with some, take it back
    Publish(command::publish::Args),
    /// List the variants of each collective and what they need
    Variants(command::variants::Args),
    /// Diagnose installation, environment and command line
    Doctor(command::doctor::Args),
    /// Say which rank of a hanging job is in which call
    Explain(command::explain::Args),
    /// Measure what messages and reductions cost on this machine
    Calibrate(command::calibrate::Args),
    /// Print what a shell needs to complete lines of this command
    Completions(manual::Completions),
    /// Write manual pages, one of each subcommand
    Manual(manual::Pages),
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;
    use clap::builder::PossibleValue;
    use colltune_output::lines;

    use super::Cli;

    #[test]
    fn the_line_has_no_faults() {
        // What only starts something, writes what others read, or is written for people and shells alone.
        const WITHOUT_JSON: [&str; 6] = ["run", "trace", "export", "completions", "manual", "db"];
        assert_eq!(lines::faults(Cli::command(), &WITHOUT_JSON), [""; 0]);
    }

    /// What is named by the same word has the same values.
    #[test]
    fn collectives_modes_and_libraries_are_listed_wherever_they_are_asked_for() {
        let mut seen = 0;
        lines::all(&Cli::command(), "", &mut |line, argument| {
            let values: Vec<String> = argument
                .get_possible_values()
                .iter()
                .map(|value: &PossibleValue| value.get_name().to_owned())
                .collect();
            let must = match argument.get_id().as_str() {
                "collective" => "allreduce",
                "mode" => "exploit",
                "mpi" => "openmpi",
                _ => return,
            };
            seen += 1;
            assert!(
                values.iter().any(|value| value == must),
                "{line}: {values:?}"
            );
        });
        assert!(seen >= 6, "{seen}");
    }
}
