//! The adaptive-mesh-refinement mini-app without its MPI edge.
//!
//! Data flow: leaf -> mesh -> refine -> placement -> exchange -> stencil -> checksum.

#![forbid(unsafe_code)]

pub mod ranks;

pub mod deck;
pub mod options;

mod command_line;

pub mod settings;

pub mod leaf;
pub mod shape;

pub mod field;
pub mod mesh;
pub mod refine;

pub mod blocks;

pub mod placement;

pub mod cost;
pub mod measured;

pub mod exchange;
pub mod stencil;

pub mod exact_sum;
pub mod object;

pub mod checksum;
pub mod compat;
pub mod output;
pub mod physics;
pub mod report;
pub mod run;
pub mod telemetry;
