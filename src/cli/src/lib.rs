//! The `colltune` command: it never links MPI, so that it runs on a login node and serves every library. And
//! `colltune-bench`, which measures what is built and is not installed.
#![forbid(unsafe_code)]
// A closed pipe would end the command in the middle of its work: `output` prints.
#![deny(clippy::print_stdout)]

mod verbosity;

mod progress;

mod output;

mod failure;

mod globals;

mod variables;

mod parse;

mod database;

mod own;

mod launch;
// As the build of the shim has it, which is in a workspace of its own.
#[path = "../../../shim/stamp.rs"]
mod stamp;

mod published;

mod export;

mod plot;

mod trial;

mod comparison;

mod ledger;

mod node_hours;

mod bench;

#[cfg(test)]
mod golden;

mod command;

use std::ffi::{OsStr, OsString};
use std::process::ExitCode;

use clap::builder::Resettable;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

/// `colltune`, with the words of this process's line.
pub fn colltune() -> ExitCode {
    let cli: Cli = read();
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
        Command::Bench(_) => own::bench(),
        Command::Calibrate(args) => command::calibrate::run(&args),
        Command::Simulate(args) => command::simulate::run(&args),
        Command::Placement(args) => command::placement::run(&args),
        Command::Emulate(args) => command::emulate::run(&args),
        Command::Telemetry(args) => command::telemetry::run(&args),
        Command::Completions(args) => command::manual::completions(&args, Cli::command()),
        Command::Manual(args) => command::manual::pages(&args, Cli::command()),
    };
    ended(result)
}

/// `colltune-bench`, with the words of this process's line.
pub fn colltune_bench() -> ExitCode {
    let cli: BenchCli = read();
    cli.globals.take_effect();
    ended(command::bench::run(&cli.args))
}

fn read<C: CommandFactory + FromArgMatches>() -> C {
    let command = without_empty(C::command());
    let command = globals::colored(command, std::env::args_os());
    let matches = command.try_get_matches();
    let read = matches.and_then(|matches| C::from_arg_matches(&matches));
    read.unwrap_or_else(|error| with_tip(error, &std::env::args().collect::<Vec<_>>()).exit())
}

/// Says what is missing where a launcher's line stands without the `--` before it.
fn with_tip(mut error: clap::Error, words: &[String]) -> clap::Error {
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
    if launch::line::is_launcher(&rest) && !words.iter().any(|word| word == "--") {
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

/// An argument's variable that is empty counts as one that is not set.
fn without_empty(command: clap::Command) -> clap::Command {
    let is_empty = |name: &OsStr| std::env::var_os(name).is_some_and(|value| value.is_empty());
    let command = command.mut_args(|argument| match argument.get_env().is_some_and(is_empty) {
        true => argument.env(Resettable::Reset),
        false => argument,
    });
    command.mut_subcommands(without_empty)
}

fn ended(result: anyhow::Result<()>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failure::report(&error),
    }
}

/// Measures colltune on this machine.
#[derive(Parser)]
#[command(name = "colltune-bench", bin_name = "colltune bench", version)]
struct BenchCli {
    #[command(flatten)]
    globals: globals::Globals,
    #[command(flatten)]
    args: command::bench::Args,
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
    globals: globals::Globals,
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
    /// Measure colltune on this machine, where it was built: runs `colltune-bench`, which is not installed
    #[command(disable_help_flag = true)]
    Bench(own::Words),
    /// Measure what messages and reductions cost on this machine
    Calibrate(command::calibrate::Args),
    /// Predict how long colltune's own algorithms take on a machine of any size
    Simulate(command::simulate::Args),
    /// Try out policies that place the blocks of an adaptive mesh on ranks
    Placement(command::placement::Args),
    /// Emulate the mini-app on machines that are not here: costs, placement, messages, collectives
    Emulate(command::emulate::Args),
    /// Analyse what the mini-app's ranks recorded: waiting, critical paths, slow hosts, noise, messages
    Telemetry(command::telemetry::Args),
    /// Print what a shell needs to complete lines of this command
    Completions(command::manual::Completions),
    /// Write manual pages, one of each subcommand
    Manual(command::manual::Pages),
}

#[cfg(test)]
mod tests {
    use clap::builder::PossibleValue;
    use clap::{Arg, CommandFactory as _};

    use super::{BenchCli, Cli};

    /// The lines of both programs.
    fn lines() -> [clap::Command; 2] {
        [Cli::command(), BenchCli::command()]
    }

    /// Every argument that takes a value, with the line that it is of.
    fn all(command: &clap::Command, line: &str, look: &mut dyn FnMut(&str, &Arg)) {
        let line = format!("{line} {}", command.get_name()).trim().to_owned();
        for argument in command.get_arguments() {
            look(&line, argument);
        }
        for below in command.get_subcommands() {
            all(below, &line, look);
        }
    }

    #[test]
    fn the_lines_are_consistent() {
        lines().into_iter().for_each(clap::Command::debug_assert);
    }

    /// What is not listed here has to say its values, in the help and to the shells.
    #[test]
    fn every_closed_set_of_values_is_in_the_help() {
        // Files and folders, numbers, times, texts, names in a database, and what has parameters of its own.
        const OPEN: &str = "0..1 A..B 2|3 BLOCKS BYTES CELLS CHOICES DIR DIR|DECK|shell:DECK|octree:SEED F,E,C FACTOR FILE FILE|DB|NAME FOLDER GAIN \
                            GROUP HOST JOB KEY N NODE:FACTOR NxP OPTIONS OUTDIR POLICY RANKS RANKS:SPEED REASON RECORDING SEED SHAPE \
                            SHARE SITE SIZES SPEC SQL STEP STEPS T,T TEXT TIME USER VARIANT VARIANTS WHEN X [RANKS:]BYTES \
                            calls:DIR";
        // By what they are called where they have no better word.
        const NAMED: [&str; 5] = ["quarantined", "label", "deck", "policy", "policies"];
        let is_open = |name: &str| OPEN.split(' ').any(|open| open == name) || name == "mpirun ...";
        let mut left = Vec::new();
        let mut look = |line: &str, argument: &Arg| {
            let takes = argument.get_action().takes_values();
            let names: Vec<&str> = argument
                .get_value_names()
                .unwrap_or_default()
                .iter()
                .map(AsRef::as_ref)
                .collect();
            let is_open = !names.is_empty() && names.iter().all(|name| is_open(name))
                || NAMED.contains(&argument.get_id().as_str());
            if takes && !is_open && argument.get_possible_values().is_empty() {
                left.push(format!("{line}: {} {names:?}", argument.get_id()));
            }
        };
        lines().iter().for_each(|line| all(line, "", &mut look));
        assert!(
            left.is_empty(),
            "no values are listed:\n{}",
            left.join("\n")
        );
    }

    /// What is named by the same word has the same values.
    #[test]
    fn collectives_modes_and_libraries_are_listed_wherever_they_are_asked_for() {
        let mut seen = 0;
        all(&Cli::command(), "", &mut |line, argument| {
            let values: Vec<String> = argument
                .get_possible_values()
                .iter()
                .map(|value: &PossibleValue| value.get_name().to_owned())
                .collect();
            let must = match argument.get_id().as_str() {
                // There it is a list of choices, with variants.
                "collective" if line == "colltune emulate run" => return,
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
        assert!(seen >= 8, "{seen}");
    }

    /// Where there is no terminal clap wraps at 100 columns, and leaves what is left of a longer line on one of its own.
    #[test]
    fn no_line_of_a_help_s_end_is_wrapped() {
        fn longest(command: &clap::Command, name: &str, found: &mut Vec<String>) {
            let end = command.get_after_help().map(ToString::to_string);
            // Lines that are to be entered stay as they are.
            let lines = end.iter().flat_map(|text| text.lines());
            let lines = lines.filter(|line| !line.starts_with("  colltune"));
            found.extend(
                lines
                    .filter(|line| line.chars().count() > 100)
                    .map(|line| format!("{name}: {line}")),
            );
            for below in command.get_subcommands() {
                longest(below, &format!("{name} {}", below.get_name()), found);
            }
        }
        let mut found = Vec::new();
        lines()
            .iter()
            .for_each(|line| longest(line, line.get_name(), &mut found));
        assert!(found.is_empty(), "{}", found.join("\n"));
    }

    /// A program can read whatever a person can.
    #[test]
    fn every_command_that_reports_has_json() {
        // What only starts something, writes what others read, or is written for people and shells alone.
        const OTHERS: &[&str] = &[
            "run",
            "bench",
            "trace",
            "export",
            "completions",
            "manual",
            "telemetry",
            "db",
            "placement",
            "emulate",
        ];
        let command = Cli::command();
        let mut without = Vec::new();
        let mut look = |command: &clap::Command, line: String| {
            let has = command
                .get_arguments()
                .any(|argument| argument.get_id() == "json");
            if !has {
                without.push(line);
            }
        };
        for one in command.get_subcommands() {
            match one.has_subcommands() {
                true => (one.get_subcommands()).for_each(|below| {
                    look(below, format!("{} {}", one.get_name(), below.get_name()))
                }),
                false => look(one, one.get_name().to_owned()),
            }
        }
        look(&BenchCli::command(), "colltune-bench".to_owned());
        without.retain(|line| !OTHERS.contains(&line.as_str()));
        assert!(without.is_empty(), "{without:?}");
    }
}
