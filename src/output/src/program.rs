//! What every program does with its line: read it, and end with the exit code that tells how it went.

use std::ffi::OsStr;
use std::path::Path;
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
        let words: Vec<String> = std::env::args_os()
            .map(|word| word.to_string_lossy().into_owned())
            .collect();
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
    if let Some(line) = elsewhere(words) {
        let tip = ContextValue::StyledStrs(vec![format!("that is `{line}`").into()]);
        error.remove(ContextKind::SuggestedSubcommand);
        error.insert(ContextKind::Suggested, tip);
    }
    error
}

/// The line of another program that has the subcommand which these words, the program before them, name.
fn elsewhere(words: &[String]) -> Option<&'static str> {
    let (program, words) = words.split_first()?;
    let program = Path::new(program).file_name()?.to_str()?;
    let words = words.iter().map(String::as_str);
    let named: Vec<&str> = words.filter(|word| !word.starts_with('-')).collect();
    let is_named = |name: &str| {
        let mut names = name.split(' ').enumerate();
        names.all(|(place, name)| named.get(place) == Some(&name))
    };
    let (_, line) = ELSEWHERE.iter().find(|(name, _)| is_named(name))?;
    // A slip of the pen in a program's own subcommand is its parser's to explain.
    (line.split(' ').next() != Some(program)).then_some(*line)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subcommands_of_other_programs_are_known_and_slips_in_ones_own_are_not_ours() {
        let of = |line: &str| {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            elsewhere(&words)
        };
        let (lab, bench) = (Some("colltune-lab emulate"), Some("colltune-bench study"));
        assert_eq!(of("/bin/colltune emulate rum"), lab);
        assert_eq!(of("colltune -q emulate study"), bench);
        assert_eq!(of("colltune-lab emulate study"), bench);
        assert_eq!(of("colltune-lab emulate rum"), None);
        assert_eq!(of("colltune tunes"), None);
        assert_eq!(of("colltune-lab tune -- ls"), Some("colltune tune"));
    }
}
