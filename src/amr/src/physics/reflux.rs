//! Flux correction: what leaves a coarse block through a face enters the finer blocks beyond it, to the last bit but
//! rounding.
//!
//! Source: Berger & Colella, J. Comput. Phys. 82, 1989.

use crate::leaf::tangents;
use crate::shape::BlockShape;

use super::{FaceFluxes, N_VARS};

/// Appends the means of four fluxes each through `face` of a finer block: what its coarser neighbour needs.
///
/// Shape:  variable after variable, half as many cells as the face in each direction.
pub fn restrict(shape: BlockShape, fluxes: &FaceFluxes, face: usize, out: &mut Vec<f64>) {
    let [na, nb] = tangents(face / 2).map(|axis| shape.cells[axis]);
    for var in fluxes.face(face).chunks_exact(na * nb) {
        for b in (0..nb).step_by(2) {
            let (low, high) = (&var[b * na..][..na], &var[(b + 1) * na..][..na]);
            let pairs = low.chunks_exact(2).zip(high.chunks_exact(2));
            out.extend(pairs.map(|(low, high)| 0.25 * ((low[0] + low[1]) + (high[0] + high[1]))));
        }
    }
}

/// Replaces a coarse block's fluxes through a quarter of `face` by those of the finer neighbour, after the stage.
///
/// Shape:  `fine` is what [`restrict`] gave on the opposite face of the neighbour in `quadrant` (bit 0: upper half of
///         the faster tangential axis, bit 1: of the slower one).
/// Units:  `weighted_dt_over_dx` is the coarse block's dt/dx along the axis times [`super::euler::Stage::weight`].
///
/// A cell at an edge may be corrected through several faces: correct faces in order and in each the quadrants in order,
/// then its bits do not depend on when messages arrive.
pub fn correct(
    shape: BlockShape,
    coarse: &FaceFluxes,
    fine: &[f64],
    face: usize,
    quadrant: usize,
    weighted_dt_over_dx: f64,
    state: &mut [f64],
) {
    let axis = face / 2;
    let [a_axis, b_axis] = tangents(axis);
    let [na, nb] = [a_axis, b_axis].map(|axis| shape.cells[axis] / 2);
    assert_eq!(fine.len(), N_VARS * na * nb, "fluxes of a quarter face");
    let (a0, b0) = ((quadrant & 1) * na, (quadrant >> 1 & 1) * nb);
    let g = shape.ghosts;
    // What flows through the upper face leaves the block, what flows through the lower one enters it.
    let (along, factor) = if face.is_multiple_of(2) {
        (g, weighted_dt_over_dx)
    } else {
        (g + shape.cells[axis] - 1, -weighted_dt_over_dx)
    };
    let face_cells = shape.face_cells(axis);
    for var in 0..N_VARS {
        for b in 0..nb {
            for a in 0..na {
                let mut at = [0; 3];
                (at[axis], at[a_axis], at[b_axis]) = (along, g + a0 + a, g + b0 + b);
                let old = coarse.face(face)[var * face_cells + (b0 + b) * 2 * na + a0 + a];
                let new = fine[(var * nb + b) * na + a];
                state[shape.index(var, at[0], at[1], at[2])] += factor * (new - old);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exact_sum::ExactSum;
    use crate::physics::boundary::{self, Boundary};
    use crate::physics::state::Primitive;
    use crate::physics::{FluxOrder, Scheme, Scratch, Stage, level};

    const SHAPE: BlockShape = BlockShape {
        cells: [8, 8, 8],
        ghosts: 2,
        n_vars: N_VARS,
    };

    /// A coarse block and beyond its `face` four finer ones, between walls.
    struct TwoLevels {
        face: usize,
        scheme: Scheme,
        /// The coarse block, then the finer ones by quadrant.
        blocks: Vec<Vec<f64>>,
        corrected: Corrected,
    }

    #[derive(Clone, Copy, PartialEq)]
    enum Corrected {
        Yes,
        No,
    }

    impl TwoLevels {
        fn new(face: usize, corrected: Corrected) -> Self {
            let scheme = Scheme {
                shape: SHAPE,
                gamma: 1.4,
                fluxes: FluxOrder::default(),
            };
            let blocks = (0..5).map(|block| {
                let mut state = vec![0.0; SHAPE.block_len()];
                for place in 0..SHAPE.cells_per_var() {
                    let wave = |k: f64| (k * (place + 31 * block) as f64).sin();
                    let gas = Primitive {
                        density: 1.0 + 0.5 * wave(0.11),
                        velocity: [wave(0.7), wave(0.13), wave(0.05)],
                        pressure: if place % 97 < 40 { 0.2 } else { 2.0 },
                    };
                    for (var, value) in gas.conserved(1.4).into_iter().enumerate() {
                        state[var * SHAPE.cells_per_var() + place] = value;
                    }
                }
                state
            });
            TwoLevels {
                face,
                scheme,
                blocks: blocks.collect(),
                corrected,
            }
        }

        /// Whether the finer block in `quadrant` has a domain face at `face`, or a finer sibling there.
        fn sibling(&self, quadrant: usize, face: usize) -> Option<usize> {
            let bit = tangents(self.face / 2)
                .iter()
                .position(|&axis| axis == face / 2)?;
            (quadrant >> bit & 1 != face & 1).then_some(quadrant ^ (1 << bit))
        }

        fn fill_ghosts(&mut self) {
            let opposite = self.face ^ 1;
            for (quadrant, block) in (1..5).enumerate() {
                let mut values = Vec::new();
                level::prolong_face(
                    SHAPE,
                    1.4,
                    self.face,
                    quadrant,
                    &self.blocks[0],
                    &mut values,
                );
                level::write(
                    SHAPE,
                    level::ghosts(SHAPE, opposite),
                    &values,
                    &mut self.blocks[block],
                );
                values.clear();
                level::restrict_face(SHAPE, opposite, &self.blocks[block], &mut values);
                let region = level::ghosts_of_quadrant(SHAPE, self.face, quadrant);
                level::write(SHAPE, region, &values, &mut self.blocks[0]);
                for face in (0..6).filter(|&face| face != opposite) {
                    match self.sibling(quadrant, face) {
                        None => boundary::fill(
                            SHAPE,
                            face,
                            Boundary::Reflecting,
                            &mut self.blocks[block],
                        ),
                        Some(other) => {
                            let values = inner_layers(&self.blocks[1 + other], face ^ 1);
                            level::write(
                                SHAPE,
                                level::ghosts(SHAPE, face),
                                &values,
                                &mut self.blocks[block],
                            );
                        }
                    }
                }
            }
            for face in (0..6).filter(|&face| face != self.face) {
                boundary::fill(SHAPE, face, Boundary::Reflecting, &mut self.blocks[0]);
            }
        }

        fn step(&mut self, dt_over_coarse_dx: f64) {
            let mut scratch = Scratch::new(SHAPE);
            let start = self.blocks.clone();
            for stage in [Stage::First, Stage::Second] {
                self.fill_ghosts();
                let mut fluxes: Vec<FaceFluxes> = (0..5).map(|_| FaceFluxes::new(SHAPE)).collect();
                for block in 0..5 {
                    let step = if block == 0 {
                        dt_over_coarse_dx
                    } else {
                        2.0 * dt_over_coarse_dx
                    };
                    let (state, fluxes) = (&mut self.blocks[block], &mut fluxes[block]);
                    let advanced = self.scheme.advance(
                        stage,
                        [step; 3],
                        &start[block],
                        state,
                        fluxes,
                        &mut scratch,
                    );
                    advanced.expect("a gas");
                }
                if self.corrected == Corrected::No {
                    continue;
                }
                for quadrant in 0..4 {
                    let mut fine = Vec::new();
                    restrict(SHAPE, &fluxes[1 + quadrant], self.face ^ 1, &mut fine);
                    let step = stage.weight() * dt_over_coarse_dx;
                    correct(
                        SHAPE,
                        &fluxes[0],
                        &fine,
                        self.face,
                        quadrant,
                        step,
                        &mut self.blocks[0],
                    );
                }
            }
        }

        /// Mass or energy, in finer cells' volumes.
        fn total(&self, var: usize) -> f64 {
            let mut sum = ExactSum::default();
            for (block, state) in self.blocks.iter().enumerate() {
                let cells = &state[var * SHAPE.cells_per_var()..];
                sum.add_rows(SHAPE.rows().map(|row| &cells[row..row + SHAPE.cells[0]]));
                if block == 0 {
                    sum.times_power_of_two(3);
                }
            }
            sum.value()
        }
    }

    fn inner_layers(block: &[f64], face: usize) -> Vec<f64> {
        let (axis, mut region) = (face / 2, level::ghosts(SHAPE, face));
        let inside = if face.is_multiple_of(2) {
            2
        } else {
            SHAPE.cells[axis]
        };
        (region.first[axis], region.end[axis]) = (inside, inside + 2);
        let mut values = Vec::new();
        for var in 0..N_VARS {
            for z in region.first[2]..region.end[2] {
                for y in region.first[1]..region.end[1] {
                    values.extend(
                        (region.first[0]..region.end[0]).map(|x| block[SHAPE.index(var, x, y, z)]),
                    );
                }
            }
        }
        values
    }

    fn drift(face: usize, corrected: Corrected) -> f64 {
        let mut mesh = TwoLevels::new(face, corrected);
        let before = [mesh.total(0), mesh.total(4)];
        (0..10).for_each(|_| mesh.step(0.02));
        let after = [mesh.total(0), mesh.total(4)];
        before
            .into_iter()
            .zip(after)
            .map(|(before, after)| (after / before - 1.0).abs())
            .fold(0.0, f64::max)
    }

    #[test]
    fn corrected_fluxes_conserve_mass_and_energy_across_levels() {
        for face in 0..6 {
            let drift = drift(face, Corrected::Yes);
            assert!(drift < 1e-13, "face {face}: {drift:e}");
        }
    }

    #[test]
    fn without_the_correction_they_drift() {
        for face in 0..6 {
            let drift = drift(face, Corrected::No);
            assert!(drift > 1e-6, "face {face}: {drift:e}");
        }
    }
}
