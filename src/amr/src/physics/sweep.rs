//! Fluxes through all faces of a block, a row of cells along x at a time so that they vectorise, and what they change.

use super::positive::PositiveFlux;
use super::riemann::{hllc, lesser};
use super::state::Primitive;
use super::{FaceFluxes, FluxOrder, N_VARS, Scheme, Scratch};

/// Faces that are computed together.
const LANES: usize = 8;

/// Adds to `scratch.change` what flows into every interior cell, and keeps the fluxes through the block's faces.
pub(super) fn all_axes(
    scheme: &Scheme,
    dt_over_dx: [f64; 3],
    fluxes: &mut FaceFluxes,
    scratch: &mut Scratch,
) {
    let sweep = |axis: usize| Sweep {
        scheme: *scheme,
        axis,
        stride: scheme.shape.strides()[axis],
        dt_over_dx: dt_over_dx[axis],
    };
    sweep(0).along_rows(fluxes, scratch);
    sweep(1).across_rows(fluxes, scratch);
    sweep(2).across_rows(fluxes, scratch);
}

/// Of two differences the slope: the central one unless twice the smaller one is less (van Leer 1977).
#[inline(always)]
fn monotonized_central(a: f64, b: f64) -> f64 {
    let steepest = 2.0 * lesser(a.abs(), b.abs());
    if a * b > 0.0 {
        lesser(steepest, 0.5 * (a + b).abs()).copysign(a)
    } else {
        0.0
    }
}

/// One axis of a block.
#[derive(Clone, Copy)]
struct Sweep {
    scheme: Scheme,
    axis: usize,
    /// From a cell to the next one along the axis.
    stride: usize,
    dt_over_dx: f64,
}

impl Sweep {
    fn along_rows(&self, fluxes: &mut FaceFluxes, scratch: &mut Scratch) {
        let shape = self.scheme.shape;
        let (nx, vars) = (shape.cells[0], shape.cells_per_var());
        for (place, first) in shape.rows().enumerate() {
            self.faces(&scratch.primitive, first, nx + 1, &mut scratch.row);
            fluxes.store(0, place, &scratch.row, 0, 1);
            fluxes.store(1, place, &scratch.row, nx, 1);
            for (var, row) in scratch.row.iter().enumerate() {
                let change = &mut scratch.change[var * vars + first..][..nx];
                for ((change, low), high) in change.iter_mut().zip(row).zip(&row[1..]) {
                    *change += self.dt_over_dx * (low - high);
                }
            }
        }
    }

    fn across_rows(&self, fluxes: &mut FaceFluxes, scratch: &mut Scratch) {
        let (shape, axis) = (self.scheme.shape, self.axis);
        let (nx, n, other) = (shape.cells[0], shape.cells[axis], 3 - axis);
        for line in 0..shape.cells[other] {
            let first = shape.first_interior() + line * shape.strides()[other];
            for face in 0..=n {
                let above = first + face * self.stride;
                self.faces(&scratch.primitive, above, nx, &mut scratch.row);
                if face == 0 {
                    fluxes.store(2 * axis, line * nx, &scratch.row, 0, nx);
                } else {
                    self.add(above - self.stride, -self.dt_over_dx, scratch);
                }
                if face == n {
                    fluxes.store(2 * axis + 1, line * nx, &scratch.row, 0, nx);
                } else {
                    self.add(above, self.dt_over_dx, scratch);
                }
            }
        }
    }

    /// Adds the row of fluxes to the row of cells that begins at `first`.
    fn add(&self, first: usize, factor: f64, scratch: &mut Scratch) {
        let (nx, vars) = (
            self.scheme.shape.cells[0],
            self.scheme.shape.cells_per_var(),
        );
        for (var, row) in scratch.row.iter().enumerate() {
            let change = &mut scratch.change[var * vars + first..][..nx];
            change
                .iter_mut()
                .zip(row)
                .for_each(|(change, flux)| *change += factor * flux);
        }
    }

    /// Fluxes through `n` faces in a row: face `i` lies between the cells `first + i - stride` and `first + i`.
    fn faces(&self, primitive: &[f64], first: usize, n: usize, out: &mut [Vec<f64>; N_VARS]) {
        let mut at = 0;
        while at + LANES <= n {
            self.lanes::<LANES>(primitive, first, at, out);
            at += LANES;
        }
        if at < n && n >= LANES {
            // The last faces once more together with some before them: the same numbers in the same places.
            self.lanes::<LANES>(primitive, first, n - LANES, out);
        } else {
            (at..n).for_each(|at| self.lanes::<1>(primitive, first, at, out));
        }
        if self.scheme.fluxes == FluxOrder::Positive {
            self.keep_positive(primitive, first, n, out);
        }
    }

    fn keep_positive(
        &self,
        primitive: &[f64],
        first: usize,
        n: usize,
        out: &mut [Vec<f64>; N_VARS],
    ) {
        let faces = PositiveFlux {
            axis: self.axis,
            gamma: self.scheme.gamma,
            dt_over_dx: self.dt_over_dx,
        };
        let vars = self.scheme.shape.cells_per_var();
        let gas = |place: usize| Primitive {
            density: primitive[place],
            velocity: std::array::from_fn(|d| primitive[(1 + d) * vars + place]),
            pressure: primitive[4 * vars + place],
        };
        for at in 0..n {
            let (above, high) = (first + at, std::array::from_fn(|var| out[var][at]));
            let flux = faces.limit(high, gas(above - self.stride), gas(above));
            for (row, flux) in out.iter_mut().zip(flux) {
                row[at] = flux;
            }
        }
    }

    #[inline(always)]
    fn lanes<const L: usize>(
        &self,
        primitive: &[f64],
        first: usize,
        at: usize,
        out: &mut [Vec<f64>; N_VARS],
    ) {
        // Normal velocity first, then the tangential ones, as the flux wants them.
        let order = [
            0,
            1 + self.axis,
            1 + (self.axis + 1) % 3,
            1 + (self.axis + 2) % 3,
            4,
        ];
        let (vars, cell) = (self.scheme.shape.cells_per_var(), first + at);
        let (mut left, mut right) = ([[0.0; L]; N_VARS], [[0.0; L]; N_VARS]);
        for (place, var) in order.into_iter().enumerate() {
            let cells = &primitive[var * vars..][..vars];
            let load =
                |cell: usize| <&[f64; L]>::try_from(&cells[cell..cell + L]).expect("L cells");
            let (far_below, below) = (load(cell - 2 * self.stride), load(cell - self.stride));
            let (above, far_above) = (load(cell), load(cell + self.stride));
            for l in 0..L {
                let across = above[l] - below[l];
                left[place][l] =
                    below[l] + 0.5 * monotonized_central(below[l] - far_below[l], across);
                right[place][l] =
                    above[l] - 0.5 * monotonized_central(across, far_above[l] - above[l]);
            }
        }
        let mut flux = [[0.0; L]; N_VARS];
        for l in 0..L {
            let side = |lanes: &[[f64; L]; N_VARS]| std::array::from_fn(|var| lanes[var][l]);
            let one = hllc(side(&left), side(&right), self.scheme.gamma);
            for (var, value) in one.into_iter().enumerate() {
                flux[var][l] = value;
            }
        }
        for (place, var) in order.into_iter().enumerate() {
            out[var][at..at + L].copy_from_slice(&flux[place]);
        }
    }
}
