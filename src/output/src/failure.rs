//! How a subcommand fails: the message reads after "failed to", the exit code tells the kind.

use std::process::ExitCode;

use thiserror::Error;

use crate::progress;
use crate::verbosity::{self, Verbosity};

/// Wrong usage; the exit code is 2 instead of 1.
#[derive(Debug, Error)]
#[error("{0}")]
pub struct Usage(String);

/// An error of wrong usage that is a whole sentence.
pub fn wrong(sentence: impl std::fmt::Display) -> anyhow::Error {
    anyhow::Error::new(Stopped {
        message: sentence.to_string(),
        code: 2,
    })
}

/// An error of wrong usage; it reads after "failed to".
pub fn usage(problem: impl std::fmt::Display) -> anyhow::Error {
    anyhow::Error::new(Usage(problem.to_string()))
}

/// The subcommand has printed what is wrong; only the exit code is left to set.
#[derive(Debug, Error)]
#[error("pass every check")]
pub struct Reported;

/// The subcommand stopped before its end, not for its own fault; the message is a sentence.
#[derive(Debug, Error)]
#[error("{message}")]
pub struct Stopped {
    pub message: String,
    pub code: u8,
}

/// Prints what failed and gives the exit code.
pub fn report(error: &anyhow::Error) -> ExitCode {
    progress::clear();
    if error.is::<Reported>() {
        return ExitCode::from(1);
    }
    if let Some(stopped) = error.downcast_ref::<Stopped>() {
        progress::error(stopped);
        return ExitCode::from(stopped.code);
    }
    match verbosity::chosen() {
        Verbosity::Verbose => {
            progress::error(format_args!("failed to {error}"));
            let causes = error.chain().skip(1);
            causes.for_each(|cause| progress::detail(format_args!("  because: {cause}")));
        }
        _ => progress::error(format_args!("failed to {error:#}")),
    }
    ExitCode::from(if error.is::<Usage>() { 2 } else { 1 })
}
