//! How alike contrasts are at two places, and what that makes of those of one variant.

use nalgebra::{DMatrix, DVector};
use rayon::prelude::*;

use crate::predict::predictor::{Place, Point, Prediction};
use crate::predict::spread::Spread;

/// Octaves of bytes over which contrasts stay alike; of nodes and ranks per node half as many.
const REACHES: [f64; 3] = [1.5, 4.0, 10.0];
/// How much of the variance between cells is the cell's alone.
const ALONE: [f64; 4] = [0.02, 0.1, 0.4, 0.9];
const SCALES: [f64; 3] = [0.4, 1.0, 2.5];
const ROUGHNESS: [Roughness; 2] = [Roughness::Kinks, Roughness::Curves];
/// Points of a variant and variants of a collective that choose among them.
const POINTS_MAX: usize = 40;
const VARIANTS_MAX: usize = 16;

/// How smooth what is smooth is.
#[derive(Clone, Copy)]
enum Roughness {
    /// Matern's kernel of order 3/2.
    Kinks,
    /// Of order 5/2.
    Curves,
}

#[derive(Clone, Copy)]
pub struct Kernel {
    spread: Spread,
    roughness: Roughness,
    reach: f64,
    smooth: f64,
    alone: f64,
}

/// One variant's points, solved.
pub struct Solved {
    inverse: DMatrix<f64>,
    weights: DVector<f64>,
    log_likelihood: f64,
}

impl Solved {
    /// What the other points say of one.
    pub fn left_out(&self, index: usize, point: &Point) -> Prediction {
        let precision = self.inverse[(index, index)];
        Prediction {
            mean: point.mean - self.weights[index] / precision,
            variance: (1.0 / precision - point.variance).max(1e-6),
        }
    }
}

impl Kernel {
    pub fn choose(known: &[Vec<Point>]) -> Kernel {
        let spread = Spread::of(known);
        // Every k-th point, so that the whole range has a say.
        let few: Vec<Vec<Point>> = known
            .iter()
            .filter(|points| points.len() > 1)
            .take(VARIANTS_MAX)
            .map(|points| {
                points
                    .iter()
                    .step_by(points.len().div_ceil(POINTS_MAX))
                    .copied()
                    .collect()
            })
            .collect();
        let mut candidates = Vec::new();
        for roughness in ROUGHNESS {
            for reach in REACHES {
                for alone in ALONE {
                    for scale in SCALES {
                        let total = scale * spread.between_cells;
                        candidates.push(Kernel {
                            spread,
                            roughness,
                            reach,
                            smooth: (1.0 - alone) * total,
                            alone: alone * total,
                        });
                    }
                }
            }
        }
        let likelihoods: Vec<f64> = candidates
            .par_iter()
            .map(|kernel| {
                few.iter()
                    .filter_map(|points| Some(kernel.solve(points)?.log_likelihood))
                    .sum()
            })
            .collect();
        let best = (0..candidates.len())
            .max_by(|&a, &b| likelihoods[a].total_cmp(&likelihoods[b]))
            .unwrap_or(0);
        candidates[best]
    }

    /// What two places of a variant share, and what all of its places do.
    fn between(&self, one: &Place, other: &Place) -> f64 {
        let axes = [
            one.bytes - other.bytes,
            2.0 * (one.nodes - other.nodes),
            2.0 * (one.ppn - other.ppn),
        ];
        let distance = axes.iter().map(|axis| axis * axis).sum::<f64>().sqrt() / self.reach;
        let alike = match self.roughness {
            Roughness::Kinks => {
                let distance = 3f64.sqrt() * distance;
                (1.0 + distance) * (-distance).exp()
            }
            Roughness::Curves => {
                let distance = 5f64.sqrt() * distance;
                (1.0 + distance + distance * distance / 3.0) * (-distance).exp()
            }
        };
        self.spread.of_mean + self.spread.between_variants + self.smooth * alike
    }

    pub fn solve(&self, points: &[Point]) -> Option<Solved> {
        if points.is_empty() {
            return None;
        }
        let n = points.len();
        let covariance = DMatrix::from_fn(n, n, |row, column| {
            let shared = self.between(&points[row].place, &points[column].place);
            let own = if row == column {
                self.alone + points[row].variance.max(1e-8)
            } else {
                0.0
            };
            shared + own
        });
        let away = DVector::from_fn(n, |row, _| points[row].mean - self.spread.mean);
        let factor = covariance.cholesky()?;
        let weights = factor.solve(&away);
        let log_determinant: f64 = factor
            .l_dirty()
            .diagonal()
            .iter()
            .map(|value| 2.0 * value.ln())
            .sum();
        Some(Solved {
            log_likelihood: -0.5 * (away.dot(&weights) + log_determinant),
            inverse: factor.inverse(),
            weights,
        })
    }

    pub fn at(&self, solved: &Solved, points: &[Point], place: &Place) -> Prediction {
        let shared = DVector::from_fn(points.len(), |row, _| {
            self.between(&points[row].place, place)
        });
        let total = self.spread.of_mean + self.spread.between_variants + self.smooth + self.alone;
        Prediction {
            mean: self.spread.mean + shared.dot(&solved.weights),
            variance: (total - (&solved.inverse * &shared).dot(&shared)).max(self.alone.max(1e-6)),
        }
    }

    /// Where a variant has no points.
    pub fn unknown(&self) -> Prediction {
        self.spread.unknown()
    }
}
