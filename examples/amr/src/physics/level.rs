//! Means across levels: ghosts beyond faces where the neighbour is finer or coarser, and the split of a block.
//!
//! A finer block gives the mean of its eight cells for each cell of a coarser neighbour's ghosts. A coarser block gives
//! limited linear values whose mean over a cell is that cell's value, so both ways conserve. Slopes need a cell on
//! both sides inside the giving block; where there is none, and where they would make the pressure negative, the value
//! is given as it is. Only interior cells are read, so nothing has to be exchanged before.

use crate::leaf::tangents;
use crate::shape::BlockShape;

use super::N_VARS;
use super::state::pressure;

/// A box of cells of a block, counted from the outermost ghost; `end` is exclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    pub first: [usize; 3],
    pub end: [usize; 3],
}

impl Region {
    /// Cells of the region.
    pub fn cells(&self) -> usize {
        (0..3)
            .map(|axis| self.end[axis] - self.first[axis])
            .product()
    }

    fn each(self) -> impl Iterator<Item = [usize; 3]> {
        let Region { first, end } = self;
        (first[2]..end[2]).flat_map(move |z| {
            (first[1]..end[1]).flat_map(move |y| (first[0]..end[0]).map(move |x| [x, y, z]))
        })
    }
}

/// The ghosts beyond a face, as wide as the face.
pub fn ghosts(shape: BlockShape, face: usize) -> Region {
    let (axis, g) = (face / 2, shape.ghosts);
    let (mut first, mut end) = ([g; 3], shape.cells.map(|n| n + g));
    (first[axis], end[axis]) = if face.is_multiple_of(2) {
        (0, g)
    } else {
        (g + shape.cells[axis], 2 * g + shape.cells[axis])
    };
    Region { first, end }
}

/// The ghosts beyond one quarter of a face, where one of four finer neighbours lies.
///
/// Shape:  bit 0 of `quadrant` is the upper half of the faster tangential axis, bit 1 of the slower one.
pub fn ghosts_of_quadrant(shape: BlockShape, face: usize, quadrant: usize) -> Region {
    let mut region = ghosts(shape, face);
    for (bit, axis) in tangents(face / 2).into_iter().enumerate() {
        let half = shape.cells[axis] / 2;
        region.first[axis] += (quadrant >> bit & 1) * half;
        region.end[axis] = region.first[axis] + half;
    }
    region
}

/// Writes values, variable after variable and in memory order of the region's cells.
///
/// Shape:  `values` has a value per variable and cell of `region`.
pub fn write(shape: BlockShape, region: Region, values: &[f64], block: &mut [f64]) {
    assert_eq!(
        values.len(),
        shape.n_vars * region.cells(),
        "values of a region"
    );
    let width = region.end[0] - region.first[0];
    let mut rows = values.chunks_exact(width);
    for var in 0..shape.n_vars {
        for z in region.first[2]..region.end[2] {
            for y in region.first[1]..region.end[1] {
                let first = shape.index(var, region.first[0], y, z);
                block[first..first + width]
                    .copy_from_slice(rows.next().expect("as many rows as the region has"));
            }
        }
    }
}

/// Appends what a block gives to one of its own level beyond `face`: for [`ghosts`] of its opposite face.
pub fn read_face(shape: BlockShape, face: usize, block: &[f64], out: &mut Vec<f64>) {
    let (axis, g) = (face / 2, shape.ghosts);
    let (mut first, mut end) = ([g; 3], shape.cells.map(|n| n + g));
    if face.is_multiple_of(2) {
        end[axis] = 2 * g;
    } else {
        first[axis] = shape.cells[axis];
    }
    for var in 0..shape.n_vars {
        for z in first[2]..end[2] {
            for y in first[1]..end[1] {
                let row = shape.index(var, first[0], y, z);
                out.extend_from_slice(&block[row..row + end[0] - first[0]]);
            }
        }
    }
}

/// Appends what a finer block gives to the coarser one beyond `face`: for [`ghosts_of_quadrant`] of its opposite face.
///
/// Shape:  the shape's blocks have at least 2 x 2 ghost layers of cells in each direction, and an even number.
pub fn restrict_face(shape: BlockShape, face: usize, block: &[f64], out: &mut Vec<f64>) {
    let (axis, g) = (face / 2, shape.ghosts);
    let mut end = shape.cells.map(|n| n / 2);
    let mut first = [0; 3];
    // The neighbour's ghosts beyond its opposite face are the layers next to this face.
    if face.is_multiple_of(2) {
        end[axis] = g;
    } else {
        first[axis] = end[axis] - g;
    }
    for var in 0..shape.n_vars {
        for [x, y, z] in (Region { first, end }).each() {
            out.push(mean_of_eight(
                shape,
                var,
                [x, y, z].map(|at| 2 * at + g),
                block,
            ));
        }
    }
}

fn mean_of_eight(shape: BlockShape, var: usize, [x, y, z]: [usize; 3], block: &[f64]) -> f64 {
    let pair = |y: usize, z: usize| {
        let first = shape.index(var, x, y, z);
        block[first] + block[first + 1]
    };
    // One fixed order, so that it does not matter who computes it.
    0.125 * ((pair(y, z) + pair(y + 1, z)) + (pair(y, z + 1) + pair(y + 1, z + 1)))
}

/// Appends what a coarser block gives to the finer one beyond a quarter of `face`: for [`ghosts`] of its opposite face.
///
/// Shape:  `quadrant` as in [`ghosts_of_quadrant`].
pub fn prolong_face(
    shape: BlockShape,
    gamma: f64,
    face: usize,
    quadrant: usize,
    block: &[f64],
    out: &mut Vec<f64>,
) {
    let (axis, g) = (face / 2, shape.ghosts);
    let layers = g.div_ceil(2);
    let mut source = Region {
        first: [g; 3],
        end: shape.cells.map(|n| n + g),
    };
    if face.is_multiple_of(2) {
        source.end[axis] = g + layers;
    } else {
        source.first[axis] = g + shape.cells[axis] - layers;
    }
    for (bit, axis) in tangents(axis).into_iter().enumerate() {
        let half = shape.cells[axis] / 2;
        source.first[axis] += (quadrant >> bit & 1) * half;
        source.end[axis] = source.first[axis] + half;
    }
    prolong(shape, gamma, source, block, out);
}

/// Fills the interior of `child` with the part of `parent` that lies in `octant`: bit 0 is the upper half in x, bit 1
/// in y, bit 2 in z.
pub fn split(shape: BlockShape, gamma: f64, parent: &[f64], octant: usize, child: &mut [f64]) {
    let g = shape.ghosts;
    let first: [usize; 3] =
        std::array::from_fn(|axis| g + (octant >> axis & 1) * shape.cells[axis] / 2);
    let source = Region {
        first,
        end: std::array::from_fn(|axis| first[axis] + shape.cells[axis] / 2),
    };
    let mut values = Vec::with_capacity(shape.n_vars * shape.interior_cells());
    prolong(shape, gamma, source, parent, &mut values);
    write(
        shape,
        Region {
            first: [g; 3],
            end: shape.cells.map(|n| n + g),
        },
        &values,
        child,
    );
}

/// Appends eight values for each cell of `source`: variable after variable, in memory order of the finer cells.
fn prolong(shape: BlockShape, gamma: f64, source: Region, block: &[f64], out: &mut Vec<f64>) {
    let size: [usize; 3] = std::array::from_fn(|axis| 2 * (source.end[axis] - source.first[axis]));
    let start = out.len();
    let fine_cells: usize = size.iter().product();
    out.resize(start + N_VARS * fine_cells, 0.0);
    for at in source.each() {
        let (mean, slopes) = linear(shape, gamma, at, block);
        for child in 0..8usize {
            let fine: [usize; 3] = std::array::from_fn(|axis| {
                2 * (at[axis] - source.first[axis]) + (child >> axis & 1)
            });
            let place = (fine[2] * size[1] + fine[1]) * size[0] + fine[0];
            for var in 0..N_VARS {
                out[start + var * fine_cells + place] = child_value(mean[var], slopes[var], child);
            }
        }
    }
}

fn child_value(mean: f64, slopes: [f64; 3], child: usize) -> f64 {
    let side = |axis: usize| {
        if child >> axis & 1 == 1 {
            0.25 * slopes[axis]
        } else {
            -0.25 * slopes[axis]
        }
    };
    mean + (side(0) + side(1) + side(2))
}

/// Mean and slopes per cell edge of one cell; no slopes where a child's pressure would not be positive.
fn linear(
    shape: BlockShape,
    gamma: f64,
    at: [usize; 3],
    block: &[f64],
) -> ([f64; N_VARS], [[f64; 3]; N_VARS]) {
    let (g, strides) = (shape.ghosts, shape.strides());
    let place = shape.index(0, at[0], at[1], at[2]);
    let mean: [f64; N_VARS] = std::array::from_fn(|var| block[var * shape.cells_per_var() + place]);
    let slopes: [[f64; 3]; N_VARS] = std::array::from_fn(|var| {
        let here = var * shape.cells_per_var() + place;
        std::array::from_fn(|axis| {
            if at[axis] == g || at[axis] + 1 == g + shape.cells[axis] {
                return 0.0;
            }
            let (below, above) = (
                block[here] - block[here - strides[axis]],
                block[here + strides[axis]] - block[here],
            );
            let smaller = below.abs().min(above.abs());
            if below * above > 0.0 {
                smaller.copysign(below)
            } else {
                0.0
            }
        })
    });
    let stays_physical = (0..8).all(|child| {
        let state: [f64; N_VARS] =
            std::array::from_fn(|var| child_value(mean[var], slopes[var], child));
        state[0] > 0.0 && pressure(state, gamma) > 0.0
    });
    (
        mean,
        if stays_physical {
            slopes
        } else {
            [[0.0; 3]; N_VARS]
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::physics::state::Primitive;

    const SHAPE: BlockShape = BlockShape {
        cells: [8, 6, 4],
        ghosts: 2,
        n_vars: N_VARS,
    };

    /// Uneven gas; with `jump`, one cell's pressure is far below its neighbours'.
    fn gas(jump: f64) -> Vec<f64> {
        let mut block = vec![f64::NAN; SHAPE.block_len()];
        for z in 2..SHAPE.cells[2] + 2 {
            for y in 2..SHAPE.cells[1] + 2 {
                for x in 2..SHAPE.cells[0] + 2 {
                    let (a, b, c) = (x as f64, y as f64, z as f64);
                    let density = 1.0 + 0.3 * (a * 0.7).sin() + 0.01 * b * b + 0.02 * c;
                    let pressure = if (x, y, z) == (5, 4, 3) {
                        jump
                    } else {
                        1.0 + 0.1 * a
                    };
                    let velocity = [0.1 * b, 0.05 * a * a, -0.1 * c];
                    for (var, value) in (Primitive {
                        density,
                        velocity,
                        pressure,
                    })
                    .conserved(1.4)
                    .iter()
                    .enumerate()
                    {
                        block[SHAPE.index(var, x, y, z)] = *value;
                    }
                }
            }
        }
        block
    }

    #[test]
    fn splitting_conserves_every_cell_and_joining_undoes_it() {
        for jump in [1.0, 1e-9] {
            let parent = gas(jump);
            for octant in 0..8usize {
                let mut child = vec![f64::NAN; SHAPE.block_len()];
                split(SHAPE, 1.4, &parent, octant, &mut child);
                let half: [usize; 3] =
                    std::array::from_fn(|axis| (octant >> axis & 1) * SHAPE.cells[axis] / 2);
                let sources = Region {
                    first: [0; 3],
                    end: SHAPE.cells.map(|n| n / 2),
                };
                for (var, at) in (0..N_VARS).flat_map(|var| sources.each().map(move |at| (var, at)))
                {
                    let mean = mean_of_eight(SHAPE, var, at.map(|at| 2 * at + 2), &child);
                    let from = parent[SHAPE.index(
                        var,
                        at[0] + half[0] + 2,
                        at[1] + half[1] + 2,
                        at[2] + half[2] + 2,
                    )];
                    assert!(
                        (mean - from).abs() <= 4.0 * f64::EPSILON * from.abs().max(1.0),
                        "{mean} is not {from}"
                    );
                }
            }
        }
    }

    #[test]
    fn values_for_finer_ghosts_are_physical_and_have_the_coarse_means() {
        let block = gas(1e-9);
        for face in 0..6 {
            for quadrant in 0..4 {
                let mut values = Vec::new();
                prolong_face(SHAPE, 1.4, face, quadrant, &block, &mut values);
                let region = ghosts(SHAPE, face ^ 1);
                assert_eq!(values.len(), N_VARS * region.cells(), "face {face}");
                let cells = region.cells();
                for cell in 0..cells {
                    let state: [f64; N_VARS] =
                        std::array::from_fn(|var| values[var * cells + cell]);
                    assert!(
                        state[0] > 0.0 && pressure(state, 1.4) > 0.0,
                        "face {face}: {state:?}"
                    );
                }
                let given: f64 = values[..cells].iter().sum::<f64>() / cells as f64;
                let quarter = ghosts_of_quadrant(SHAPE, face, quadrant);
                let (axis, mut source) = (face / 2, quarter);
                // The coarse cells that were given: the one layer inside the face.
                (source.first[axis], source.end[axis]) = if face % 2 == 0 {
                    (2, 3)
                } else {
                    (SHAPE.cells[axis] + 1, SHAPE.cells[axis] + 2)
                };
                let from: f64 = source
                    .each()
                    .map(|[x, y, z]| block[SHAPE.index(0, x, y, z)])
                    .sum();
                assert!(
                    (given - from / source.cells() as f64).abs() < 1e-14,
                    "face {face} quadrant {quadrant}"
                );
            }
        }
    }

    #[test]
    fn values_for_coarser_ghosts_are_means_of_the_layers_next_to_the_face() {
        // A field that is linear along x and constant across: the means are known.
        let mut block = vec![f64::NAN; SHAPE.block_len()];
        for [x, y, z] in (Region {
            first: [2; 3],
            end: SHAPE.cells.map(|n| n + 2),
        })
        .each()
        {
            (0..N_VARS).for_each(|var| {
                block[SHAPE.index(var, x, y, z)] = (x - 2) as f64 + 100.0 * var as f64
            });
        }
        for (face, expected) in [(0, [0.5, 2.5]), (1, [4.5, 6.5])] {
            let mut values = Vec::new();
            restrict_face(SHAPE, face, &block, &mut values);
            assert_eq!(
                values.len(),
                N_VARS * ghosts_of_quadrant(SHAPE, face ^ 1, 0).cells()
            );
            let mut coarse = vec![0.0; SHAPE.block_len()];
            let region = ghosts_of_quadrant(SHAPE, face ^ 1, 3);
            write(SHAPE, region, &values, &mut coarse);
            for [x, y, z] in region.each() {
                let value = coarse[SHAPE.index(2, x, y, z)];
                assert_eq!(value, 200.0 + expected[x - region.first[0]], "face {face}");
            }
        }
    }

    #[test]
    fn a_linear_field_is_prolonged_exactly_inside_a_block() {
        let mut block = vec![0.0; SHAPE.block_len()];
        for [x, y, z] in (Region {
            first: [2; 3],
            end: SHAPE.cells.map(|n| n + 2),
        })
        .each()
        {
            let density = 10.0 + x as f64 + 0.5 * y as f64 - 0.25 * z as f64;
            block[SHAPE.index(0, x, y, z)] = density;
            block[SHAPE.index(4, x, y, z)] = 1000.0;
        }
        let mut values = Vec::new();
        prolong(
            SHAPE,
            1.4,
            Region {
                first: [4, 4, 3],
                end: [5, 5, 4],
            },
            &block,
            &mut values,
        );
        let expected =
            |x: f64, y: f64, z: f64| 10.0 + (4.0 + x) + 0.5 * (4.0 + y) - 0.25 * (3.0 + z);
        assert_eq!(values[0], expected(-0.25, -0.25, -0.25));
        assert_eq!(values[7], expected(0.25, 0.25, 0.25));
    }
}
