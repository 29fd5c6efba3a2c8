//! Which arm of a program's own choices makes it fastest: from whole runs, or parts of runs, to the next draw.
//!
//! A row is one run, or one part of a run, with the arm of each lever. The logarithm of its time is taken to be a sum: a
//! level, an effect of each lever's arm, one of the row's block, one of its moment, one of arm and moment together, a random
//! walk for what the machine does meanwhile, and noise. Rows of a block share what no lever changes: how a time was
//! taken, whether collectives were explored, or one run. Rows of a moment are as far into runs with the same
//! arguments: the work of a mesh that moves is as uneven in each, and an arm that is no worse at most moments may be
//! much worse at a few. What an arm takes is the mean over all moments. The size of the effects beside the noise, none
//! included, and how far the walk goes are sampled with the rest (Gibbs sampling over a grid). The noise is integrated;
//! a wild row weighs less (Student's t).
//!
//! The first arm stays chosen unless another one is faster by 1 % with 97 %. The next draw is the calls' own
//! ([`crate::allocation`]), after every arm had its turn.

mod rows;
mod sampler;

use std::collections::BTreeSet;

pub use rows::{Epoch, Epochs, Lever, Moment, Row, drawn, rows_of_epochs};

use crate::allocation::{Exploring, Race, allocate, expected_loss, whole};
use crate::choice::{GAIN_LEAST, OVERTAKES, STAYS};
use crate::statistics::Contrast;
use sampler::Sampler;

/// The newest rows tell; the cost grows with their third power.
pub const ROWS_MAX: usize = 128;
/// Beyond that costs overflow.
const EFFECT_MAX: f64 = 300.0;
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
/// fastest, given what such times are off by, the more it is drawn. All can be drawn.
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
        // The rest goes to its rivals: the best arm, or if it is the best, all others.
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
    let rows: Vec<Row> = rows
        .iter()
        .filter(|row| row.log_time.is_finite())
        .cloned()
        .collect();
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
