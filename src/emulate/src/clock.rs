//! Who has a clock: nobody in this crate.

/// Runs what it is given, once, and says how many seconds that took.
pub type Timer<'a> = &'a dyn Fn(&mut dyn FnMut()) -> f64;

/// What `run` gives, and the seconds that it took.
pub fn timed<T>(timer: Timer, mut run: impl FnMut() -> T) -> (T, f64) {
    let mut given = None;
    let seconds = timer(&mut || given = Some(run()));
    (given.expect("a timer runs what it is given"), seconds)
}
