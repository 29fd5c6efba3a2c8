//! Gradient-boosted trees on the contrast, as in the paper: features are log bytes, nodes and ranks per node, and
//! what the simulator says. XGBoost runs with one thread and rows in a fixed order, so one data set gives one model.

use std::sync::OnceLock;

use colltune_xgboost::{Rows, XgBoostError};
use rayon::prelude::*;

use super::predictor::{FOLDS, Place, Point, Prediction, Predictor};
use super::spread::{CONTRAST_MAX, Spread};

/// Source: Hunold & Steiner, PMBS 2022, section III.
pub struct XgBoost(colltune_xgboost::XgBoost);

const ROUNDS: i32 = 50;
/// Fewer points than this say nothing of a slope.
const POINTS_LEAST: usize = 4;

impl XgBoost {
    /// XGBoost, where its library can be loaded; else the reason.
    pub fn loaded() -> Result<&'static XgBoost, String> {
        static LOADED: OnceLock<Result<XgBoost, String>> = OnceLock::new();
        let load = || colltune_xgboost::XgBoost::load().map(XgBoost);
        LOADED.get_or_init(load).as_ref().map_err(Clone::clone)
    }
}

/// What calls at one place took in the mean.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Timed {
    pub place: Place,
    pub time_ns: f64,
    pub calls: u64,
}

/// Trees of a regression of run times; all else is as XGBoost has it by default.
const RUN_TIME_ROUNDS: i32 = 100;

impl XgBoost {
    /// What calls at other places are expected to take, by one regression over size, nodes and ranks per node.
    ///
    /// Units: nanoseconds in and out, above 0. A mean counts as many times as it has calls, which gives the same trees as
    /// the calls one by one.
    /// Errors: whatever XGBoost reports.
    pub fn run_times(&self, known: &[Timed], asked: &[Place]) -> Result<Vec<f64>, XgBoostError> {
        let calls: f64 = known.iter().map(|one| one.calls as f64).sum();
        let total = known.iter().map(|one| one.calls as f64 * one.time_ns);
        let mean = total.sum::<f64>() / calls;
        let labels: Vec<f32> = known
            .iter()
            .map(|one| (one.time_ns / mean) as f32)
            .collect();
        let weights: Vec<f32> = known.iter().map(|one| one.calls as f32).collect();
        let parameters = [
            ("verbosity", "0".to_owned()),
            ("nthread", "1".to_owned()),
            ("seed", "1".to_owned()),
            ("objective", "reg:gamma".to_owned()),
            ("base_score", "1".to_owned()),
            ("tree_method", "exact".to_owned()),
        ];
        let rows = |places: &mut dyn Iterator<Item = Place>| {
            Rows::new(places.map(|one| [one.bytes as f32, one.nodes as f32, one.ppn as f32]))
        };
        let known = rows(&mut known.iter().map(|one| one.place));
        let asked = rows(&mut asked.iter().copied());
        let said = self.0.regress(
            &known,
            &labels,
            &weights,
            &parameters,
            RUN_TIME_ROUNDS,
            &asked,
        )?;
        let ns = |said: f32| (f64::from(said) * mean).clamp(1.0, 1e15);
        Ok(said.into_iter().map(ns).collect())
    }
}

impl Predictor for XgBoost {
    fn predict(&self, known: &[Vec<Point>], asked: &[Vec<Place>]) -> Vec<Vec<Prediction>> {
        let spread = Spread::of(known);
        let both: Vec<_> = known.iter().zip(asked).collect();
        both.into_par_iter()
            .map(|(points, places)| {
                // What XGBoost cannot do, for want of points or whatever it reports, the means of the variant do.
                regressed(self.0, points, places, &spread)
                    .unwrap_or_else(|| simple(points, places, &spread))
            })
            .collect()
    }
}

fn regressed(
    xgboost: colltune_xgboost::XgBoost,
    points: &[Point],
    places: &[Place],
    spread: &Spread,
) -> Option<Vec<Prediction>> {
    if points.len() < POINTS_LEAST || places.is_empty() {
        return None;
    }
    let means = fitted(xgboost, points, places).ok()?;
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
        let predicted = fitted(xgboost, &others, &left_out).ok()?;
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

fn fitted(
    xgboost: colltune_xgboost::XgBoost,
    points: &[Point],
    places: &[Place],
) -> Result<Vec<f64>, XgBoostError> {
    let label = |point: &Point| point.mean.clamp(-CONTRAST_MAX, CONTRAST_MAX) as f32;
    let labels: Vec<f32> = points.iter().map(label).collect();
    let weight = |point: &Point| (1.0 / (0.01 + point.variance)) as f32;
    let weights: Vec<f32> = points.iter().map(weight).collect();
    let total: f64 = weights.iter().map(|weight| f64::from(*weight)).sum();
    let weighted = labels.iter().zip(&weights);
    let mean = weighted
        .map(|(label, weight)| f64::from(*label) * f64::from(*weight))
        .sum::<f64>()
        / total;
    let parameters = [
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
    ];
    let known = rows(points.iter().map(|point| point.place));
    let asked = rows(places.iter().copied());
    let said = xgboost.regress(&known, &labels, &weights, &parameters, ROUNDS, &asked)?;
    Ok(said.into_iter().map(f64::from).collect())
}

fn rows(places: impl Iterator<Item = Place>) -> Rows {
    Rows::new(places.map(|place| {
        [
            place.bytes as f32,
            place.nodes as f32,
            place.ppn as f32,
            place.simulated as f32,
        ]
    }))
}
