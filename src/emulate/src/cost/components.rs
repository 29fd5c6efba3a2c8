//! Which counts tell costs apart: principal components of the regressors.

use nalgebra::{DMatrix, SymmetricEigen};
use serde::Serialize;

/// The directions along which standardised counts vary, the widest first.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Components {
    pub names: Vec<&'static str>,
    /// The share of the variance that each explains.
    pub explained: Vec<f64>,
    /// Its weights, one for each name.
    pub weights: Vec<Vec<f64>>,
}

impl Components {
    /// Of rows with one value for each name; names whose values are all alike are left out.
    ///
    /// Source: eigenvectors of the correlation matrix.
    pub fn of(names: &[&'static str], rows: &[Vec<f64>]) -> Components {
        let n = rows.len().max(1) as f64;
        let mean = |j: usize| rows.iter().map(|row| row[j]).sum::<f64>() / n;
        let means: Vec<f64> = (0..names.len()).map(mean).collect();
        let deviation = |j: usize| {
            let squares = rows.iter().map(|row| (row[j] - means[j]).powi(2));
            (squares.sum::<f64>() / n).sqrt()
        };
        let deviations: Vec<f64> = (0..names.len()).map(deviation).collect();
        let varies = |j: &usize| deviations[*j] > 1e-9 * means[*j].abs();
        let kept: Vec<usize> = (0..names.len()).filter(varies).collect();
        if kept.is_empty() {
            return Components::default();
        }
        let standard = |row: &[f64], j: usize| (row[j] - means[j]) / deviations[j];
        let correlation = |i: usize, j: usize| {
            let products = rows.iter();
            let products = products.map(|row| standard(row, kept[i]) * standard(row, kept[j]));
            products.sum::<f64>() / n
        };
        let correlations = DMatrix::from_fn(kept.len(), kept.len(), correlation);
        let found = SymmetricEigen::new(correlations);
        let (values, vectors) = (found.eigenvalues, found.eigenvectors);
        let total = values.sum();
        let mut order: Vec<usize> = (0..kept.len()).collect();
        order.sort_by(|&i, &j| values[j].total_cmp(&values[i]));
        Components {
            names: kept.iter().map(|&j| names[j]).collect(),
            explained: order.iter().map(|&i| values[i] / total).collect(),
            weights: order
                .iter()
                .map(|&i| vectors.column(i).iter().copied().collect())
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_that_are_all_alike_have_no_components() {
        let found = Components::of(&["a", "b"], &vec![vec![3.0, 0.0]; 40]);
        assert_eq!(found, Components::default());
    }

    #[test]
    fn counts_that_go_together_make_one_component() {
        let rows: Vec<Vec<f64>> = (0..50)
            .map(|i| {
                let (x, y) = (f64::from(i), f64::from(i * 37 % 50));
                vec![x, 5.0, 2.0 * x + 1.0, y]
            })
            .collect();
        let found = Components::of(&["a", "same", "b", "c"], &rows);
        assert_eq!(found.names, ["a", "b", "c"]);
        assert!(
            found.explained[0] > 0.6 && found.explained[2] < 1e-9,
            "{found:?}"
        );
        assert!((found.explained.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        let first = &found.weights[0];
        assert!((first[0] - first[1]).abs() < 1e-9, "alike: {first:?}");
    }
}
