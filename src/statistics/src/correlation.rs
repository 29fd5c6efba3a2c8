//! How far two quantities go together.

use statrs::statistics::{Data, OrderStatistics as _, RankTieBreaker, Statistics as _};

/// Pearson's correlation; `None` of fewer than two pairs, and where one of them does not vary.
pub fn pearson(x: &[f64], y: &[f64]) -> Option<f64> {
    assert_eq!(x.len(), y.len());
    let spread = x.std_dev() * y.std_dev();
    let r = x.covariance(y) / spread;
    (spread > 0.0 && r.is_finite()).then_some(r.clamp(-1.0, 1.0))
}

/// Spearman's correlation: that of the ranks, where equal values share the mean of theirs. `None` as of [`pearson`].
pub fn spearman(x: &[f64], y: &[f64]) -> Option<f64> {
    let ranks = |values: &[f64]| Data::new(values.to_vec()).ranks(RankTieBreaker::Average);
    pearson(&ranks(x), &ranks(y))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_about(found: Option<f64>, expected: f64) {
        let found = found.expect("there is one");
        assert!((found - expected).abs() < 1e-12, "{found}");
    }

    #[test]
    fn spearman_sees_order_and_pearson_lines() {
        let x: Vec<f64> = (1..9).map(f64::from).collect();
        let cubes: Vec<f64> = x.iter().map(|x| x.powi(3)).collect();
        let line: Vec<f64> = x.iter().map(|x| -2.0 * x).collect();
        is_about(spearman(&x, &cubes), 1.0);
        is_about(pearson(&x, &line), -1.0);
        assert!(pearson(&x, &cubes).unwrap() < 0.95);
        // Ranks 1.5, 1.5, 3 and 1, 2, 3.
        let tied = spearman(&[5.0, 5.0, 9.0], &[1.0, 2.0, 3.0]);
        is_about(tied, 0.75f64.sqrt());
        is_about(pearson(&[1.0, 2.0], &[7.0, 9.0]), 1.0);
    }

    #[test]
    fn what_does_not_vary_goes_with_nothing() {
        let x = [1.0, 2.0, 3.0];
        assert_eq!(
            (pearson(&x, &[5.0; 3]), spearman(&[5.0; 3], &x)),
            (None, None)
        );
        assert_eq!((pearson(&[], &[]), pearson(&[1.0], &[2.0])), (None, None));
        assert_eq!(spearman(&[], &[]), None);
    }
}
