//! Least squares with coefficients that are not negative.
//!
//! Source: Lawson & Hanson, Solving Least Squares Problems, 1974, chapter 23.

use nalgebra::{DMatrix, DVector};

/// The coefficients `x >= 0` that make `|A x - b|` least.
///
/// Shape: a row of `a` for each of `b`, all as long; at most a handful of columns. Rows that count more are to be
/// scaled by the caller. A column of zeros gets 0.
pub fn non_negative(a: &[Vec<f64>], b: &[f64]) -> Vec<f64> {
    let n = a.first().map_or(0, Vec::len);
    // Columns of one length: the normal equations are then as good as they can be.
    let lengths: Vec<f64> = (0..n)
        .map(|j| a.iter().map(|row| row[j] * row[j]).sum::<f64>().sqrt())
        .collect();
    let scaled = |row: &[f64], j: usize| match lengths[j] > 0.0 {
        true => row[j] / lengths[j],
        false => 0.0,
    };
    let gram: Vec<Vec<f64>> = (0..n)
        .map(|i| {
            let entry = |j| a.iter().map(|row| scaled(row, i) * scaled(row, j)).sum();
            (0..n).map(entry).collect()
        })
        .collect();
    let right: Vec<f64> = (0..n)
        .map(|i| a.iter().zip(b).map(|(row, b)| scaled(row, i) * b).sum())
        .collect();
    let x = solve_normal(&gram, &right);
    let unscaled = x.iter().zip(&lengths);
    unscaled
        .map(|(x, length)| if *length > 0.0 { x / length } else { 0.0 })
        .collect()
}

/// How often rows are weighed anew.
const ROUNDS: usize = 8;

/// The coefficients `x >= 0` with which regressors give most nearly the times beside them; times of 0 say nothing.
///
/// Rows count by one over what is fitted of them: a relative error is as bad in a short one as in a long one, and one
/// upwards as one downwards. By one over their own times those that took long by chance would count for less.
///
/// Source: iteratively reweighted least squares.
pub fn relative<const N: usize>(rows: &[([f64; N], f64)]) -> [f64; N] {
    let rows: Vec<&([f64; N], f64)> = rows.iter().filter(|(_, time)| *time > 0.0).collect();
    let mut sizes: Vec<f64> = rows.iter().map(|(_, time)| *time).collect();
    let mut found = [0.0; N];
    for _ in 0..ROUNDS {
        let pairs = || rows.iter().zip(&sizes);
        let a: Vec<Vec<f64>> = pairs()
            .map(|((x, _), size)| x.map(|x| x / size).to_vec())
            .collect();
        let b: Vec<f64> = pairs().map(|((_, time), size)| time / size).collect();
        for (to, from) in found.iter_mut().zip(non_negative(&a, &b)) {
            *to = from;
        }
        for ((x, time), size) in rows.iter().zip(&mut sizes) {
            let fitted: f64 = x
                .iter()
                .zip(&found)
                .map(|(x, coefficient)| x * coefficient)
                .sum();
            // A row of which nothing is fitted stays as it is.
            *size = if fitted > 0.0 { fitted } else { *time };
        }
    }
    found
}

/// A gain this small beside the right side is none.
const NOTHING: f64 = 1e-10;

fn solve_normal(gram: &[Vec<f64>], right: &[f64]) -> Vec<f64> {
    let n = right.len();
    let size = right.iter().fold(0.0f64, |most, r| most.max(r.abs()));
    let mut x = vec![0.0; n];
    let mut free = vec![false; n];
    let mut tried = vec![false; n];
    // Each turn frees a coefficient; they are few, and no coefficient is freed twice in vain.
    for _ in 0..4 * n * n + 4 {
        let gradient = |i: usize| right[i] - (0..n).map(|j| gram[i][j] * x[j]).sum::<f64>();
        let gains = (0..n).filter(|&i| !free[i] && !tried[i] && gram[i][i] > 0.0);
        let best = gains.max_by(|&i, &j| gradient(i).total_cmp(&gradient(j)));
        let Some(best) = best.filter(|&i| gradient(i) > NOTHING * size) else {
            break;
        };
        free[best] = true;
        let before = x.clone();
        loop {
            let Some(z) = solve(gram, right, &free) else {
                // Nothing tells it apart from the others.
                free[best] = false;
                break;
            };
            if (0..n).all(|i| !free[i] || z[i] > 0.0) {
                x = z;
                break;
            }
            let steps = (0..n).filter(|&i| free[i] && z[i] <= 0.0);
            let step = steps.map(|i| x[i] / (x[i] - z[i])).fold(1.0, f64::min);
            for ((x, z), free) in x.iter_mut().zip(z).zip(&mut free) {
                *x += step * (z - *x);
                if *free && *x <= 1e-12 {
                    (*x, *free) = (0.0, false);
                }
            }
            if !free.contains(&true) {
                break;
            }
        }
        match x == before {
            true => tried[best] = true,
            false => tried.fill(false),
        }
    }
    x
}

/// The solution for the free coefficients, zeros elsewhere; `None` where the equations do not tell them apart.
fn solve(gram: &[Vec<f64>], right: &[f64], free: &[bool]) -> Option<Vec<f64>> {
    let places: Vec<usize> = (0..free.len()).filter(|&i| free[i]).collect();
    let n = places.len();
    let of_free = DMatrix::from_fn(n, n, |i, j| gram[places[i]][places[j]]);
    let told = DVector::from_fn(n, |i, _| right[places[i]]);
    // Columns have the length 1: what is left of one beside the others is its pivot.
    let factors = of_free.col_piv_qr();
    let told_apart = factors.r().diagonal().iter().all(|r| r.abs() >= 1e-11);
    let solved = factors.solve(&told).filter(|_| told_apart)?;
    let mut x = vec![0.0; free.len()];
    for (place, value) in places.iter().zip(&solved) {
        x[*place] = *value;
    }
    Some(x)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relative_errors_count_alike_upwards_and_downwards_and_long_rows_no_more_than_short_ones() {
        let times = |x: [f64; 2], factor: f64| (x, factor * (2.0 * x[0] + 3.0 * x[1]));
        let shapes = [[1.0, 0.0], [10.0, 1.0], [1e6, 5e5]];
        let rows: Vec<([f64; 2], f64)> = shapes
            .into_iter()
            .flat_map(|x| [times(x, 1.5), times(x, 0.5)])
            .chain([([7.0, 7.0], 0.0)])
            .collect();
        let found = relative(&rows);
        assert!(
            (found[0] - 2.0).abs() < 1e-6 && (found[1] - 3.0).abs() < 1e-6,
            "{found:?}"
        );
        // By squares of times the long rows alone would say 4.
        let rows = [([1.0], 2.0), ([1.0], 2.0), ([1e6], 4e6)];
        assert!((relative(&rows)[0] - 8.0 / 3.0).abs() < 1e-6);
        assert_eq!(relative::<2>(&[]), [0.0; 2]);
    }

    use colltune_placement::generate::Random;

    fn residual(a: &[Vec<f64>], b: &[f64], x: &[f64]) -> f64 {
        let of = |(row, b): (&Vec<f64>, &f64)| {
            let found: f64 = row.iter().zip(x).map(|(a, x)| a * x).sum();
            (found - b) * (found - b)
        };
        a.iter().zip(b).map(of).sum()
    }

    #[test]
    fn coefficients_that_made_the_rows_are_found() {
        let mut random = Random::new(7);
        for _ in 0..200 {
            let truth: Vec<f64> = (0..4).map(|_| random.unit() * 1e3).collect();
            let a: Vec<Vec<f64>> = (0..30)
                .map(|_| (0..4).map(|_| random.unit()).collect())
                .collect();
            let b: Vec<f64> = a
                .iter()
                .map(|row| row.iter().zip(&truth).map(|(a, x)| a * x).sum())
                .collect();
            for (found, truth) in non_negative(&a, &b).iter().zip(&truth) {
                assert!((found - truth).abs() < 1e-6 * 1e3, "{found} {truth}");
            }
        }
    }

    #[test]
    fn no_other_coefficients_that_are_not_negative_fit_better() {
        let mut random = Random::new(8);
        for _ in 0..300 {
            let a: Vec<Vec<f64>> = (0..12)
                .map(|_| (0..3).map(|_| random.unit() - 0.5).collect())
                .collect();
            let b: Vec<f64> = (0..12).map(|_| random.unit() - 0.5).collect();
            let x = non_negative(&a, &b);
            assert!(x.iter().all(|&x| x >= 0.0));
            let least = residual(&a, &b, &x);
            for _ in 0..50 {
                let other: Vec<f64> = x
                    .iter()
                    .map(|x| (x + 0.1 * (random.unit() - 0.5)).max(0.0))
                    .collect();
                assert!(least <= residual(&a, &b, &other) + 1e-12);
            }
        }
    }

    #[test]
    fn columns_of_zeros_and_columns_that_are_alike_do_no_harm() {
        let a: Vec<Vec<f64>> = (1..9)
            .map(|i| vec![f64::from(i), 0.0, f64::from(i)])
            .collect();
        let b: Vec<f64> = (1..9).map(|i| 3.0 * f64::from(i)).collect();
        let x = non_negative(&a, &b);
        assert!((x[0] + x[2] - 3.0).abs() < 1e-9 && x[1] == 0.0, "{x:?}");
        assert_eq!(non_negative(&[], &[]), Vec::<f64>::new());
    }
}
