//! Means across levels: ghosts beyond faces where the neighbour is finer or coarser, and the split of a block.
//!
//! A finer block gives the mean of its eight cells for each cell of a coarser neighbour's ghosts. A coarser block gives
//! limited linear values whose mean over a cell is that cell's value, so both ways conserve. Only interior cells are
//! read, so nothing has to be exchanged before: a cell at the block's face takes its slope from the two differences
//! next to it inside the block. The finer block limits what it was given along the face's normal by its own cells
//! ([`limit_ghosts`]), which the giving block does not know. Where slopes would make the pressure negative, the value
//! is given as it is. Values are of second order everywhere, as `tests/order.rs` shows.

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
            // The middle one of the three cells that the slope is taken from: this one, unless it lies at a face.
            let middle = at[axis].clamp(g + 1, g + shape.cells[axis] - 2);
            let centre = here - at[axis] * strides[axis] + middle * strides[axis];
            let below = block[centre] - block[centre - strides[axis]];
            let above = block[centre + strides[axis]] - block[centre];
            smaller(below, above)
        })
    });
    let stays_physical = (0..8).all(|child| {
        let state: [f64; N_VARS] =
            std::array::from_fn(|var| child_value(mean[var], slopes[var], child));
        is_physical(state, gamma)
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

/// The difference that is nearer to zero; zero where their signs differ.
fn smaller(one: f64, other: f64) -> f64 {
    if one * other > 0.0 {
        one.abs().min(other.abs()).copysign(one)
    } else {
        0.0
    }
}

fn is_physical(state: [f64; N_VARS], gamma: f64) -> bool {
    state[0] > 0.0 && pressure(state, gamma) > 0.0
}

/// Limits what a coarser block gave for the ghosts beyond `face` by the cells on this side of it.
///
/// Shape:  `block` has the values of [`prolong_face`] in its ghosts beyond `face`, two layers of them.
///
/// Eight ghosts are a coarse cell. Its slope along the normal may not be more than the difference between its mean and
/// that of the eight cells in front of it; the mean stays what it is.
pub fn limit_ghosts(shape: BlockShape, gamma: f64, face: usize, block: &mut [f64]) {
    let (axis, g, vars) = (face / 2, shape.ghosts, shape.cells_per_var());
    let ([t0, t1], strides) = (tangents(axis), shape.strides());
    let n = shape.cells[axis];
    // Layers from the outer ghosts inwards: two of ghosts, two of cells.
    let layers = if face.is_multiple_of(2) {
        [g - 2, g - 1, g, g + 1]
    } else {
        [g + n + 1, g + n, g + n - 1, g + n - 2]
    };
    for b in (g..g + shape.cells[t1]).step_by(2) {
        for a in (g..g + shape.cells[t0]).step_by(2) {
            let mut at = [0; 3];
            (at[t0], at[t1]) = (a, b);
            let foot = shape.index(0, at[0], at[1], at[2]);
            let places = |layer: usize| {
                let first = foot + layers[layer] * strides[axis];
                let [s0, s1] = [strides[t0], strides[t1]];
                [first, first + s0, first + s1, first + s0 + s1]
            };
            let [far, near, front, behind] = std::array::from_fn(places);
            let change: [f64; N_VARS] = std::array::from_fn(|var| {
                let mean = |four: [usize; 4]| {
                    let [p, q, r, s] = four.map(|place| block[var * vars + place]);
                    0.25 * ((p + q) + (r + s))
                };
                let (outer, inner) = (mean(far), mean(near));
                let inside = 0.5 * (mean(front) + mean(behind));
                let given = 2.0 * (inner - outer);
                let allowed = smaller(given, inside - 0.5 * (outer + inner));
                0.25 * (allowed - given)
            });
            if change == [0.0; N_VARS] {
                continue;
            }
            let limited = |place: usize, side: f64| -> [f64; N_VARS] {
                std::array::from_fn(|var| block[var * vars + place] + side * change[var])
            };
            let stays_physical = (0..4).all(|q| {
                is_physical(limited(near[q], 1.0), gamma)
                    && is_physical(limited(far[q], -1.0), gamma)
            });
            for (var, change) in change.into_iter().enumerate() {
                for q in 0..4 {
                    let (far, near) = (var * vars + far[q], var * vars + near[q]);
                    (block[near], block[far]) = if stays_physical {
                        (block[near] + change, block[far] - change)
                    } else {
                        // Between two states of a gas lies one.
                        let mean = 0.5 * (block[near] + block[far]);
                        (mean, mean)
                    };
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
