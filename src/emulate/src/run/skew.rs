//! What steps would take if allreduces ended for each rank by their schedules: by a sample of the steps.

use colltune_placement::generate::Random;

/// Of so many steps one is in the sample.
const ONE_OF: u64 = 100;

/// A sample of a run's steps, and what those that were gone through took.
pub(super) struct Skew {
    seed: u64,
    n_steps: u64,
    gated_ns: f64,
    skewed_ns: f64,
}

impl Skew {
    pub(super) fn new(seed: u64, n_steps: u64) -> Skew {
        Skew {
            seed,
            n_steps,
            gated_ns: 0.0,
            skewed_ns: 0.0,
        }
    }

    /// Whether a step, counted from 0, is in the sample: one of each hundred, and one of those that are left.
    pub(super) fn has(&self, nth: u64) -> bool {
        let first = nth - nth % ONE_OF;
        let n = ONE_OF.min(self.n_steps.saturating_sub(first));
        if n == 0 {
            return false;
        }
        let mut random = Random::new(Random::at(self.seed, first));
        nth - first == random.below(n as usize) as u64
    }

    /// Books what a step took with gates, and by schedules.
    pub(super) fn add(&mut self, gated_ns: f64, skewed_ns: f64) {
        self.gated_ns += gated_ns;
        self.skewed_ns += skewed_ns;
    }

    /// How much longer the steps are by schedules, as a share of their time with gates; none without such a step.
    pub(super) fn difference(&self) -> Option<f64> {
        (self.gated_ns > 0.0).then(|| self.skewed_ns / self.gated_ns - 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_step_of_each_hundred_is_in_the_sample_and_one_of_those_that_are_left() {
        let of = |seed: u64, n_steps: u64| -> Vec<u64> {
            let skew = Skew::new(seed, n_steps);
            (0..n_steps + 150).filter(|&nth| skew.has(nth)).collect()
        };
        for n_steps in [0, 1, 7, 100, 101, 250, 10_001] {
            let sample = of(5, n_steps);
            assert_eq!(sample.len() as u64, n_steps.div_ceil(ONE_OF), "{n_steps}");
            assert!((0..).zip(&sample).all(|(i, nth)| nth / ONE_OF == i));
            assert!(sample.iter().all(|&nth| nth < n_steps));
        }
        assert_ne!(of(5, 1000), of(6, 1000));
    }

    #[test]
    fn the_difference_is_that_of_all_steps_together() {
        let mut skew = Skew::new(1, 200);
        assert_eq!(skew.difference(), None);
        skew.add(30.0, 33.0);
        skew.add(10.0, 9.0);
        assert!((skew.difference().expect("two steps") - 0.05).abs() < 1e-12);
    }
}
