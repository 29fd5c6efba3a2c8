//! Telling the MPI library which of its own algorithms to run.
//!
//! Open MPI captures a forced algorithm when a communicator is made, so a variant needs a
//! communicator that carries it ([`openmpi`]). MPICH reads its control variable at each call
//! ([`mpich`]). Both sides offer the same: `Steer`, `Carriers`.

#[cfg(mpi = "openmpi")]
mod openmpi;
#[cfg(mpi = "openmpi")]
pub use openmpi::{Carriers, Steer};

#[cfg(not(mpi = "openmpi"))]
mod mpich;
#[cfg(not(mpi = "openmpi"))]
pub use mpich::{Carriers, Steer};
