//! A density wave that an even flow carries along: a problem whose solution is known at every time.
//!
//! Density 1 + 0.2 sin(2 pi (x + y + z - 3 t)) in the unit cube, velocity 1 along each axis, pressure 1. It is periodic
//! in space, and in time with a third. A part of the middle is refined for good, so that the wave crosses levels.

use std::f64::consts::PI;

use super::state::Primitive;
use crate::shape::BlockShape;

const AMPLITUDE: f64 = 0.2;

/// The wave in a gas of this ratio of specific heats; lengths are those of the unit cube.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Wave {
    pub gamma: f64,
}

impl Wave {
    /// Whether a block belongs to the part that is refined: the middle half along each axis.
    pub fn is_refined(&self, lower: [f64; 3], upper: [f64; 3]) -> bool {
        (0..3).all(|d| lower[d] < 0.75 && upper[d] > 0.25)
    }

    /// Fills the interior of the block between two corners with means over its cells at time 0.
    pub fn fill(&self, shape: BlockShape, [lower, upper]: [[f64; 3]; 2], block: &mut [f64]) {
        for_each_cell(shape, [lower, upper], |at, middle, edges| {
            let gas = Primitive {
                density: mean_density(middle, edges, 0.0),
                velocity: [1.0; 3],
                pressure: 1.0,
            };
            for (var, value) in gas.conserved(self.gamma).into_iter().enumerate() {
                block[shape.index(var, at[0], at[1], at[2])] = value;
            }
        });
    }

    /// What each interior cell adds to the integral of the density's error at `time`.
    pub fn errors(
        &self,
        shape: BlockShape,
        corners: [[f64; 3]; 2],
        time: f64,
        block: &[f64],
        mut add: impl FnMut(f64),
    ) {
        for_each_cell(shape, corners, |at, middle, edges| {
            let density = block[shape.index(0, at[0], at[1], at[2])];
            let volume: f64 = edges.iter().product();
            add((density - mean_density(middle, edges, time)).abs() * volume);
        });
    }
}

/// The mean of the density over the cell round `middle`.
fn mean_density(middle: [f64; 3], edges: [f64; 3], time: f64) -> f64 {
    let narrowed: f64 = edges
        .map(|edge| (PI * edge).sin() / (PI * edge))
        .iter()
        .product();
    let phase = middle.iter().sum::<f64>() - 3.0 * time;
    1.0 + AMPLITUDE * narrowed * (2.0 * PI * phase).sin()
}

fn for_each_cell(
    shape: BlockShape,
    [lower, upper]: [[f64; 3]; 2],
    mut each: impl FnMut([usize; 3], [f64; 3], [f64; 3]),
) {
    let g = shape.ghosts;
    let edges: [f64; 3] = std::array::from_fn(|d| (upper[d] - lower[d]) / shape.cells[d] as f64);
    let [nx, ny, nz] = shape.cells;
    for (z, y, x) in
        (0..nz).flat_map(|z| (0..ny).flat_map(move |y| (0..nx).map(move |x| (z, y, x))))
    {
        let cell = [x, y, z];
        let middle = std::array::from_fn(|d| lower[d] + (cell[d] as f64 + 0.5) * edges[d]);
        each(cell.map(|c| c + g), middle, edges);
    }
}
