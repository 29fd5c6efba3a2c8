//! What the runs of a cell say of the contrasts log(t_v / t_default), by generalised least squares.
//!
//! Model: log mean time = level of the run, shape and component + theta_v + u_{v,r} + noise. Levels are free, so a
//! variant that met the default only through others is compared through them; theta of the default is 0.

use std::collections::BTreeMap;

use nalgebra::{DMatrix, DVector};

use crate::evidence::{Evidence, Moments};

/// Degrees of freedom by which a variant's own noise leans on the cell's.
const NOISE_PRIOR: f64 = 8.0;
/// The coefficient of variation where nobody has two calls.
const NOISE_GUESS: f64 = 0.3;
/// Degrees of freedom by which a run's noise leans on that of all runs.
const RUN_PRIOR: f64 = 20.0;
/// Degrees of freedom of the distribution of what disturbs a whole run.
const RUN_FREEDOM: f64 = 4.0;
/// The same for the disagreement of runs about one variant.
const DISAGREEMENT_PRIOR: f64 = 8.0;

/// One variant's mean in one run, shape and component.
#[derive(Clone, Copy, Debug)]
pub struct Observation {
    pub group: usize,
    /// Place among the cell's variants with data.
    pub arm: usize,
    /// Logarithm of the mean time beside the group's level.
    pub mean: f64,
    pub noise: f64,
    /// What the variance between runs is multiplied with: the shapes of a run share its effect.
    pub shapes: f64,
    /// What old runs still weigh after a level shift.
    pub weight: f64,
    /// What the variance between runs is divided by: how calm the run is.
    pub calm: f64,
}

/// The observations of a cell.
#[derive(Clone, Debug)]
pub struct Observed {
    /// Variants with body times, sorted; the default, if it has any, is the first.
    pub variants: Vec<u16>,
    pub observations: Vec<Observation>,
    pub n_groups: usize,
    /// By arm, whether it is linked to the default.
    pub linked: Vec<bool>,
    /// By arm, what its disagreement between runs is multiplied with; at least 1.
    pub disagreement: Vec<f64>,
}

/// Estimates of the linked arms but the default, which is arm 0.
pub struct Fit {
    /// Arms in the order of the vector.
    pub arms: Vec<usize>,
    pub theta: DVector<f64>,
    pub information: DMatrix<f64>,
    /// Weighted sum of squared residuals, and its degrees of freedom.
    pub squares: f64,
    pub freedom: f64,
    /// Weighted squared residuals by arm, and their number; by group the parts of both that are the run's.
    by_arm: Vec<(f64, f64)>,
    by_group: Vec<(f64, f64)>,
}

impl Observed {
    /// `weight` says by run what it still counts.
    pub fn new(rows: &[&Evidence], weight: impl Fn(u32) -> f64) -> Observed {
        let bodies = || {
            rows.iter()
                .filter(|row| row.time.n > 0 && row.time.mean > 0.0)
        };
        let mut variants: Vec<u16> = bodies().map(|row| row.variant).collect();
        variants.sort_unstable();
        variants.dedup();
        let arm = |variant: u16| variants.binary_search(&variant).expect("it was listed");
        let mut groups = BTreeMap::new();
        let mut shapes = BTreeMap::<_, f64>::new();
        for row in bodies() {
            let next = groups.len();
            groups
                .entry((row.run, row.shape, row.component))
                .or_insert(next);
            *shapes.entry((row.run, row.variant)).or_default() += 1.0;
        }
        let group = |row: &Evidence| groups[&(row.run, row.shape, row.component)];
        let noise = Noise::new(
            bodies().map(|row| (group(row), arm(row.variant), row.time)),
            groups.len(),
            variants.len(),
        );
        let observations: Vec<Observation> = bodies()
            .map(|row| {
                let (group, arm) = (group(row), arm(row.variant));
                let variance = noise.of_call(group, arm) / row.time.n as f64;
                Observation {
                    group,
                    arm,
                    // The logarithm of a mean of few lies below the logarithm of the expectation.
                    mean: row.time.mean.ln() + variance.min(0.5) / 2.0,
                    noise: variance,
                    shapes: shapes[&(row.run, row.variant)],
                    weight: weight(row.run),
                    calm: 1.0,
                }
            })
            .collect();
        let n_groups = groups.len();
        let linked = linked(
            &observations,
            variants.len(),
            n_groups,
            variants.first() == Some(&0),
        );
        let disagreement = vec![1.0; variants.len()];
        Observed {
            variants,
            observations,
            n_groups,
            linked,
            disagreement,
        }
    }

    /// The fit where runs differ in each variant by the variance `between`.
    pub fn fit(&self, between: f64) -> Fit {
        let arms: Vec<usize> = (1..self.variants.len())
            .filter(|&arm| self.linked[arm])
            .collect();
        let mut place = vec![None; self.variants.len()];
        arms.iter()
            .enumerate()
            .for_each(|(index, &arm)| place[arm] = Some(index));
        let mut groups: Vec<Vec<(usize, f64, f64, f64)>> = vec![Vec::new(); self.n_groups];
        for one in self.observations.iter().filter(|one| self.linked[one.arm]) {
            let of_run = between * one.shapes * self.disagreement[one.arm] / one.calm;
            let variance = of_run + one.noise;
            groups[one.group].push((one.arm, one.mean, one.weight / variance, of_run / variance));
        }
        groups
            .iter_mut()
            .filter(|group| group.len() < 2)
            .for_each(Vec::clear);
        let mut information = DMatrix::zeros(arms.len(), arms.len());
        let mut right = DVector::zeros(arms.len());
        let mut n = 0.0;
        for group in groups.iter().filter(|group| !group.is_empty()) {
            n += group.len() as f64;
            let total: f64 = group.iter().map(|(_, _, weight, _)| weight).sum();
            let level = group
                .iter()
                .map(|(_, mean, weight, _)| weight * mean)
                .sum::<f64>()
                / total;
            for &(arm, mean, weight, _) in group {
                let Some(row) = place[arm] else { continue };
                information[(row, row)] += weight;
                right[row] += weight * (mean - level);
                for &(other, _, its, _) in group {
                    if let Some(column) = place[other] {
                        information[(row, column)] -= weight * its / total;
                    }
                }
            }
        }
        let theta = solve(&information, &right);
        let at = |arm: usize| place[arm].map_or(0.0, |index| theta[index]);
        let mut by_arm = vec![(0.0, 0.0); self.variants.len()];
        let mut by_group = vec![(0.0, 0.0); self.n_groups];
        let used = || {
            (0..self.n_groups)
                .zip(&groups)
                .filter(|(_, group)| !group.is_empty())
        };
        for (index, group) in used() {
            let total: f64 = group.iter().map(|(_, _, weight, _)| weight).sum();
            let level = group
                .iter()
                .map(|&(arm, mean, weight, _)| weight * (mean - at(arm)))
                .sum::<f64>()
                / total;
            for &(arm, mean, weight, of_run) in group {
                let squares = weight * (mean - at(arm) - level).powi(2);
                by_arm[arm] = (by_arm[arm].0 + squares, by_arm[arm].1 + 1.0);
                let sums = &mut by_group[index];
                *sums = (sums.0 + of_run * squares, sums.1 + of_run);
            }
        }
        let squares = by_arm.iter().map(|(squares, _)| squares).sum();
        let freedom = (n - used().count() as f64 - arms.len() as f64).max(0.0);
        Fit {
            arms,
            theta,
            information,
            squares,
            freedom,
            by_arm,
            by_group,
        }
    }

    /// Learns how calm each run is, as of a multivariate t-distribution: what disturbs a run as a whole is not in its
    /// calls' noise. Source: Lange, Little & Taylor, J. Am. Stat. Assoc. 84, 1989.
    pub fn calm(&mut self, fit: &Fit) {
        for one in &mut self.observations {
            let (squares, n) = fit.by_group[one.group];
            one.calm = (RUN_FREEDOM + n) / (RUN_FREEDOM + squares / one.calm);
        }
    }

    /// The variance between runs by which estimates are as sure as they claim, where runs are weighed by how calm they
    /// are: the information of a t-distribution is that much less than its scale says. Source: as [`Observed::calm`].
    pub fn honest(between: f64) -> f64 {
        between * (RUN_FREEDOM + 3.0) / (RUN_FREEDOM + 1.0)
    }

    /// Widens the arms about which runs disagree more than about the others.
    pub fn widen(&mut self, fit: &Fit) {
        for (wider, &(squares, n)) in self.disagreement.iter_mut().zip(&fit.by_arm) {
            if n > 1.0 {
                let freedom = (n - 1.0).max(1.0);
                *wider = ((DISAGREEMENT_PRIOR + squares) / (DISAGREEMENT_PRIOR + freedom)).max(1.0);
            }
        }
    }
}

/// The solution of a system that may lack an equation; what nothing is known of stays at 0.
pub fn solve(matrix: &DMatrix<f64>, right: &DVector<f64>) -> DVector<f64> {
    if right.is_empty() {
        return right.clone();
    }
    let ridge = DMatrix::identity(right.len(), right.len()) * 1e-9;
    match (matrix + ridge).cholesky() {
        Some(factor) => factor.solve(right),
        None => DVector::zeros(right.len()),
    }
}

/// How much single calls differ, as squared coefficients of variation.
///
/// What disturbs a run disturbs all its variants, so a call's noise is its variant's times its run's: a disturbed run
/// says little, and takes nothing from what calm ones say.
struct Noise {
    by_arm: Vec<f64>,
    by_group: Vec<f64>,
}

impl Noise {
    fn new(
        rows: impl Iterator<Item = (usize, usize, Moments)>,
        n_groups: usize,
        n_arms: usize,
    ) -> Noise {
        let several: Vec<(usize, usize, f64, f64)> = rows
            .filter(|(_, _, time)| time.n > 1 && time.mean > 0.0)
            .map(|(group, arm, time)| {
                (group, arm, time.m2 / time.mean.powi(2), (time.n - 1) as f64)
            })
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
        Noise { by_arm, by_group }
    }

    fn of_call(&self, group: usize, arm: usize) -> f64 {
        self.by_arm[arm] * self.by_group[group]
    }
}

fn linked(
    observations: &[Observation],
    n_arms: usize,
    n_groups: usize,
    has_default: bool,
) -> Vec<bool> {
    let mut arms = vec![false; n_arms];
    let mut groups = vec![false; n_groups];
    if !has_default {
        return arms;
    }
    arms[0] = true;
    loop {
        let mut changed = false;
        for one in observations {
            if arms[one.arm] != groups[one.group] {
                (arms[one.arm], groups[one.group], changed) = (true, true, true);
            }
        }
        if !changed {
            return arms;
        }
    }
}
