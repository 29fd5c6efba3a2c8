//! Which arm of a program's own choices makes it fastest: from whole runs, or parts of runs, to the next draw.
//!
//! A row is one run, or one part of a run, with the arm of each lever. The logarithm of its time is taken to be a sum: a
//! level, an effect of each lever's arm, one of the row's block, one of its moment, a random walk for what the machine does
//! meanwhile, and noise. Rows of a block share what is no lever's: how a time was taken, whether collectives were explored,
//! or one run. Rows of a moment are as far into runs with the same arguments: the work of a mesh that moves is as uneven
//! in each. How large the effects of a lever and of moments are beside the noise, none included, and how far the walk goes
//! is sampled with the rest (Gibbs sampling over a grid), the noise is integrated; a wild row weighs less (Student's t).
//!
//! The first arm stays chosen unless another one is faster by 1 % with 97 %. The next draw is the calls' own
//! ([`crate::allocation`]), after every arm had its turn.

use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

use nalgebra::{Cholesky, DMatrix, DVector, Dyn};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use rand_distr::{Distribution as _, Gamma, StandardNormal};

use crate::allocation::{Exploring, Race, allocate, expected_loss, whole};
use crate::choice::{GAIN_LEAST, OVERTAKES, STAYS};
use crate::statistics::Contrast;

/// The newest rows tell; the cost grows with their third power.
const ROWS_MAX: usize = 96;
/// Standard deviations beside that of the noise: of a lever's effects, and of a step of the walk.
const EFFECTS: [f64; 6] = [0.0, 1.0, 3.0, 10.0, 30.0, 100.0];
/// How much likelier than any other size it is beforehand that a lever has none.
const NONE: f64 = 3.0;
/// Beyond that costs overflow.
const EFFECT_MAX: f64 = 300.0;
const STEPS: [f64; 4] = [0.0, 0.1, 0.3, 1.0];
const MOMENTS: [f64; 4] = [0.0, 1.0, 3.0, 10.0];
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
/// How sure it has to be that an arm is faster than the first one, by [`GAIN_LEAST`].
const SURE: f64 = 0.97;
/// An arm that ran less often, in blocks with other arms, is not chosen.
const RUNS_LEAST: usize = 2;
/// What is expected to be gained by further runs is not worth them. Then the arms but the best one share this.
const LEFT: f64 = 0.01;
const STILL_DRAWN: f64 = 0.1;
/// The most of a run's epochs that one arm gets before that.
const MOST_OF_A_RUN: f64 = 0.6;

/// What an emulated time is off by, the standard deviation of its logarithm (docs/results/2026-11-26-emulator.md), and what
/// all arms share of the first draws whatever is expected of them.
const EXPECTED_ERROR: f64 = 0.12;
const UNEXPECTED: f64 = 0.5;

/// The probabilities of the first draws where times of the arms are expected: the more an arm may be as fast as the
/// fastest, given what such times are off by, the more it is drawn. None is ruled out.
pub fn first_shares(expected_s: &[f64]) -> Vec<f64> {
    let least = expected_s.iter().copied().fold(f64::INFINITY, f64::min);
    // The error of a ratio has twice the variance of a time's.
    let likely = |time: &f64| (-((time / least).ln() / (2.0 * EXPECTED_ERROR)).powi(2)).exp();
    let likely: Vec<f64> = expected_s.iter().map(likely).collect();
    let all: f64 = likely.iter().sum();
    let even = UNEXPECTED / likely.len() as f64;
    let share = |likely: &f64| even + (1.0 - UNEXPECTED) * likely / all;
    whole(&likely.iter().map(share).collect::<Vec<f64>>())
}

/// One lever with the arms that rows name.
#[derive(Clone, Copy, Debug)]
pub struct Lever {
    pub n_arms: usize,
    /// The first so many may be drawn; place 0 is what runs where nothing better is known.
    pub n_offered: usize,
    /// What was chosen before.
    pub before: Option<usize>,
}

/// What was measured once.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    pub block: usize,
    /// By lever.
    pub arms: Vec<usize>,
    pub moment: Option<Moment>,
    /// The logarithm of the time, or of the time for the same work.
    pub log_time: f64,
}

/// How far a row is into its run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moment {
    /// Runs with the same number had the same arguments.
    pub arguments: usize,
    pub epoch: usize,
}

/// What was learned of one lever, by arm that is offered.
#[derive(Clone, Debug, PartialEq)]
pub struct LeverJudged {
    pub best: usize,
    /// The probabilities of the next draw.
    pub shares: Vec<f64>,
    pub runs: Vec<usize>,
    /// The first arm's time over this one's.
    pub contrasts: Vec<Contrast>,
    /// Whether further runs are expected to gain next to nothing.
    pub is_settled: bool,
}

/// The epochs of one run in which a program asked, in their order: each one's arm, and the logarithm of its time for the
/// same work.
pub struct Epochs {
    /// Runs with the same number were made in the same way.
    pub way: usize,
    /// That of the first one.
    pub first: Moment,
    pub epochs: Vec<(usize, f64)>,
}

/// A row for each epoch. Those of one run are a block of their own, which what is slower in all of it does not move, where
/// they tell arms apart. A run with one arm is one row, its median, beside the others of its kind.
pub fn rows_of_epochs(runs: &[Epochs]) -> Vec<Row> {
    let ways = runs.iter().map(|run| run.way + 1).max().unwrap_or(0);
    let rows = runs.iter().enumerate().flat_map(|(number, run)| {
        let first = run.epochs.first().map(|(arm, _)| *arm);
        let differ = run.epochs.iter().any(|(arm, _)| Some(*arm) != first);
        let row = |block, arm, moment, log_time| Row {
            block,
            arms: vec![arm],
            moment,
            log_time,
        };
        match (differ, first) {
            (false, Some(arm)) => {
                let mut times: Vec<f64> = run.epochs.iter().map(|(_, time)| *time).collect();
                times.sort_unstable_by(f64::total_cmp);
                vec![row(run.way, arm, None, times[times.len() / 2])]
            }
            _ => {
                let moment = |after: usize| Moment {
                    epoch: run.first.epoch + after,
                    ..run.first
                };
                let epochs = run.epochs.iter().enumerate();
                epochs
                    .map(|(after, &(arm, log_time))| {
                        row(ways + number, arm, Some(moment(after)), log_time)
                    })
                    .collect()
            }
        }
    });
    rows.collect()
}

impl LeverJudged {
    /// The probabilities of the next draws where a run draws once an epoch: no arm takes all of them, so that the epochs
    /// of a run tell arms apart.
    pub fn shares_of_epochs(&self) -> Vec<f64> {
        let most = if self.is_settled { 1.0 } else { MOST_OF_A_RUN };
        let largest =
            (0..self.shares.len()).max_by(|&a, &b| self.shares[a].total_cmp(&self.shares[b]));
        let Some(largest) = largest.filter(|&arm| self.shares[arm] > most) else {
            return self.shares.clone();
        };
        // The rest goes to what it is to be told from: the best arm, or if it is that all others.
        let rest = 1.0 - most;
        let others = (self.shares.len() - 1) as f64;
        let share = |arm: usize| match (arm == largest, self.best == largest) {
            (true, _) => most,
            (false, true) => rest / others,
            (false, false) => rest * f64::from(u8::from(arm == self.best)),
        };
        (0..self.shares.len()).map(share).collect()
    }

    /// Whether no arm is known to be faster or slower than the first one.
    pub fn has_no_effect(&self) -> bool {
        let differs = |one: &Contrast| one.lo > 1.0 || one.hi < 1.0;
        self.best == 0 && !self.contrasts.iter().skip(1).any(differs)
    }

    fn unknown(lever: &Lever) -> LeverJudged {
        let (gain, lo, hi) = (1.0, 0.0, f64::INFINITY);
        LeverJudged {
            best: 0,
            shares: vec![1.0 / lever.n_offered as f64; lever.n_offered],
            runs: vec![0; lever.n_offered],
            contrasts: vec![Contrast { gain, lo, hi }; lever.n_offered],
            is_settled: lever.n_offered == 1,
        }
    }
}

/// Learns of each lever from rows in the order of time. The same rows and seed give the same.
pub fn judge(levers: &[Lever], rows: &[Row], seed: u64) -> Vec<LeverJudged> {
    let rows = &rows[rows.len().saturating_sub(ROWS_MAX)..];
    if rows.is_empty() {
        return levers.iter().map(LeverJudged::unknown).collect();
    }
    let draws = Sampler::new(levers, rows).draws(seed);
    let judged = levers.iter().zip(draws).enumerate();
    judged
        .map(|(place, (lever, draws))| {
            let runs = (0..lever.n_offered)
                .map(|arm| runs(rows, place, arm))
                .collect();
            judged_of(lever, runs, &draws)
        })
        .collect()
}

/// Rows of a lever's arm in blocks that tell it from another one.
fn runs(rows: &[Row], lever: usize, arm: usize) -> usize {
    let tells = |row: &&Row| {
        let beside = |other: &Row| other.block == row.block && other.arms[lever] != arm;
        row.arms[lever] == arm && rows.iter().any(beside)
    };
    rows.iter().filter(tells).count()
}

/// `draws`: effects by offered arm, drawn from the posterior.
fn judged_of(lever: &Lever, runs: Vec<usize>, draws: &[Vec<f64>]) -> LeverJudged {
    let arms = 0..lever.n_offered;
    let costs = |effects: &Vec<f64>| {
        let beside_first = effects
            .iter()
            .map(|effect| (effect - effects[0]).clamp(-EFFECT_MAX, EFFECT_MAX).exp());
        beside_first.collect::<Vec<f64>>()
    };
    let costs: Vec<Vec<f64>> = draws.iter().map(costs).collect();
    let best = best(lever, &runs, &costs);
    let drawable: Vec<usize> = arms.clone().skip(1).collect();
    let left = expected_loss(&costs, &drawable, best, 0.0);
    let unseen = |least: usize| -> BTreeSet<usize> {
        let few = arms.clone().filter(|&arm| runs[arm] < least);
        few.collect()
    };
    let never = unseen(1);
    let is_settled = never.is_empty() && left < LEFT;
    let (exploring, explore_total) = match is_settled {
        true => (Exploring::Narrow, STILL_DRAWN),
        false => (Exploring::Open, 1.0),
    };
    // What looks fastest after one run is run again before anything is drawn.
    let fastest = arms
        .clone()
        .min_by(|&a, &b| mean(&costs, a).total_cmp(&mean(&costs, b)));
    let again = fastest.filter(|&arm| runs[arm] < RUNS_LEAST);
    let turn = match never.is_empty() {
        true => again.into_iter().collect(),
        false => never.clone(),
    };
    let shares = match turn.len() {
        0 => allocate(&Race {
            draws: &costs,
            drawable: &drawable,
            unseen: &unseen(RUNS_LEAST),
            dominated: &BTreeSet::new(),
            disfavoured: &[],
            best,
            exploring,
            explore_total,
        }),
        n_turn => {
            let share = |arm| f64::from(u8::from(turn.contains(&arm))) / n_turn as f64;
            arms.clone().map(share).collect()
        }
    };
    LeverJudged {
        best,
        shares,
        contrasts: arms.map(|arm| contrast(&costs, arm)).collect(),
        is_settled,
        runs,
    }
}

/// The mean of an arm's effect.
fn mean(costs: &[Vec<f64>], arm: usize) -> f64 {
    let effects = costs.iter().map(|costs| costs[arm].ln());
    effects.sum::<f64>() / costs.len() as f64
}

fn best(lever: &Lever, runs: &[usize], costs: &[Vec<f64>]) -> usize {
    let n = costs.len() as f64;
    let faster = |one: usize, other: usize, share: f64| {
        let is_faster = |costs: &&Vec<f64>| costs[one] < share * costs[other];
        costs.iter().filter(is_faster).count() as f64 / n
    };
    let is_known = |arm: &usize| runs[*arm] >= RUNS_LEAST;
    let stays =
        |arm: &usize| *arm < lever.n_offered && is_known(arm) && faster(*arm, 0, 1.0) > 1.0 - STAYS;
    let kept = lever.before.filter(stays).unwrap_or(0);
    let known = (0..lever.n_offered).filter(is_known);
    let least = known.min_by(|&a, &b| mean(costs, a).total_cmp(&mean(costs, b)));
    let least = least.unwrap_or(kept);
    let (share, sure) = match kept {
        0 => (1.0 - GAIN_LEAST, SURE),
        _ => (1.0, OVERTAKES),
    };
    match faster(least, kept, share) >= sure {
        true => least,
        false => kept,
    }
}

fn contrast(costs: &[Vec<f64>], arm: usize) -> Contrast {
    let mut gains: Vec<f64> = costs.iter().map(|costs| 1.0 / costs[arm]).collect();
    gains.sort_unstable_by(f64::total_cmp);
    let at = |share: f64| gains[(share * (gains.len() - 1) as f64).round() as usize];
    Contrast {
        gain: at(0.5),
        lo: at(0.025),
        hi: at(0.975),
    }
}

/// What is left once the standard deviations beside the noise's are given.
struct Fit {
    factor: Cholesky<f64, Dyn>,
    /// The inverse covariance times the values.
    weighted: DVector<f64>,
    /// The scale of the noise's distribution.
    scale: f64,
    log_likelihood: f64,
}

/// Places in [`EFFECTS`] by lever, then one in [`STEPS`] and one in [`MOMENTS`].
type Grid = Vec<usize>;

struct Sampler<'a> {
    levers: &'a [Lever],
    rows: &'a [Row],
    values: DVector<f64>,
    /// How many times the noise's variance each row has.
    spread: Vec<f64>,
    fits: HashMap<Grid, Rc<Fit>>,
}

impl<'a> Sampler<'a> {
    fn new(levers: &'a [Lever], rows: &'a [Row]) -> Sampler<'a> {
        let mean = rows.iter().map(|row| row.log_time).sum::<f64>() / rows.len() as f64;
        let values = DVector::from_iterator(rows.len(), rows.iter().map(|row| row.log_time - mean));
        let mut sampler = Sampler {
            levers,
            rows,
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
        grid.extend([2, self.n_moments() / 2]);
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

    /// How many of [`MOMENTS`] there are to choose among: one where no two rows have one in common.
    fn n_moments(&self) -> usize {
        let shares = |(place, row): (usize, &Row)| {
            row.moment.is_some()
                && self.rows[..place]
                    .iter()
                    .any(|other| other.moment == row.moment)
        };
        match self.rows.iter().enumerate().any(shares) {
            true => MOMENTS.len(),
            false => 1,
        }
    }

    fn covariance(&self, grid: &Grid) -> DMatrix<f64> {
        let n = self.rows.len();
        let step = STEPS[grid[self.levers.len()]].powi(2);
        let of_moment = MOMENTS[grid[self.levers.len() + 1]].powi(2);
        DMatrix::from_fn(n, n, |row, other| {
            let (one, two) = (&self.rows[row], &self.rows[other]);
            let mut covariance = LEVEL.powi(2) + step * row.min(other) as f64;
            if one.block == two.block {
                covariance += BLOCK.powi(2);
            }
            if one.moment.is_some() && one.moment == two.moment {
                covariance += of_moment;
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
    fn draws(&mut self, seed: u64) -> Vec<Vec<Vec<f64>>> {
        let mut random = StdRng::seed_from_u64(seed);
        let n_levers = self.levers.len();
        let mut grid = vec![EFFECTS.len() / 2; n_levers];
        grid.extend([1, 0]);
        let mut draws = vec![Vec::new(); n_levers];
        for sweep in 0..SWEEPS {
            for place in 0..n_levers + 2 {
                self.redraw(&mut grid, place, &mut random);
            }
            if sweep >= DROPPED {
                let fit = self.fit(&grid);
                for (place, draws) in draws.iter_mut().enumerate() {
                    self.effects(&fit, EFFECTS[grid[place]], place, &mut random, draws);
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
            Some(_) => self.n_moments(),
        };
        let likelihood = |sampler: &mut Self, at: usize, grid: &mut Grid| {
            grid[place] = at;
            sampler.fit(grid).log_likelihood
        };
        let logs: Vec<f64> = (0..n).map(|at| likelihood(self, at, grid)).collect();
        let most = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let mut weights: Vec<f64> = logs.iter().map(|log| (log - most).exp()).collect();
        if place < self.levers.len() {
            weights[0] *= NONE;
        }
        grid[place] = drawn(&weights, random.random());
    }

    /// Draws of one lever's effects, whose standard deviation beside the noise's is `effect`.
    fn effects(
        &self,
        fit: &Fit,
        effect: f64,
        lever: usize,
        random: &mut StdRng,
        draws: &mut Vec<Vec<f64>>,
    ) {
        let n_arms = self.levers[lever].n_arms;
        let of_arm = |row: usize, arm: usize| f64::from(self.rows[row].arms[lever] == arm);
        let arms = DMatrix::from_fn(self.rows.len(), n_arms, of_arm);
        let variance = effect.powi(2);
        let mean = arms.transpose() * &fit.weighted * variance;
        let known = arms.transpose() * fit.factor.solve(&arms);
        let covariance =
            DMatrix::identity(n_arms, n_arms) * (variance + 1e-9) - known * variance.powi(2);
        let factor = covariance.cholesky().map(|factor| factor.l());
        let shape = 1.0 + 0.5 * self.rows.len() as f64;
        let precision = Gamma::new(shape, 1.0 / fit.scale).expect("both are above 0");
        for _ in 0..DRAWS_EACH {
            let noise = precision.sample(random).recip().sqrt();
            let normal = DVector::from_fn(n_arms, |_, _| StandardNormal.sample(random));
            let away = factor.as_ref().map(|factor| factor * normal * noise);
            let drawn = away.map_or_else(|| mean.clone(), |away| &mean + away);
            draws.push(
                drawn
                    .iter()
                    .take(self.levers[lever].n_offered)
                    .copied()
                    .collect(),
            );
        }
    }
}

/// The place that a number from 0 to 1 falls on, by weights.
pub fn drawn(weights: &[f64], at: f64) -> usize {
    let mut left = at * weights.iter().sum::<f64>();
    let last = weights
        .iter()
        .rposition(|weight| *weight > 0.0)
        .unwrap_or(0);
    let falls = |weight: &f64| {
        left -= weight;
        left < 0.0
    };
    weights
        .iter()
        .position(falls)
        .map_or(last, |place| place.min(last))
}
