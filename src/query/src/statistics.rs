//! Statistics of numbers. Those of too few numbers do not exist.

/// The quantile by linear interpolation between the numbers next to it; `p` is within 0 and 1.
pub fn quantile(sorted: &[f64], p: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    if !(0.0..=1.0).contains(&p) {
        return None;
    }
    let place = p * last as f64;
    let below = place.floor() as usize;
    let (low, high) = (sorted[below], sorted[(below + 1).min(last)]);
    Some(low + (high - low) * (place - below as f64))
}

pub fn median(sorted: &[f64]) -> Option<f64> {
    quantile(sorted, 0.5)
}

/// The median of the distances from the median.
pub fn mad(sorted: &[f64]) -> Option<f64> {
    let middle = median(sorted)?;
    let mut away: Vec<f64> = sorted.iter().map(|value| (value - middle).abs()).collect();
    away.sort_by(f64::total_cmp);
    median(&away)
}

/// The standard deviation of a sample.
pub fn stddev(values: &[f64]) -> Option<f64> {
    let degrees = values.len().checked_sub(2)? + 1;
    let mean = mean(values);
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    Some((squares / degrees as f64).sqrt())
}

/// The geometric mean of numbers above 0.
pub fn geomean(values: &[f64]) -> Option<f64> {
    let usable = !values.is_empty() && values.iter().all(|value| *value > 0.0);
    let logs: Vec<f64> = values.iter().map(|value| value.ln()).collect();
    usable.then(|| mean(&logs).exp())
}

/// Pearson's correlation.
pub fn corr(pairs: &[(f64, f64)]) -> Option<f64> {
    let (xs, ys): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
    let (x, y) = (mean(&xs), mean(&ys));
    let (mut xx, mut yy, mut xy) = (0.0, 0.0, 0.0);
    for pair in pairs {
        let away = (pair.0 - x, pair.1 - y);
        xx += away.0 * away.0;
        yy += away.1 * away.1;
        xy += away.0 * away.1;
    }
    (xx > 0.0 && yy > 0.0).then(|| (xy / (xx.sqrt() * yy.sqrt())).clamp(-1.0, 1.0))
}

/// Spearman's correlation: that of the ranks, where equal numbers share the mean of theirs.
pub fn spearman(pairs: &[(f64, f64)]) -> Option<f64> {
    let (xs, ys): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
    let ranked: Vec<(f64, f64)> = ranks(&xs).into_iter().zip(ranks(&ys)).collect();
    corr(&ranked)
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&a, &b| values[a].total_cmp(&values[b]));
    let mut ranks = vec![0.0; values.len()];
    let mut before = 0;
    for alike in order.chunk_by(|&a, &b| values[a] == values[b]) {
        let mean = before as f64 + (alike.len() as f64 - 1.0) / 2.0;
        alike.iter().for_each(|&place| ranks[place] = mean);
        before += alike.len();
    }
    ranks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_the_textbooks() {
        let values = [1.0, 2.0, 4.0, 8.0, 100.0];
        assert_eq!(median(&values), Some(4.0));
        assert_eq!(median(&values[..4]), Some(3.0));
        assert_eq!(quantile(&values, 0.25), Some(2.0));
        assert_eq!(quantile(&values, 0.625), Some(6.0));
        assert_eq!(
            (quantile(&values, 0.0), quantile(&values, 1.0)),
            (Some(1.0), Some(100.0))
        );
        assert_eq!(mad(&values), Some(3.0));
        assert_eq!(stddev(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]), {
            Some((32.0f64 / 7.0).sqrt())
        });
        let found = geomean(&values[..4]).unwrap();
        assert!((found - 64f64.powf(0.25)).abs() < 1e-12, "{found}");
    }

    #[test]
    fn what_too_few_numbers_cannot_say_is_not_said() {
        assert_eq!((median(&[]), mad(&[]), geomean(&[])), (None, None, None));
        assert_eq!((stddev(&[]), stddev(&[1.0])), (None, None));
        assert_eq!(geomean(&[1.0, 0.0]), None);
        assert_eq!(
            (quantile(&[1.0], 1.1), quantile(&[1.0], f64::NAN)),
            (None, None)
        );
        assert_eq!((corr(&[]), corr(&[(1.0, 2.0)])), (None, None));
        assert_eq!(corr(&[(1.0, 2.0), (1.0, 3.0)]), None, "no variance");
    }

    #[test]
    fn spearman_sees_order_and_pearson_lines() {
        let cubes: Vec<(f64, f64)> = (1..9)
            .map(|n| (f64::from(n), f64::from(n * n * n)))
            .collect();
        assert_eq!(spearman(&cubes), Some(1.0));
        assert!(corr(&cubes).unwrap() < 0.95);
        // Ranks 1.5, 1.5, 3 and 1, 2, 3.
        let tied = [(5.0, 1.0), (5.0, 2.0), (9.0, 3.0)];
        let found = spearman(&tied).unwrap();
        assert!((found - 0.75f64.sqrt()).abs() < 1e-12, "{found}");
        let line = [(1.0, -2.0), (2.0, -4.0), (3.0, -6.0)];
        assert!((corr(&line).unwrap() + 1.0).abs() < 1e-12);
    }
}
