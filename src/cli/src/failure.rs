//! How a subcommand fails: the message reads after "failed to", the exit code tells the kind.

use std::process::ExitCode;

use thiserror::Error;

/// Wrong usage; the exit code is 2 instead of 1.
#[derive(Debug, Error)]
#[error("{0}")]
pub struct Usage(String);

/// An error of wrong usage.
pub fn usage(problem: impl std::fmt::Display) -> anyhow::Error {
    anyhow::Error::new(Usage(problem.to_string()))
}

/// The subcommand has printed what is wrong; only the exit code is left to set.
#[derive(Debug, Error)]
#[error("pass every check")]
pub struct Reported;

/// Prints what failed and gives the exit code.
pub fn report(error: &anyhow::Error) -> ExitCode {
    if error.is::<Reported>() {
        return ExitCode::from(1);
    }
    eprintln!("colltune: failed to {error:#}");
    ExitCode::from(if error.is::<Usage>() { 2 } else { 1 })
}
