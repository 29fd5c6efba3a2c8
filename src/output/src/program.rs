//! What every program does with its line: read it, and end with the exit code that tells how it went.

use std::ffi::OsStr;
use std::process::ExitCode;

use clap::builder::Resettable;
use clap::error::{ContextKind, ContextValue, ErrorKind};
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
    read.unwrap_or_else(|error| {
        let words: Vec<String> = std::env::args().collect();
        explain(with_the_program(error, &words), &words).exit()
    })
}

/// Subcommands, by one word or two, and the lines that have them.
const ELSEWHERE: [(&str, &str); 10] = [
    ("emulate study", "colltune-bench study"),
    ("emulate evidence", "colltune-bench evidence"),
    ("emulate validate", "colltune-bench validate"),
    ("placement comm", "colltune-bench comm"),
    ("emulate", "colltune-lab emulate"),
    ("placement", "colltune-lab placement"),
    ("telemetry", "colltune-lab telemetry"),
    ("simulate", "colltune-lab simulate"),
    ("bench", "colltune-bench"),
    ("tune", "colltune tune"),
];

/// The error with the line of the program that has the subcommand, where another one does.
fn with_the_program(mut error: clap::Error, words: &[String]) -> clap::Error {
    if error.kind() != ErrorKind::InvalidSubcommand {
        return error;
    }
    let words: Vec<&str> = words.iter().skip(1).map(String::as_str).collect();
    let words: Vec<&str> = words
        .into_iter()
        .filter(|word| !word.starts_with('-'))
        .collect();
    let is_it = |name: &str| words.join(" ").starts_with(name);
    if let Some((_, line)) = ELSEWHERE.iter().find(|(name, _)| is_it(name)) {
        let tip = ContextValue::StyledStrs(vec![format!("that is `{line}`").into()]);
        error.remove(ContextKind::SuggestedSubcommand);
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

/// Reports what failed.
pub fn ended(result: anyhow::Result<()>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failure::report(&error),
    }
}
