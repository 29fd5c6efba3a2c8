//! Telling the MPI library which of its own algorithms to run.
//!
//! Open MPI captures a forced algorithm when a communicator is made, so a variant needs a
//! communicator that carries it ([`openmpi`]). MPICH reads its control variable at each call
//! ([`mpich`]). Both sides offer the same: `Steer`, `CarrierComms`. Calls that the library's own algorithms cannot take
//! as they come are handed over otherwise: as bytes, or with their operands apart.

mod bcast;
pub use bcast::bcast_as_bytes;
mod blocks;
pub use blocks::blocks_as_bytes;
mod reduce_scatter;
pub use reduce_scatter::reduce_scatter_apart;

#[cfg(mpi = "openmpi")]
mod openmpi;
#[cfg(mpi = "openmpi")]
pub use openmpi::{CarrierComms, Steer, component, told};

#[cfg(not(mpi = "openmpi"))]
mod mpich;
#[cfg(not(mpi = "openmpi"))]
pub use mpich::{CarrierComms, Steer, component, told};
