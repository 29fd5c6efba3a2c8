//! One line on a terminal that says what is going on; nothing in a log.
//!
//! There is one standard error, so there is one such line. Whatever is printed for good goes through [`tell`] while
//! the line may stand there, or comes after [`clear`]; a failure clears it before it is told.

use std::sync::LazyLock;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

static LINE: LazyLock<ProgressBar> = LazyLock::new(|| {
    let line = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    // As wide as the terminal: what is longer would leave its first half behind.
    line.with_style(ProgressStyle::with_template("{wide_msg}").expect("a template"))
});

/// Shows `text` in place of what the line said before.
pub fn show(text: &str) {
    if LINE.is_finished() {
        LINE.reset();
    }
    LINE.set_message(text.to_owned());
}

/// Leaves the line where it is, for good; what follows stands below it.
pub fn keep() {
    let text = LINE.message();
    clear();
    if !text.is_empty() {
        eprintln!("{text}");
    }
}

/// Takes the line away.
pub fn clear() {
    LINE.finish_and_clear();
}

/// Prints a line for good, on standard error.
pub fn tell(text: &str) {
    LINE.suspend(|| eprintln!("{text}"));
}
