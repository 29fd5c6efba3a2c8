//! Watching the arm that a job exploits: now and then two epochs run the first arm instead, and if such checks tell that the
//! chosen arm is slower, the first one runs for the rest of the job.
//!
//! A check is five epochs in a row: one of the chosen arm, two of the first one, two of the chosen one. What is compared is
//! the third with the first and the fifth, so that changing over is in none of them, and what drifts steadily cancels.
//! Only which of them is faster counts, so that an epoch with a checkpoint in it weighs no more than any other.
//! The rank that decides about a lever holds this, and no other rank knows of it.
//!
//! Source of the test: wagering against "the chosen arm is at least as fast" (Shafer, JRSS A 184(2), 2021). The stake
//! exceeds a hundredfold with a probability of at most 1 % if that is true, whenever it is looked at.

use crate::select::mix;

/// So many epochs lie between checks in the mean, at least, and before the first one.
const GAP: u64 = 20;
/// The same while the chosen arm seems to be slower.
const GAP_SUSPECTED: u64 = 4;
/// Epochs of a check, and those of them that run the first arm.
const EPOCHS: usize = 5;
const OF_FIRST: std::ops::Range<usize> = 1..3;
/// An arm must be faster by this share to count as faster.
const MARGIN: f64 = 0.01;
/// Shares of what is left that are wagered on "slower": one in three of the stake each.
const WAGERS: [f64; 3] = [0.3, 0.6, 0.9];
/// The stake, of 1 at first, from which on the chosen arm is left, or suspected.
const LEFT: f64 = 100.0;
const SUSPECTED: f64 = 1.3;

/// The watch over the chosen arm of one lever.
#[derive(Clone, Debug)]
pub struct Watched {
    key: u64,
    /// The share of the time that checks may take.
    share: f64,
    /// Epochs until the next check begins.
    left_until: u64,
    /// How many epochs of a check are over, and their times for a unit of work. The first of them is the newest epoch before
    /// the check.
    n_over: usize,
    times: [f64; EPOCHS],
    n_checks: u64,
    /// What a check takes beyond the same epochs of the chosen arm, in such epochs: the sum over checks.
    price: f64,
    wagers: [f64; WAGERS.len()],
    /// An epoch has begun and is not over.
    is_open: bool,
}

impl Watched {
    /// Checks may take this `share` of the time; the first one is expected to take as long as the `gain` of the chosen arm
    /// says. There is no watch where the share is 0.
    pub fn new(key: u64, share: f64, gain: f64) -> Option<Watched> {
        let mut watched = Watched {
            key,
            share,
            left_until: 0,
            n_over: 0,
            times: [0.0; EPOCHS],
            n_checks: 0,
            price: 0.0,
            wagers: [1.0; WAGERS.len()],
            is_open: false,
        };
        // Two epochs of the first arm, and about another one for changing over.
        let expected = 3.0 * (gain - 1.0).max(0.0);
        watched.plan(expected);
        (share > 0.0).then_some(watched)
    }

    /// An epoch begins: whether it runs the first arm.
    pub fn begin(&mut self) -> bool {
        if self.is_open {
            self.break_off();
        }
        self.is_open = true;
        OF_FIRST.contains(&self.n_over)
    }

    /// The epoch is over; without a time it was none. Returns whether the chosen arm is left for the first one.
    ///
    /// Units: `time` for a unit of work, whatever the unit is.
    pub fn end(&mut self, time: Option<f64>) -> bool {
        self.is_open = false;
        let Some(time) = time.filter(|time| time.is_finite() && *time > 0.0) else {
            self.break_off();
            return false;
        };
        self.times[self.n_over] = time;
        if self.n_over == 0 && self.left_until > 0 {
            self.left_until -= 1;
            return false;
        }
        self.n_over += 1;
        if self.n_over < EPOCHS {
            return false;
        }
        self.judge();
        self.stake() >= LEFT
    }

    /// A check that cannot be ended is forgotten; another one comes later.
    fn break_off(&mut self) {
        if self.n_over > 0 {
            self.n_over = 0;
            self.plan(self.price_of_one());
        }
    }

    fn judge(&mut self) {
        let [before, .., after] = self.times;
        let chosen = before.sqrt() * after.sqrt();
        let is_slower = self.times[2] < (1.0 - MARGIN) * chosen;
        for (wealth, wager) in self.wagers.iter_mut().zip(WAGERS) {
            *wealth *= if is_slower { 1.0 + wager } else { 1.0 - wager };
        }
        self.n_checks += 1;
        self.n_over = 0;
        // Of an epoch with a checkpoint in it less is believed.
        let excess = self.times[1..4]
            .iter()
            .map(|time| (time / chosen - 1.0).min(10.0));
        self.price += excess.sum::<f64>();
        self.plan(self.price_of_one());
    }

    fn price_of_one(&self) -> f64 {
        self.price / self.n_checks.max(1) as f64
    }

    fn stake(&self) -> f64 {
        self.wagers.iter().sum::<f64>() / WAGERS.len() as f64
    }

    /// Plans the next check, which is expected to take `price` epochs of the chosen arm more. The distance is drawn, so
    /// that nothing of the program's own stays in step with it.
    fn plan(&mut self, price: f64) {
        let gap = match self.stake() > SUSPECTED {
            true => GAP_SUSPECTED,
            false => GAP,
        };
        let affordable = (price / self.share).min(1e15) as u64;
        let gap = gap.max(affordable);
        let drawn = mix(self.key, self.n_checks) % (gap + 1);
        let least = match self.n_checks {
            0 => gap,
            _ => gap / 2,
        };
        self.left_until = least + drawn;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHARE: f64 = 0.005;

    /// A job's epochs, of which a share is so many times as long as the others, and each change of the arm takes that part
    /// of an epoch. Times have a standard deviation of 5 %, and their unit is anybody's.
    #[derive(Clone, Copy, Default)]
    struct Job {
        wild: (f64, f64),
        moving: f64,
        /// How much longer each epoch takes than the one before.
        drift: f64,
    }

    impl Job {
        /// The chosen arm takes `factor` of what the first one takes. The epoch at which it is left, and how much longer
        /// all epochs before took than with the chosen arm alone.
        fn run(&self, factor: impl Fn(u64) -> f64, epochs: u64, seed: u64) -> (Option<u64>, f64) {
            let mut watched = Watched::new(seed, SHARE, 1.0 / factor(0)).unwrap();
            let (mut ran_first, mut spent, mut alone) = (false, 0.0, 0.0);
            for epoch in 0..epochs {
                let uniform =
                    |what: u64| (mix(seed + 1000 * what, epoch) >> 11) as f64 / (1u64 << 53) as f64;
                let mut noise = 1.0 + 0.05 * f64::sqrt(12.0) * (uniform(1) - 0.5);
                if uniform(2) < self.wild.0 {
                    noise *= self.wild.1;
                }
                let runs_first = watched.begin();
                let moved =
                    f64::from(u8::from(runs_first != ran_first)) * self.moving * factor(epoch);
                ran_first = runs_first;
                let drift = (self.drift * epoch as f64).exp();
                let arm = if runs_first { 1.0 } else { factor(epoch) };
                let time = drift * noise * (arm + moved);
                spent += time / drift;
                alone += noise * factor(epoch);
                if watched.end(Some(3e-17 * time)) {
                    return (Some(epoch), spent / alone - 1.0);
                }
            }
            (None, spent / alone - 1.0)
        }
    }

    const SEEDS: u64 = 60;

    /// When jobs leave an arm that is slower by `factor`, sorted.
    fn left(job: Job, factor: f64) -> Vec<u64> {
        let left = (0..SEEDS).map(|seed| job.run(|_| factor, 20_000, seed).0);
        let mut left: Vec<u64> = left.map(|at| at.expect("it is left")).collect();
        left.sort_unstable();
        println!("{factor}: median {}, most {}", left[30], left[59]);
        left
    }

    #[test]
    fn an_arm_that_is_slower_is_left_whatever_moving_and_checkpoints_take() {
        let calm = Job::default();
        let threefold = left(calm, 3.0);
        assert!(threefold[0] > GAP && threefold[59] < 300);
        assert!(left(calm, 1.2)[59] < 600);
        let job = Job {
            wild: (0.01, 10.0),
            moving: 0.3,
            drift: -0.001,
        };
        assert!(left(job, 1.2)[30] < 3000);
        // What turns slow in the midst of a job is left, too.
        let turned = |epoch| if epoch < 500 { 0.95 } else { 1.5 };
        let left = (0..20).map(|seed| job.run(turned, 20_000, seed).0);
        assert!(left.into_iter().all(|at| at.is_some_and(|at| at >= 500)));
    }

    #[test]
    fn an_arm_that_is_no_slower_is_hardly_ever_left_and_checks_take_what_they_may() {
        for wild in [(0.0, 1.0), (0.01, 3.0), (0.01, 10.0), (0.003, 10.0)] {
            for (factor, moving, drift) in [
                (1.0, 0.0, 0.0),
                (0.95, 0.3, -0.003),
                (0.8, 0.1, 0.003),
                (0.3, 0.0, 0.0),
            ] {
                let job = Job {
                    wild,
                    moving,
                    drift,
                };
                let ran: Vec<_> = (0..SEEDS)
                    .map(|seed| job.run(|_| factor, 6000, seed))
                    .collect();
                let left = ran.iter().filter(|(at, _)| at.is_some()).count();
                let cost = ran.iter().map(|(_, cost)| cost).sum::<f64>() / SEEDS as f64;
                println!(
                    "{factor}, wild {wild:?}, moving {moving}: {left} left, checks take {cost:.4}"
                );
                assert!(left <= 2, "{factor}, {wild:?}: {left} of {SEEDS}");
                assert!(cost < 1.6 * SHARE, "{factor}, {wild:?}, {moving}: {cost}");
            }
        }
    }

    #[test]
    fn a_short_job_runs_what_was_learned_and_who_may_pay_nothing_is_not_watched() {
        assert!(Watched::new(1, 0.0, 1.1).is_none());
        for seed in 0..SEEDS {
            let mut watched = Watched::new(seed, SHARE, 10.0).unwrap();
            for _ in 0..2000 {
                assert!(!watched.begin(), "a check would take 27 epochs");
                watched.end(Some(1.0));
            }
        }
    }

    #[test]
    fn an_epoch_without_a_time_or_an_end_ends_the_check() {
        for has_end in [true, false] {
            let mut watched = Watched::new(1, SHARE, 1.0).unwrap();
            let mut n_first = 0;
            for epoch in 0..2000 {
                n_first += u64::from(watched.begin());
                if epoch < 200 || epoch % 2 == 0 {
                    watched.end(Some(1.0));
                } else if has_end {
                    watched.end(None);
                }
            }
            assert!(n_first < 100, "{n_first}");
            let before = watched.n_checks;
            for _ in 0..200 {
                watched.begin();
                watched.end(Some(1.0));
            }
            assert!(before < 12 && watched.n_checks > before);
        }
    }
}
