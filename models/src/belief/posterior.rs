//! The posterior of a cell: own data and what other cells say, together.

use std::collections::{BTreeMap, BTreeSet};

use colltune_core::collective::Collective;
use nalgebra::{DMatrix, DVector};
use rand::SeedableRng;
use rand::rngs::StdRng;
use rand_distr::{Beta, Distribution, StandardNormal};

use super::measured::Measured;
use super::stalls::{Count, Stalls};
use crate::evidence::{Evidence, Shape};
use crate::predict::Prediction;
use crate::promise::Contestant;

/// The standard deviation of log times between runs that share nothing: what a comparison through runs costs.
const OTHER_CIRCUMSTANCES: f64 = 0.5;

/// What a cell's own data say of a contrast; variances widened for few runs, the second for far tails.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    pub mean: f64,
    pub variance: f64,
    pub tail_variance: f64,
    /// The part of `variance` that is the default's, which all contrasts of linked variants share.
    pub(super) shared: Option<f64>,
}

impl Estimate {
    /// With an amount added on the scale of the default's time, of which the variance is also given. The default costs
    /// `of_default` more than its time on that scale, which is at least as much as any amount is below 0.
    pub(super) fn corrected(self, contrast: f64, variance: f64, of_default: f64) -> Estimate {
        let ratio = self.mean.exp();
        let cost = ratio + contrast + of_default;
        let wider =
            |own: f64| (own * (ratio / cost).powi(2) + variance / cost.powi(2)).max(0.25 * own);
        Estimate {
            mean: (cost / (1.0 + of_default)).ln(),
            variance: wider(self.variance),
            tail_variance: wider(self.tail_variance),
            ..self
        }
    }
}

/// One variant but the default.
#[derive(Clone, Copy, Debug)]
pub struct Arm {
    pub variant: u16,
    pub calls: u64,
    pub data: Option<Estimate>,
    /// What other cells say.
    pub prior: Prediction,
    pub stalls: Stalls,
}

/// What is believed of a cell.
#[derive(Clone, Debug)]
pub struct Belief {
    pub cell: usize,
    pub arms: Vec<Arm>,
    pub default_calls: u64,
    pub default_stalls: Stalls,
    /// What stalls cost all variants alike, in times of a typical call.
    pub all_pay: f64,
    /// Of the contrasts, by arm.
    pub mean: DVector<f64>,
    pub covariance: DMatrix<f64>,
    /// What a call of the default costs in ns: its mean time, with its shift where that counts.
    pub level_ns: f64,
    /// Runs, the time that their calls took, and the share of it that was work.
    pub runs: u64,
    pub time_ns: f64,
    pub work: f64,
}

/// The contrast of a variant that met the default in no block, through runs at the same shapes.
pub(super) fn through_runs(rows: &[&Evidence], variant: u16) -> Option<Estimate> {
    let mut levels: BTreeMap<Shape, [Vec<f64>; 2]> = BTreeMap::new();
    for row in rows
        .iter()
        .filter(|row| row.time.n > 0 && (row.variant == 0 || row.variant == variant))
    {
        let log = (row.level_ns * row.time.mean).max(1.0).ln();
        levels.entry(row.shape).or_default()[usize::from(row.variant != 0)].push(log);
    }
    let (mut sum, mut total) = (0.0, 0.0);
    for [default, own] in levels
        .values()
        .filter(|[default, own]| !default.is_empty() && !own.is_empty())
    {
        let mean = |logs: &[f64]| logs.iter().sum::<f64>() / logs.len() as f64;
        let variance =
            OTHER_CIRCUMSTANCES.powi(2) * (1.0 / default.len() as f64 + 1.0 / own.len() as f64);
        sum += (mean(own) - mean(default)) / variance;
        total += 1.0 / variance;
    }
    // Several shapes of the same few runs are no more runs.
    let runs = |of: u16| {
        rows.iter()
            .filter(|row| row.variant == of)
            .map(|row| row.run)
            .collect::<BTreeSet<_>>()
            .len() as f64
    };
    let least = OTHER_CIRCUMSTANCES.powi(2) * (1.0 / runs(0) + 1.0 / runs(variant));
    let variance = (1.0 / total).max(least);
    (total > 0.0).then_some(Estimate {
        mean: sum / total,
        variance,
        tail_variance: 4.0 * variance,
        shared: None,
    })
}

impl Belief {
    pub(super) fn new(
        cell: &Measured,
        data: &[Option<Estimate>],
        (priors, common): (&[Prediction], f64),
        counts: &[Count],
        stalls: Vec<Stalls>,
        all_pay: f64,
    ) -> Belief {
        let arm = |place: usize| Arm {
            variant: cell.variants[place].0,
            calls: counts[place + 1].calls as u64,
            data: data[place],
            prior: priors[place],
            stalls: stalls[place + 1],
        };
        let arms: Vec<Arm> = (0..cell.variants.len()).map(arm).collect();
        let (mean, covariance) = posterior(&arms, common);
        let defaults = cell
            .rows
            .iter()
            .filter(|row| row.variant == 0 && row.time.n > 0);
        let (sum, n) = defaults.fold((0.0, 0.0), |(sum, n), row| {
            let calls = row.time.n as f64;
            (
                sum + calls * (row.level_ns * row.time.mean).max(1.0).ln(),
                n + calls,
            )
        });
        let all = || cell.rows.iter();
        let level = all()
            .map(|row| row.calls as f64 * row.level_ns.ln())
            .sum::<f64>()
            / all().map(|row| row.calls as f64).sum::<f64>();
        let runs: BTreeSet<u32> = all().map(|row| row.run).collect();
        let time_ns: f64 = all().map(|row| row.spent_ns()).sum();
        Belief {
            cell: cell.cell,
            arms,
            default_calls: counts[0].calls as u64,
            default_stalls: stalls[0],
            all_pay,
            mean,
            covariance,
            level_ns: if n > 0.0 {
                (sum / n).exp()
            } else {
                level.exp()
            },
            runs: runs.len() as u64,
            time_ns,
            work: all()
                .map(|row| row.calls as f64 * row.level_ns * row.work)
                .sum::<f64>()
                / time_ns.max(1.0),
        }
    }

    /// Where the default costs so much more than its time, in times of that.
    pub(super) fn with_shift(self, of_default: f64) -> Belief {
        Belief {
            level_ns: (1.0 + of_default) * self.level_ns,
            ..self
        }
    }

    /// What the data alone say of these arms, and the variance that they share with the default. Those that nothing was
    /// compared with, and the untried ones, are unseen, and a run tells them with the variance `of_run`; what has neither
    /// calls nor is untried never applies.
    pub fn contestants(
        &self,
        arms: &[usize],
        collective: Collective,
        (untried, of_run): (&BTreeSet<u16>, f64),
    ) -> (Vec<Contestant>, f64) {
        let shared = shared_variance(&self.arms);
        let default = 1.0 + self.all_pay + self.default_stalls.mean();
        let of = |&arm: &usize| {
            let arm = &self.arms[arm];
            let kin = ((collective.index() as u32) << 16) | u32::from(arm.variant);
            let Some(data) = arm.data else {
                let applies = arm.calls > 0 || untried.contains(&arm.variant);
                return applies.then(|| Contestant::unseen(kin, of_run));
            };
            let stalls = arm.stalls.mean() - self.default_stalls.mean();
            let own = match data.shared {
                Some(_) => (data.variance - shared).max(0.1 * data.variance),
                None => data.variance,
            };
            Some(Contestant {
                kin,
                mean: data.mean,
                variance: own,
                stalls: stalls / default,
                runs: self.runs as f64,
            })
        };
        (arms.iter().filter_map(of).collect(), shared)
    }

    /// Draws of the costs of all arms beside the default's typical time, the default's own first.
    pub fn draws(&self, n: usize, seed: u64) -> Vec<Vec<f64>> {
        let mut random = StdRng::seed_from_u64(seed);
        let factor = self.covariance.clone().cholesky().map(|factor| factor.l());
        let spread = factor
            .unwrap_or_else(|| DMatrix::from_diagonal(&self.covariance.diagonal().map(f64::sqrt)));
        (0..n)
            .map(|_| {
                let normal =
                    DVector::from_fn(self.arms.len(), |_, _| StandardNormal.sample(&mut random));
                let theta = &self.mean + &spread * normal;
                let mut costs =
                    vec![1.0 + self.all_pay + drawn_stalls(&self.default_stalls, &mut random)];
                let own = |(arm, theta): (&Arm, &f64)| {
                    theta.exp() + self.all_pay + drawn_stalls(&arm.stalls, &mut random)
                };
                costs.extend(self.arms.iter().zip(theta.iter()).map(own));
                costs
            })
            .collect()
    }
}

fn drawn_stalls(stalls: &Stalls, random: &mut StdRng) -> f64 {
    let uniform: f64 = rand_distr::StandardUniform.sample(random);
    if uniform >= stalls.provokes {
        return 0.0;
    }
    let rate = Beta::new(stalls.rate.0, stalls.rate.1).map_or(0.0, |beta| beta.sample(random));
    let size: f64 = StandardNormal.sample(random);
    stalls.beyond(rate, (stalls.size.0 + stalls.size.1 * size).exp())
}

/// Normal data and a normal prior by arm: mean and covariance.
///
/// The default's own error is in all data, and what is the cell's alone, above all which algorithm the library takes
/// for its default, is in all priors: a part of their variance, `common`, is one and the same for all arms.
fn posterior(arms: &[Arm], common: f64) -> (DVector<f64>, DMatrix<f64>) {
    let n = arms.len();
    let prior = |row: usize, column: usize| {
        let both = (arms[row].prior.variance * arms[column].prior.variance).sqrt();
        both * if row == column { 1.0 } else { common }
    };
    let mean = DVector::from_iterator(n, arms.iter().map(|arm| arm.prior.mean));
    let covariance = DMatrix::from_fn(n, n, prior);
    let known: Vec<(usize, Estimate)> = (0..n)
        .filter_map(|place| Some((place, arms[place].data?)))
        .collect();
    let shared = shared_variance(arms);
    let error = |row: usize, column: usize| {
        let linked = |at: usize| known[at].1.shared.is_some();
        let shared = if linked(row) && linked(column) {
            shared
        } else {
            0.0
        };
        if row == column {
            known[row].1.variance.max(shared / 0.9)
        } else {
            shared
        }
    };
    let total = DMatrix::from_fn(known.len(), known.len(), |row, column| {
        prior(known[row].0, known[column].0) + error(row, column)
    });
    let Some(factor) = total.cholesky().filter(|_| !known.is_empty()) else {
        return (mean, covariance);
    };
    let beside = DMatrix::from_fn(known.len(), n, |row, column| prior(known[row].0, column));
    let away = DVector::from_fn(known.len(), |row, _| {
        let (place, data) = known[row];
        data.mean - arms[place].prior.mean
    });
    let learned = beside.transpose() * factor.solve(&away);
    let known = beside.transpose() * factor.solve(&beside);
    (mean + learned, covariance - known)
}

/// The variance that the contrasts share through the default.
fn shared_variance(arms: &[Arm]) -> f64 {
    let least = arms
        .iter()
        .filter_map(|arm| arm.data?.shared)
        .fold(f64::INFINITY, f64::min);
    if least.is_finite() { least } else { 0.0 }
}
