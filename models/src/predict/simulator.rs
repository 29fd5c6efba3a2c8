//! The simulator alone: a variant's contrast is what the simulator says, and a constant of its own.

use super::predictor::{Place, Point, Prediction, Predictor};
use super::spread::{CONTRAST_MAX, Spread};

pub struct Simulator;

impl Predictor for Simulator {
    fn name(&self) -> &'static str {
        "simulator"
    }

    fn predict(&self, known: &[Vec<Point>], asked: &[Vec<Place>]) -> Vec<Vec<Prediction>> {
        let beyond = |point: &Point| Point {
            mean: point.mean.clamp(-CONTRAST_MAX, CONTRAST_MAX) - point.place.simulated,
            ..*point
        };
        let residuals: Vec<Vec<Point>> = known
            .iter()
            .map(|points| points.iter().map(beyond).collect())
            .collect();
        let spread = Spread::of(&residuals);
        let of_variant = |(points, places): (&Vec<Point>, &Vec<Place>)| {
            let precision = 1.0 / spread.between_variants;
            let weight = |point: &Point| 1.0 / (spread.between_cells + point.variance);
            let total = precision + points.iter().map(weight).sum::<f64>();
            let sum = precision * spread.mean
                + points
                    .iter()
                    .map(|point| weight(point) * point.mean)
                    .sum::<f64>();
            let (mean, variance) = (sum / total, 1.0 / total + spread.between_cells);
            places
                .iter()
                .map(|place| Prediction {
                    mean: mean + place.simulated,
                    variance,
                })
                .collect()
        };
        residuals.iter().zip(asked).map(of_variant).collect()
    }
}
