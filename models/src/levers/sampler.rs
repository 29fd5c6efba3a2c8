//! What arms take, drawn from the posterior of the sum that the module above describes.

use std::collections::HashMap;
use std::rc::Rc;

use nalgebra::{Cholesky, DMatrix, DVector, Dyn};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use rand_distr::{Distribution as _, Gamma, StandardNormal};

use super::rows::{Lever, Moment, Row, drawn};

/// Standard deviations beside that of the noise: of a lever's effects, and of a step of the walk.
const EFFECTS: [f64; 6] = [0.0, 1.0, 3.0, 10.0, 30.0, 100.0];
/// How much likelier than any other size it is beforehand that a lever, or it and a moment together, has none.
const NONE: f64 = 3.0;
const STEPS: [f64; 4] = [0.0, 0.1, 0.3, 1.0];
/// Of moments, and of an arm and a moment together.
const MOMENTS: [f64; 5] = [0.0, 1.0, 3.0, 10.0, 30.0];
/// Those of level and blocks, of which nothing is known.
const LEVEL: f64 = 100.0;
const BLOCK: f64 = 30.0;
/// The noise that is expected, which weighs as much as two rows.
const NOISE: f64 = 0.01;
/// Degrees of freedom of the noise, and after how many rows wild ones can be recognised.
const DEGREES: f64 = 4.0;
const ROWS_TO_WEIGH: usize = 8;
/// Sweeps over the grid, those that are dropped first, and the draws that each other one gives.
const SWEEPS: usize = 72;
const DROPPED: usize = 8;
const DRAWS_EACH: usize = 8;

/// What is left once the standard deviations beside the noise's are given.
struct Fit {
    factor: Cholesky<f64, Dyn>,
    /// The inverse covariance times the values.
    weighted: DVector<f64>,
    /// The scale of the noise's distribution.
    scale: f64,
    log_likelihood: f64,
}

/// Places in [`EFFECTS`] by lever, then one in [`STEPS`] and two in [`MOMENTS`]: of moments alone, and with an arm.
type Grid = Vec<usize>;

pub struct Sampler<'a> {
    levers: &'a [Lever],
    rows: &'a [Row],
    /// How much work there is at each moment that rows with different arms have in common.
    work: Vec<f64>,
    /// By row, its place among those.
    moments: Vec<Option<usize>>,
    values: DVector<f64>,
    /// How many times the noise's variance each row has.
    spread: Vec<f64>,
    fits: HashMap<Grid, Rc<Fit>>,
}

impl<'a> Sampler<'a> {
    pub fn new(levers: &'a [Lever], rows: &'a [Row]) -> Sampler<'a> {
        let mean = rows.iter().map(|row| row.log_time).sum::<f64>() / rows.len() as f64;
        let values = DVector::from_iterator(rows.len(), rows.iter().map(|row| row.log_time - mean));
        let (work, moments) = moments(levers, rows);
        let mut sampler = Sampler {
            levers,
            rows,
            work,
            moments,
            values,
            spread: vec![1.0; rows.len()],
            fits: HashMap::new(),
        };
        if rows.len() >= ROWS_TO_WEIGH {
            sampler.weigh();
        }
        sampler
    }

    /// Gives wild rows less weight, by what is left of each once large effects are taken out.
    fn weigh(&mut self) {
        let mut grid = vec![EFFECTS.len() - 3; self.levers.len()];
        // What an arm takes at a moment again and again is not wild.
        grid.extend(match self.work.is_empty() {
            true => [2, 0, 0],
            false => [2, 2, 3],
        });
        for _ in 0..5 {
            let weighted = self.computed(&grid).weighted;
            let noise = weighted.iter().zip(&self.spread);
            let noise: Vec<f64> = noise.map(|(weighted, spread)| weighted * spread).collect();
            let mut sizes: Vec<f64> = noise.iter().map(|one| one.abs()).collect();
            sizes.sort_unstable_by(f64::total_cmp);
            let scale = (1.483 * sizes[sizes.len() / 2]).max(0.1 * NOISE);
            let spread = noise.iter();
            let spread = spread.map(|one| (DEGREES + (one / scale).powi(2)) / (DEGREES + 1.0));
            self.spread = spread.map(|spread| spread.max(1.0)).collect();
        }
    }

    /// Variances of what moments have, alone and together with an arm.
    fn of_moments(&self, grid: &Grid) -> [f64; 2] {
        let first = self.levers.len() + 1;
        [first, first + 1].map(|place| MOMENTS[grid[place]].powi(2))
    }

    fn covariance(&self, grid: &Grid) -> DMatrix<f64> {
        let n = self.rows.len();
        let step = STEPS[grid[self.levers.len()]].powi(2);
        let [of_moment, together] = self.of_moments(grid);
        DMatrix::from_fn(n, n, |row, other| {
            let (one, two) = (&self.rows[row], &self.rows[other]);
            let mut covariance = LEVEL.powi(2) + step * row.min(other) as f64;
            if one.block == two.block {
                covariance += BLOCK.powi(2);
            }
            if self.moments[row].is_some() && self.moments[row] == self.moments[other] {
                covariance += of_moment;
                if one.arms == two.arms {
                    covariance += together;
                }
            }
            for lever in 0..self.levers.len() {
                if one.arms[lever] == two.arms[lever] {
                    covariance += EFFECTS[grid[lever]].powi(2);
                }
            }
            match row == other {
                true => covariance + self.spread[row],
                false => covariance,
            }
        })
    }

    fn computed(&self, grid: &Grid) -> Fit {
        let factor = self.covariance(grid).cholesky();
        let factor = factor.expect("noise makes it positive definite");
        let weighted = factor.solve(&self.values);
        let scale = NOISE.powi(2) + 0.5 * self.values.dot(&weighted);
        let half_determinant: f64 = factor.l_dirty().diagonal().iter().map(|one| one.ln()).sum();
        let shape = 1.0 + 0.5 * self.rows.len() as f64;
        Fit {
            log_likelihood: -half_determinant - shape * scale.ln(),
            factor,
            weighted,
            scale,
        }
    }

    fn fit(&mut self, grid: &Grid) -> Rc<Fit> {
        if let Some(known) = self.fits.get(grid) {
            return known.clone();
        }
        let fit = Rc::new(self.computed(grid));
        self.fits.insert(grid.clone(), fit.clone());
        fit
    }

    /// By lever and draw, the logarithm of what each arm takes that is offered, in the mean over the moments where there are any.
    pub fn draws(&mut self, seed: u64) -> Vec<Vec<Vec<f64>>> {
        let mut random = StdRng::seed_from_u64(seed);
        let n_levers = self.levers.len();
        let mut grid = vec![EFFECTS.len() / 2; n_levers];
        grid.extend([1, 0, 0]);
        let mut draws = vec![Vec::new(); n_levers];
        for sweep in 0..SWEEPS {
            for place in 0..grid.len() {
                self.redraw(&mut grid, place, &mut random);
            }
            if sweep >= DROPPED {
                let fit = self.fit(&grid);
                for _ in 0..DRAWS_EACH {
                    let of_levers = self.drawn(&fit, &grid, &mut random);
                    draws
                        .iter_mut()
                        .zip(of_levers)
                        .for_each(|(draws, drawn)| draws.push(drawn));
                }
            }
        }
        draws
    }

    /// Draws one place of the grid anew, the others given.
    fn redraw(&mut self, grid: &mut Grid, place: usize, random: &mut StdRng) {
        let n = match place.checked_sub(self.levers.len()) {
            None => EFFECTS.len(),
            Some(0) => STEPS.len(),
            Some(_) if self.work.is_empty() => 1,
            Some(_) => MOMENTS.len(),
        };
        let likelihood = |sampler: &mut Self, at: usize, grid: &mut Grid| {
            grid[place] = at;
            sampler.fit(grid).log_likelihood
        };
        let logs: Vec<f64> = (0..n).map(|at| likelihood(self, at, grid)).collect();
        let most = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let mut weights: Vec<f64> = logs.iter().map(|log| (log - most).exp()).collect();
        let is_of_arms = place < self.levers.len() || place > self.levers.len() + 1;
        if is_of_arms {
            weights[0] *= NONE;
        }
        grid[place] = drawn(&weights, random.random());
    }

    /// One draw, by Matheron's rule: everything is drawn from the prior, and what the rows then lack is shared out as the
    /// covariance has it.
    fn drawn(&self, fit: &Fit, grid: &Grid, random: &mut StdRng) -> Vec<Vec<f64>> {
        let shape = 1.0 + 0.5 * self.rows.len() as f64;
        let precision = Gamma::new(shape, 1.0 / fit.scale).expect("both are above 0");
        let noise = precision.sample(random).recip().sqrt();
        let mut normal = |deviation: f64| -> f64 {
            let value: f64 = StandardNormal.sample(random);
            deviation * value
        };
        let variance_of = |lever: usize| EFFECTS[grid[lever]].powi(2);
        let [of_moment, together] = self.of_moments(grid);
        let n_moments = self.work.len();
        let levers = self.levers.iter().enumerate();
        let mut effects: Vec<Vec<f64>> = levers
            .map(|(place, lever)| {
                let deviation = variance_of(place).sqrt();
                (0..lever.n_arms).map(|_| normal(deviation)).collect()
            })
            .collect();
        let mut moments: Vec<f64> = (0..n_moments).map(|_| normal(of_moment.sqrt())).collect();
        // Of the one lever where there are moments.
        let n_cells = self.levers[0].n_arms * n_moments;
        let mut cells: Vec<f64> = (0..n_cells).map(|_| normal(together.sqrt())).collect();
        let cell = |row: usize, moment: usize| self.rows[row].arms[0] * n_moments + moment;
        let step = STEPS[grid[self.levers.len()]];
        let mut level = normal(LEVEL);
        let mut blocks: HashMap<usize, f64> = HashMap::new();
        let lacking = DVector::from_fn(self.rows.len(), |row, _| {
            let Row { block, arms, .. } = &self.rows[row];
            level += if row > 0 { normal(step) } else { 0.0 };
            let of_block = *blocks.entry(*block).or_insert_with(|| normal(BLOCK));
            let of_arms: f64 = arms
                .iter()
                .zip(&effects)
                .map(|(arm, effects)| effects[*arm])
                .sum();
            let at = self.moments[row];
            let at = at.map_or(0.0, |moment| moments[moment] + cells[cell(row, moment)]);
            let prior = level + of_block + of_arms + at + normal(self.spread[row].sqrt());
            self.values[row] - noise * prior
        });
        let shares = fit.factor.solve(&lacking);
        let scaled = |value: &mut f64| *value *= noise;
        effects.iter_mut().flatten().for_each(scaled);
        moments.iter_mut().chain(&mut cells).for_each(scaled);
        for (row, share) in shares.iter().enumerate() {
            for (lever, arm) in self.rows[row].arms.iter().enumerate() {
                effects[lever][*arm] += variance_of(lever) * share;
            }
            if let Some(moment) = self.moments[row] {
                moments[moment] += of_moment * share;
                cells[cell(row, moment)] += together * share;
            }
        }
        let levers = self.levers.iter().zip(effects);
        levers
            .map(|(lever, effects)| {
                let takes = |arm: usize| {
                    let at = |moment: usize| moments[moment] + cells[arm * n_moments + moment];
                    effects[arm] + mean_of_times((0..n_moments).map(at), &self.work)
                };
                (0..lever.n_offered).map(takes).collect()
            })
            .collect()
    }
}

/// The logarithm of the mean of times that are given by their logarithms; 0 without any.
fn mean_of_times(logs: impl Iterator<Item = f64> + Clone, weights: &[f64]) -> f64 {
    if weights.is_empty() {
        return 0.0;
    }
    let most = logs.clone().fold(f64::NEG_INFINITY, f64::max);
    let sum: f64 = logs
        .zip(weights)
        .map(|(log, weight)| weight * (log - most).exp())
        .sum();
    most + (sum / weights.iter().sum::<f64>()).ln()
}

/// The moments that rows with different arms of the one lever have in common: how much work there is at each, and by row
/// its place among them.
fn moments(levers: &[Lever], rows: &[Row]) -> (Vec<f64>, Vec<Option<usize>>) {
    let mut known: Vec<(Moment, Vec<f64>)> = Vec::new();
    let differs = |one: &Row| {
        let other = |other: &Row| other.moment == one.moment && other.arms != one.arms;
        levers.len() == 1 && rows.iter().any(other)
    };
    let place = |row: &Row| {
        let moment = row.moment.filter(|_| differs(row))?;
        let place = known.iter().position(|(one, _)| *one == moment);
        let place = place.unwrap_or_else(|| {
            known.push((moment, Vec::new()));
            known.len() - 1
        });
        known[place].1.push(row.work);
        Some(place)
    };
    let places = rows.iter().map(place).collect();
    let mean = |(_, work): &(Moment, Vec<f64>)| work.iter().sum::<f64>() / work.len() as f64;
    (known.iter().map(mean).collect(), places)
}
