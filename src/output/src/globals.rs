//! Options of every subcommand: colours, and how much is said.

use std::ffi::OsString;

use anstream::ColorChoice;
use clap::ValueEnum;

use crate::verbosity::{self, Verbosity};

/// Where help lists them: behind the subcommand's own.
const HEADING: &str = "Options of every subcommand";
const LAST: usize = 1000;

#[derive(clap::Args, Clone, Copy, Debug)]
pub struct Globals {
    /// Colours: where a terminal has them, in any case, or none
    #[arg(
        long,
        global = true,
        value_enum,
        default_value_t = Color::Auto,
        value_name = "WHEN",
        help_heading = HEADING,
        display_order = LAST
    )]
    color: Color,
    /// Say nothing but results and errors: no progress, no hints
    #[arg(
        short,
        long,
        global = true,
        conflicts_with = "verbose",
        help_heading = HEADING,
        display_order = LAST
    )]
    quiet: bool,
    /// Say what is done, too, and the causes of an error line by line
    #[arg(short, long, global = true, help_heading = HEADING, display_order = LAST)]
    verbose: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Color {
    Auto,
    Always,
    Never,
}

impl Globals {
    /// From here on it is so.
    pub fn take_effect(self) {
        verbosity::choose(match (self.quiet, self.verbose) {
            (true, _) => Verbosity::Quiet,
            (_, true) => Verbosity::Verbose,
            _ => Verbosity::Usual,
        });
    }
}

/// Sets the colours for all that is printed. Help and wrong usage are printed while the line is read, so it is looked
/// through for this one option before.
pub fn colored(command: clap::Command, words: impl IntoIterator<Item = OsString>) -> clap::Command {
    let (clap, all) = match asked(words).unwrap_or(Color::Auto) {
        Color::Auto => (clap::ColorChoice::Auto, ColorChoice::Auto),
        Color::Always => (clap::ColorChoice::Always, ColorChoice::Always),
        Color::Never => (clap::ColorChoice::Never, ColorChoice::Never),
    };
    all.write_global();
    command.color(clap)
}

/// The last `--color` before a job's own line.
fn asked(words: impl IntoIterator<Item = OsString>) -> Option<Color> {
    let mut words = words.into_iter().take_while(|word| word != "--");
    let mut last = None;
    while let Some(word) = words.next() {
        let word = word.to_string_lossy().into_owned();
        let value = match word.strip_prefix("--color") {
            Some("") => words
                .next()
                .map(|value| value.to_string_lossy().into_owned()),
            Some(rest) => rest.strip_prefix('=').map(str::to_owned),
            None => None,
        };
        last = value
            .and_then(|value| Color::from_str(&value, false).ok())
            .or(last);
    }
    last
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_option_is_found_wherever_it_stands_and_not_in_a_jobs_line() {
        let of = |line: &str| asked(line.split(' ').map(OsString::from));
        assert_eq!(of("colltune doctor --color never"), Some(Color::Never));
        assert_eq!(of("colltune --color=always status"), Some(Color::Always));
        assert_eq!(of("colltune run -- solver --color never"), None);
        assert_eq!(of("colltune --color=loud doctor"), None);
        assert_eq!(of("colltune --colors"), None);
    }
}
