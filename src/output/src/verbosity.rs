//! How much is said on standard error: `-q` and `-v`.

use std::sync::atomic::{AtomicU8, Ordering};

/// From little to much.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verbosity {
    /// Results and errors.
    Quiet,
    /// Progress on a terminal, hints and warnings, too.
    Usual,
    /// And each step, where there is no terminal as well.
    Verbose,
}

static CHOSEN: AtomicU8 = AtomicU8::new(Verbosity::Usual as u8);

/// Holds for the whole process.
pub fn choose(verbosity: Verbosity) {
    CHOSEN.store(verbosity as u8, Ordering::Relaxed);
}

pub fn chosen() -> Verbosity {
    match CHOSEN.load(Ordering::Relaxed) {
        0 => Verbosity::Quiet,
        1 => Verbosity::Usual,
        _ => Verbosity::Verbose,
    }
}
