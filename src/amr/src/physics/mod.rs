//! Compressible Euler equations of an ideal gas on blocks with ghost cells, and the Sedov blast wave.
//!
//! Conservative form, second order in space (MUSCL: limited slopes of density, velocity and pressure) and in time
//! (Heun's method as strong-stability-preserving Runge-Kutta of two stages), HLLC flux. Both stages need only ghosts
//! across faces, two layers of them, exchanged before each stage; edges and corners are never read. A time step of
//! a rank is:
//!
//! ```text
//! dt = cfl / max over blocks of Scheme::signal_rate_max        one allreduce (MAX)
//! for stage in [First, Second]:
//!     fill ghosts: same level copied; level::restrict_face; level::prolong_face, then level::limit_ghosts;
//!                  boundary::fill at the domain's faces, unless it is periodic
//!     for each block: Scheme::advance(stage)                  leaves FaceFluxes
//!     flux correction: reflux::restrict on the finer side, reflux::correct on the coarser side, faces in order
//! ```
//! Blocks hold means, variable after variable: density, momentum in x, y, z, total energy per volume. All kernels are
//! functions of one block, so results do not depend on which rank computes them.

pub mod domain;
pub mod state;

pub mod riemann;

mod scheme;

mod positive;
mod sweep;

pub mod euler;

pub mod boundary;
pub mod level;
pub mod reflux;

pub mod indicator;
pub mod rarefaction;
pub mod sedov;
pub mod wave;

pub use domain::Domain;
pub use euler::Stage;
pub use scheme::{FaceFluxes, FluxOrder, Scheme, Scratch};

use thiserror::Error;

/// Variables of a cell: density, three momenta, total energy per volume.
pub const N_VARS: usize = 5;

/// Ghost layers that the second-order scheme reads.
pub const GHOSTS: usize = 2;

/// Ratio of specific heats where nothing else is asked for (a diatomic gas).
pub const GAMMA: f64 = 1.4;

/// A state that no gas can be in, and where it is.
///
/// Units:  `cell` counts interior cells of its block from 0; ghosts are negative or beyond the last cell.
#[derive(Clone, Copy, Debug, PartialEq, Error)]
#[error(
    "the gas has density {density:e} and pressure {pressure:e} in cell {cell:?} of its block; both must be positive \
     and finite"
)]
pub struct NotPhysical {
    pub cell: [isize; 3],
    pub density: f64,
    pub pressure: f64,
}
