//! Robust statistics of a few thousand values.

use statrs::statistics::{Data, OrderStatistics as _, RankTieBreaker, Statistics as _};

/// NaN of none.
pub fn median(values: &[f64]) -> f64 {
    Data::new(values.to_vec()).median_of()
}

trait MedianOf {
    fn median_of(self) -> f64;
}

impl MedianOf for Data<Vec<f64>> {
    fn median_of(mut self) -> f64 {
        match self.is_empty() {
            true => f64::NAN,
            false => self.quantile(0.5),
        }
    }
}

/// The median absolute deviation, in units of a normal distribution's standard deviation.
pub fn mad(values: &[f64]) -> f64 {
    let middle = median(values);
    let away: Vec<f64> = values.iter().map(|value| (value - middle).abs()).collect();
    1.4826 * median(&away)
}

pub fn mean(values: &[f64]) -> f64 {
    values.mean()
}

/// Pearson's correlation; `None` where one of them does not vary.
pub fn pearson(x: &[f64], y: &[f64]) -> Option<f64> {
    assert_eq!(x.len(), y.len());
    if x.len() < 3 {
        return None;
    }
    let spread = x.std_dev() * y.std_dev();
    let r = x.covariance(y) / spread;
    (spread > 0.0 && r.is_finite()).then_some(r)
}

/// Spearman's correlation of ranks; `None` where one of them does not vary.
pub fn spearman(x: &[f64], y: &[f64]) -> Option<f64> {
    let ranks = |values: &[f64]| Data::new(values.to_vec()).ranks(RankTieBreaker::Average);
    pearson(&ranks(x), &ranks(y))
}

/// Largest over mean; 1 of none.
pub fn imbalance(values: &[f64]) -> f64 {
    let mean = mean(values);
    match mean > 0.0 {
        true => values.iter().copied().fold(0.0, f64::max) / mean,
        false => 1.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outliers_do_not_move_the_median_and_its_deviation() {
        let values = [1.0, 2.0, 3.0, 4.0, 1e9];
        assert_eq!(median(&values), 3.0);
        assert!((mad(&values) - 1.4826).abs() < 1e-9);
        assert!(median(&[]).is_nan());
    }

    #[test]
    fn correlations_see_lines_and_orders() {
        let x = [1.0, 2.0, 3.0, 4.0];
        assert!((pearson(&x, &[2.0, 4.0, 6.0, 8.0]).unwrap() - 1.0).abs() < 1e-12);
        assert!((spearman(&x, &[1.0, 10.0, 100.0, 1e6]).unwrap() - 1.0).abs() < 1e-12);
        assert_eq!(pearson(&x, &[5.0; 4]), None);
        assert_eq!(imbalance(&[1.0, 3.0]), 1.5);
    }
}
