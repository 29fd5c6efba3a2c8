//! What a variant shifts into what follows the call, as far as the data tell it from the program's own compute.
//!
//! Random draws meet the compute alike, so the contrast of what came behind is an unbiased, often noisy estimate. Its
//! prior is N(0, tau^2), tau pooled over all cells: what is noisy shrinks to nothing. Where time inside and behind
//! the call vary together, the part of the shift that is noise also corrects the time (a control variate).

use std::collections::BTreeMap;

use rayon::prelude::*;

use super::root::root;
use crate::evidence::{Evidence, Moments};

/// The prior of tau, relative to the default's time, and how many contrasts it counts for.
const TAU_GUESS: f64 = 0.02;
const TAU_PRIOR: f64 = 2.0;
/// Shifts larger than this share of the default's time are not expected of any variant.
const TAU_MOST: f64 = 0.2;
/// Degrees of freedom by which a variant's variance leans on the cell's.
const VARIANCE_PRIOR: f64 = 8.0;

/// The contrast of one variant with the default, all relative to the default's time.
#[derive(Clone, Copy, Debug, Default)]
pub struct Shift {
    contrast: f64,
    variance: f64,
    /// Covariance with the error of the contrast of times, and that one's variance.
    covariance: f64,
    time_variance: f64,
    /// What tau is multiplied with: the more a call takes the more it may shift.
    scale: f64,
    known: bool,
}

/// What is to be added to the contrast of times, and to its variance.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Correction {
    pub contrast: f64,
    pub variance: f64,
}

#[derive(Clone, Copy, Default)]
struct Sum {
    time: Moments,
    shift: Moments,
    total: Moments,
}

/// The contrasts of a cell, by the places of `variants`; the default is the first.
pub fn of_cell(rows: &[&Evidence], variants: &[u16]) -> Vec<Shift> {
    let mut sums = vec![Sum::default(); variants.len()];
    for row in rows.iter().filter(|row| row.shift.n > 0) {
        if let Ok(arm) = variants.binary_search(&row.variant) {
            add(&mut sums[arm].time, row.time);
            add(&mut sums[arm].shift, row.shift);
            add(&mut sums[arm].total, row.total);
        }
    }
    let pooled = |part: fn(&Sum) -> &Moments| {
        let (squares, freedom) = sums
            .iter()
            .map(part)
            .fold((0.0, 0.0), |(squares, freedom), of| {
                (squares + of.m2, freedom + of.n.saturating_sub(1) as f64)
            });
        if freedom > 0.0 {
            squares / freedom
        } else {
            0.0
        }
    };
    let all = [
        pooled(|sum| &sum.time),
        pooled(|sum| &sum.shift),
        pooled(|sum| &sum.total),
    ];
    let variances = |sum: &Sum| {
        let parts = [&sum.time, &sum.shift, &sum.total];
        let [time, shift, total] = std::array::from_fn(|part| {
            let of = parts[part];
            let freedom = of.n.saturating_sub(1) as f64;
            (of.m2 + VARIANCE_PRIOR * all[part]) / (freedom + VARIANCE_PRIOR) / of.n.max(1) as f64
        });
        (time, shift, (total - time - shift) / 2.0)
    };
    let between_runs = between_runs(rows, all[1]);
    let base = sums[0];
    let (time_0, shift_0, covariance_0) = variances(&base);
    let unit = base.time.mean.max(1e-3);
    sums.iter()
        .map(|sum| {
            let (time, shift, covariance) = variances(sum);
            Shift {
                contrast: (sum.shift.mean - base.shift.mean) / unit,
                variance: (between_runs * (shift + shift_0) / unit.powi(2)).max(1e-9),
                covariance: (covariance + covariance_0) / unit.powi(2),
                time_variance: (time + time_0) / unit.powi(2),
                scale: (sum.time.mean / unit).powi(2).max(1.0),
                known: sum.shift.n > 1 && base.shift.n > 1,
            }
        })
        .collect()
}

/// How much more the contrasts of runs with the default scatter than the noise within them says; at least 1.
fn between_runs(rows: &[&Evidence], variance: f64) -> f64 {
    let mut runs: BTreeMap<_, Vec<(u16, Moments)>> = BTreeMap::new();
    for row in rows.iter().filter(|row| row.shift.n > 1) {
        runs.entry((row.run, row.shape, row.component))
            .or_default()
            .push((row.variant, row.shift));
    }
    let mut contrasts: BTreeMap<u16, Vec<(f64, f64)>> = BTreeMap::new();
    for run in runs.values() {
        let Some((_, base)) = run.iter().find(|(variant, _)| *variant == 0) else {
            continue;
        };
        for (variant, own) in run.iter().filter(|(variant, _)| *variant != 0) {
            let noise = variance * (1.0 / own.n as f64 + 1.0 / base.n as f64);
            let weight = 1.0 / noise.max(1e-12);
            contrasts
                .entry(*variant)
                .or_default()
                .push((own.mean - base.mean, weight));
        }
    }
    let (mut squares, mut freedom) = (VARIANCE_PRIOR, VARIANCE_PRIOR);
    for of in contrasts.values() {
        let total: f64 = of.iter().map(|(_, weight)| weight).sum();
        let mean = of.iter().map(|(one, weight)| weight * one).sum::<f64>() / total;
        squares += of
            .iter()
            .map(|(one, weight)| weight * (one - mean).powi(2))
            .sum::<f64>();
        freedom += of.len() as f64 - 1.0;
    }
    (squares / freedom).max(1.0)
}

fn add(sum: &mut Moments, other: Moments) {
    let n = sum.n + other.n;
    if n == 0 {
        return;
    }
    // Means of different runs are of different levels; only the scatter within them is noise.
    sum.m2 += other.m2;
    sum.mean += (other.mean - sum.mean) * other.n as f64 / n as f64;
    sum.n = n;
}

/// The variance of true shifts among all contrasts but the defaults' own.
pub fn tau_squared(cells: &[Vec<Shift>]) -> f64 {
    let known: Vec<&Shift> = cells
        .iter()
        .flat_map(|cell| cell.iter().skip(1))
        .filter(|shift| shift.known)
        .collect();
    let wanted = known.len() as f64 + TAU_PRIOR;
    let squares = |tau: f64| {
        let sum: f64 = known
            .par_iter()
            .map(|shift| (shift.contrast.powi(2) / (tau * shift.scale + shift.variance)).min(25.0))
            .collect::<Vec<_>>()
            .iter()
            .sum();
        sum + TAU_PRIOR * TAU_GUESS.powi(2) / tau
    };
    root(squares, wanted, 1e-6, TAU_MOST.powi(2))
}

/// No variant costs less than this share of the time that it takes.
const COST_LEAST: f64 = 0.5;

/// What the default costs beyond its time, on the scale of that; `corrected` holds by variant its time on that scale, and
/// what is added to it. What lies between calls anyway is in all shifts and cannot be told from theirs, so it is taken
/// for all of the default's. Where a variant would cost next to nothing by that, what the variant that shifts least
/// shifts is taken for it.
pub fn of_default(corrected: impl Iterator<Item = (f64, Correction)> + Clone) -> f64 {
    let is_possible = |(ratio, own): (f64, Correction)| ratio + own.contrast >= COST_LEAST * ratio;
    match corrected.clone().all(is_possible) {
        true => 0.0,
        false => -corrected.fold(0.0, |least, (_, own)| least.min(own.contrast)),
    }
}

impl Shift {
    pub fn correction(&self, tau: f64) -> Correction {
        if !self.known {
            return Correction::default();
        }
        let tau = tau * self.scale;
        let kept = tau / (tau + self.variance);
        let slope = (self.covariance / self.variance).clamp(-1.0, 1.0);
        let variance = (1.0 + slope).powi(2) * kept * self.variance - slope * slope * self.variance;
        Correction {
            contrast: (kept - slope * (1.0 - kept)) * self.contrast,
            variance: variance.max(-0.5 * self.time_variance),
        }
    }
}
