//! Where values lie, when some of them are far off.

/// A mean, and its standard error.
#[derive(Clone, Copy, Debug)]
pub struct Located {
    pub mean: f64,
    pub error: f64,
}

/// The median; 0 of no values. Reorders them.
pub fn median(values: &mut [f64]) -> f64 {
    if values.is_empty() {
        return 0.0;
    }
    let odd = values.len() % 2 == 1;
    let (below, middle, _) = values.select_nth_unstable_by(values.len() / 2, f64::total_cmp);
    if odd {
        return *middle;
    }
    let other = below.iter().copied().max_by(f64::total_cmp);
    (*middle + other.unwrap_or(*middle)) / 2.0
}

/// Mean without the lowest and the highest `share` of the values, of which there is at least one. Sorts them.
///
/// Source: Tukey & McLaughlin, Sankhya A 25(3), 1963 (the error comes from the winsorized variance).
pub fn trimmed(values: &mut [f64], share: f64) -> Located {
    let all = winsorized(values, share);
    let kept = &values[inner(values.len(), share)];
    Located {
        mean: kept.iter().sum::<f64>() / kept.len() as f64,
        error: all.error * values.len() as f64 / kept.len() as f64,
    }
}

/// Mean with the lowest and the highest `share` of the values drawn in to the others, so that what happens in
/// the tails keeps some weight. There is at least one value. Sorts them.
pub fn winsorized(values: &mut [f64], share: f64) -> Located {
    values.sort_unstable_by(f64::total_cmp);
    let kept = &values[inner(values.len(), share)];
    let (least, most) = (kept[0], kept[kept.len() - 1]);
    let drawn_in = || values.iter().map(|value| value.clamp(least, most));
    let n = values.len() as f64;
    let mean = drawn_in().sum::<f64>() / n;
    let squares = drawn_in().map(|value| (value - mean).powi(2));
    let variance = squares.sum::<f64>() / (n - 1.0).max(1.0);
    Located {
        mean,
        error: (variance / n).sqrt(),
    }
}

/// Where `n` sorted values are without the lowest and the highest `share`.
fn inner(n: usize, share: f64) -> std::ops::Range<usize> {
    let cut = ((share * n as f64) as usize).min((n - 1) / 2);
    cut..n - cut
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(one: f64, other: f64) -> bool {
        (one - other).abs() < 1e-12
    }

    #[test]
    fn the_median_is_the_middle_or_between_the_two_middle_ones() {
        assert_eq!(median(&mut []), 0.0);
        assert_eq!(median(&mut [7.0]), 7.0);
        assert_eq!(median(&mut [9.0, 1.0, 4.0]), 4.0);
        assert_eq!(median(&mut [9.0, 1.0, 4.0, 2.0]), 3.0);
    }

    #[test]
    fn what_is_far_off_moves_neither_mean_and_widens_no_error() {
        let of = |last: f64| {
            let mut values: Vec<f64> = (1..=9).map(f64::from).collect();
            values.push(last);
            (
                trimmed(&mut values.clone(), 0.25),
                winsorized(&mut values, 0.25),
            )
        };
        let ((trimmed, winsorized), (far_trimmed, far_winsorized)) = (of(10.0), of(1e9));
        assert_eq!(
            (trimmed.mean, trimmed.error),
            (far_trimmed.mean, far_trimmed.error)
        );
        assert_eq!(
            (winsorized.mean, winsorized.error),
            (far_winsorized.mean, far_winsorized.error)
        );
        // 3, 3, 3, 4, 5, 6, 7, 8, 8, 8: squares of what is left of 5.5 are 42.5 together.
        assert!(close(trimmed.mean, 5.5) && close(winsorized.mean, 5.5));
        let error = (42.5_f64 / 9.0 / 10.0).sqrt();
        assert!(close(winsorized.error, error) && close(trimmed.error, error / 0.6));
    }

    #[test]
    fn values_stay_what_they_are() {
        let mut values = [4.0, -100.0, 1.0, 100.0];
        trimmed(&mut values, 0.25);
        winsorized(&mut values, 0.25);
        assert_eq!(values, [-100.0, 1.0, 4.0, 100.0]);
    }

    #[test]
    fn one_value_is_where_it_is_without_an_error() {
        for located in [trimmed(&mut [3.0], 0.25), winsorized(&mut [3.0], 0.25)] {
            assert_eq!((located.mean, located.error), (3.0, 0.0));
        }
    }
}
