//! How a job is started: read the launcher's line, find the MPI library, put the shim before the ranks.

pub mod queue;

mod options;

pub mod line;

mod elf;

pub mod needs;

pub mod library;

pub mod presets;

pub mod tables;

pub mod shim;

pub mod container;

pub mod prefix;
