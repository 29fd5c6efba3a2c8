//! The assignment of greatest weight, exactly: the Hungarian method by shortest augmenting paths.
//!
//! Source: Jonker & Volgenant, Computing 38, 1987. O(n^3) time, for the small cases.

/// The column of each row of a square matrix, so that the sum of the chosen entries is as large as can be.
///
/// Shape: `weights` has `n` rows of `n` entries. Whole numbers, so that the result is exact: their sum fits.
pub(super) fn assignment(n: usize, weights: &[i64]) -> Vec<usize> {
    assert_eq!(weights.len(), n * n);
    const NONE: usize = usize::MAX;
    // Prices such that weight <= row price + column price everywhere, with equality where matched.
    let mut row_price: Vec<i64> = (0..n)
        .map(|i| {
            weights[i * n..(i + 1) * n]
                .iter()
                .copied()
                .max()
                .unwrap_or(0)
        })
        .collect();
    let mut column_price = vec![0i64; n];
    let (mut row_of, mut column_of) = (vec![NONE; n], vec![NONE; n]);
    for first in 0..n {
        // From row `first` the shortest path, in slack, to a column that has no row.
        let mut slack = vec![i64::MAX; n];
        let mut from = vec![NONE; n];
        let mut done = vec![false; n];
        let (mut row, mut length) = (first, 0i64);
        let mut reached = vec![(first, 0i64)];
        let end = loop {
            for column in 0..n {
                if done[column] {
                    continue;
                }
                let gap = row_price[row] + column_price[column] - weights[row * n + column];
                if length + gap < slack[column] {
                    (slack[column], from[column]) = (length + gap, row);
                }
            }
            let column = (0..n)
                .filter(|&column| !done[column])
                .min_by_key(|&column| (slack[column], column))
                .expect("as many columns as rows");
            done[column] = true;
            length = slack[column];
            match row_of[column] {
                NONE => break column,
                next => row = next,
            }
            reached.push((row, length));
        };
        for (row, at) in reached {
            row_price[row] -= length - at;
        }
        for column in (0..n).filter(|&column| done[column]) {
            column_price[column] += length - slack[column];
        }
        // The path turns: each of its columns goes to the row that it was reached from.
        let mut column = end;
        loop {
            let row = from[column];
            row_of[column] = row;
            column = std::mem::replace(&mut column_of[row], column);
            if row == first {
                break;
            }
        }
    }
    column_of
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::Random;

    /// The greatest sum by trying every permutation.
    fn greatest(n: usize, weights: &[i64], row: usize, free: &mut [bool]) -> i64 {
        if row == n {
            return 0;
        }
        let mut best = i64::MIN;
        for column in 0..n {
            if std::mem::take(&mut free[column]) {
                best = best.max(weights[row * n + column] + greatest(n, weights, row + 1, free));
                free[column] = true;
            }
        }
        best
    }

    #[test]
    fn no_permutation_has_a_greater_sum() {
        let mut random = Random::new(3);
        for case in 0..600 {
            let n = 1 + random.below(6);
            let most = [2, 5, 1000][case % 3];
            let weights: Vec<i64> = (0..n * n).map(|_| random.below(most) as i64).collect();
            let found = assignment(n, &weights);
            let mut seen = vec![false; n];
            for &column in &found {
                assert!(!std::mem::replace(&mut seen[column], true), "{found:?}");
            }
            let sum: i64 = (0..n).map(|row| weights[row * n + found[row]]).sum();
            assert_eq!(
                sum,
                greatest(n, &weights, 0, &mut vec![true; n]),
                "{weights:?}"
            );
        }
        assert_eq!(assignment(0, &[]), []);
    }
}
