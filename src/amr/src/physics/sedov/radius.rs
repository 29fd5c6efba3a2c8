//! Where the shock is in a computed field.

use crate::physics::N_VARS;
use crate::physics::state::pressure;
use crate::shape::BlockShape;

/// Relative fall of the pressure per cell above which a cell belongs to the shock.
const SHOCK: f64 = 0.1;

/// The mean radius of the pressure's fall, as two sums that merge over blocks and ranks by addition.
///
/// A captured shock is smeared over two or three cells; the mean of the radius, weighted with the square of how steeply
/// the pressure falls outward, is the middle of its steepest part. It lies ahead of the exact shock by 0.4 to 0.6
/// cells: 2.8 %, 1.8 % and 1.3 % with 11, 22 and 45 cells along the radius.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ShockRadius {
    pub weight: f64,
    pub weighted_radius: f64,
}

impl ShockRadius {
    /// Adds the cells of the block between two corners.
    ///
    /// Shape:  a block of 5 variables with ghosts across faces filled.
    pub fn add_block(
        &mut self,
        shape: BlockShape,
        gamma: f64,
        centre: [f64; 3],
        [lower, upper]: [[f64; 3]; 2],
        block: &[f64],
    ) {
        let (strides, vars, g) = (shape.strides(), shape.cells_per_var(), shape.ghosts);
        let edges: [f64; 3] =
            std::array::from_fn(|axis| (upper[axis] - lower[axis]) / shape.cells[axis] as f64);
        let volume: f64 = edges.iter().product();
        let shortest = edges.into_iter().fold(f64::INFINITY, f64::min);
        let p = |place: usize| {
            pressure(
                std::array::from_fn::<f64, N_VARS, _>(|var| block[var * vars + place]),
                gamma,
            )
        };
        for z in 0..shape.cells[2] {
            for y in 0..shape.cells[1] {
                for x in 0..shape.cells[0] {
                    let place = shape.index(0, x + g, y + g, z + g);
                    let at = [x, y, z];
                    let from_centre: [f64; 3] = std::array::from_fn(|axis| {
                        lower[axis] + (at[axis] as f64 + 0.5) * edges[axis] - centre[axis]
                    });
                    let radius = from_centre.iter().map(|x| x * x).sum::<f64>().sqrt();
                    let slope = |axis: usize| {
                        (p(place + strides[axis]) - p(place - strides[axis])) / (2.0 * edges[axis])
                    };
                    let fall = -(0..3)
                        .map(|axis| slope(axis) * from_centre[axis])
                        .sum::<f64>()
                        / radius;
                    if fall * shortest > SHOCK * p(place) {
                        // A shell's cells grow with the square of its radius; its profile should count once.
                        let weight = fall * fall * volume / (radius * radius);
                        self.weight += weight;
                        self.weighted_radius += weight * radius;
                    }
                }
            }
        }
    }

    /// The radius; none where no cell belongs to a shock.
    pub fn radius(&self) -> Option<f64> {
        (self.weight > 0.0).then(|| self.weighted_radius / self.weight)
    }
}
