//! What all contrasts of a cell have in common, because all are to its default.

use std::collections::HashMap;

use super::kernel::{Kernel, Solved};
use crate::predict::predictor::{Place, Point, Prediction};

/// Rounds in which variants' means and cells' are found from each other.
const ROUNDS: usize = 6;
/// Contrasts that a cell's mean leans on nothing with, and the variance of one around it before any data.
const PRIOR: f64 = 2.0;
const SCATTER: f64 = 0.05;
/// How much of a contrast's variance is the measured default's, which all contrasts of the cell share.
const SHARED: f64 = 0.5;
/// The slope is 1 where the simulator is right; so much variance of what it says counts for that.
const SLOPE_PRIOR: f64 = 1.0;

/// The cells of one collective.
pub struct Cells {
    places: HashMap<[u64; 3], usize>,
    points: Vec<Point>,
    kernel: Kernel,
    solved: Option<Solved>,
}

/// The bits of nodes and ranks per node.
pub type Layout = [u64; 2];

pub fn layout_of(place: &Place) -> Layout {
    [place.nodes, place.ppn].map(f64::to_bits)
}

fn key(place: &Place) -> [u64; 3] {
    [place.bytes, place.nodes, place.ppn].map(f64::to_bits)
}

/// Numbers the cells in which there are points.
fn numbered(known: &[Vec<Point>]) -> (HashMap<[u64; 3], usize>, Vec<Place>) {
    let (mut numbers, mut places) = (HashMap::new(), Vec::new());
    for point in known.iter().flatten() {
        numbers.entry(key(&point.place)).or_insert_with(|| {
            places.push(point.place);
            places.len() - 1
        });
    }
    (numbers, places)
}

impl Cells {
    pub fn new(known: &[Vec<Point>]) -> Cells {
        let (numbers, places) = numbered(known);
        let (means, scatter) = two_way(known, &numbers, |point| point.mean);
        let mut counts = vec![(0.0, f64::INFINITY); places.len()];
        for point in known.iter().flatten() {
            let of_cell = &mut counts[numbers[&key(&point.place)]];
            *of_cell = (of_cell.0 + 1.0, of_cell.1.min(point.variance));
        }
        let points: Vec<Point> = places
            .into_iter()
            .zip(means)
            .zip(counts)
            .map(|((place, mean), (count, least))| Point {
                place,
                mean,
                variance: scatter / count + SHARED * least,
            })
            .collect();
        let kernel = Kernel::choose(std::slice::from_ref(&points));
        Cells {
            solved: kernel.solve(&points),
            places: numbers,
            points,
            kernel,
        }
    }

    /// What was found of a cell that has points.
    pub fn of(&self, place: &Place) -> f64 {
        let number = self.places.get(&key(place));
        number.map_or(0.0, |&number| self.points[number].mean)
    }

    /// What is expected of a cell, by its own points where it has any.
    pub fn at(&self, place: &Place) -> Prediction {
        let Some(solved) = &self.solved else {
            return self.kernel.unknown();
        };
        match self.places.get(&key(place)) {
            Some(&number) => {
                let Point { mean, variance, .. } = self.points[number];
                Prediction { mean, variance }
            }
            None => self.kernel.at(solved, &self.points, place),
        }
    }

    /// The cells of other layouts alone, with what they are known by.
    pub fn beside(&self, layout: Layout) -> Option<Cells> {
        let others = self
            .points
            .iter()
            .filter(|point| layout_of(&point.place) != layout);
        let points: Vec<Point> = others.copied().collect();
        let number = |(number, point): (usize, &Point)| (key(&point.place), number);
        let solved = self.kernel.solve(&points)?;
        Some(Cells {
            places: points.iter().enumerate().map(number).collect(),
            points,
            kernel: self.kernel,
            solved: Some(solved),
        })
    }

    /// At most so many of the layouts, from the whole range.
    pub fn layouts(&self, most: usize) -> Vec<Layout> {
        let mut all: Vec<Layout> = self
            .points
            .iter()
            .map(|point| layout_of(&point.place))
            .collect();
        all.sort_unstable();
        all.dedup();
        let step = all.len().div_ceil(most.max(1)).max(1);
        all.into_iter().step_by(step).collect()
    }

    /// What the others say of a cell that has points.
    pub fn without(&self, place: &Place) -> Prediction {
        let number = self.places.get(&key(place));
        match number.zip(self.solved.as_ref()) {
            Some((&number, solved)) => solved.left_out(number, &self.points[number]),
            None => self.kernel.unknown(),
        }
    }
}

/// How much of what the simulator says shows in contrasts, beside what variants and cells have of their own.
pub fn slope(known: &[Vec<Point>]) -> f64 {
    let (numbers, _) = numbered(known);
    let simulated = residuals(known, &numbers, |point| point.place.simulated);
    let measured = residuals(known, &numbers, |point| point.mean);
    let product: f64 = simulated.iter().zip(&measured).map(|(s, m)| s * m).sum();
    let square: f64 = simulated.iter().map(|s| s * s).sum();
    ((product + SLOPE_PRIOR) / (square + SLOPE_PRIOR)).clamp(0.0, 1.2)
}

/// What is left of a number beside the means of variants and cells.
fn residuals(
    known: &[Vec<Point>],
    numbers: &HashMap<[u64; 3], usize>,
    of: impl Fn(&Point) -> f64 + Copy,
) -> Vec<f64> {
    let (cells, _) = two_way(known, numbers, of);
    let left = |point: &Point| of(point) - cells[numbers[&key(&point.place)]];
    known
        .iter()
        .flat_map(|points| {
            let left: Vec<f64> = points.iter().map(left).collect();
            let mean = left.iter().sum::<f64>() / left.len().max(1) as f64;
            left.into_iter().map(move |value| value - mean)
        })
        .collect()
}

/// By cell what its numbers have in common beside the variants' means, and the variance of what is left.
fn two_way(
    known: &[Vec<Point>],
    numbers: &HashMap<[u64; 3], usize>,
    of: impl Fn(&Point) -> f64,
) -> (Vec<f64>, f64) {
    let mut cells = vec![0.0; numbers.len()];
    let mut left = (0.0, 0.0);
    for _ in 0..ROUNDS {
        let mut sums = vec![(0.0, PRIOR); cells.len()];
        left = (SCATTER, 1.0);
        for points in known.iter().filter(|points| !points.is_empty()) {
            let beside = |point: &Point| of(point) - cells[numbers[&key(&point.place)]];
            let mean = points.iter().map(beside).sum::<f64>() / points.len() as f64;
            for point in points {
                let sum = &mut sums[numbers[&key(&point.place)]];
                *sum = (sum.0 + of(point) - mean, sum.1 + 1.0);
                left.0 += (beside(point) - mean).powi(2);
                left.1 += 1.0;
            }
        }
        cells = sums.into_iter().map(|(sum, count)| sum / count).collect();
    }
    (cells, left.0 / left.1)
}
