//! A Gaussian process over log bytes, nodes and ranks per node, around what the simulator says.
//!
//! A contrast is a sum: a slope times the simulator's + the default's own effect in the cell, which is in all
//! contrasts there + the variant's own + a part smooth over places + this contrast's alone. Without the second, the
//! default's leaps from one algorithm to another would look like every variant's. How far smoothness reaches and how
//! much is alone is chosen by the likelihood of all variants together.

mod cells;
mod kernel;

use rayon::prelude::*;

use super::predictor::{Place, Point, Prediction, Predictor};
use super::spread::CONTRAST_MAX;
use cells::{Cells, layout_of};
use kernel::{Kernel, Solved};

pub struct Gaussian;

impl Predictor for Gaussian {
    fn predict(&self, known: &[Vec<Point>], asked: &[Vec<Place>]) -> Vec<Vec<Prediction>> {
        let fitted = Fitted::new(known);
        let both: Vec<_> = fitted.variants.iter().zip(asked).collect();
        both.into_par_iter()
            .map(|((points, solved), places)| {
                let own = |place: &Place| match solved {
                    Some(solved) => fitted.kernel.at(solved, points, place),
                    None => fitted.kernel.unknown(),
                };
                let one = |place: &Place| {
                    let of_cell = fitted.cells.at(place);
                    let found = fitted.sum(place, own(place), of_cell);
                    Prediction {
                        variance: fitted.misfit * found.variance,
                        ..found
                    }
                };
                places.iter().map(one).collect()
            })
            .collect()
    }

    fn leave_out(&self, known: &[Vec<Point>]) -> Vec<Vec<Prediction>> {
        let fitted = Fitted::new(known);
        let of_variant = |(points, solved): &(Vec<Point>, Option<Solved>)| {
            let Some(solved) = solved else {
                return Vec::new();
            };
            let one = |(index, point): (usize, &Point)| {
                // Its cell's other contrasts hold the same measurements of the default, so none of them counts.
                let of_cell = fitted.cells.without(&point.place);
                fitted.sum(&point.place, solved.left_out(index, point), of_cell)
            };
            points.iter().enumerate().map(one).collect()
        };
        fitted.variants.par_iter().map(of_variant).collect()
    }
}

/// What was learned of one collective's variants.
struct Fitted {
    slope: f64,
    cells: Cells,
    kernel: Kernel,
    /// How many times as far as they claim predictions of whole layouts are off, in squares.
    misfit: f64,
    /// What is left of each variant's contrasts, and how that hangs together.
    variants: Vec<(Vec<Point>, Option<Solved>)>,
}

impl Fitted {
    fn new(known: &[Vec<Point>]) -> Fitted {
        let clipped = |point: &Point| Point {
            mean: point.mean.clamp(-CONTRAST_MAX, CONTRAST_MAX),
            ..*point
        };
        let known: Vec<Vec<Point>> = known
            .iter()
            .map(|points| points.iter().map(clipped).collect())
            .collect();
        let slope = cells::slope(&known);
        let beyond = |point: &Point| Point {
            mean: point.mean - slope * point.place.simulated,
            ..*point
        };
        let beyond: Vec<Vec<Point>> = known
            .iter()
            .map(|points| points.iter().map(beyond).collect())
            .collect();
        let cells = Cells::new(&beyond);
        let left = |point: &Point| Point {
            mean: point.mean - cells.of(&point.place),
            ..*point
        };
        let left: Vec<Vec<Point>> = beyond
            .iter()
            .map(|points| points.iter().map(left).collect())
            .collect();
        let kernel = Kernel::choose(&left);
        let solved = |points: Vec<Point>| {
            let solved = kernel.solve(&points);
            (points, solved)
        };
        Fitted {
            misfit: misfit(&left, &kernel, &cells),
            slope,
            kernel,
            variants: left.into_par_iter().map(solved).collect(),
            cells,
        }
    }

    fn sum(&self, place: &Place, own: Prediction, of_cell: Prediction) -> Prediction {
        Prediction {
            mean: self.slope * place.simulated + own.mean + of_cell.mean,
            variance: own.variance + of_cell.variance,
        }
    }
}

/// Layouts, and variants, of which is asked how well the others tell them.
const LAYOUTS_MAX: usize = 4;
const VARIANTS_MAX: usize = 16;
/// Predictions that are as good as they claim, before any data.
const MISFIT_PRIOR: f64 = 20.0;

/// How many times as far as they claim predictions of a layout from the others are off, in squares.
fn misfit(left: &[Vec<Point>], kernel: &Kernel, cells: &Cells) -> f64 {
    let (mut squares, mut count) = (MISFIT_PRIOR, MISFIT_PRIOR);
    let step = left.len().div_ceil(VARIANTS_MAX).max(1);
    for layout in cells.layouts(LAYOUTS_MAX) {
        let Some(others) = cells.beside(layout) else {
            continue;
        };
        for points in left.iter().step_by(step) {
            let is_there = |point: &&Point| layout_of(&point.place) == layout;
            let (asked, known): (Vec<Point>, Vec<Point>) = points.iter().partition(is_there);
            let Some(solved) = kernel.solve(&known) else {
                continue;
            };
            for point in asked {
                let own = kernel.at(&solved, &known, &point.place);
                let of_cell = others.at(&point.place);
                let away = point.mean + cells.of(&point.place) - own.mean - of_cell.mean;
                let variance = own.variance + of_cell.variance + point.variance;
                squares += (away * away / variance).min(25.0);
                count += 1.0;
            }
        }
    }
    (squares / count).max(1.0)
}
