//! Quantiles, and intervals by resampling with seeds of their own: the same data give the same numbers.

use colltune_core::select::mix;
use serde::Serialize;

const RESAMPLES: u64 = 1000;

/// A number with its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Estimate {
    pub value: f64,
    pub lo: f64,
    pub hi: f64,
}

/// The quantile `q` of sorted values, between two of them by a straight line. NaN of none.
pub fn quantile(sorted: &[f64], q: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else {
        return f64::NAN;
    };
    let at = q * last as f64;
    let (below, above) = (sorted[at.floor() as usize], sorted[at.ceil() as usize]);
    below + (above - below) * at.fract()
}

pub fn sorted(mut values: Vec<f64>) -> Vec<f64> {
    values.sort_by(f64::total_cmp);
    values
}

pub fn median(values: &[f64]) -> f64 {
    quantile(&sorted(values.to_vec()), 0.5)
}

/// The median of `a` over that of `b`, with a bootstrap interval over their values.
pub fn median_ratio(a: &[f64], b: &[f64]) -> Estimate {
    let groups = |values: &[f64]| values.iter().map(|value| vec![*value]).collect::<Vec<_>>();
    median_ratio_of_groups(&groups(a), &groups(b))
}

/// The same where values came in groups, as calls come in runs: groups are resampled, with all their values.
pub fn median_ratio_of_groups(a: &[Vec<f64>], b: &[Vec<f64>]) -> Estimate {
    let ratio = |a: Vec<f64>, b: Vec<f64>| median(&a) / median(&b);
    let resampled = |groups: &[Vec<f64>], seed: u64| -> Vec<f64> {
        let n = groups.len() as u64;
        let chosen = (0..n).map(|place| (mix(seed, place) % n) as usize);
        chosen
            .flat_map(|place| groups[place].iter().copied())
            .collect()
    };
    let all = |round| ratio(resampled(a, 2 * round), resampled(b, 2 * round + 1));
    let ratios = sorted(
        (0..RESAMPLES)
            .map(all)
            .filter(|one| one.is_finite())
            .collect(),
    );
    Estimate {
        value: ratio(a.concat(), b.concat()),
        lo: quantile(&ratios, 0.025),
        hi: quantile(&ratios, 0.975),
    }
}

/// The mean of logarithms, each with its weight, as a factor; 1 without weight.
pub fn geometric_mean(values: impl Iterator<Item = (f64, f64)>) -> f64 {
    let (sum, weights) = values
        .filter(|(value, weight)| *value > 0.0 && *weight > 0.0)
        .fold((0.0, 0.0), |(sum, weights), (value, weight)| {
            (sum + weight * value.ln(), weights + weight)
        });
    if weights > 0.0 {
        (sum / weights).exp()
    } else {
        1.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_and_means_are_those_of_the_books() {
        let values = [1.0, 2.0, 3.0, 4.0];
        assert_eq!(quantile(&values, 0.5), 2.5);
        assert_eq!((quantile(&values, 0.0), quantile(&values, 1.0)), (1.0, 4.0));
        assert!(quantile(&[], 0.5).is_nan());
        let mean = geometric_mean([(4.0, 1.0), (1.0, 1.0), (0.0, 9.0)].into_iter());
        assert!((mean - 2.0).abs() < 1e-12);
        assert_eq!(geometric_mean(std::iter::empty()), 1.0);
    }

    #[test]
    fn the_interval_of_a_ratio_holds_it_and_is_the_same_again() {
        let a: Vec<f64> = (0..20).map(|i| 10.0 + f64::from(i % 5)).collect();
        let b: Vec<f64> = a.iter().map(|value| value / 2.0).collect();
        let ratio = median_ratio(&a, &b);
        assert!((ratio.value - 2.0).abs() < 1e-12);
        assert!(ratio.lo <= 2.0 && 2.0 <= ratio.hi && ratio.lo > 1.5 && ratio.hi < 2.6);
        assert_eq!(ratio, median_ratio(&a, &b));
    }
}
