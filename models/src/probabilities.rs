//! Weights as probabilities that keep to a least and a most.

/// The least and the most probability of a variant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bounds {
    pub min: f64,
    pub max: f64,
}

/// Probabilities, and whether the bounds could hold for so many.
#[derive(Clone, Debug, PartialEq)]
pub struct Bounded {
    pub probabilities: Vec<f64>,
    /// The least that was in force, where it was not the one that was asked for.
    pub lowered_to: Option<f64>,
}

/// Where the least cannot hold for all, all together get this share of the draws by it: the rest tells them apart.
const LOWERED: f64 = 0.5;
/// So many halvings find a factor up to e^700 to the last bit of a double.
const HALVINGS: u32 = 80;
const FACTOR_LN_MAX: f64 = 700.0;

/// Probabilities in the proportions of `weights`, as far as each keeps to the bounds; they sum to 1.
///
/// Shape:  weights are finite and above 0; the result is as long. A least that is too large for so many is lowered, for
///         all alike; a most that is too small, or below the least, is raised to where it can hold.
pub fn bounded(weights: &[f64], bounds: Bounds) -> Bounded {
    let n = weights.len() as f64;
    assert!(weights.iter().all(|one| one.is_finite() && *one > 0.0));
    let is_too_large = bounds.min * n > 1.0;
    let min = if is_too_large {
        LOWERED / n
    } else {
        bounds.min
    };
    let max = bounds.max.max(min).max(1.0 / n);
    let total: f64 = weights.iter().sum();
    let at = |factor: f64| {
        weights
            .iter()
            .map(move |one| (factor * one / total).clamp(min, max))
    };
    // The sum rises with the factor, from n times the least to n times the most, with 1 in between. The factor is halved
    // in logarithms: weights may be of any range.
    let (mut low, mut high) = (-FACTOR_LN_MAX, FACTOR_LN_MAX);
    for _ in 0..HALVINGS {
        let middle: f64 = 0.5 * (low + high);
        match at(middle.exp()).sum::<f64>() < 1.0 {
            true => low = middle,
            false => high = middle,
        }
    }
    let mut probabilities: Vec<f64> = at(high.exp()).collect();
    // What rounding left over goes to the largest, which no bound holds at its place.
    let sum: f64 = probabilities.iter().sum();
    if let Some(largest) = probabilities.iter_mut().max_by(|a, b| a.total_cmp(b)) {
        *largest += 1.0 - sum;
    }
    Bounded {
        probabilities,
        lowered_to: is_too_large.then_some(min),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAPER: Bounds = Bounds {
        min: 0.03,
        max: 1.0,
    };

    fn sums_to_one(found: &Bounded) {
        let sum: f64 = found.probabilities.iter().sum();
        assert!((sum - 1.0).abs() < 1e-12, "{sum}");
    }

    #[test]
    fn who_is_slow_stays_at_the_least_and_the_others_keep_their_proportions() {
        // Inverse times of 1, 2, 4 and 1,000 units.
        let found = bounded(&[1.0, 0.5, 0.25, 0.001], PAPER);
        sums_to_one(&found);
        let all = &found.probabilities;
        assert_eq!(all[3], 0.03);
        assert!((all[0] / all[1] - 2.0).abs() < 1e-9 && (all[1] / all[2] - 2.0).abs() < 1e-9);
        assert_eq!(found.lowered_to, None);
    }

    #[test]
    fn nobody_gets_more_than_the_most_and_what_he_leaves_is_the_others() {
        let capped = Bounds {
            min: 0.05,
            max: 0.4,
        };
        let found = bounded(&[100.0, 2.0, 1.0, 1.0], capped);
        sums_to_one(&found);
        let all = &found.probabilities;
        assert!((all[0] - 0.4).abs() < 1e-9, "{all:?}");
        assert!((all[1] / all[2] - 2.0).abs() < 1e-6, "{all:?}");
    }

    #[test]
    fn a_least_that_cannot_hold_is_lowered_for_all_alike_and_still_tells_them_apart() {
        let weights: Vec<f64> = (1..=40).map(f64::from).collect();
        let found = bounded(&weights, PAPER);
        sums_to_one(&found);
        assert_eq!(found.lowered_to, Some(0.5 / 40.0));
        let all = &found.probabilities;
        assert!(all.iter().all(|one| *one >= 0.5 / 40.0 - 1e-12));
        assert!(all[39] > 2.0 * all[0], "{all:?}");
        // 33 times 3 % is 99 %.
        assert_eq!(bounded(&weights[..33], PAPER).lowered_to, None);
    }

    #[test]
    fn bounds_that_contradict_each_other_still_make_probabilities() {
        for bounds in [
            Bounds { min: 0.3, max: 0.1 },
            Bounds { min: 0.0, max: 0.0 },
            Bounds { min: 1.0, max: 1.0 },
            Bounds { min: 0.0, max: 0.1 },
        ] {
            for n in [1, 2, 3, 50] {
                let weights: Vec<f64> = (1..=n).map(|one| 1.0 / f64::from(one)).collect();
                let found = bounded(&weights, bounds);
                sums_to_one(&found);
                assert!(
                    found
                        .probabilities
                        .iter()
                        .all(|one| (0.0..=1.0).contains(one))
                );
            }
        }
    }

    #[test]
    fn weights_of_any_range_are_bounded() {
        let found = bounded(&[1e-300, 1.0, 1e300], PAPER);
        sums_to_one(&found);
        assert_eq!(found.probabilities[..2], [0.03, 0.03]);
    }
}
