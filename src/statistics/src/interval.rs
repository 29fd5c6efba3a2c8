//! Intervals: by Student's distribution over logarithms, and by resampling.

use colltune_core::select::mix;
use serde::Serialize;
use statrs::distribution::{ContinuousCDF, StudentsT};
use statrs::statistics::Statistics as _;

use crate::moments::{geometric_mean, mean};
use crate::order::{median, quantile, sorted};

/// An estimate with a two-sided 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Interval {
    pub low: f64,
    pub value: f64,
    pub high: f64,
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
    let error = (logs.as_slice().variance() / n).sqrt();
    (mean(&logs) + student(n - 1.0, 0.95) * error).exp()
}

/// The lower one; 0 for fewer than two ratios.
pub fn lower_bound(ratios: &[f64]) -> f64 {
    let inverses: Vec<f64> = ratios.iter().map(|ratio| 1.0 / ratio).collect();
    1.0 / upper_bound(&inverses)
}

/// The quantile of Student's distribution below which the share `probability` lies.
fn student(degrees: f64, probability: f64) -> f64 {
    let student = StudentsT::new(0.0, 1.0, degrees).expect("degrees of freedom are above 0");
    student.inverse_cdf(probability)
}

/// A mean that one wild value in ten does not move, and how well it is known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TrimmedMean {
    pub mean: f64,
    /// Half the length of the 95 % interval; infinite for fewer than two values.
    pub half: f64,
    /// The least true mean that an interval leaves 0 outside for in four of five repetitions.
    pub detectable: f64,
}

/// By how much the error of 5 to 10 values is larger than their winsorized variance says: so much wider 95 % intervals held
/// the mean of 95 % of 200,000 samples of normal values each.
const FEW: [f64; 6] = [1.24, 1.135, 1.085, 1.06, 1.035, 1.03];

/// The mean without a tenth of the values at each end, one at least where there are five or more.
///
/// Source: Tukey & McLaughlin, Sankhya A 25 (1963): the interval is Student's, with the variance of the values
/// whose ends are winsorized, and with the degrees of freedom of what is left.
pub fn trimmed_mean(values: &[f64]) -> TrimmedMean {
    let sorted = sorted(values.to_vec());
    let n = sorted.len();
    let cut = if n < 5 { 0 } else { (n / 10).max(1) };
    let kept = &sorted[cut..n - cut];
    let mean = mean(kept);
    if n < 2 {
        let (half, detectable) = (f64::INFINITY, f64::INFINITY);
        return TrimmedMean {
            mean,
            half,
            detectable,
        };
    }
    let (low, high) = (kept[0], kept[kept.len() - 1]);
    let winsorized = sorted.iter().map(|value| value.clamp(low, high));
    let error = (winsorized.variance() * n as f64).sqrt() / kept.len() as f64;
    let degrees = (kept.len() - 1) as f64;
    let error = match n.checked_sub(5).and_then(|place| FEW.get(place)) {
        Some(factor) => factor * error,
        None => error,
    };
    let half = student(degrees, 0.975) * error;
    TrimmedMean {
        mean,
        half,
        detectable: half + student(degrees, 0.8) * error,
    }
}

/// The geometric mean of rows' ratios, with Student's 95 % interval over rounds: the rows of one round share what the
/// machine did then, so a round's mean is one value. One round has no width.
///
/// Shape: `rounds[r][row]` is a ratio measured in round r; a round may be all that was measured of one training.
pub fn geometric_mean_over_rounds(rounds: &[Vec<f64>]) -> Interval {
    let logs: Vec<f64> = rounds
        .iter()
        .map(|rows| geometric_mean(rows).ln())
        .collect();
    let (n, mean) = (logs.len() as f64, mean(&logs));
    let half = if logs.len() > 1 {
        student(n - 1.0, 0.975) * (logs.as_slice().variance() / n).sqrt()
    } else {
        0.0
    };
    Interval {
        low: (mean - half).exp(),
        value: mean.exp(),
        high: (mean + half).exp(),
    }
}

const RESAMPLES: u64 = 2000;

/// The difference of two medians, with a bootstrap interval over their values.
pub fn median_difference(a: &[f64], b: &[f64]) -> Interval {
    bootstrap([&single(a), &single(b)], |[a, b]| median(&a) - median(&b))
}

/// The ratio of two medians, with a bootstrap interval over their values.
pub fn median_ratio(a: &[f64], b: &[f64]) -> Interval {
    median_ratio_of_groups(&single(a), &single(b))
}

/// The same where values came in groups, as calls come in runs: groups are resampled, with all their values.
pub fn median_ratio_of_groups(a: &[Vec<f64>], b: &[Vec<f64>]) -> Interval {
    bootstrap([a, b], |[a, b]| median(&a) / median(&b))
}

fn single(values: &[f64]) -> Vec<Vec<f64>> {
    values.iter().map(|value| vec![*value]).collect()
}

/// The percentile interval of a statistic of two samples, whose groups are drawn anew as often as there are.
fn bootstrap(samples: [&[Vec<f64>]; 2], statistic: impl Fn([Vec<f64>; 2]) -> f64) -> Interval {
    let resample = |groups: &[Vec<f64>], seed: u64| -> Vec<f64> {
        let n = groups.len() as u64;
        let drawn = (0..n).map(|place| (mix(seed, place) % n) as usize);
        drawn
            .flat_map(|place| groups[place].iter().copied())
            .collect()
    };
    let again = |round: u64| {
        let [a, b] = samples;
        statistic([resample(a, mix(round, 0)), resample(b, mix(round, 1))])
    };
    let found = (0..RESAMPLES).map(again).filter(|one| one.is_finite());
    let found = sorted(found.collect());
    Interval {
        low: quantile(&found, 0.025),
        value: statistic(samples.map(|groups| groups.concat())),
        high: quantile(&found, 0.975),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_upper_bound_falls_below_one_only_when_the_ratios_agree() {
        assert!(upper_bound(&[0.90, 0.91, 0.92, 0.90, 0.91]) < 1.0);
        assert!(upper_bound(&[0.70, 1.20, 0.80, 1.10, 0.75]) > 1.0);
        assert_eq!(upper_bound(&[0.5]), f64::INFINITY);
        // Two values: mean -0.1, standard error 0.1, t = 6.314.
        let expected = (-0.1f64 + 6.313_751_515 * 0.1).exp();
        assert!((upper_bound(&[1.0, (-0.2f64).exp()]) - expected).abs() < 1e-6);
    }

    #[test]
    fn the_lower_bound_is_as_far_below_the_mean_as_the_upper_one_is_above_it() {
        let ratios = [1.0, (-0.2f64).exp()];
        let expected = (-0.1f64 - 6.313_751_515 * 0.1).exp();
        assert!((lower_bound(&ratios) - expected).abs() < 1e-6);
        assert!((lower_bound(&ratios) * upper_bound(&ratios) - (-0.2f64).exp()).abs() < 1e-9);
        assert_eq!((lower_bound(&[2.0]), lower_bound(&[])), (0.0, 0.0));
        assert!(lower_bound(&[1.01, 1.0, 0.99, 1.0, 1.01]) > 0.97);
    }

    #[test]
    fn a_trimmed_mean_is_students_without_trimming_and_one_wild_value_hardly_moves_it() {
        // Three values, none cut: mean 2, standard error 1 / sqrt 3, t with 2 degrees 4.302653.
        let three = trimmed_mean(&[1.0, 2.0, 3.0]);
        assert!((three.mean - 2.0).abs() < 1e-12);
        assert!((three.half - 4.302_652_73 / 3f64.sqrt()).abs() < 1e-6);
        assert!((three.detectable - three.half - 1.060_660_17 / 3f64.sqrt()).abs() < 1e-6);
        let values: Vec<f64> = (0..10).map(|i| 0.1 + 0.001 * f64::from(i % 5)).collect();
        let clean = trimmed_mean(&values);
        let mut wild = values.clone();
        wild[3] = 5.0;
        let wild = trimmed_mean(&wild);
        assert!(clean.mean - clean.half > 0.1 && wild.mean - wild.half > 0.1);
        assert!((wild.mean - clean.mean).abs() < 0.001);
        assert_eq!(trimmed_mean(&[1.0]).half, f64::INFINITY);
    }

    /// 4,000 data sets of each number of normal values, by quantiles in a fixed order.
    #[test]
    fn the_interval_of_a_trimmed_mean_holds_the_truth_as_often_as_it_says() {
        let normal = statrs::distribution::Normal::new(0.0, 1.0).unwrap();
        let value = |set: u64, place: u64| {
            let uniform = (mix(set, place) >> 11) as f64 / (1u64 << 53) as f64;
            normal.inverse_cdf(uniform.max(1e-12))
        };
        for n in [2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 20, 40] {
            let holds = |set: &u64| {
                let values: Vec<f64> = (0..n).map(|place| value(*set, place)).collect();
                let found = trimmed_mean(&values);
                found.mean.abs() <= found.half
            };
            let held = (1..=4000).filter(holds).count();
            assert!((3750..=3850).contains(&held), "{n} values: {held}");
        }
    }

    #[test]
    fn intervals_hold_the_estimate_and_know_a_shift() {
        let a: Vec<f64> = (0..40).map(|i| 30.0 + f64::from(i % 7) * 0.1).collect();
        let b: Vec<f64> = a.iter().map(|value| value - 5.0).collect();
        let difference = median_difference(&a, &b);
        assert!(difference.low <= difference.value && difference.value <= difference.high);
        assert!((difference.value - 5.0).abs() < 1e-9 && difference.high - difference.low < 0.5);
    }

    #[test]
    fn the_interval_of_a_ratio_holds_it_and_is_the_same_again() {
        let a: Vec<f64> = (0..20).map(|i| 10.0 + f64::from(i % 5)).collect();
        let b: Vec<f64> = a.iter().map(|value| value / 2.0).collect();
        let ratio = median_ratio(&a, &b);
        assert!((ratio.value - 2.0).abs() < 1e-12);
        assert!(ratio.low <= 2.0 && 2.0 <= ratio.high && ratio.low > 1.5 && ratio.high < 2.6);
        assert_eq!(ratio, median_ratio(&a, &b));
    }

    /// What a run does to all of its calls cannot be averaged out by more calls.
    #[test]
    fn values_of_one_group_do_not_make_an_interval_narrow() {
        let runs = |level: f64| -> Vec<Vec<f64>> {
            let level_of = |run: u64| level + (run % 3) as f64;
            (0..6).map(|run| vec![level_of(run); 100]).collect()
        };
        let of_groups = median_ratio_of_groups(&runs(10.0), &runs(5.0));
        let of_values = median_ratio(&runs(10.0).concat(), &runs(5.0).concat());
        let width = |found: Interval| found.high - found.low;
        assert!(
            width(of_groups) > 1.5 * width(of_values),
            "{of_groups:?}, {of_values:?}"
        );
        assert_eq!(of_groups.value, of_values.value);
    }
}
