//! Averages over a cell and its neighbours, in place, one variable at a time.
//!
//! Interior and ghosts of one variable are copied to a scratch block, which stays in the first or
//! second level of cache, and the block is then written in one run over its memory. That run takes
//! the ghosts between rows along: their values are meaningless and are replaced by the next exchange,
//! and without them there would be no short rows that vectors do not fill.

pub mod between;

use crate::shape::BlockShape;

/// A stencil's inner loop is compiled for several instruction sets, and the best one is chosen when
/// the program runs. The result has the same bits for all: nothing is contracted or reordered.
#[derive(Clone, Copy, Debug, Default)]
pub struct Machine(pulp::Arch);

impl Machine {
    /// Runs `body` compiled for this machine.
    #[inline]
    pub fn run<T>(self, body: impl FnOnce() -> T) -> T {
        self.0.dispatch(body)
    }
}

/// The number of cells that a stencil averages over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Points {
    /// The cell and its six face neighbours.
    Seven,
    /// The whole three by three by three.
    TwentySeven,
}

/// 1/n rounded down or up by turns, so that the sum over the mesh does not drift.
///
/// 1/7 and 1/27 have no finite binary form: multiplying by the nearest `f64` would lose 5.6e-17 of the
/// sum every stage. The turns follow the exact remainder, so after n stages nothing is lost.
pub fn reciprocal(n: u64, stage: u64) -> f64 {
    let nearest = 1.0 / n as f64;
    let bits = nearest.to_bits();
    // 1/n = mantissa * 2^-shift with a mantissa of 53 bits; its remainder says how much is missing.
    let exponent = (bits >> 52) as i32 - 1023;
    let mantissa = (bits & ((1 << 52) - 1)) | (1 << 52);
    let shift = (52 - exponent) as u32;
    let remainder = (1i128 << shift) - i128::from(mantissa) * i128::from(n);
    let (down, missing) = if remainder >= 0 {
        (nearest, remainder)
    } else {
        (nearest.next_down(), remainder + i128::from(n))
    };
    let missing = missing as u64;
    let before = (stage % n) * missing / n;
    let after = (stage % n + 1) * missing / n;
    if after > before { down.next_up() } else { down }
}

/// Replaces every interior cell of one variable by the average over its points.
///
/// Shape: `cells` is one variable of one block with at least one ghost layer; `scratch` is as long.
pub fn average(
    machine: Machine,
    points: Points,
    shape: BlockShape,
    factor: f64,
    cells: &mut [f64],
    scratch: &mut [f64],
) {
    scratch.copy_from_slice(cells);
    machine.run(
        #[inline(always)]
        || match points {
            Points::Seven => seven(shape, factor, cells, scratch),
            Points::TwentySeven => twenty_seven(shape, factor, cells, scratch),
        },
    );
}

/// First and last-but-one place of the run that covers all interior cells.
fn run(shape: BlockShape) -> (usize, usize) {
    let first = shape.first_interior();
    let last = shape.strides().into_iter().zip(shape.cells);
    let last: usize = last.map(|(stride, n)| stride * (n - 1)).sum();
    (first, first + last + 1)
}

#[inline(always)]
fn seven(shape: BlockShape, factor: f64, cells: &mut [f64], old: &[f64]) {
    let ([_, sy, sz], (first, end)) = (shape.strides(), run(shape));
    let n = end - first;
    let at = |offset: usize| &old[offset..][..n];
    let centre = at(first);
    let (west, east) = (at(first - 1), at(first + 1));
    let (south, north) = (at(first - sy), at(first + sy));
    let (below, above) = (at(first - sz), at(first + sz));
    let out = &mut cells[first..end];
    for i in 0..n {
        let x = west[i] + east[i];
        let y = south[i] + north[i];
        let z = below[i] + above[i];
        out[i] = ((x + y) + (z + centre[i])) * factor;
    }
}

#[inline(always)]
fn twenty_seven(shape: BlockShape, factor: f64, cells: &mut [f64], old: &mut [f64]) {
    let ([_, sy, sz], (first, end)) = (shape.strides(), run(shape));
    // Sums along x, then y, then z: `cells` and `old` serve in turn.
    let n = old.len();
    for i in 1..n - 1 {
        cells[i] = old[i - 1] + old[i] + old[i + 1];
    }
    for i in sy..n - sy {
        old[i] = cells[i - sy] + cells[i] + cells[i + sy];
    }
    for i in first..end {
        cells[i] = (old[i - sz] + old[i] + old[i + sz]) * factor;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPE: BlockShape = BlockShape {
        cells: [6, 4, 8],
        ghosts: 1,
        n_vars: 1,
    };

    fn direct(points: Points, old: &[f64], x: usize, y: usize, z: usize) -> f64 {
        let mut sum = 0.0;
        for (dx, dy, dz) in (0..27).map(|i| (i % 3, i / 3 % 3, i / 9)) {
            let apart = [dx, dy, dz].into_iter().filter(|&d| d != 1).count();
            if points == Points::TwentySeven || apart <= 1 {
                sum += old[SHAPE.index(0, x + dx - 1, y + dy - 1, z + dz - 1)];
            }
        }
        sum
    }

    #[test]
    fn every_cell_becomes_the_mean_of_its_points() {
        for (points, n) in [(Points::Seven, 7), (Points::TwentySeven, 27)] {
            let old: Vec<f64> = (0..SHAPE.cells_per_var())
                .map(|i| f64::from((i * i % 101) as u32))
                .collect();
            let mut cells = old.clone();
            let mut scratch = vec![0.0; cells.len()];
            let factor = 1.0 / f64::from(n);
            average(
                Machine::default(),
                points,
                SHAPE,
                factor,
                &mut cells,
                &mut scratch,
            );
            for (x, y, z) in [(1, 1, 1), (6, 4, 8), (3, 2, 5), (6, 1, 4)] {
                // Sums of small integers are exact in any order.
                let expected = direct(points, &old, x, y, z) * factor;
                assert_eq!(
                    cells[SHAPE.index(0, x, y, z)],
                    expected,
                    "{points:?} {x} {y} {z}"
                );
            }
        }
    }

    #[test]
    fn reciprocals_lose_nothing_over_n_stages() {
        for n in [3u64, 7, 27, 10] {
            let nearest = 1.0 / n as f64;
            let ulp = nearest.next_up() - nearest;
            // In units of a quarter of the last place every term is an integer: the sum is exact.
            let base = nearest.next_down();
            let units: f64 = (0..n)
                .map(|stage| (reciprocal(n, stage) - base) / ulp)
                .sum();
            let exact: f64 = (0..n)
                .map(|stage| reciprocal(n, stage).mul_add(n as f64, -1.0))
                .sum();
            assert!(
                exact.abs() < 1e-30,
                "n = {n}: {exact:e} after {units} steps up"
            );
        }
    }
}
