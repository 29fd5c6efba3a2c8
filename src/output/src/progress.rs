//! One line on a terminal that says what is going on, and what is said for good beside it, on standard error.
//!
//! There is one standard error, so there is one such line, and nothing of it in a log, but with `-v`. Whatever is
//! printed for good goes through here while the line may stand there, or comes after [`clear`]; a failure clears it
//! before it is printed.

use std::io::Write as _;
use std::sync::LazyLock;

use anstyle::{AnsiColor, Style};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::verbosity::{Verbosity, chosen};

static LINE: LazyLock<ProgressBar> = LazyLock::new(|| {
    let line = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    // As wide as the terminal: what is longer would leave its first half behind.
    line.with_style(ProgressStyle::with_template("{wide_msg}").expect("a template"))
});

/// What begins a hint or a warning, and what begins an error.
const HINT: Style = AnsiColor::Yellow.on_default().bold();
const ERROR: Style = AnsiColor::Red.on_default().bold();

/// Shows `text` in place of what the line said before.
pub fn show(text: &str) {
    match chosen() {
        Verbosity::Quiet => {}
        Verbosity::Verbose => write(text),
        Verbosity::Usual => {
            if LINE.is_finished() {
                LINE.reset();
            }
            LINE.set_message(text.to_owned());
        }
    }
}

/// Leaves the line where it is, for good; what follows stands below it.
pub fn keep() {
    let text = LINE.message();
    clear();
    if !text.is_empty() {
        tell(&text);
    }
}

/// Takes the line away.
pub fn clear() {
    LINE.finish_and_clear();
}

/// Prints a line for good, unless nothing but results is asked for.
pub fn tell(text: &str) {
    if chosen() > Verbosity::Quiet {
        write(text);
    }
}

/// A hint or a warning: what a person should know, and a program may leave.
pub fn hint(text: impl std::fmt::Display) {
    let text = plain(&text.to_string());
    tell(&format!("{HINT}colltune:{HINT:#} {text}"));
}

/// What is done, for those who want to know.
pub fn detail(text: impl std::fmt::Display) {
    if chosen() == Verbosity::Verbose {
        write(&format!("colltune: {text}"));
    }
}

/// An error, which is always said.
pub fn error(text: impl std::fmt::Display) {
    let text = plain(&text.to_string());
    write(&format!("{ERROR}colltune:{ERROR:#} {text}"));
}

/// A name that another user chose, of a file in a shared database for one, moves no cursor and colours nothing.
fn plain(text: &str) -> String {
    let plain = |sign: char| match sign {
        '\n' | '\t' => sign,
        sign if sign.is_control() => '·',
        sign => sign,
    };
    text.chars().map(plain).collect()
}

/// Colours are kept where the terminal has them, or `--color` says so. A closed pipe is no reason to end the work.
fn write(text: &str) {
    LINE.suspend(|| {
        let _ = writeln!(anstream::stderr().lock(), "{text}");
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_of_others_names_moves_no_cursor() {
        let told = plain("failed to read /db/a\u{1b}[2J\u{9b}1A\r.run:\n\tdamaged");
        assert_eq!(told, "failed to read /db/a·[2J·1A·.run:\n\tdamaged");
    }
}
