//! How much single calls of a cell differ.

use crate::evidence::Moments;

/// Degrees of freedom by which a variant's own noise leans on the cell's.
const NOISE_PRIOR: f64 = 8.0;
/// The coefficient of variation where no row has two calls.
const NOISE_GUESS: f64 = 0.3;
/// Degrees of freedom by which a run's noise leans on that of all runs.
const RUN_PRIOR: f64 = 20.0;

/// How much single calls differ, as squared coefficients of variation.
///
/// What disturbs a run disturbs all its variants, so a call's noise is its variant's times its run's: a disturbed run
/// says little, and takes nothing from what calm ones say.
pub struct Noise {
    by_arm: Vec<f64>,
    by_group: Vec<f64>,
    /// Degrees of freedom by arm.
    freedom: Vec<f64>,
}

impl Noise {
    pub fn new(
        rows: impl Iterator<Item = (usize, usize, Moments)>,
        n_groups: usize,
        n_arms: usize,
    ) -> Noise {
        let several: Vec<(usize, usize, f64, f64)> = rows
            .filter(|(_, _, time)| time.n > 1 && time.mean > 0.0)
            .map(|(group, arm, time)| (group, arm, squares(time), (time.n - 1) as f64))
            .collect();
        let (mut by_arm, mut by_group) = (vec![1.0; n_arms], vec![1.0; n_groups]);
        // Alternating means; a few rounds are as many as such products need.
        for _ in 0..4 {
            let mut sums = vec![(0.0, 0.0); n_arms];
            for &(group, arm, squares, freedom) in &several {
                sums[arm].0 += squares / by_group[group];
                sums[arm].1 += freedom;
            }
            let all = sums
                .iter()
                .fold((0.0, 0.0), |all, one| (all.0 + one.0, all.1 + one.1));
            let pooled = (all.0 + NOISE_GUESS.powi(2)) / (all.1 + 1.0);
            let own = |&(squares, freedom): &(f64, f64)| {
                (squares + NOISE_PRIOR * pooled) / (freedom + NOISE_PRIOR)
            };
            by_arm = sums
                .iter()
                .map(own)
                .map(|variance: f64| variance.max(1e-6))
                .collect();
            let mut sums = vec![(0.0, 0.0); n_groups];
            for &(group, arm, squares, freedom) in &several {
                sums[group].0 += squares / by_arm[arm];
                sums[group].1 += freedom;
            }
            let own =
                |&(squares, freedom): &(f64, f64)| (squares + RUN_PRIOR) / (freedom + RUN_PRIOR);
            by_group = sums.iter().map(own).collect();
        }
        let mut freedom = vec![0.0; n_arms];
        for (_, arm, _, own) in several {
            freedom[arm] += own;
        }
        Noise {
            by_arm,
            by_group,
            freedom,
        }
    }

    /// By arm, the noise of a call as the scatter within runs has it, and the degrees of freedom of that.
    pub fn within(self) -> Vec<(f64, f64)> {
        self.by_arm.into_iter().zip(self.freedom).collect()
    }

    pub fn of_call(&self, group: usize, arm: usize) -> f64 {
        self.by_arm[arm] * self.by_group[group]
    }
}

/// The squared deviations of a run's calls beside their squared mean. The few wild ones that there are of a variant raise
/// the mean, too; of two calls with normal logarithms the correction is exact.
fn squares(time: Moments) -> f64 {
    let n = time.n as f64;
    let squares = time.m2 / time.mean.powi(2);
    let most = n * (n - 1.0);
    squares / (1.0 - squares / most).max(0.1)
}
