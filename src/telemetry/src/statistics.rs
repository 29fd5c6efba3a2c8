//! Statistics of a few thousand values, as telemetry asks for them.

use colltune_statistics::order::NORMAL_MAD;
pub use colltune_statistics::{mean, median};

/// Fewer pairs than this lie on a line by chance.
const PAIRS_LEAST: usize = 3;

/// The median absolute deviation, in units of a normal distribution's standard deviation.
pub fn mad(values: &[f64]) -> f64 {
    NORMAL_MAD * colltune_statistics::mad(values)
}

/// Pearson's correlation; `None` of few pairs, and where one of them does not vary.
pub fn pearson(x: &[f64], y: &[f64]) -> Option<f64> {
    colltune_statistics::pearson(x, y).filter(|_| x.len() >= PAIRS_LEAST)
}

/// Spearman's correlation of ranks; `None` as above.
pub fn spearman(x: &[f64], y: &[f64]) -> Option<f64> {
    colltune_statistics::spearman(x, y).filter(|_| x.len() >= PAIRS_LEAST)
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
    fn a_deviation_is_in_units_of_the_normal_one_and_two_pairs_say_nothing() {
        assert!((mad(&[1.0, 2.0, 3.0, 4.0, 1e9]) - NORMAL_MAD).abs() < 1e-12);
        let x = [1.0, 2.0, 3.0];
        assert!(
            pearson(&x, &[2.0, 4.0, 6.0]).is_some() && spearman(&x, &[1.0, 9.0, 10.0]).is_some()
        );
        assert_eq!(
            (pearson(&x[..2], &x[..2]), spearman(&x[..2], &x[..2])),
            (None, None)
        );
        assert_eq!((imbalance(&[1.0, 3.0]), imbalance(&[])), (1.5, 1.0));
    }
}
