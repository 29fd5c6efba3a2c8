//! Different work for each variable, for runs whose variables are not alike: `--stencil 0`.
//!
//! | variable | work |
//! |---|---|
//! | 0, 4, 8, ... | the average over seven points; the first is conserved |
//! | 1, 5, 9, ... | the average over 27 points |
//! | 2, 6, 10, ... | part of the way to the average over seven, further where the variable before is small |
//! | 3, 7, 11, ... | half of the way to a fraction made of the two variables before, cell by cell |
//!
//! All results lie between values that were there or below 1, so that no run can overflow.

use super::{Machine, Points, average};
use crate::shape::BlockShape;

/// Updates variable `var` of one block, from its own cells and from variables before it.
///
/// Shape:  `block` holds all variables with one ghost layer, filled; `scratch` is as long as one.
/// Units:  `factors` are 1/7 and 1/27 as this stage rounds them.
pub fn update(
    machine: Machine,
    shape: BlockShape,
    factors: [f64; 2],
    var: usize,
    block: &mut [f64],
    scratch: &mut [f64],
) {
    let len = shape.cells_per_var();
    let (before, from_var) = block.split_at_mut(var * len);
    let cells = &mut from_var[..len];
    let earlier = |back: usize| &before[(var - back) * len..][..len];
    match var % 4 {
        0 => average(machine, Points::Seven, shape, factors[0], cells, scratch),
        1 => average(
            machine,
            Points::TwentySeven,
            shape,
            factors[1],
            cells,
            scratch,
        ),
        2 => {
            average(machine, Points::Seven, shape, factors[0], cells, scratch);
            // The values from before are in the scratch block now.
            let weights = earlier(1);
            for place in interior(shape) {
                let share = 1.0 / (1.0 + weights[place].abs());
                let old = scratch[place];
                cells[place] = old + share * (cells[place] - old);
            }
        }
        _ => {
            let (a, b) = (earlier(1), earlier(2));
            for place in interior(shape) {
                let product = a[place] * b[place];
                let fraction = product / (1.0 + product.abs());
                cells[place] = 0.5 * (cells[place] + fraction);
            }
        }
    }
}

fn interior(shape: BlockShape) -> impl Iterator<Item = usize> {
    let nx = shape.cells[0];
    shape.rows().flat_map(move |row| row..row + nx)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPE: BlockShape = BlockShape {
        cells: [4, 2, 6],
        ghosts: 1,
        n_vars: 8,
    };

    fn updated(fill: impl Fn(usize) -> f64) -> (Vec<f64>, Vec<f64>) {
        let before: Vec<f64> = (0..SHAPE.block_len()).map(fill).collect();
        let mut block = before.clone();
        let mut scratch = vec![0.0; SHAPE.cells_per_var()];
        for var in 0..SHAPE.n_vars {
            let factors = [1.0 / 7.0, 1.0 / 27.0];
            update(
                Machine::default(),
                SHAPE,
                factors,
                var,
                &mut block,
                &mut scratch,
            );
        }
        (before, block)
    }

    #[test]
    fn every_kind_of_work_does_what_the_table_says() {
        // One value everywhere: averages keep it, and only every fourth variable changes.
        let (_, block) = updated(|_| 0.75);
        let expected = 0.5 * (0.75 + 0.5625 / 1.5625);
        for var in 0..SHAPE.n_vars {
            let cell = block[SHAPE.index(var, 2, 1, 3)];
            let right = if var % 4 == 3 { expected } else { 0.75 };
            assert!((cell - right).abs() < 1e-15, "variable {var}: {cell}");
        }
        // A spike in one cell of each variable spreads by its points: to no diagonal with seven.
        let at = |var: usize, x: usize, y: usize, z: usize| SHAPE.index(var, x, y, z);
        let spikes: Vec<usize> = (0..SHAPE.n_vars).map(|var| at(var, 2, 1, 3)).collect();
        let (_, block) = updated(|place| if spikes.contains(&place) { 1.0 } else { 0.0 });
        assert!(block[at(0, 3, 1, 3)] > 0.1 && block[at(0, 3, 2, 3)] == 0.0);
        assert!(block[at(1, 3, 1, 3)] > 0.03 && block[at(1, 3, 2, 3)] > 0.03);
        // The weight is the neighbour variable's value in the cell itself: 1/27 there.
        let expected = 1.0 + (1.0 / 7.0 - 1.0) / (1.0 + 1.0 / 27.0);
        assert!((block[at(2, 2, 1, 3)] - expected).abs() < 1e-15);
    }

    #[test]
    fn nothing_grows() {
        let (before, block) = updated(|place| ((place * 7919) % 101) as f64 / 50.0);
        let most = before.into_iter().fold(1.0, f64::max);
        for var in 0..SHAPE.n_vars {
            let cells = &block[var * SHAPE.cells_per_var()..];
            assert!(interior(SHAPE).all(|place| (0.0..=most).contains(&cells[place])));
        }
    }
}
