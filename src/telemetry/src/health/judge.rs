//! Whether a rank's inflation is more than chance.

use std::collections::BTreeMap;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use serde::Serialize;

use super::pace::Inflation;
use crate::statistics::{mad, median};

/// A slow rank takes so many times as long, surely so many times, and is so many deviations away.
pub const FACTOR: f64 = 1.15;
const FACTOR_LOW: f64 = 1.1;
const DEVIATIONS: f64 = 6.0;
/// Ranks never agree better than this, whatever a few of them show.
const SPREAD_MIN: f64 = 0.01;
const RESAMPLES: usize = 500;

/// What is known of one rank.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Judged {
    /// The median over steps.
    pub inflation: f64,
    /// Its lower end with 95 % confidence, by resampling steps.
    pub low: f64,
    /// From 1, in units of the ranks' spread.
    pub deviations: f64,
    pub is_slow: bool,
}

pub fn judge(inflation: &Inflation) -> BTreeMap<u32, Judged> {
    let of_rank = |steps: &BTreeMap<u64, f64>| steps.values().copied().collect::<Vec<f64>>();
    let medians: BTreeMap<u32, f64> = inflation
        .iter()
        .map(|(&rank, steps)| (rank, median(&of_rank(steps))))
        .collect();
    let known: Vec<f64> = medians
        .values()
        .copied()
        .filter(|x| x.is_finite())
        .collect();
    let spread = mad(&known).max(SPREAD_MIN);
    let judged = medians.into_iter().map(|(rank, middle)| {
        let deviations = (middle - 1.0) / spread;
        let suspicious = middle > FACTOR && deviations > DEVIATIONS;
        // Resampling is for the few that may be slow.
        let low = match suspicious {
            true => lower_bound(&of_rank(&inflation[&rank]), u64::from(rank)),
            false => middle,
        };
        let judged = Judged {
            inflation: middle,
            low,
            deviations,
            is_slow: suspicious && low > FACTOR_LOW,
        };
        (rank, judged)
    });
    judged.collect()
}

/// The 2.5 % quantile of the median of resampled values; the same values give the same number.
fn lower_bound(values: &[f64], seed: u64) -> f64 {
    let mut random = StdRng::seed_from_u64(seed);
    let mut medians: Vec<f64> = (0..RESAMPLES)
        .map(|_| {
            let draw = |_| values[random.random_range(0..values.len())];
            median(&(0..values.len()).map(draw).collect::<Vec<f64>>())
        })
        .collect();
    medians.sort_by(f64::total_cmp);
    medians[RESAMPLES / 40]
}
