//! What is common to the variants of a collective.

use std::collections::BTreeSet;

use super::predictor::{Place, Point, Prediction};

/// Contrasts beyond this factor, in logarithms, are as good as infinite.
pub(super) const CONTRAST_MAX: f64 = 2.5;

/// The variance of contrasts that one point counts for where there is none.
const GUESS: f64 = 0.02;

/// What is common to the variants of a collective: the mean contrast, its variance between variants, and that
/// between the cells of a variant.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spread {
    pub mean: f64,
    /// How far that may be off: what is the cells' alone, the default's error above all, is in all their contrasts.
    pub of_mean: f64,
    pub between_variants: f64,
    pub between_cells: f64,
}

impl Spread {
    pub fn of(known: &[Vec<Point>]) -> Spread {
        let clipped = |point: &Point| point.mean.clamp(-CONTRAST_MAX, CONTRAST_MAX);
        let points = || known.iter().flatten();
        let n_points = points().count() as f64;
        let noise = |point: &Point| point.variance.min(1.0);
        let overall = points().map(clipped).sum::<f64>() / n_points.max(1.0);
        let beyond_noise = points()
            .map(|point| (clipped(point) - overall).powi(2) - noise(point))
            .sum::<f64>();
        // One guess keeps little data from saying too much; a half of it is each variant's, the other its cells'.
        let total = (beyond_noise.max(0.0) + GUESS) / (n_points + 1.0);
        let (mut means, mut squares, mut freedom) = (Vec::new(), 0.0, 0.0);
        for points in known.iter().filter(|points| !points.is_empty()) {
            let n = points.len() as f64;
            let mean = points.iter().map(clipped).sum::<f64>() / n;
            let own_noise = points.iter().map(noise).sum::<f64>();
            squares += points
                .iter()
                .map(|point| (clipped(point) - mean).powi(2))
                .sum::<f64>()
                - own_noise * (n - 1.0) / n;
            freedom += n - 1.0;
            means.push((mean, own_noise / n / n));
        }
        let n = means.len() as f64;
        // The well-known say more, beside what variants differ by anyway.
        let weight = |noise: f64| 1.0 / (total + noise);
        let weights: f64 = means.iter().map(|(_, noise)| weight(*noise)).sum();
        let mean = means
            .iter()
            .map(|(mean, noise)| weight(*noise) * mean)
            .sum::<f64>()
            / (weights + weight(0.0));
        let variance = means
            .iter()
            .map(|(one, noise)| (one - mean).powi(2) - noise)
            .sum::<f64>();
        let pooled = |sum: f64, freedom: f64| {
            ((sum.max(0.0) + 3.0 * total / 2.0) / (freedom + 3.0)).max(1e-4)
        };
        let between_cells = pooled(squares, freedom);
        let mean_noise = points().map(noise).sum::<f64>() / n_points.max(1.0);
        Spread {
            mean,
            of_mean: (mean_noise + between_cells) / n_places(known).max(1.0),
            between_variants: pooled(variance, n),
            between_cells,
        }
    }

    pub fn unknown(&self) -> Prediction {
        Prediction {
            mean: self.mean,
            variance: self.of_mean + self.between_variants + self.between_cells,
        }
    }
}

/// Places at which something is known.
fn n_places(known: &[Vec<Point>]) -> f64 {
    let bits = |place: &Place| [place.bytes, place.nodes, place.ppn].map(f64::to_bits);
    let places = known.iter().flatten().map(|point| bits(&point.place));
    places.collect::<BTreeSet<_>>().len() as f64
}
