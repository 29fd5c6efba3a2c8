//! What blocks give across levels: means, slopes, and gas that stays one.

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
            for (var, at) in (0..N_VARS).flat_map(|var| sources.each().map(move |at| (var, at))) {
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
                let state: [f64; N_VARS] = std::array::from_fn(|var| values[var * cells + cell]);
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
        (0..N_VARS)
            .for_each(|var| block[SHAPE.index(var, x, y, z)] = (x - 2) as f64 + 100.0 * var as f64);
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
    let expected = |x: f64, y: f64, z: f64| 10.0 + (4.0 + x) + 0.5 * (4.0 + y) - 0.25 * (3.0 + z);
    assert_eq!(values[0], expected(-0.25, -0.25, -0.25));
    assert_eq!(values[7], expected(0.25, 0.25, 0.25));
}

/// A coarse block and one of the finer ones beyond `face`, in `quadrant`, with a density that is `value` of the place in
/// coarse cells.
fn two_levels(
    face: usize,
    quadrant: usize,
    value: impl Fn([f64; 3]) -> f64,
) -> (Vec<f64>, Vec<f64>, [f64; 3]) {
    let half = SHAPE.cells.map(|n| (n / 2) as f64);
    let mut lower = [0.0; 3];
    lower[face / 2] = if face.is_multiple_of(2) {
        -half[face / 2]
    } else {
        2.0 * half[face / 2]
    };
    for (bit, axis) in tangents(face / 2).into_iter().enumerate() {
        lower[axis] = (quadrant >> bit & 1) as f64 * half[axis];
    }
    let interior = Region {
        first: [2; 3],
        end: SHAPE.cells.map(|n| n + 2),
    };
    let block = |lower: [f64; 3], edge: f64| {
        let mut block = vec![0.0; SHAPE.block_len()];
        for at in interior.each() {
            let [x, y, z] = at;
            block[SHAPE.index(0, x, y, z)] = value(middle(lower, edge, at));
            block[SHAPE.index(4, x, y, z)] = 1000.0;
        }
        block
    };
    (block([0.0; 3], 1.0), block(lower, 0.5), lower)
}

/// The middle of a cell, counted from the outermost ghost.
fn middle(lower: [f64; 3], edge: f64, at: [usize; 3]) -> [f64; 3] {
    std::array::from_fn(|d| lower[d] + (at[d] as f64 - 2.0 + 0.5) * edge)
}

/// Fills the ghosts of the finer block of [`two_levels`], whose face towards the coarse one is given.
fn take(face: usize, quadrant: usize, coarse: &[f64], fine: &mut [f64]) -> Region {
    let mut values = Vec::new();
    prolong_face(SHAPE, 1.4, face, quadrant, coarse, &mut values);
    let region = ghosts(SHAPE, face ^ 1);
    write(SHAPE, region, &values, fine);
    limit_ghosts(SHAPE, 1.4, face ^ 1, fine);
    region
}

#[test]
fn a_linear_field_goes_exactly_from_coarse_to_fine_across_every_face() {
    let linear = |[x, y, z]: [f64; 3]| 20.0 + 0.5 * x - 0.75 * y + 0.25 * z;
    for (face, quadrant) in (0..6).flat_map(|face| (0..4).map(move |q| (face, q))) {
        let (coarse, mut fine, lower) = two_levels(face, quadrant, linear);
        for at in take(face, quadrant, &coarse, &mut fine).each() {
            let [x, y, z] = at;
            let (found, exact) = (
                fine[SHAPE.index(0, x, y, z)],
                linear(middle(lower, 0.5, at)),
            );
            assert!(
                (found - exact).abs() < 1e-12,
                "face {face}: {found} is not {exact}"
            );
        }
    }
}

#[test]
fn a_slope_towards_finer_cells_is_no_more_than_they_allow_and_keeps_the_mean() {
    let steep = |[x, _, _]: [f64; 3]| 20.0 + 2.0 * x;
    // The finer side goes on at 35 instead of 36 and more, then flat, then back below the last coarse cell.
    for (inside, slope) in [(35.75, 0.75), (35.0, 0.0), (20.0, 0.0)] {
        let (coarse, mut fine, _) = two_levels(1, 2, steep);
        let cells = SHAPE.cells_per_var();
        fine[..cells]
            .iter_mut()
            .for_each(|density| *density = inside);
        for at in take(1, 2, &coarse, &mut fine).each() {
            // The last coarse cell has 35; ghosts are half a cell wide.
            let expected = 35.0 + if at[0] == 1 { 0.25 } else { -0.25 } * slope;
            let found = fine[SHAPE.index(0, at[0], at[1], at[2])];
            assert!(
                (found - expected).abs() < 1e-12,
                "{inside}: {found} is not {expected}"
            );
        }
    }
}
