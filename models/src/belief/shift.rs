//! What a variant shifts into what follows the call, as far as the data tell it from the program's own compute. It is used
//! twice: for the way to the next collective, and for the waiting in that one.
//!
//! Random draws meet the compute alike, so the contrast of what came behind is an unbiased, often noisy estimate. Its
//! prior is N(0, tau^2), tau pooled over all cells: what is noisy shrinks to nothing. Where time inside and behind
//! the call vary together, the variance of their sum holds that.

use std::collections::BTreeMap;

use rayon::prelude::*;

use super::root::root;
use crate::evidence::{Evidence, Moments};

/// The prior of tau, relative to the default's time, and how many contrasts it counts for.
const TAU_GUESS: f64 = 0.02;
const TAU_PRIOR: f64 = 2.0;
/// Shifts larger than this share of the default's time are not expected of any variant.
const TAU_MOST: f64 = 0.2;
/// Less no variant takes, in times of the default's.
const TIME_LEAST: f64 = 1e-9;
/// Degrees of freedom by which a variant's variance leans on the cell's.
const VARIANCE_PRIOR: f64 = 8.0;

/// The contrast of one variant with the default, all relative to the default's time.
#[derive(Clone, Copy, Debug, Default)]
pub struct Shift {
    contrast: f64,
    variance: f64,
    /// Covariance with the error of the contrast of times, and that one's variance, over the runs and calls of which
    /// the shift is known.
    covariance: f64,
    time_variance: f64,
    /// The least and the most that these runs and calls weigh in the contrast of times.
    known_share: [f64; 2],
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

/// What a call of a variant varies by within runs, per call, in times of the default's.
#[derive(Clone, Copy)]
struct Spread {
    time: f64,
    shift: f64,
    covariance: f64,
}

/// Sums over the runs of one variant's contrasts with the default's calls of the same run, each relative to these, by
/// how much they tell.
#[derive(Clone, Copy, Default)]
struct Sum {
    weight: f64,
    shift: f64,
    /// How many times as long as the default's its calls take.
    ratio: f64,
    shift_variance: f64,
    covariance: f64,
    time_variance: f64,
    calls: u64,
    /// What runs weigh in the contrast of times if runs differ little, and if they differ much: all of them, and those
    /// of which the shift is known.
    of_times: [f64; 2],
    of_known: [f64; 2],
}

/// The contrasts of a cell, by the places of `variants`; the default is the first. What lies behind most calls of a
/// run depends on what was drawn there, so only calls of the same run are compared. `weight` says how much a run
/// counts; all rows are in times of the default's, those in `told` before stalls were corrected.
pub fn of_cell(
    rows: &[&Evidence],
    told: &[&Evidence],
    variants: &[u16],
    weight: impl Fn(&Evidence) -> f64,
) -> Vec<Shift> {
    let place = |row: &Evidence| variants.binary_search(&row.variant).ok();
    let spreads = spreads(rows, told, variants.len(), place);
    let between_runs = between_runs(rows, pooled(rows, |row| &row.shift));
    let mut bases: BTreeMap<_, &Evidence> = BTreeMap::new();
    for row in rows.iter().filter(|row| row.variant == 0) {
        bases.insert((row.run, row.shape, row.component), row);
    }
    let mut sums = vec![Sum::default(); variants.len()];
    for row in rows {
        let base = bases.get(&(row.run, row.shape, row.component));
        let (Some(arm), Some(base)) = (place(row), base) else {
            continue;
        };
        let sum = &mut sums[arm];
        let weight_of = |of: fn(&Evidence) -> u64| {
            let (n, n_base) = (of(row) as f64, of(base) as f64);
            weight(row) * n * n_base / (n + n_base).max(1.0)
        };
        let of_run = weight_of(|row| row.shift.n);
        add(
            &mut sum.of_times,
            [weight_of(|row| row.time.n), weight(row)],
        );
        if of_run == 0.0 {
            continue;
        }
        add(&mut sum.of_known, [of_run, weight(row)]);
        let (n, n_base) = (row.shift.n as f64, base.shift.n as f64);
        let unit = base.time.mean.max(1e-3);
        // Of a variant that takes a thousandth of the default's time, what the latter's is off by counts a thousandth.
        let ratio = row.time.mean / unit;
        let variance = |part: fn(&Spread) -> f64, share: f64| {
            let both = part(&spreads[arm]) / n + share * part(&spreads[0]) / n_base;
            of_run.powi(2) * both / unit.powi(2)
        };
        sum.weight += of_run;
        sum.shift += of_run * (row.shift.mean - base.shift.mean) / unit;
        sum.ratio += of_run * ratio;
        sum.shift_variance += variance(|of| of.shift, 1.0);
        sum.covariance += variance(|of| of.covariance, ratio);
        sum.time_variance += variance(|of| of.time, ratio * ratio);
        sum.calls += row.shift.n.min(base.shift.n);
    }
    sums.iter()
        .map(|sum| {
            let weight = sum.weight.max(f64::MIN_POSITIVE.sqrt());
            let [by_calls, by_runs] = [0, 1]
                .map(|by| (sum.of_known[by] / sum.of_times[by].max(f64::MIN_POSITIVE)).min(1.0));
            Shift {
                contrast: sum.shift / weight,
                variance: (between_runs * sum.shift_variance / weight.powi(2)).max(1e-9),
                covariance: sum.covariance / weight.powi(2),
                time_variance: sum.time_variance / weight.powi(2),
                known_share: [by_calls.min(by_runs), by_calls.max(by_runs)],
                scale: (sum.ratio / weight).powi(2).max(1.0),
                known: sum.calls > 1 && sum.weight > 0.0,
            }
        })
        .collect()
}

fn add(sums: &mut [f64; 2], more: [f64; 2]) {
    for (sum, more) in sums.iter_mut().zip(more) {
        *sum += more;
    }
}

/// The variance of a quantity within the runs, all variants together.
fn pooled(rows: &[&Evidence], part: impl Fn(&Evidence) -> &Moments) -> f64 {
    let known = rows.iter().map(|row| part(row)).filter(|of| of.n > 0);
    let (squares, freedom) = known.fold((0.0, 0.0), |(squares, freedom), of| {
        (squares + of.m2, freedom + (of.n - 1) as f64)
    });
    match freedom > 0.0 {
        true => squares / freedom,
        false => 0.0,
    }
}

/// What calls of each variant vary by, leaning on the cell's: in times of what the variant takes, since one may take a
/// thousandth of another's time. `told` are the rows before corrections, whose times and sums are of the same calls.
fn spreads(
    rows: &[&Evidence],
    told: &[&Evidence],
    n: usize,
    place: impl Fn(&Evidence) -> Option<usize>,
) -> Vec<Spread> {
    let (mut arms, mut all) = (vec![Pools::default(); n], Pools::default());
    for row in rows.iter().filter(|row| row.shift.n > 0) {
        let Some(arm) = place(row) else { continue };
        let mean = row.time.mean.max(TIME_LEAST);
        let [freedom, of_shift] = [row.time.n, row.shift.n].map(|n| n.saturating_sub(1) as f64);
        arms[arm]
            .takes
            .add(row.time.n as f64 * mean, row.time.n as f64);
        arms[arm].time.add(row.time.m2, freedom);
        all.time.add(row.time.m2 / (mean * mean), freedom);
        for pools in [&mut arms[arm], &mut all] {
            pools.shift.add(row.shift.m2, of_shift);
        }
    }
    for row in told.iter().filter(|row| row.shift.n > 1) {
        let Some(arm) = place(row) else { continue };
        let freedom = (row.shift.n - 1) as f64;
        let products = freedom * covariance(row);
        arms[arm].covariance.add(products, freedom);
        all.covariance
            .add(products / row.time.mean.max(TIME_LEAST), freedom);
    }
    let of_arm = |arm: &Pools| {
        let takes = arm.takes.mean().max(TIME_LEAST);
        let time = arm.time.leaning(takes * takes * all.time.mean());
        let shift = arm.shift.leaning(all.shift.mean());
        let most = (time * shift).max(0.0).sqrt();
        let covariance = arm.covariance.leaning(takes * all.covariance.mean());
        Spread {
            time,
            shift,
            covariance: covariance.clamp(-most, most),
        }
    };
    arms.iter().map(of_arm).collect()
}

/// What rows say together: of their variances, covariances and times.
#[derive(Clone, Copy, Default)]
struct Pools {
    takes: Pool,
    time: Pool,
    shift: Pool,
    covariance: Pool,
}

/// A sum, and how many count in it.
#[derive(Clone, Copy, Default)]
struct Pool {
    sum: f64,
    n: f64,
}

impl Pool {
    fn add(&mut self, sum: f64, n: f64) {
        (self.sum, self.n) = (self.sum + sum, self.n + n);
    }

    fn mean(self) -> f64 {
        if self.n > 0.0 { self.sum / self.n } else { 0.0 }
    }

    fn leaning(self, usual: f64) -> f64 {
        (self.sum + VARIANCE_PRIOR * usual) / (self.n + VARIANCE_PRIOR)
    }
}

/// The covariance of a call's time and its shift. Some calls have no shift: by how far the mean of their times is from the
/// others' the variance of all times is more than that of those.
fn covariance(row: &Evidence) -> f64 {
    let (n, m) = (row.time.n as f64, row.shift.n as f64);
    let apart = row.total.mean - row.shift.mean - row.time.mean;
    let between = if n > m {
        m * n / (n - m) * apart * apart
    } else {
        0.0
    };
    let time = (row.time.m2 - between).max(0.0) / (n - 1.0).max(1.0);
    (row.total.variance() - time - row.shift.variance()) / 2.0
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

/// The variance of true shifts among all contrasts but the defaults' own.
pub fn tau_squared(cells: &[&[Shift]]) -> f64 {
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
/// what is added to it. What lies between calls anyway is in all shifts and cannot be separated from theirs, so it is
/// taken for all of the default's. Where a variant would cost next to nothing by that, what the variant that shifts
/// least shifts is taken for it.
pub fn of_default(corrected: impl Iterator<Item = (f64, Correction)> + Clone) -> f64 {
    let is_possible = |(ratio, own): (f64, Correction)| ratio + own.contrast >= COST_LEAST * ratio;
    match corrected.clone().all(is_possible) {
        true => 0.0,
        false => -corrected.fold(0.0, |least, (_, own)| least.min(own.contrast)),
    }
}

/// What is to be added to the time for both: for the shift, and for the time in the next collective `after` it.
pub fn of_both(shift: &Shift, after: &Shift, tau: [f64; 2]) -> Correction {
    let first = shift.correction(tau[0]);
    // How it varies with time and shift corrects nothing. Where they rise together the sum is less sure for it.
    let together = after.covariance.max(0.0);
    let unrelated = Shift {
        covariance: 0.0,
        ..*after
    };
    let second = unrelated.correction(tau[1]);
    let common = 2.0 * unrelated.share(tau[1]) * after.known_share[1] * together;
    Correction {
        contrast: first.contrast + second.contrast,
        variance: first.variance + second.variance + common,
    }
}

impl Shift {
    /// Of the contrast so much is added to that of times.
    fn share(&self, tau: f64) -> f64 {
        if !self.known {
            return 0.0;
        }
        tau * self.scale / (tau * self.scale + self.variance)
    }

    fn correction(&self, tau: f64) -> Correction {
        if !self.known {
            return Correction::default();
        }
        // What is off beyond the time's own error: what of the shift's noise comes along, together with that error, and
        // what of the true shift is left out.
        let (share, tau) = (self.share(tau), tau * self.scale);
        let [least, most] = self.known_share;
        let together = share * self.covariance;
        let known = if together > 0.0 { most } else { least };
        let variance =
            share.powi(2) * self.variance + 2.0 * known * together + (1.0 - share).powi(2) * tau;
        Correction {
            contrast: share * self.contrast,
            variance: variance.max(-0.5 * least.powi(2) * self.time_variance),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By what is known exactly: the error of the time and the shift's noise from one normal draw, the true shift from
    /// another.
    #[test]
    fn what_is_off_is_stated_where_time_and_shift_rise_together_more_than_the_shift_varies() {
        let (variance, covariance, tau) = (1e-4, 6e-4, 0.04);
        let shift = Shift {
            contrast: 0.1,
            variance,
            covariance,
            time_variance: 4e-3,
            known_share: [1.0; 2],
            scale: 1.0,
            known: true,
        };
        let found = shift.correction(tau);
        let share = found.contrast / 0.1;
        let truth =
            share * share * variance + 2.0 * share * covariance + (1.0 - share).powi(2) * tau;
        assert!((found.variance / truth - 1.0).abs() < 1e-9, "{found:?}");
        assert!(found.variance > 1.1e-3, "{found:?}");
        // Where they are unrelated it is what is left of the shift's own.
        let unrelated = Shift {
            covariance: 0.0,
            ..shift
        };
        let left = tau * variance / (tau + variance);
        assert!((unrelated.correction(tau).variance / left - 1.0).abs() < 1e-9);
    }
}
