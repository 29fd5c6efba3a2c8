//! What every program does with its line: read it, and end with the exit code that tells how it went.

use std::ffi::OsStr;
use std::process::ExitCode;

use clap::builder::Resettable;
use clap::{CommandFactory, FromArgMatches};

use crate::{failure, globals};

/// This process's line. A line that cannot be read ends the process, with what `explain` makes of the error.
pub fn read<C: CommandFactory + FromArgMatches>(
    explain: fn(clap::Error, &[String]) -> clap::Error,
) -> C {
    let command = without_empty(C::command());
    let command = globals::colored(command, std::env::args_os());
    let matches = command.try_get_matches();
    let read = matches.and_then(|matches| C::from_arg_matches(&matches));
    read.unwrap_or_else(|error| explain(error, &std::env::args().collect::<Vec<_>>()).exit())
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

/// Reports what failed.
pub fn ended(result: anyhow::Result<()>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failure::report(&error),
    }
}
