//! Placement of mesh blocks and the mini-app without a machine: policies tried out, runs emulated, recordings analysed,
//! collectives simulated.
#![forbid(unsafe_code)]
#![deny(clippy::print_stdout)]

pub mod plot;

pub mod placement;

pub mod emulate;

pub mod telemetry;

pub mod simulate;
