//! How jobs are started: read the launcher's line, find the MPI library, put the shim before the ranks; one trial of a
//! line, timed; and the helper program's jobs, which measure.
#![forbid(unsafe_code)]
#![deny(clippy::print_stdout)]

// As the build of the shim has it, which is another workspace.
#[path = "../../../shim/stamp.rs"]
mod stamp;

pub mod own;

pub mod database;

pub mod queue;

mod options;

pub mod line;

pub mod levers;

pub mod nonblocking;

mod elf;

pub mod needs;

pub mod library;

pub mod presets;

pub mod shim;

pub mod container;

pub mod prefix;

pub mod trial;

pub mod measuring;
