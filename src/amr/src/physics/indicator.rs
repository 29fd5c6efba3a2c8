//! Where the mesh should be fine: relative jumps of the pressure between neighbouring cells.

use crate::shape::BlockShape;

use super::N_VARS;
use super::state::pressure;

/// The largest relative jump of the pressure in a block: 0 in a uniform gas, close to 1 at a strong shock.
///
/// Shape:  a block of 5 variables with ghosts across faces filled: they take part.
/// Units:  |p1 - p0| / (p1 + p0) for the two neighbours of a cell along an axis.
pub fn pressure_jump_max(shape: BlockShape, gamma: f64, block: &[f64]) -> f64 {
    let vars = shape.cells_per_var();
    let at = |place: usize| {
        pressure(
            std::array::from_fn(|var: usize| block[var * vars + place]),
            gamma,
        )
    };
    debug_assert_eq!(shape.n_vars, N_VARS);
    jump_max(shape, at)
}

fn jump(below: f64, above: f64) -> f64 {
    let sum = below.abs() + above.abs();
    if sum > 0.0 {
        (above - below).abs() / sum
    } else {
        0.0
    }
}

fn jump_max(shape: BlockShape, value: impl Fn(usize) -> f64) -> f64 {
    let strides = shape.strides();
    let mut largest = 0.0f64;
    for row in shape.rows() {
        for place in row..row + shape.cells[0] {
            for stride in strides {
                largest = largest.max(jump(value(place - stride), value(place + stride)));
            }
        }
    }
    largest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::physics::state::Primitive;

    const SHAPE: BlockShape = BlockShape {
        cells: [8, 4, 4],
        ghosts: 2,
        n_vars: N_VARS,
    };

    #[test]
    fn jumps_are_relative_and_see_neighbours_through_the_ghosts() {
        let mut block = vec![0.0; SHAPE.block_len()];
        let [px, py, pz] = SHAPE.padded();
        let mut fill = |pressure: f64, from: usize| {
            for (z, y, x) in
                (0..pz).flat_map(|z| (0..py).flat_map(move |y| (from..px).map(move |x| (z, y, x))))
            {
                let gas = Primitive {
                    density: 1.0,
                    velocity: [0.0; 3],
                    pressure,
                };
                for (var, value) in gas.conserved(1.4).into_iter().enumerate() {
                    block[SHAPE.index(var, x, y, z)] = value;
                }
            }
            pressure_jump_max(SHAPE, 1.4, &block)
        };
        assert_eq!(fill(1e-3, 0), 0.0);
        let at_ghosts = fill(3e-3, SHAPE.cells[0] + 2);
        assert!((at_ghosts - 0.5).abs() < 1e-12, "{at_ghosts}");
    }
}
