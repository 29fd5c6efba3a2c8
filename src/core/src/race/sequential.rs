//! A t-test that may be looked at as often as one likes.
//!
//! Source: the mixture of t-statistics: Lai, Annals of Statistics 4, 1976; as an e-process: Wang & Ramdas, Sequential
//! Analysis 44, 2025; Howard et al., Annals of Statistics 49, 2021.

/// What the mixture expects: effects of about a standard deviation. Large ones, of which few samples tell, cost a
/// narrower mixture many; small ones cost this one little, the root of a factor.
const PRIOR_WEIGHT: f64 = 1.0;
/// More degrees of freedom make no difference.
const DEGREES_MOST: u32 = 200;

/// Whether a t-statistic refutes the null hypothesis at level `alpha` however often it is looked at: its likelihood
/// ratio under a normal mixture of effects reaches 1 / `alpha`. Total; NaN refutes nothing.
///
/// Shape:  `weight` is what the mean behind `t` is worth in observations, `degrees` of freedom are its variance's.
pub(super) fn refutes(t: f64, weight: f64, degrees: f64, alpha: f64) -> bool {
    let share = PRIOR_WEIGHT / (PRIOR_WEIGHT + weight);
    let square = t * t / degrees;
    let ratio = (1.0 + square) / (1.0 + share * square);
    // The square of the likelihood ratio needs no roots.
    let exponent = (degrees as u32).clamp(1, DEGREES_MOST) + 1;
    share * power(ratio, exponent) * alpha * alpha >= 1.0
}

fn power(base: f64, exponent: u32) -> f64 {
    let (mut result, mut square, mut left) = (1.0, base, exponent);
    while left > 0 {
        if left % 2 == 1 {
            result *= square;
        }
        square *= square;
        left /= 2;
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_confidence_and_fewer_degrees_ask_for_more() {
        let least = |degrees: f64, alpha: f64| {
            let mut all = (0..1000).map(|step| f64::from(step) / 10.0);
            all.find(|t| refutes(*t, 100.0, degrees, alpha)).unwrap()
        };
        assert!(
            (3.5..4.2).contains(&least(200.0, 0.01)),
            "{}",
            least(200.0, 0.01)
        );
        assert!((4.5..5.5).contains(&least(200.0, 0.0001)));
        assert!(least(8.0, 0.0001) > 1.5 * least(200.0, 0.0001));
    }

    #[test]
    fn what_is_no_number_refutes_nothing() {
        for odd in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0, -1.0] {
            for other in [f64::NAN, f64::INFINITY, 0.0, -8.0, 1e300] {
                assert!(!refutes(f64::NAN, odd, other, 0.01));
                assert!(!refutes(odd, f64::NAN, other, 0.01));
                assert!(!refutes(0.0, other.abs(), 5.0, 0.01));
            }
        }
    }
}
