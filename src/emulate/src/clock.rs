//! The clock, which no other part of this crate reads.

use std::cell::{Cell, RefCell};

/// Runs what it is given, once, and says how many seconds that took.
pub type Timer<'a> = &'a dyn Fn(&mut dyn FnMut()) -> f64;

/// What `run` gives, and the seconds that it took.
pub fn timed<T>(timer: Timer, mut run: impl FnMut() -> T) -> (T, f64) {
    let mut given = None;
    let seconds = timer(&mut || given = Some(run()));
    (given.expect("a timer runs what it is given"), seconds)
}

/// What was timed in a run, in order, for others that do the same.
#[derive(Default)]
pub struct Timings(RefCell<Vec<f64>>);

impl Timings {
    /// A timer for one more run: only what no run before it came to is timed.
    pub fn once_more<'a>(&'a self, timer: Timer<'a>) -> impl Fn(&mut dyn FnMut()) -> f64 + 'a {
        let n_done = Cell::new(0);
        move |run| {
            let nth = n_done.replace(n_done.get() + 1);
            let known = self.0.borrow().get(nth).copied();
            match known {
                Some(seconds) => {
                    run();
                    seconds
                }
                None => {
                    let seconds = timer(run);
                    self.0.borrow_mut().push(seconds);
                    seconds
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_run_before_came_to_is_run_again_and_not_timed_again() {
        let (n_timed, n_run) = (Cell::new(0), Cell::new(0));
        let timer = |run: &mut dyn FnMut()| {
            run();
            n_timed.set(n_timed.get() + 1);
            f64::from(n_timed.get())
        };
        let timings = Timings::default();
        let of_run = |n: usize| -> Vec<f64> {
            let timer = timings.once_more(&timer);
            let all = (0..n).map(|_| timed(&timer, || n_run.set(n_run.get() + 1)).1);
            all.collect()
        };
        assert_eq!(of_run(2), [1.0, 2.0]);
        assert_eq!(of_run(3), [1.0, 2.0, 3.0]);
        assert_eq!(of_run(3), [1.0, 2.0, 3.0]);
        assert_eq!((n_timed.get(), n_run.get()), (3, 8));
    }
}
