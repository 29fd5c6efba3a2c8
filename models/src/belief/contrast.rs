//! What the runs of a cell say of the contrasts log(t_v / t_default), by generalised least squares.
//!
//! Model: log mean time = level of the run, shape and component + theta_v + u_{v,r} + noise. Levels are free, so a
//! variant that met the default only through others is compared through them; theta of the default is 0.

mod noise;
mod residuals;

use std::borrow::Cow;
use std::collections::BTreeMap;

use nalgebra::{DMatrix, DVector};

use crate::ablation::{Mechanism, has};
use crate::evidence::Evidence;
use noise::Noise;
pub use residuals::Sum;
use residuals::{Residuals, Weighed, level, total};

/// Of so many calls at the most a run's mean tells what runs differ by, and not how wild single calls are.
const CALLS_ENOUGH: f64 = 8.0;
/// Degrees of freedom of the distribution of what disturbs a whole run.
const RUN_FREEDOM: f64 = 4.0;
/// Degrees of freedom by which the noise of a variant's calls, as means of runs show it, leans on that of all variants.
const WILDNESS_PRIOR: f64 = 24.0;

/// So many groups of a cell tell what variances are.
const GROUPS_ENOUGH: usize = 2000;

/// One variant's mean in one run, shape and component.
#[derive(Clone, Copy, Debug)]
pub struct Observation {
    pub group: usize,
    /// Place among the cell's variants with data.
    pub arm: usize,
    /// Logarithm of the mean time beside the group's level.
    pub mean: f64,
    pub noise: f64,
    /// How much it tells of what runs differ by, up to 1.
    pub tells: f64,
    /// What the variance between runs is multiplied with: the shapes of a run share its effect.
    pub shapes: f64,
    /// What it still weighs where there was a level shift since.
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
    /// By arm, what the noise of its calls is multiplied with; at least 1.
    pub noisier: Vec<f64>,
    /// By arm, the degrees of freedom with which its noise is known.
    pub noise_freedom: Vec<f64>,
    /// By arm, the noise of a call as the scatter within runs has it, and the degrees of freedom of that.
    within: Vec<(f64, f64)>,
}

/// Estimates of the linked arms but the default, which is arm 0.
pub struct Fit {
    /// Arms in the order of the vector.
    pub arms: Vec<usize>,
    pub theta: DVector<f64>,
    pub information: DMatrix<f64>,
    pub residuals: Residuals,
}

impl Observed {
    /// `weight` says what a row still counts.
    pub fn new(rows: &[&Evidence], weight: impl Fn(&Evidence) -> f64) -> Observed {
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
        let enough = calls_enough(bodies().map(|row| row.time.n as f64));
        let observations: Vec<Observation> = bodies()
            .map(|row| {
                let (group, arm) = (group(row), arm(row.variant));
                let variance = noise.of_call(group, arm) / row.time.n as f64;
                Observation {
                    group,
                    arm,
                    mean: row.time.mean.ln(),
                    noise: variance,
                    tells: (row.time.n as f64 / enough).min(1.0).powi(2),
                    shapes: shapes[&(row.run, row.variant)],
                    weight: weight(row),
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
        let ones = vec![1.0; variants.len()];
        Observed {
            variants,
            observations,
            n_groups,
            linked,
            noise_freedom: vec![WILDNESS_PRIOR; ones.len()],
            noisier: ones,
            within: noise.within(),
        }
    }

    /// As many groups as tell the variance between runs to a hundredth or two, spread over all of them.
    pub fn sample(&self) -> Cow<'_, Observed> {
        let step = self.n_groups.div_ceil(GROUPS_ENOUGH).max(1);
        if step == 1 {
            return Cow::Borrowed(self);
        }
        let sampled = |one: &&Observation| one.group.is_multiple_of(step);
        let renumbered = |one: &Observation| Observation {
            group: one.group / step,
            ..*one
        };
        let observations = self.observations.iter().filter(sampled).map(renumbered);
        Cow::Owned(Observed {
            observations: observations.collect(),
            n_groups: self.n_groups.div_ceil(step),
            variants: self.variants.clone(),
            linked: self.linked.clone(),
            noisier: self.noisier.clone(),
            noise_freedom: self.noise_freedom.clone(),
            within: self.within.clone(),
        })
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
        let groups = self.groups(between);
        let (information, right) = equations(&groups, &place, arms.len());
        let theta = solve(&information, &right);
        let effects = place.iter().map(|row| row.map_or(0.0, |row| theta[row]));
        let residuals = Residuals::new(&groups, &effects.collect::<Vec<_>>(), arms.len());
        Fit {
            arms,
            theta,
            information,
            residuals,
        }
    }

    /// By group the observations of linked arms; none where there is but one.
    fn groups(&self, between: f64) -> Vec<Vec<Weighed>> {
        let mut groups: Vec<Vec<Weighed>> = vec![Vec::new(); self.n_groups];
        for one in self.observations.iter().filter(|one| self.linked[one.arm]) {
            let of_run = between * one.shapes / one.calm;
            let noise = one.noise * self.noisier[one.arm];
            let variance = of_run + noise;
            groups[one.group].push(Weighed {
                arm: one.arm,
                // The logarithm of a mean of few lies below the logarithm of the expectation.
                mean: one.mean + noise.min(0.5) / 2.0,
                weight: one.weight / variance,
                of_run: of_run / variance,
                tells: one.tells,
            });
        }
        let alone = |group: &&mut Vec<Weighed>| group.len() < 2;
        groups.iter_mut().filter(alone).for_each(Vec::clear);
        groups
    }

    /// Learns how calm each run is, as of a multivariate t-distribution: what disturbs a run as a whole is not in its
    /// calls' noise. Source: Lange, Little & Taylor, J. Am. Stat. Assoc. 84, 1989. And how noisy the calls of each
    /// variant are, of which single calls, one or two a run, tell nothing but by the means of runs.
    pub fn calm(&mut self, fit: &Fit) {
        for one in &mut self.observations {
            let Sum {
                squares, expected, ..
            } = fit.residuals.by_group[one.group];
            if has(Mechanism::Calmness) {
                one.calm = (RUN_FREEDOM + expected) / (RUN_FREEDOM + squares / one.calm);
            }
        }
        if !has(Mechanism::CallNoise) {
            return;
        }
        // By arm, its freedom within and between runs, and the sum of squares.
        let own = |arm: usize| {
            let of_calls = fit.residuals.by_arm[arm];
            let within = self.within[arm].1;
            let squares = within + self.noisier[arm] * of_calls.squares;
            (within + of_calls.expected, squares)
        };
        let own: Vec<(f64, f64)> = (0..self.noisier.len()).map(own).collect();
        // Every variant counts alike, however much more often some ran, and what the scatter within runs says as one.
        let known = self.within.iter().map(|(noise, _)| noise);
        let (mut sum, mut total) = (known.sum::<f64>() / self.within.len().max(1) as f64, 1.0);
        for ((freedom, squares), (noise, _)) in own.iter().zip(&self.within) {
            sum += noise * squares / (freedom + WILDNESS_PRIOR);
            total += freedom / (freedom + WILDNESS_PRIOR);
        }
        let all = sum / total;
        for (arm, (freedom, squares)) in own.into_iter().enumerate() {
            let squares = squares + WILDNESS_PRIOR * all / self.within[arm].0;
            self.noise_freedom[arm] = freedom + WILDNESS_PRIOR;
            self.noisier[arm] = (squares / self.noise_freedom[arm]).max(1.0);
        }
    }

    /// The variance between runs by which estimates are as sure as they claim, where runs are weighed by how calm they
    /// are: the information of a t-distribution is that much less than its scale says. Source: as [`Observed::calm`].
    pub fn honest(between: f64) -> f64 {
        if !has(Mechanism::Calmness) {
            return between;
        }
        between * (RUN_FREEDOM + 3.0) / (RUN_FREEDOM + 1.0)
    }
}

/// How many calls of a variant a run has where most calls are; no more than are needed.
fn calls_enough(calls: impl Iterator<Item = f64>) -> f64 {
    let (sum, squares) = calls.fold((0.0, 0.0), |(sum, squares), n| (sum + n, squares + n * n));
    (squares / sum).min(CALLS_ENOUGH)
}

/// The normal equations of the effects, levels eliminated; `place` says by arm its row.
fn equations(
    groups: &[Vec<Weighed>],
    place: &[Option<usize>],
    n: usize,
) -> (DMatrix<f64>, DVector<f64>) {
    let mut information = DMatrix::zeros(n, n);
    let mut right = DVector::zeros(n);
    for group in groups.iter().filter(|group| !group.is_empty()) {
        let (total, level) = (total(group), level(group, |_| 0.0));
        for one in group {
            let Some(row) = place[one.arm] else { continue };
            information[(row, row)] += one.weight;
            right[row] += one.weight * (one.mean - level);
            for other in group {
                if let Some(column) = place[other.arm] {
                    information[(row, column)] -= one.weight * other.weight / total;
                }
            }
        }
    }
    (information, right)
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
