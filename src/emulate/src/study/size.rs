//! What a study is told: how large it shall be, and who has a clock.

/// How large a study is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    Full,
    /// A small one, to see that it runs.
    Quick,
}

/// Runs what it is given, and says how many seconds that took. There is no clock in this crate.
pub type Timer<'a> = &'a dyn Fn(&mut dyn FnMut()) -> f64;
