//! Medians, ratios and their intervals. Pure.

use colltune_core::select::mix;
use serde::Serialize;

/// The least, middle and largest of several ratios.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    pub min: f64,
    pub median: f64,
    pub max: f64,
}

/// An estimate with a two-sided 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Interval {
    pub low: f64,
    pub value: f64,
    pub high: f64,
}

/// NaN for no values.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => sorted[n / 2],
        n => (sorted[n / 2 - 1] + sorted[n / 2]) / 2.0,
    }
}

/// NaN for no values.
pub fn geometric_mean(values: &[f64]) -> f64 {
    (values.iter().map(|value| value.ln()).sum::<f64>() / values.len() as f64).exp()
}

pub fn spread(values: &[f64]) -> Spread {
    let fold = |pick: fn(f64, f64) -> f64| values.iter().copied().reduce(pick).unwrap_or(f64::NAN);
    Spread {
        min: fold(f64::min),
        median: median(values),
        max: fold(f64::max),
    }
}

/// a / b, place by place.
pub fn ratios(a: &[f64], b: &[f64]) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| a / b).collect()
}

/// The one-sided upper 95 % bound of the geometric mean of `ratios`, by Student's t over their
/// logarithms. Infinite for fewer than two ratios: nothing is beyond doubt then.
pub fn upper_bound(ratios: &[f64]) -> f64 {
    if ratios.len() < 2 {
        return f64::INFINITY;
    }
    let n = ratios.len() as f64;
    let logs: Vec<f64> = ratios.iter().map(|ratio| ratio.ln()).collect();
    let mean = logs.iter().sum::<f64>() / n;
    let variance = logs.iter().map(|log| (log - mean).powi(2)).sum::<f64>() / (n - 1.0);
    (mean + student(ratios.len() - 1) * (variance / n).sqrt()).exp()
}

/// The 95 % quantile of Student's distribution, rounded up between the tabulated degrees of freedom.
fn student(degrees: usize) -> f64 {
    const TABLE: [f64; 30] = [
        6.314, 2.920, 2.353, 2.132, 2.015, 1.943, 1.895, 1.860, 1.833, 1.812, 1.796, 1.782, 1.771,
        1.761, 1.753, 1.746, 1.740, 1.734, 1.729, 1.725, 1.721, 1.717, 1.714, 1.711, 1.708, 1.706,
        1.703, 1.701, 1.699, 1.697,
    ];
    TABLE.get(degrees - 1).copied().unwrap_or(1.697)
}

/// The difference of two medians, with a bootstrap interval over jobs.
pub fn median_difference(a: &[f64], b: &[f64]) -> Interval {
    bootstrap(&[a, b], |samples| median(&samples[0]) - median(&samples[1]))
}

/// The ratio of two medians, with a bootstrap interval over jobs.
pub fn median_ratio(a: &[f64], b: &[f64]) -> Interval {
    bootstrap(&[a, b], |samples| median(&samples[0]) / median(&samples[1]))
}

/// The geometric mean of rows' ratios, with a bootstrap interval over rounds: the rows of one round
/// share what the machine did then, so they are drawn together.
///
/// Shape: `rounds[r][row]` is a ratio measured in round r.
pub fn geometric_mean_over_rounds(rounds: &[Vec<f64>]) -> Interval {
    let means: Vec<f64> = rounds.iter().map(|rows| geometric_mean(rows)).collect();
    bootstrap(&[&means], |samples| geometric_mean(&samples[0]))
}

const RESAMPLES: u64 = 2000;

fn bootstrap(groups: &[&[f64]], statistic: impl Fn(&[Vec<f64>]) -> f64) -> Interval {
    let whole: Vec<Vec<f64>> = groups.iter().map(|group| group.to_vec()).collect();
    let resample = |seed: u64, group: &[f64]| -> Vec<f64> {
        let n = group.len() as u64;
        (0..n)
            .map(|place| group[(mix(seed, place) % n) as usize])
            .collect()
    };
    let mut values: Vec<f64> = (0..RESAMPLES)
        .map(|round| {
            let groups = groups
                .iter()
                .zip(0..)
                .map(|(group, number)| resample(mix(round, number), group));
            statistic(&groups.collect::<Vec<_>>())
        })
        .collect();
    values.sort_by(f64::total_cmp);
    let quantile = |share: f64| values[((RESAMPLES - 1) as f64 * share) as usize];
    Interval {
        low: quantile(0.025),
        value: statistic(&whole),
        high: quantile(0.975),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_and_means_of_known_values() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
        assert!(median(&[]).is_nan());
        assert!((geometric_mean(&[1.0, 4.0]) - 2.0).abs() < 1e-12);
        assert_eq!(
            spread(&[2.0, 1.0, 5.0]),
            Spread {
                min: 1.0,
                median: 2.0,
                max: 5.0
            }
        );
    }

    #[test]
    fn the_upper_bound_falls_below_one_only_when_the_ratios_agree() {
        assert!(upper_bound(&[0.90, 0.91, 0.92, 0.90, 0.91]) < 1.0);
        assert!(upper_bound(&[0.70, 1.20, 0.80, 1.10, 0.75]) > 1.0);
        assert_eq!(upper_bound(&[0.5]), f64::INFINITY);
        // Two values: mean -0.1, standard error 0.1, t = 6.314.
        let expected = (-0.1f64 + 6.314 * 0.1).exp();
        assert!((upper_bound(&[1.0, (-0.2f64).exp()]) - expected).abs() < 1e-9);
    }

    #[test]
    fn intervals_hold_the_estimate_and_know_a_shift() {
        let a: Vec<f64> = (0..40).map(|i| 30.0 + f64::from(i % 7) * 0.1).collect();
        let b: Vec<f64> = a.iter().map(|value| value - 5.0).collect();
        let difference = median_difference(&a, &b);
        assert!(difference.low <= difference.value && difference.value <= difference.high);
        assert!((difference.value - 5.0).abs() < 1e-9 && difference.high - difference.low < 0.5);
    }
}
