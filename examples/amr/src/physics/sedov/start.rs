//! The state at time 0.

use crate::physics::state::Primitive;
use crate::shape::BlockShape;

/// A blast: a uniform gas at rest and a small box round the centre that holds the energy.
///
/// Units:  lengths in the unit cube. `half_edges` are best two cells of the finest level: the box is then forgotten
///         long before the shock has crossed the domain.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Blast {
    pub gamma: f64,
    pub energy: f64,
    pub density: f64,
    /// Pressure of the gas at rest; the exact solution has none, so it must be small.
    pub pressure: f64,
    pub centre: [f64; 3],
    pub half_edges: [f64; 3],
}

impl Blast {
    /// Fills the interior of the block between two corners.
    ///
    /// A cell gets the energy of its part of the box, so the total is the same on every mesh and no rank has to know
    /// about another.
    pub fn fill(&self, shape: BlockShape, lower: [f64; 3], upper: [f64; 3], block: &mut [f64]) {
        let at_rest = Primitive {
            density: self.density,
            velocity: [0.0; 3],
            pressure: self.pressure,
        };
        let at_rest = at_rest.conserved(self.gamma);
        let box_volume: f64 = self.half_edges.iter().map(|half| 2.0 * half).product();
        let shares: [Vec<f64>; 3] = std::array::from_fn(|axis| {
            let n = shape.cells[axis];
            let edge = (upper[axis] - lower[axis]) / n as f64;
            (0..n)
                .map(|cell| self.share(axis, lower[axis] + cell as f64 * edge, edge))
                .collect()
        });
        let g = shape.ghosts;
        for (z, share_z) in shares[2].iter().enumerate() {
            for (y, share_y) in shares[1].iter().enumerate() {
                for (x, share_x) in shares[0].iter().enumerate() {
                    for (var, value) in at_rest.into_iter().enumerate() {
                        block[shape.index(var, x + g, y + g, z + g)] = value;
                    }
                    let energy = self.energy / box_volume * (share_x * share_y * share_z);
                    block[shape.index(4, x + g, y + g, z + g)] += energy;
                }
            }
        }
    }

    /// Which part of a cell's edge lies in the box.
    fn share(&self, axis: usize, first: f64, edge: f64) -> f64 {
        let (low, high) = (
            self.centre[axis] - self.half_edges[axis],
            self.centre[axis] + self.half_edges[axis],
        );
        ((first + edge).min(high) - first.max(low)).max(0.0) / edge
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mesh_starts_with_the_same_energy() {
        let blast = Blast {
            gamma: 1.4,
            energy: 0.7,
            density: 2.0,
            pressure: 1e-5,
            centre: [0.5, 0.4, 0.3],
            half_edges: [0.03, 0.05, 0.011],
        };
        for cells in [[8, 8, 8], [16, 8, 4], [34, 32, 20]] {
            let shape = BlockShape {
                cells,
                ghosts: 2,
                n_vars: 5,
            };
            let mut block = vec![0.0; shape.block_len()];
            let mut totals = [0.0; 5];
            for lower in [[0.0, 0.0, 0.0], [0.5, 0.0, 0.0]] {
                blast.fill(shape, lower, [lower[0] + 0.5, 1.0, 1.0], &mut block);
                let volume = 0.5 / shape.interior_cells() as f64;
                for (var, total) in totals.iter_mut().enumerate() {
                    let cells = &block[var * shape.cells_per_var()..];
                    *total += shape
                        .rows()
                        .flat_map(|row| &cells[row..row + cells_in(shape)])
                        .sum::<f64>()
                        * volume;
                }
            }
            assert!(
                (totals[0] - 2.0).abs() < 1e-12 && totals[1..4] == [0.0; 3],
                "{totals:?}"
            );
            assert!(
                (totals[4] - 0.7 - 1e-5 / 0.4).abs() < 1e-12,
                "{cells:?}: {totals:?}"
            );
        }
    }

    fn cells_in(shape: BlockShape) -> usize {
        shape.cells[0]
    }
}
