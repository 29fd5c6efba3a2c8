//! Fluxes that keep density and pressure positive, for gas near vacuum.
//!
//! Each of a cell's six faces gets a sixth of the cell, and its flux may take no more than that part has. Where a flux of
//! second order would, it is blended with one of first order (Rusanov's), which takes less where a time step is short
//! enough: a sum over the axes of dt/dx times (speed + sound) of a sixth at most. A flux depends on its two cells and the
//! time step alone, so both blocks beside a face find the same bits. It holds across levels, too: the four fluxes of finer
//! blocks are limited by the coarse cell's values as they were given to them, whose mean is that cell.
//!
//! Source: Hu, Adams & Shu, J. Comput. Phys. 242, 2013.

use super::N_VARS;
use super::state::{Primitive, pressure};

/// The share of its density and pressure that a part keeps at least.
const KEPT: f64 = 1e-3;

const FACES: f64 = 6.0;

/// Faces of one axis of a block.
#[derive(Clone, Copy)]
pub(super) struct PositiveFlux {
    pub axis: usize,
    pub gamma: f64,
    pub dt_over_dx: f64,
}

impl PositiveFlux {
    /// As much of `high`, a flux of second order between two cells, as keeps both positive.
    ///
    /// Shape:  `high` and the result have mass, the momenta along x, y and z, energy.
    pub fn limit(&self, high: [f64; N_VARS], below: Primitive, above: Primitive) -> [f64; N_VARS] {
        let cells = [below, above].map(|gas| gas.conserved(self.gamma));
        let low = self.rusanov([below, above], cells);
        if !high.iter().all(|flux| flux.is_finite()) {
            return low;
        }
        let ratio = FACES * self.dt_over_dx;
        let share = f64::min(
            self.share(cells[0], -ratio, low, high),
            self.share(cells[1], ratio, low, high),
        );
        std::array::from_fn(|var| match share {
            1.0 => high[var],
            share => low[var] + share * (high[var] - low[var]),
        })
    }

    fn rusanov(&self, gases: [Primitive; 2], cells: [[f64; N_VARS]; 2]) -> [f64; N_VARS] {
        let speed = |gas: Primitive| {
            gas.velocity[self.axis].abs() + (self.gamma * gas.pressure / gas.density).sqrt()
        };
        let fastest = speed(gases[0]).max(speed(gases[1]));
        let flux = |side: usize, var: usize| {
            let (gas, normal) = (gases[side], gases[side].velocity[self.axis]);
            let pushed = match var {
                4 => gas.pressure * normal,
                var if var == 1 + self.axis => gas.pressure,
                _ => 0.0,
            };
            cells[side][var] * normal + pushed
        };
        std::array::from_fn(|var| {
            0.5 * (flux(0, var) + flux(1, var) - fastest * (cells[1][var] - cells[0][var]))
        })
    }

    /// How far from `low` to `high` the flux may go so that a cell's part stays above what it keeps.
    fn share(
        &self,
        cell: [f64; N_VARS],
        factor: f64,
        low: [f64; N_VARS],
        high: [f64; N_VARS],
    ) -> f64 {
        let after = |flux: [f64; N_VARS]| -> [f64; N_VARS] {
            std::array::from_fn(|var| cell[var] + factor * flux[var])
        };
        let (low, high) = (after(low), after(high));
        let density = up_to(low[0], high[0], KEPT * cell[0]);
        let high: [f64; N_VARS] =
            std::array::from_fn(|var| low[var] + density * (high[var] - low[var]));
        let of = |part: [f64; N_VARS]| match part[0] > 0.0 {
            true => pressure(part, self.gamma),
            false => f64::NEG_INFINITY,
        };
        // The pressure is concave along the way, so that a straight line is on the safe side.
        density * up_to(of(low), of(high), KEPT * pressure(cell, self.gamma))
    }
}

/// The part of the way from `low` to `high` on which a straight line stays above `least`.
fn up_to(low: f64, high: f64, least: f64) -> f64 {
    if high >= least {
        1.0
    } else if low > least {
        (low - least) / (low - high)
    } else {
        0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gases() -> impl Iterator<Item = Primitive> {
        [1e-9, 1.0, 50.0].into_iter().flat_map(|density| {
            [-30.0, -1.0, 0.0, 4.0].into_iter().flat_map(move |u| {
                [1e-9, 0.4, 1e3].map(|pressure| Primitive {
                    density,
                    velocity: [u, 0.5 * u, -0.25],
                    pressure,
                })
            })
        })
    }

    #[test]
    fn no_flux_takes_more_of_a_cell_than_its_part() {
        for axis in 0..3 {
            for (below, above) in gases().flat_map(|a| gases().map(move |b| (a, b))) {
                let fastest = [below, above].map(|gas| {
                    gas.velocity[axis].abs() + (1.4 * gas.pressure / gas.density).sqrt()
                });
                // A sixth, less a little for rounding.
                let dt_over_dx = 0.99 / (12.0 * fastest[0].max(fastest[1]));
                let faces = PositiveFlux {
                    axis,
                    gamma: 1.4,
                    dt_over_dx,
                };
                for high in [[1e9; 5], [-1e9; 5], [f64::NAN; 5], [0.0; 5]] {
                    let flux = faces.limit(high, below, above);
                    for (gas, sign) in [(below, -1.0), (above, 1.0)] {
                        let cell = gas.conserved(1.4);
                        let part: [f64; N_VARS] = std::array::from_fn(|var| {
                            cell[var] + sign * FACES * dt_over_dx * flux[var]
                        });
                        assert!(
                            part[0] > 0.0 && pressure(part, 1.4) > -1e-12 * part[4],
                            "{below:?} {above:?} {high:?}: {part:?}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn a_flux_that_leaves_both_cells_positive_stays_as_it_is() {
        let gas = Primitive {
            density: 1.0,
            velocity: [0.1, 0.0, 0.0],
            pressure: 1.0,
        };
        let faces = PositiveFlux {
            axis: 0,
            gamma: 1.4,
            dt_over_dx: 0.05,
        };
        let high = [0.1, 1.01, 0.02, 0.0, 0.35];
        assert_eq!(faces.limit(high, gas, gas), high);
    }
}
