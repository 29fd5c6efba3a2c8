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
const MOMENTS: [f64; 4] = [0.0, 1.0, 3.0, 10.0];
/// The most sums of arm and moment that are drawn together.
const CELLS_MAX: usize = 200;
/// Those of level and blocks, of which nothing is known.
const LEVEL: f64 = 100.0;
const BLOCK: f64 = 30.0;
/// The noise that is expected, which weighs as much as two rows.
const NOISE: f64 = 0.01;
/// Degrees of freedom of the noise, and after how many rows wild ones can be told.
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
    /// Those that rows have in common, the newest of them; none where no two rows do.
    moments: Vec<Moment>,
    values: DVector<f64>,
    /// How many times the noise's variance each row has.
    spread: Vec<f64>,
    fits: HashMap<Grid, Rc<Fit>>,
}

impl<'a> Sampler<'a> {
    pub fn new(levers: &'a [Lever], rows: &'a [Row]) -> Sampler<'a> {
        let mean = rows.iter().map(|row| row.log_time).sum::<f64>() / rows.len() as f64;
        let values = DVector::from_iterator(rows.len(), rows.iter().map(|row| row.log_time - mean));
        let mut sampler = Sampler {
            levers,
            rows,
            moments: moments(levers, rows),
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
        grid.extend(match self.moments.is_empty() {
            true => [2, 0, 0],
            false => [2, 2, 1],
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
            if one.moment.is_some() && one.moment == two.moment {
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

    /// Effects of each lever's offered arms.
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
                for (place, draws) in draws.iter_mut().enumerate() {
                    self.effects(&fit, &grid, place, &mut random, draws);
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
            Some(_) if self.moments.is_empty() => 1,
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

    /// Draws of what each arm of a lever that is offered takes, in the mean over the moments where there are any.
    fn effects(
        &self,
        fit: &Fit,
        grid: &Grid,
        lever: usize,
        random: &mut StdRng,
        draws: &mut Vec<Vec<f64>>,
    ) {
        let n_arms = self.levers[lever].n_arms;
        let [of_moment, together] = self.of_moments(grid);
        let is = |row: usize, arm: usize| self.rows[row].arms[lever] == arm;
        let at = |row: usize, moment: usize| self.rows[row].moment == Some(self.moments[moment]);
        // Arms, then moments, then both: those of them that vary, with their variance and the rows that they are in.
        let n_moments = self.moments.len();
        let arms = (0..n_arms).map(|arm| (Some(arm), None, EFFECTS[grid[lever]].powi(2)));
        let moments = (0..n_moments).map(|moment| (None, Some(moment), of_moment));
        let both = (0..n_arms * n_moments)
            .map(|cell| (Some(cell / n_moments), Some(cell % n_moments), together));
        let all = arms.chain(moments).chain(both);
        let parts: Vec<(Option<usize>, Option<usize>, f64)> =
            all.filter(|(.., variance)| *variance > 0.0).collect();
        let design = DMatrix::from_fn(self.rows.len(), parts.len(), |row, part| {
            let (arm, moment, _) = parts[part];
            f64::from(
                arm.is_none_or(|arm| is(row, arm)) && moment.is_none_or(|moment| at(row, moment)),
            )
        });
        let variances = DVector::from_iterator(parts.len(), parts.iter().map(|part| part.2));
        let mean = (design.transpose() * &fit.weighted).component_mul(&variances);
        let known = design.transpose() * fit.factor.solve(&design);
        let covariance = DMatrix::from_fn(parts.len(), parts.len(), |one, two| {
            let before = if one == two {
                variances[one] + 1e-9
            } else {
                0.0
            };
            before - variances[one] * known[(one, two)] * variances[two]
        });
        let factor = covariance.cholesky().map(|factor| factor.l());
        let shape = 1.0 + 0.5 * self.rows.len() as f64;
        let precision = Gamma::new(shape, 1.0 / fit.scale).expect("both are above 0");
        for _ in 0..DRAWS_EACH {
            let noise = precision.sample(random).recip().sqrt();
            let normal = DVector::from_fn(parts.len(), |_, _| StandardNormal.sample(random));
            let away = factor.as_ref().map(|factor| factor * normal * noise);
            let drawn = away.map_or_else(|| mean.clone(), |away| &mean + away);
            let mut takes = DMatrix::zeros(n_arms, n_moments.max(1));
            for ((arm, moment, _), part) in parts.iter().zip(drawn.iter()) {
                let of = |which: &Option<usize>, n: usize| which.map_or(0..n, |one| one..one + 1);
                for arm in of(arm, n_arms) {
                    for moment in of(moment, n_moments.max(1)) {
                        takes[(arm, moment)] += part;
                    }
                }
            }
            let offered = 0..self.levers[lever].n_offered;
            draws.push(
                offered
                    .map(|arm| mean_of_times(takes.row(arm).iter()))
                    .collect(),
            );
        }
    }
}

/// The logarithm of the mean of times that are given by their logarithms.
fn mean_of_times<'a>(logs: impl ExactSizeIterator<Item = &'a f64> + Clone) -> f64 {
    let n = logs.len() as f64;
    let most = logs.clone().copied().fold(f64::NEG_INFINITY, f64::max);
    most + (logs.map(|log| (log - most).exp()).sum::<f64>() / n).ln()
}

/// The moments that rows with different arms have in common.
fn moments(levers: &[Lever], rows: &[Row]) -> Vec<Moment> {
    let n_arms = levers.iter().map(|lever| lever.n_arms).max().unwrap_or(1);
    let mut moments = Vec::new();
    for (place, row) in rows.iter().enumerate().rev() {
        let differs = |other: &Row| other.moment == row.moment && other.arms != row.arms;
        let moment = row
            .moment
            .filter(|moment| !moments.contains(moment) && rows[..place].iter().any(differs));
        moments.extend(moment);
    }
    moments.truncate((CELLS_MAX / n_arms).max(1));
    moments
}
