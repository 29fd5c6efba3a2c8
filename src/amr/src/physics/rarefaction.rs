//! A double rarefaction: two halves of a gas that part, and what is between them becomes nearly a vacuum.
//!
//! Density 1, pressure 0.4; at time 0 the halves part along x from the domain's middle. With speed 2 and gamma 1.4 it is the
//! second test of Toro (Riemann Solvers and Numerical Methods for Fluid Dynamics, chapter 4), the "123 problem" of Einfeldt
//! et al., J. Comput. Phys. 92, 1991. From speed 3.75 on there is a vacuum in the exact solution.

use super::state::Primitive;
use crate::shape::BlockShape;

/// Two halves that part from `middle`, a place along x, with a speed of `speed` each.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rarefaction {
    pub gamma: f64,
    pub middle: f64,
    pub speed: f64,
}

impl Rarefaction {
    /// Whether the block between two corners touches the place where they part.
    pub fn reaches(&self, lower: [f64; 3], upper: [f64; 3]) -> bool {
        lower[0] <= self.middle && self.middle <= upper[0]
    }

    /// Fills the interior of the block between two corners with the state at time 0.
    pub fn fill(&self, shape: BlockShape, [lower, upper]: [[f64; 3]; 2], block: &mut [f64]) {
        let (g, [nx, ny, nz]) = (shape.ghosts, shape.cells);
        for x in 0..nx {
            let at = lower[0] + (x as f64 + 0.5) / nx as f64 * (upper[0] - lower[0]);
            let gas = Primitive {
                density: 1.0,
                velocity: [self.speed.copysign(at - self.middle), 0.0, 0.0],
                pressure: 0.4,
            };
            for (var, value) in gas.conserved(self.gamma).into_iter().enumerate() {
                for (y, z) in (0..nz).flat_map(|z| (0..ny).map(move |y| (y, z))) {
                    block[shape.index(var, x + g, y + g, z + g)] = value;
                }
            }
        }
    }
}
