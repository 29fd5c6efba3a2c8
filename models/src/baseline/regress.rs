//! Regression of a variant's time over message size, nodes and ranks per node.
//!
//! One gradient-boosted model of log time per collective and variant, as in the paper, monotone in
//! each feature: a larger message or more ranks never shortens the prediction. XGBoost's C++ runs
//! with one thread and rows in a fixed order, so one data set gives one model everywhere.
//! Trees are constant between their training points, so [`densify`] first draws straight lines (in
//! logarithms) between measured neighbours along each axis; XGBoost learns their points as well.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

use thiserror::Error;
use xgboost_rs::{Booster, DMatrix};

const FEATURES: usize = 3;
const ROUNDS: i32 = 120;
const ALL_MONOTONE: &str = "(1,1,1)";

/// Where a call is, in logarithms to the base 2, which trees and straight lines like.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Place {
    /// log2(bytes + 1).
    pub bytes: f64,
    pub nodes: f64,
    pub ppn: f64,
}

impl Place {
    pub fn new(bytes: u64, nodes: u64, ppn: u64) -> Place {
        let log = |number: u64| (number.max(1) as f64).log2();
        Place {
            bytes: log(bytes.saturating_add(1)),
            nodes: log(nodes),
            ppn: log(ppn),
        }
    }

    /// Octaves between two places, summed over the axes.
    pub fn distance(self, other: Place) -> f64 {
        (self.bytes - other.bytes).abs()
            + (self.nodes - other.nodes).abs()
            + (self.ppn - other.ppn).abs()
    }

    fn axis(self, axis: usize) -> f64 {
        [self.bytes, self.nodes, self.ppn][axis]
    }

    fn with_axis(mut self, axis: usize, value: f64) -> Place {
        *[&mut self.bytes, &mut self.nodes, &mut self.ppn][axis] = value;
        self
    }

    fn features(self) -> [f32; FEATURES] {
        [self.bytes as f32, self.nodes as f32, self.ppn as f32]
    }
}

/// One training row: a place, the logarithm of the time there in ns, and how much it counts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    pub place: Place,
    pub log_time: f64,
    pub weight: f64,
}

#[derive(Clone, Debug, Error)]
pub enum RegressError {
    #[error("train a regression without any point")]
    Empty,
    #[error("run XGBoost: {0}")]
    XgBoost(String),
}

impl From<xgboost_rs::XGBError> for RegressError {
    fn from(error: xgboost_rs::XGBError) -> RegressError {
        // Its texts go on with addresses on the stack, which help nobody.
        let text = error.to_string();
        RegressError::XgBoost(
            text.split("\nStack trace")
                .next()
                .unwrap_or_default()
                .trim()
                .to_owned(),
        )
    }
}

/// The model of one variant.
pub struct Regression(Booster);

impl Regression {
    /// Fits the points in the order given.
    ///
    /// Errors: `Empty` for no points, `XgBoost` for what the library reports.
    pub fn fit(points: &[Point], seed: u64) -> Result<Regression, RegressError> {
        Self::fit_constrained(points, seed, Some(ALL_MONOTONE))
    }

    fn fit_constrained(
        points: &[Point],
        seed: u64,
        monotone: Option<&str>,
    ) -> Result<Regression, RegressError> {
        if points.is_empty() {
            return Err(RegressError::Empty);
        }
        let weight: f64 = points.iter().map(|point| point.weight).sum();
        let mean = points
            .iter()
            .map(|point| point.weight * point.log_time)
            .sum::<f64>()
            / weight;
        let mut rows = matrix(points.iter().map(|point| point.place))?;
        rows.set_labels(
            &points
                .iter()
                .map(|point| point.log_time as f32)
                .collect::<Vec<_>>(),
        )?;
        rows.set_weights(
            &points
                .iter()
                .map(|point| point.weight as f32)
                .collect::<Vec<_>>(),
        )?;
        let tree_method = if points.len() > 20_000 {
            "hist"
        } else {
            "exact"
        };
        let mut config: HashMap<String, String> = [
            ("verbosity", "0".to_owned()),
            ("nthread", "1".to_owned()),
            ("seed", (seed & 0x7fff_ffff).to_string()),
            ("objective", "reg:squarederror".to_owned()),
            ("base_score", mean.to_string()),
            ("tree_method", tree_method.to_owned()),
            ("max_depth", "5".to_owned()),
            ("eta", "0.15".to_owned()),
            ("lambda", "0.1".to_owned()),
            ("min_child_weight", "0.01".to_owned()),
        ]
        .into_iter()
        .map(|(key, value)| (key.to_owned(), value))
        .collect();
        if let Some(monotone) = monotone {
            config.insert("monotone_constraints".to_owned(), monotone.to_owned());
        }
        // The only way to constraints; it ignores return codes, so a test proves that they hold.
        let mut booster = Booster::new_with_json_config(&[&rows], config)?;
        for round in 0..ROUNDS {
            booster.update(&rows, round)?;
        }
        Ok(Regression(booster))
    }

    /// Logarithms of the times in ns, one per place.
    pub fn predict(&self, places: &[Place]) -> Result<Vec<f64>, RegressError> {
        if places.is_empty() {
            return Ok(Vec::new());
        }
        let rows = matrix(places.iter().copied())?;
        Ok(self.0.predict(&rows)?.into_iter().map(f64::from).collect())
    }

    /// Writes XGBoost's own format, JSON or UBJSON by the ending of the name.
    pub fn save(&self, path: &Path) -> Result<(), RegressError> {
        Ok(self.0.save(path)?)
    }

    /// Reads what [`Regression::save`] wrote.
    pub fn load(path: &Path) -> Result<Regression, RegressError> {
        Ok(Regression(Booster::load(path)?))
    }
}

fn matrix(places: impl Iterator<Item = Place>) -> Result<DMatrix, RegressError> {
    let values: Vec<f32> = places.flat_map(Place::features).collect();
    let n_rows = values.len() / FEATURES;
    let value_bytes = size_of::<f32>();
    // Row by row, whatever the function's name says; its sibling would take every 0 for missing.
    Ok(DMatrix::from_col_major_f32(
        &values,
        FEATURES * value_bytes,
        value_bytes,
        n_rows,
        FEATURES,
        1,
        f32::NAN,
    )?)
}

/// Adds points on straight lines between measured neighbours along each axis, at the places where
/// predictions will be asked for.
///
/// Shape: `wanted[axis]` are values on the axes of [`Place`], in its order.
pub fn densify(points: &[Point], wanted: &[BTreeSet<u64>; FEATURES]) -> Vec<Point> {
    let mut all = points.to_vec();
    let bits = |place: Place, without: usize| {
        let mut key = [
            place.bytes.to_bits(),
            place.nodes.to_bits(),
            place.ppn.to_bits(),
        ];
        key[without] = 0;
        key
    };
    for (axis, wanted) in wanted.iter().enumerate() {
        let mut lines: BTreeMap<_, Vec<Point>> = BTreeMap::new();
        for point in points {
            lines
                .entry(bits(point.place, axis))
                .or_default()
                .push(*point);
        }
        for mut line in lines.into_values() {
            line.sort_by(|a, b| a.place.axis(axis).total_cmp(&b.place.axis(axis)));
            for pair in line.windows(2) {
                let (from, to) = (pair[0].place.axis(axis), pair[1].place.axis(axis));
                for value in wanted
                    .iter()
                    .map(|bits| f64::from_bits(*bits))
                    .filter(|value| from < *value && *value < to)
                {
                    let share = (value - from) / (to - from);
                    all.push(Point {
                        place: pair[0].place.with_axis(axis, value),
                        log_time: pair[0].log_time + share * (pair[1].log_time - pair[0].log_time),
                        weight: 0.5 * pair[0].weight.min(pair[1].weight),
                    });
                }
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use colltune_core::select::mix;

    /// Times that grow with everything on average, with noise that turns them back in places.
    fn points() -> Vec<Point> {
        let mut points = Vec::new();
        for bytes in 0..16u64 {
            for nodes in [1, 2, 4, 8] {
                for ppn in [1, 2, 4] {
                    let noise = (mix(bytes, 64 * nodes + ppn) % 1000) as f64 / 1000.0 - 0.5;
                    let place = Place::new((1 << bytes) - 1, nodes, ppn);
                    points.push(Point {
                        place,
                        log_time: 7.0 + 0.1 * place.bytes + 0.2 * place.nodes + 2.0 * noise,
                        weight: 1.0,
                    });
                }
            }
        }
        points
    }

    fn grid() -> Vec<Place> {
        let steps = |most: u32| {
            (0..=2 * most)
                .map(|half| f64::from(half) / 2.0)
                .collect::<Vec<_>>()
        };
        let mut places = Vec::new();
        for bytes in steps(18) {
            for nodes in steps(5) {
                places.extend(steps(4).into_iter().map(|ppn| Place { bytes, nodes, ppn }));
            }
        }
        places
    }

    /// Pairs of neighbours on the grid where the second, larger one is predicted to be faster.
    fn descents(regression: &Regression) -> usize {
        let places = grid();
        let times = regression.predict(&places).unwrap();
        let time_at: BTreeMap<_, f64> = places
            .iter()
            .zip(&times)
            .map(|(place, time)| (place.features().map(f32::to_bits), *time))
            .collect();
        let mut descents = 0;
        for place in &places {
            for axis in 0..FEATURES {
                let next = place
                    .with_axis(axis, place.axis(axis) + 0.5)
                    .features()
                    .map(f32::to_bits);
                if let Some(later) = time_at.get(&next) {
                    descents += usize::from(*later < time_at[&place.features().map(f32::to_bits)]);
                }
            }
        }
        descents
    }

    #[test]
    fn predictions_are_monotone_in_every_feature_and_only_because_they_are_constrained() {
        let constrained = Regression::fit(&points(), 1).unwrap();
        assert_eq!(descents(&constrained), 0);
        let free = Regression::fit_constrained(&points(), 1, None).unwrap();
        assert!(
            descents(&free) > 0,
            "the data must not be monotone by themselves"
        );
        for axis in 0..FEATURES {
            let but_one = ["(0,1,1)", "(1,0,1)", "(1,1,0)"][axis];
            let partly = Regression::fit_constrained(&points(), 1, Some(but_one)).unwrap();
            assert!(descents(&partly) > 0, "{but_one}");
        }
    }

    #[test]
    fn zero_is_a_value_and_no_missing_one() {
        // At 0 bytes on one node with one rank every feature is 0.
        let times = Regression::fit(&points(), 1)
            .unwrap()
            .predict(&[Place::new(0, 1, 1), Place::new(1 << 15, 8, 4)])
            .unwrap();
        assert!(times[0] < times[1], "{times:?}");
    }

    #[test]
    fn the_points_are_met_and_the_model_survives_its_file() {
        let line: Vec<Point> = (0..10)
            .map(|k| Point {
                place: Place::new(1 << k, 2, 2),
                log_time: 8.0 + 0.3 * f64::from(k),
                weight: 1.0,
            })
            .collect();
        let regression = Regression::fit(&line, 1).unwrap();
        let places: Vec<Place> = line.iter().map(|point| point.place).collect();
        let times = regression.predict(&places).unwrap();
        for (time, point) in times.iter().zip(&line) {
            assert!(
                (time - point.log_time).abs() < 0.03,
                "{time} for {}",
                point.log_time
            );
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("model.ubj");
        regression.save(&path).unwrap();
        assert_eq!(
            Regression::load(&path).unwrap().predict(&places).unwrap(),
            times
        );
        assert!(matches!(Regression::fit(&[], 1), Err(RegressError::Empty)));
    }

    #[test]
    fn lines_are_drawn_between_neighbours_only() {
        let at = |nodes: u64, log_time: f64| Point {
            place: Place::new(8, nodes, 2),
            log_time,
            weight: 1.0,
        };
        let wanted = [
            BTreeSet::new(),
            [2u64, 3, 5].map(|n| (n as f64).log2().to_bits()).into(),
            BTreeSet::new(),
        ];
        let all = densify(&[at(2, 1.0), at(4, 2.0)], &wanted);
        assert_eq!(all.len(), 3);
        assert!((all[2].log_time - (1.0 + 1.5f64.log2())).abs() < 1e-12);
    }
}
