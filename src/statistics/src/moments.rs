//! Means and what is spread about them.

use statrs::statistics::Statistics as _;

/// NaN of none.
pub fn mean(values: &[f64]) -> f64 {
    values.mean()
}

/// The standard deviation of a sample; `None` of fewer than two values.
pub fn standard_deviation(values: &[f64]) -> Option<f64> {
    (values.len() >= 2).then(|| values.std_dev())
}

/// NaN of none, and of values below 0; 0 where one is 0.
pub fn geometric_mean(values: &[f64]) -> f64 {
    values.geometric_mean()
}

/// The same of values that each have a weight; those that are not above 0 are left out. 1 without weight.
pub fn weighted_geometric_mean(values: impl Iterator<Item = (f64, f64)>) -> f64 {
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
    fn means_and_deviations_are_those_of_the_textbooks() {
        let deviation = standard_deviation(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]).unwrap();
        assert!((deviation - (32.0f64 / 7.0).sqrt()).abs() < 1e-12);
        assert_eq!(standard_deviation(&[1.0]), None);
        assert_eq!(mean(&[1.0, 3.0]), 2.0);
        assert!(mean(&[]).is_nan() && geometric_mean(&[]).is_nan());
        assert!((geometric_mean(&[1.0, 4.0]) - 2.0).abs() < 1e-12);
        assert_eq!(geometric_mean(&[1.0, 0.0]), 0.0);
        assert!(geometric_mean(&[-1.0, 2.0]).is_nan());
    }

    #[test]
    fn weights_count_and_what_has_none_is_left_out() {
        let values = [(4.0, 1.0), (1.0, 1.0), (0.0, 9.0)];
        let mean = weighted_geometric_mean(values.into_iter());
        assert!((mean - 2.0).abs() < 1e-12);
        assert_eq!(weighted_geometric_mean(std::iter::empty()), 1.0);
    }
}
