//! The machine: links as the simulator of collectives knows them, how ranks lie on it, and what packing costs.

mod model;

mod preset;

pub use model::{App, Machine, Shape};
pub use preset::{PRESETS, Preset, preset};
