//! One stage of a time step on one block.

use crate::shape::BlockShape;

use super::state::pressure;
use super::{FaceFluxes, N_VARS, NotPhysical, Scheme, Scratch, sweep};

/// The two stages of Heun's method; each needs fresh ghosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// From the old state a full step forward.
    First,
    /// From there another full step, then half way back to the old state.
    Second,
}

impl Stage {
    /// How much of this stage's fluxes the state has received when the stage ends.
    pub fn weight(self) -> f64 {
        match self {
            Stage::First => 1.0,
            Stage::Second => 0.5,
        }
    }
}

impl Scheme {
    /// Advances one block by one stage, in place.
    ///
    /// Shape:  `state` and `start` are blocks; `state` has its ghosts filled across faces, `start` is the state before
    ///         the first stage, which does not read it.
    /// Units:  `dt_over_dx` is the time step by the cell's edge, per axis.
    /// Errors: `NotPhysical` for a cell, face ghosts included, whose density or pressure is not positive and finite
    ///         *before* the stage; the state is then unchanged. [`Scheme::signal_rate_max`] finds those after the last.
    pub fn advance(
        &self,
        stage: Stage,
        dt_over_dx: [f64; 3],
        start: &[f64],
        state: &mut [f64],
        fluxes: &mut FaceFluxes,
        scratch: &mut Scratch,
    ) -> Result<(), NotPhysical> {
        debug_assert_eq!(
            (self.shape.n_vars, self.shape.ghosts),
            (N_VARS, super::GHOSTS)
        );
        to_primitive(self.shape, self.gamma, state, &mut scratch.primitive)?;
        scratch.change.fill(0.0);
        sweep::all_axes(self, dt_over_dx, fluxes, scratch);
        let nx = self.shape.cells[0];
        for var in 0..N_VARS {
            for row in self.shape.rows() {
                let first = var * self.shape.cells_per_var() + row;
                let change = &scratch.change[first..first + nx];
                let (state, start) = (&mut state[first..first + nx], &start[first..first + nx]);
                match stage {
                    Stage::First => state
                        .iter_mut()
                        .zip(change)
                        .for_each(|(value, change)| *value += change),
                    Stage::Second => {
                        for ((value, change), start) in state.iter_mut().zip(change).zip(start) {
                            *value = 0.5 * (start + (*value + change));
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// The largest rate at which signals cross cells of a block: a time step is a Courant number by it (0.8 at most).
    ///
    /// Units:  1/time; `inverse_dx` is cells per length, per axis. Sum over the axes of (speed + sound) / cell edge.
    /// Errors: `NotPhysical` for the first interior cell whose density or pressure is not positive and finite.
    pub fn signal_rate_max(&self, inverse_dx: [f64; 3], state: &[f64]) -> Result<f64, NotPhysical> {
        let (nx, vars) = (self.shape.cells[0], self.shape.cells_per_var());
        let mut fastest = 0.0f64;
        for row in self.shape.rows() {
            let mut sound = true;
            for place in row..row + nx {
                let cell: [f64; N_VARS] = std::array::from_fn(|var| state[var * vars + place]);
                let p = pressure(cell, self.gamma);
                let speed = (self.gamma * p / cell[0]).sqrt();
                let rate =
                    |axis: usize| ((cell[1 + axis] / cell[0]).abs() + speed) * inverse_dx[axis];
                fastest = fastest.max(rate(0) + rate(1) + rate(2));
                sound &= is_physical(cell[0], p);
            }
            if !sound {
                return Err(first_not_physical(self.shape, self.gamma, state, row, nx));
            }
        }
        Ok(fastest)
    }
}

fn is_physical(density: f64, pressure: f64) -> bool {
    density > 0.0 && pressure > 0.0 && density < f64::INFINITY && pressure < f64::INFINITY
}

fn first_not_physical(
    shape: BlockShape,
    gamma: f64,
    state: &[f64],
    row: usize,
    n: usize,
) -> NotPhysical {
    let vars = shape.cells_per_var();
    let cell = |place: usize| std::array::from_fn(|var| state[var * vars + place]);
    let is_bad = |&place: &usize| !is_physical(state[place], pressure(cell(place), gamma));
    let place = (row..row + n)
        .find(is_bad)
        .expect("the row was found to hold one");
    let [px, py, _] = shape.padded();
    let at = [place % px, place / px % py, place / (px * py)];
    NotPhysical {
        cell: at.map(|index| index as isize - shape.ghosts as isize),
        density: state[place],
        pressure: pressure(cell(place), gamma),
    }
}

/// Interior rows and the rows of face ghosts, each with its number of cells; edges and corners are left out.
fn cross_rows(shape: BlockShape) -> impl Iterator<Item = (usize, usize)> {
    let (g, [nx, ny, nz]) = (shape.ghosts, shape.cells);
    let inside = move |at: usize, n: usize| (g..g + n).contains(&at);
    (0..nz + 2 * g).flat_map(move |z| {
        (0..ny + 2 * g).filter_map(move |y| match (inside(y, ny), inside(z, nz)) {
            (true, true) => Some((shape.index(0, 0, y, z), nx + 2 * g)),
            (true, false) | (false, true) => Some((shape.index(0, g, y, z), nx)),
            (false, false) => None,
        })
    })
}

fn to_primitive(
    shape: BlockShape,
    gamma: f64,
    state: &[f64],
    primitive: &mut [f64],
) -> Result<(), NotPhysical> {
    let vars = shape.cells_per_var();
    let mut outputs = primitive.chunks_exact_mut(vars);
    let outputs: [&mut [f64]; N_VARS] =
        std::array::from_fn(|_| outputs.next().expect("five variables"));
    let [density, u, v, w, p] = outputs;
    for (row, n) in cross_rows(shape) {
        let cells: [&[f64]; N_VARS] = std::array::from_fn(|var| &state[var * vars + row..][..n]);
        let range = row..row + n;
        let (density, p) = (&mut density[range.clone()], &mut p[range.clone()]);
        let (u, v, w) = (&mut u[range.clone()], &mut v[range.clone()], &mut w[range]);
        let mut sound = true;
        for x in 0..n {
            let cell: [f64; N_VARS] = std::array::from_fn(|var| cells[var][x]);
            density[x] = cell[0];
            (u[x], v[x], w[x]) = (cell[1] / cell[0], cell[2] / cell[0], cell[3] / cell[0]);
            p[x] = pressure(cell, gamma);
            sound &= is_physical(density[x], p[x]);
        }
        if !sound {
            return Err(first_not_physical(shape, gamma, state, row, n));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
