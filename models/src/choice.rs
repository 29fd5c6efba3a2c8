//! Which variants may stand in for the default, and which one does: one rule, given with its reason.
//!
//! A variant replaces the default where two things hold. First, its posterior says that its mean cost, stalls and
//! shifts included, is below 0.99 of the default's with 95 % at the least. This limit is raised, up to 99 %, until 1 % of all
//! that is chosen is expected to be wrong (the Bayesian false discovery rate). What was chosen before counts in that mean, too,
//! but stays while it is not likely to lose, however sure its gain is: with many such choices more than 1 % are expected to be
//! wrong, and the limit is 99 %. Second, its own data support that: its Bayes factor, of what other cells
//! lead one to expect against the best of all values that are no gain, exceeds the number of variants for each that
//! does so. As if variants that gain were as rare as those that are found, the factor then makes a gain likelier than
//! none. This guarantees nothing by itself (as the e-BH procedure it bounds the false discovery rate by 1); it keeps
//! out what is likely by a prior of few runs. Without it up to a quarter of the cells in which all variants are equal
//! lose their default. A hundred times the factor loses 2 % of the time in ten jobs (bench `learner`, group
//! `ablation`). What was not measured has no factor.
//!
//! The mean is over what is chosen. Where that is none of the library's own algorithms an export takes the best of
//! those that replace the default, too, which are in no mean: each of them is wrong with 1 % at the most. The chance
//! that a reason tells is that of a gain of 1 % or more, also for what stays.

use std::collections::BTreeSet;

use rayon::prelude::*;
use statrs::distribution::{ContinuousCDF, Normal};

use crate::ablation::{Mechanism, has};
use crate::belief::{Arm, Belief};
use crate::statistics::Contrast;

/// The share of replacements that is meant to be wrong by the posterior, and how likely one may be that is not its cell's
/// best.
pub const WRONG: f64 = 0.01;
/// How likely any one of them may be wrong, the most first.
const WRONG_EACH: [f64; 6] = [0.05, 0.04, 0.03, 0.02, 0.015, WRONG];
/// A gain below this is not worth a change.
pub const GAIN_LEAST: f64 = 0.01;
/// Fewer samples than this never replace the default, nor are replaced.
pub const SAMPLES_LEAST: u64 = 5;
/// What was chosen before stays while it is no likelier than this to be no faster than the default.
pub const STAYS: f64 = 0.6;
/// Another variant takes its place that is faster with this probability.
pub const OVERTAKES: f64 = 0.9;
/// The least standard deviation of what other cells lead one to expect of a Bayes factor's data.
const EXPECTED_LEAST: f64 = 0.15;

/// The middles of eight equal parts of the normal distribution.
const OCTILES: [f64; 8] = [-1.534, -0.887, -0.489, -0.157, 0.157, 0.489, 0.887, 1.534];

/// What was decided of one cell, by arm.
#[derive(Clone, Debug)]
pub struct Choice {
    /// What may stand in for the default: the best, and what is as sure by itself as the best ones are in the mean.
    pub replaces: Vec<bool>,
    pub reasons: Vec<String>,
    /// The arm to run; `None`: the default.
    pub best: Option<usize>,
}

/// Decides all cells together. `allowed` says by cell and arm what the site lets run, `before` what was chosen then.
pub fn choose(beliefs: &[Belief], allowed: &[Vec<bool>], before: &[Option<u16>]) -> Vec<Choice> {
    let values: Vec<Vec<f64>> = beliefs
        .par_iter()
        .map(|belief| {
            belief
                .arms
                .iter()
                .map(|arm| log_bayes_factor(belief, arm))
                .collect()
        })
        .collect();
    let threshold = threshold(&values);
    let cells: Vec<Judged> = (0..beliefs.len())
        .into_par_iter()
        .map(|cell| {
            let (belief, before) = (&beliefs[cell], before[cell]);
            Judged::new(belief, (&allowed[cell], before), &values[cell], threshold)
        })
        .collect();
    let most = most_wrong(&cells);
    cells.par_iter().map(|cell| cell.choice(most)).collect()
}

/// How likely each new replacement may be wrong so that over all cells [`WRONG`] of them are, what stays included. What stays
/// may be more than that by itself: then each new one is as sure as can be asked, and the mean is not held.
fn most_wrong(cells: &[Judged]) -> f64 {
    let mean = |most: f64| {
        let of_cell = |cell: &Judged| Some(cell.wrong[cell.best(most)?]);
        let chosen: Vec<f64> = cells.iter().filter_map(of_cell).collect();
        chosen.iter().sum::<f64>() / chosen.len().max(1) as f64
    };
    let holds = |most: &&f64| mean(**most) <= WRONG;
    WRONG_EACH.iter().find(holds).copied().unwrap_or(WRONG)
}

/// One cell, its arms judged one by one.
struct Judged<'a> {
    belief: &'a Belief,
    /// By arm what keeps it out, whatever its posterior says.
    unfit: Vec<&'static str>,
    /// By arm how likely it is no gain.
    wrong: Vec<f64>,
    /// By arm whether its Bayes factor suffices.
    supported: Vec<bool>,
    /// The arm that was chosen before, if it is still likely to be faster.
    stays: Option<usize>,
}

impl<'a> Judged<'a> {
    fn new(
        belief: &'a Belief,
        (allowed, before): (&[bool], Option<u16>),
        values: &[f64],
        threshold: f64,
    ) -> Judged<'a> {
        let unfit = |place: usize| {
            let arm = &belief.arms[place];
            if !allowed[place] {
                "it may not be drawn here"
            } else if arm.calls == 0 {
                "nobody ran it here"
            } else if arm.calls < SAMPLES_LEAST || belief.default_calls < SAMPLES_LEAST {
                "too few samples"
            } else {
                ""
            }
        };
        let arms = 0..belief.arms.len();
        let stays = |place: &usize| {
            let arm = &belief.arms[*place];
            let is_known = allowed[*place] && arm.calls >= SAMPLES_LEAST;
            let is_chosen = before == Some(arm.variant) && is_known;
            is_chosen && wrong(belief, *place, 1.0) < STAYS
        };
        Judged {
            belief,
            unfit: arms.clone().map(unfit).collect(),
            wrong: arms
                .clone()
                .map(|place| wrong(belief, place, 1.0 - GAIN_LEAST))
                .collect(),
            supported: values.iter().map(|value| *value >= threshold).collect(),
            stays: arms.clone().find(stays),
        }
    }

    /// Whether an arm may stand in for the default by itself, where each may be wrong so much.
    fn passes(&self, place: usize, most: f64) -> bool {
        self.unfit[place].is_empty() && self.supported[place] && self.wrong[place] <= most
    }

    fn candidates(&self, most: f64) -> impl Iterator<Item = usize> {
        let arms = 0..self.belief.arms.len();
        arms.filter(move |&place| self.passes(place, most) || self.stays == Some(place))
    }

    /// The arm to run, where each may be wrong so much.
    fn best(&self, most: f64) -> Option<usize> {
        let belief = self.belief;
        let least = self
            .candidates(most)
            .min_by(|&a, &b| cost(belief, a).total_cmp(&cost(belief, b)));
        match (least, self.stays) {
            (Some(least), Some(kept)) if least != kept && !overtakes(belief, least, kept) => {
                Some(kept)
            }
            _ => least,
        }
    }

    fn choice(&self, most: f64) -> Choice {
        let best = self.best(most);
        let (mut replaces, mut reasons) = (Vec::new(), Vec::new());
        for (place, wrong) in self.wrong.iter().enumerate() {
            let is_best = best == Some(place);
            let percent = 100.0 * (1.0 - wrong);
            // The mean over what is chosen says nothing of the others.
            let replaces_here = is_best || self.passes(place, most.min(WRONG));
            replaces.push(replaces_here);
            reasons.push(if is_best && !self.passes(place, most) {
                format!("chosen before; faster with {percent:.1} %")
            } else if replaces_here {
                format!("faster with {percent:.1} %")
            } else if self.passes(place, most) {
                format!("{percent:.1} % sure to be faster; a runner-up needs 99 %")
            } else {
                self.reason(place, most)
            });
        }
        Choice {
            replaces,
            reasons,
            best,
        }
    }

    /// Why an arm replaces nothing.
    fn reason(&self, place: usize, most: f64) -> String {
        let wrong = self.wrong[place];
        if !self.unfit[place].is_empty() {
            self.unfit[place].to_owned()
        } else if wrong > 1.0 - WRONG {
            "not faster".to_owned()
        } else if wrong <= most {
            "faster, but among so many variants not beyond chance yet".to_owned()
        } else if self.belief.arms[place].stalls.provokes > 0.5 {
            "it stalls".to_owned()
        } else {
            format!("faster with {:.0} % only", (100.0 * (1.0 - wrong)).floor())
        }
    }
}

/// The logarithm of the Bayes factor that is asked for: the number of variants for each one that has as much (the step of
/// the e-BH procedure; Wang & Ramdas, J. R. Stat. Soc. B 84, 2022).
fn threshold(values: &[Vec<f64>]) -> f64 {
    if !has(Mechanism::BayesFactor) {
        return f64::MIN;
    }
    let mut all: Vec<f64> = values
        .iter()
        .flatten()
        .copied()
        .filter(|value| value.is_finite())
        .collect();
    all.sort_unstable_by(|a, b| b.total_cmp(a));
    let n = all.len() as f64;
    let asked = |rejected: f64| (n / rejected).ln();
    let most = (1..=all.len())
        .rev()
        .find(|&rejected| all[rejected - 1] >= asked(rejected as f64));
    asked(most.unwrap_or(1) as f64)
}

/// Negative infinity for what was not measured.
fn log_bayes_factor(belief: &Belief, arm: &Arm) -> f64 {
    let Some(data) = arm
        .data
        .filter(|_| arm.calls >= SAMPLES_LEAST && belief.default_calls >= SAMPLES_LEAST)
    else {
        return f64::NEG_INFINITY;
    };
    let edge = (1.0 - GAIN_LEAST).ln();
    // What is expected has to lie on the gain's side, whatever other cells say; any such expectation is valid.
    let (mean, deviation) = (
        arm.prior.mean.min(edge),
        arm.prior.variance.sqrt().max(EXPECTED_LEAST),
    );
    let total = data.tail_variance + deviation * deviation;
    let posterior = (mean * data.tail_variance + data.mean * deviation * deviation) / total;
    let posterior_deviation = (data.tail_variance * deviation * deviation / total).sqrt();
    let normal = Normal::standard();
    let gain = (normal.cdf((edge - posterior) / posterior_deviation)
        / normal.cdf((edge - mean) / deviation))
    .max(1e-300)
    .ln()
        - 0.5 * ((data.mean - mean).powi(2) / total + total.ln());
    let nearest = (data.mean - edge).min(0.0);
    let none = -0.5 * (nearest.powi(2) / data.tail_variance + data.tail_variance.ln());
    gain - none
}

/// The probability that the arm's mean cost is not below `share` of the default's.
fn wrong(belief: &Belief, place: usize, share: f64) -> f64 {
    let arm = &belief.arms[place];
    let deviation = belief.covariance[(place, place)].sqrt();
    let normal = Normal::standard();
    let default = (1.0 + belief.all_pay) * share - belief.all_pay;
    let above = |stalls: f64| match default - stalls {
        left if left > 0.0 => 1.0 - normal.cdf((left.ln() - belief.mean[place]) / deviation),
        _ => 1.0,
    };
    let provokes = arm.stalls.provokes;
    // Means over the rate's distribution, which is close to a gamma's, and the size's, by quantiles.
    let (shape, calls) = arm.stalls.rate;
    // Source: Wilson & Hilferty, PNAS 17, 1931.
    let rate = |z: f64| {
        shape
            * (1.0 - 1.0 / (9.0 * shape) + z / (3.0 * shape.sqrt()))
                .max(0.0)
                .powi(3)
            / (shape + calls)
    };
    let size = |z: f64| (arm.stalls.size.0 + arm.stalls.size.1 * z).exp();
    let pairs = OCTILES
        .iter()
        .flat_map(|&one| OCTILES.iter().map(move |&other| (one, other)));
    let if_provokes = pairs
        .map(|(one, other)| above(arm.stalls.beyond(rate(one), size(other))))
        .sum::<f64>()
        / 64.0;
    (1.0 - provokes) * above(0.0) + provokes * if_provokes
}

/// The mean cost beside the default's.
pub fn cost(belief: &Belief, place: usize) -> f64 {
    let body = (belief.mean[place] + belief.covariance[(place, place)] / 2.0).exp();
    body + belief.all_pay + belief.arms[place].stalls.mean()
}

/// The default's mean cost over the arm's, with its 95 % interval.
pub fn contrast(belief: &Belief, place: usize) -> Contrast {
    let (mean, deviation) = (belief.mean[place], belief.covariance[(place, place)].sqrt());
    let arm = &belief.arms[place];
    let default = 1.0 + belief.all_pay + belief.default_stalls.mean();
    // What the default alone is thought to stall is no sure gain.
    let surely = match belief.default_stalls.provokes > 0.975 {
        true => default,
        false => 1.0 + belief.all_pay,
    };
    let stalls = belief.all_pay + arm.stalls.mean();
    let gain = |default: f64, theta: f64, stalls: f64| default / (theta.exp() + stalls);
    let worst = stalls.max(belief.all_pay + arm.stalls.at_most(0.025));
    Contrast {
        gain: gain(default, mean, stalls),
        lo: gain(surely, mean + 1.96 * deviation, worst),
        hi: gain(default, mean - 1.96 * deviation, belief.all_pay),
    }
}

fn overtakes(belief: &Belief, one: usize, other: usize) -> bool {
    let covariance = &belief.covariance;
    let variance =
        covariance[(one, one)] + covariance[(other, other)] - 2.0 * covariance[(one, other)];
    let lead = cost(belief, other).ln() - cost(belief, one).ln();
    Normal::standard().cdf(lead / variance.max(1e-12).sqrt()) >= OVERTAKES
}

/// The variants that are surely dearer than another one, judged among those that may be drawn and have samples
/// enough, by the bounds least kind to that verdict.
pub fn dominated(belief: &Belief, allowed: &[bool], deviations: f64) -> BTreeSet<usize> {
    let bounds = |place: usize| {
        let half = deviations * belief.covariance[(place, place)].sqrt();
        let arm = &belief.arms[place];
        (
            belief.mean[place] - half,
            (belief.mean[place] + half).exp() + arm.stalls.mean(),
        )
    };
    let sampled = (0..belief.arms.len())
        .filter(|&place| allowed[place] && belief.arms[place].calls >= SAMPLES_LEAST);
    let default = 1.0 + belief.default_stalls.mean();
    let fastest = sampled.map(|place| bounds(place).1).fold(default, f64::min);
    (0..belief.arms.len())
        .filter(|&place| belief.arms[place].calls >= 3 && bounds(place).0.exp() > fastest)
        .collect()
}
