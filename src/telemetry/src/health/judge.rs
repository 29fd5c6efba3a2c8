//! Whether a rank's inflation is more than chance.

use std::collections::BTreeMap;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use serde::Serialize;

use super::pace::{Inflation, Pace};
use crate::statistics::{mad, mean, median};

/// A slow rank takes so many times as long, surely so many times, and is so many deviations away.
pub const FACTOR: f64 = 1.15;
const FACTOR_LOW: f64 = 1.1;
const DEVIATIONS: f64 = 6.0;
/// Ranks never agree better than this, whatever a few of them show.
const SPREAD_MIN: f64 = 0.01;
const RESAMPLES: usize = 500;
/// The share of a rank's steps, its slowest, that a mean leaves out: stalls are no pace.
const STALLS: f64 = 0.01;
/// Stretches of the steps in each of which a mean has to be large: it tells slow now and then from slow for a while.
const STRETCHES: usize = 4;

/// What is known of one rank.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Judged {
    /// Over all steps.
    pub inflation: f64,
    /// Its lower end with 95 % confidence, by resampling steps.
    pub low: f64,
    /// From 1, in units of the ranks' spread.
    pub deviations: f64,
    pub is_slow: bool,
}

/// Judges each rank by the pace of its blocks, over steps as within them: a rank that is stopped now and then is slow
/// in few steps, and very slow in those, which the mean alone sees.
pub fn judge(inflation: &Inflation, pace: Pace) -> BTreeMap<u32, Judged> {
    let paces = inflation.iter().filter_map(|(&rank, steps)| {
        let values: Vec<f64> = steps.values().copied().collect();
        let value = over_steps(pace, &values);
        value.is_finite().then_some((rank, value))
    });
    let mut paces: BTreeMap<u32, f64> = paces.collect();
    // What all ranks lose now and then is in the means, and not in what is expected: that is the median rank's.
    let usual = match pace {
        Pace::Mean => median(&paces.values().copied().collect::<Vec<f64>>()),
        Pace::Median => 1.0,
    };
    paces.values_mut().for_each(|value| *value /= usual);
    let spread = mad(&paces.values().copied().collect::<Vec<f64>>()).max(SPREAD_MIN);
    let judged = paces.into_iter().map(|(rank, value)| {
        let deviations = (value - 1.0) / spread;
        let suspicious = value > FACTOR && deviations > DEVIATIONS;
        // Resampling is for the few that may be slow.
        let (mut low, mut is_slow) = (value, false);
        if suspicious {
            let values: Vec<f64> = inflation[&rank].values().map(|x| x / usual).collect();
            low = lower_bound(&values, pace, u64::from(rank));
            is_slow = low > FACTOR_LOW && (pace == Pace::Median || is_throughout(&values));
        }
        let judged = Judged {
            inflation: value,
            low,
            deviations,
            is_slow,
        };
        (rank, judged)
    });
    judged.collect()
}

/// By rank, what its median blocks say where they are slow: a time slice that is lost falls on few of them. Where the
/// mean is surely larger still, the rank is stopped besides.
pub fn slowest([mean, median]: [BTreeMap<u32, Judged>; 2]) -> BTreeMap<u32, Judged> {
    let mut judged = mean;
    for (rank, robust) in median.into_iter().filter(|(_, robust)| robust.is_slow) {
        let known = judged.entry(rank).or_insert(robust);
        if !(known.is_slow && known.low > FACTOR * robust.inflation) {
            *known = robust;
        }
    }
    judged
}

fn over_steps(pace: Pace, values: &[f64]) -> f64 {
    match pace {
        Pace::Median => median(values),
        Pace::Mean => {
            let mut values = values.to_vec();
            values.sort_by(f64::total_cmp);
            let n_stalls = (STALLS * values.len() as f64).ceil() as usize;
            values.truncate((values.len() - n_stalls).max(1));
            mean(&values)
        }
    }
}

/// Whether the mean is large in each stretch of the steps.
fn is_throughout(values: &[f64]) -> bool {
    let mut stretches = values.chunks(values.len().div_ceil(STRETCHES).max(1));
    stretches.all(|stretch| mean(stretch) > FACTOR_LOW)
}

/// The 2.5 % quantile of the pace of resampled steps; the same values give the same number.
fn lower_bound(values: &[f64], pace: Pace, seed: u64) -> f64 {
    let mut random = StdRng::seed_from_u64(seed);
    let mut paces: Vec<f64> = (0..RESAMPLES)
        .map(|_| {
            let draw = |_| values[random.random_range(0..values.len())];
            over_steps(pace, &(0..values.len()).map(draw).collect::<Vec<f64>>())
        })
        .collect();
    paces.sort_by(f64::total_cmp);
    paces[RESAMPLES / 40]
}
