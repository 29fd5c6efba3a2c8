//! What depends on the order of values alone, and on no distribution.

use serde::Serialize;

/// A median absolute deviation times this is the standard deviation where values are normal.
pub const NORMAL_MAD: f64 = 1.482_602_218_505_602;

pub fn sorted(mut values: Vec<f64>) -> Vec<f64> {
    values.sort_unstable_by(f64::total_cmp);
    values
}

/// The quantile `q`, within 0 and 1, of sorted values, between two of them by a straight line. NaN of none.
///
/// Source: Hyndman & Fan, The American Statistician 50(4), 1996, type 7.
pub fn quantile(sorted: &[f64], q: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else {
        return f64::NAN;
    };
    let at = q * last as f64;
    let (below, above) = (sorted[at.floor() as usize], sorted[at.ceil() as usize]);
    below + (above - below) * at.fract()
}

/// NaN of none; the values need not be sorted.
pub fn median(values: &[f64]) -> f64 {
    quantile(&sorted(values.to_vec()), 0.5)
}

/// The median absolute deviation: that of the values' distances from their median. NaN of none.
pub fn mad(values: &[f64]) -> f64 {
    let middle = median(values);
    let away: Vec<f64> = values.iter().map(|value| (value - middle).abs()).collect();
    median(&away)
}

/// The least, middle and largest of several values.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    pub min: f64,
    pub median: f64,
    pub max: f64,
}

/// NaN of none.
pub fn spread(values: &[f64]) -> Spread {
    let sorted = sorted(values.to_vec());
    Spread {
        min: quantile(&sorted, 0.0),
        median: quantile(&sorted, 0.5),
        max: quantile(&sorted, 1.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_textbooks() {
        let values = [1.0, 2.0, 4.0, 8.0, 100.0];
        let at = |q| quantile(&values, q);
        assert_eq!(
            [0.0, 0.25, 0.5, 0.625, 1.0].map(at),
            [1.0, 2.0, 4.0, 6.0, 100.0]
        );
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert!(median(&[]).is_nan() && quantile(&[], 0.5).is_nan() && mad(&[]).is_nan());
    }

    #[test]
    fn outliers_do_not_move_the_median_and_its_deviation() {
        let values = [1.0, 2.0, 3.0, 4.0, 1e9];
        assert_eq!((median(&values), mad(&values)), (3.0, 1.0));
        let (min, max) = (1.0, 1e9);
        let median = 3.0;
        assert_eq!(spread(&values), Spread { min, median, max });
        // The third quartile of the standard normal distribution is 0.67449.
        assert!((NORMAL_MAD * 0.674_489_750_196_082 - 1.0).abs() < 1e-12);
    }
}
