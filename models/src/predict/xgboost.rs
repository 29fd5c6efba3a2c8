//! Gradient-boosted trees on the contrast, as in the paper: features are log bytes, nodes and ranks per node, and
//! what the simulator says. XGBoost runs with one thread and rows in a fixed order, so one data set gives one model.

use std::collections::HashMap;

use rayon::prelude::*;
use xgboost_rs::{Booster, DMatrix, XGBResult};

use super::predictor::{FOLDS, Place, Point, Prediction, Predictor};
use super::spread::{CONTRAST_MAX, Spread};

/// Source: Hunold & Steiner, PMBS 2022, section III.
pub struct XgBoost;

const FEATURES: usize = 4;
const ROUNDS: i32 = 50;
/// Fewer points than this say nothing of a slope.
const POINTS_LEAST: usize = 4;

impl Predictor for XgBoost {
    fn name(&self) -> &'static str {
        "xgboost"
    }

    fn predict(&self, known: &[Vec<Point>], asked: &[Vec<Place>]) -> Vec<Vec<Prediction>> {
        let spread = Spread::of(known);
        let both: Vec<_> = known.iter().zip(asked).collect();
        both.into_par_iter()
            .map(|(points, places)| {
                // What XGBoost cannot do, for want of points or whatever it reports, the means of the variant do.
                regressed(points, places, &spread)
                    .unwrap_or_else(|| simple(points, places, &spread))
            })
            .collect()
    }
}

fn regressed(points: &[Point], places: &[Place], spread: &Spread) -> Option<Vec<Prediction>> {
    if points.len() < POINTS_LEAST || places.is_empty() {
        return None;
    }
    let means = fitted(points, places).ok()?;
    // How wrong it is where it was not taught.
    let mut squares = 3.0 * spread.between_cells;
    for fold in 0..FOLDS {
        let (inside, others): (Vec<_>, Vec<_>) = points
            .iter()
            .enumerate()
            .partition(|(index, _)| index % FOLDS == fold);
        let others: Vec<Point> = others.into_iter().map(|(_, point)| *point).collect();
        let left_out: Vec<Place> = inside.iter().map(|(_, point)| point.place).collect();
        if left_out.is_empty() {
            continue;
        }
        let predicted = fitted(&others, &left_out).ok()?;
        for ((_, point), mean) in inside.iter().zip(predicted) {
            squares += ((point.mean.clamp(-CONTRAST_MAX, CONTRAST_MAX) - mean).powi(2)
                - point.variance)
                .max(0.0);
        }
    }
    let variance = squares / (points.len() as f64 + 3.0);
    Some(
        means
            .into_iter()
            .map(|mean| Prediction { mean, variance })
            .collect(),
    )
}

fn simple(points: &[Point], places: &[Place], spread: &Spread) -> Vec<Prediction> {
    let precision = 1.0 / spread.between_variants;
    let weight = |point: &Point| 1.0 / (spread.between_cells + point.variance);
    let total = precision + points.iter().map(weight).sum::<f64>();
    let value = |point: &Point| weight(point) * point.mean.clamp(-CONTRAST_MAX, CONTRAST_MAX);
    let mean = (precision * spread.mean + points.iter().map(value).sum::<f64>()) / total;
    let variance = 1.0 / total + spread.between_cells;
    places
        .iter()
        .map(|_| Prediction { mean, variance })
        .collect()
}

fn fitted(points: &[Point], places: &[Place]) -> XGBResult<Vec<f64>> {
    let mut rows = matrix(points.iter().map(|point| point.place))?;
    let label = |point: &Point| point.mean.clamp(-CONTRAST_MAX, CONTRAST_MAX) as f32;
    rows.set_labels(&points.iter().map(label).collect::<Vec<_>>())?;
    let weight = |point: &Point| (1.0 / (0.01 + point.variance)) as f32;
    let weights: Vec<f32> = points.iter().map(weight).collect();
    rows.set_weights(&weights)?;
    let total: f64 = weights.iter().map(|weight| f64::from(*weight)).sum();
    let mean = points
        .iter()
        .zip(&weights)
        .map(|(point, weight)| f64::from(label(point)) * f64::from(*weight))
        .sum::<f64>()
        / total;
    let config: HashMap<String, String> = [
        ("verbosity", "0".to_owned()),
        ("nthread", "1".to_owned()),
        ("seed", "1".to_owned()),
        ("objective", "reg:squarederror".to_owned()),
        ("base_score", mean.to_string()),
        ("tree_method", "exact".to_owned()),
        ("max_depth", "3".to_owned()),
        ("eta", "0.15".to_owned()),
        ("lambda", (total / points.len() as f64).to_string()),
        ("min_child_weight", "0".to_owned()),
    ]
    .into_iter()
    .map(|(key, value)| (key.to_owned(), value))
    .collect();
    let mut booster = Booster::new_with_json_config(&[&rows], config)?;
    for round in 0..ROUNDS {
        booster.update(&rows, round)?;
    }
    let asked = matrix(places.iter().copied())?;
    Ok(booster
        .predict(&asked)?
        .into_iter()
        .map(f64::from)
        .collect())
}

fn matrix(places: impl Iterator<Item = Place>) -> XGBResult<DMatrix> {
    let features = |place: Place| {
        [
            place.bytes as f32,
            place.nodes as f32,
            place.ppn as f32,
            place.simulated as f32,
        ]
    };
    let values: Vec<f32> = places.flat_map(features).collect();
    let n_rows = values.len() / FEATURES;
    let value_bytes = size_of::<f32>();
    // Row by row, whatever the function's name says; its sibling would take every 0 for missing.
    DMatrix::from_col_major_f32(
        &values,
        FEATURES * value_bytes,
        value_bytes,
        n_rows,
        FEATURES,
        1,
        f32::NAN,
    )
}
