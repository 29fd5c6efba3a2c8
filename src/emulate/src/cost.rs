//! What blocks cost, by their level, and what a rank's other phases cost; fitted to telemetry, and evaluated.
//!
//! For block `b` of level `l` in a step: `c_b = w2[l] C + w3[l] C k_b + w4[l] z_b`, where `C` is its updates of cells,
//! `k_b` the solver iterations that its cells need besides and `z_b` the updates beside finer neighbours on its rank. The cells
//! that were split or joined (`w1`) are paid in the refinement, where the program does that work.
//! All of it takes a rank the less the less memory it reaches into, as far as [`memory_costs`] were measured.
//!
//! Source: Wu et al., CLUSTER 2011, eq. (1): non-leaf cells, leaf cells and particles by level.

mod least_squares;

mod rows;

mod model;

mod memory;

mod observed;

mod blocks;

mod sizes;

mod phases;

mod spread;

mod components;

mod windows;

mod fit;

pub use components::Components;
pub use fit::{Fit, LevelQuality, fit};
pub use memory::{Memory, MemoryCost, Slowness, exchanged_mib, resident_mib};
pub use model::{Costs, LevelCosts, NoiseCosts, PhaseCosts, SCHEMA, Work};
pub use observed::Observed;
pub use rows::{BlockRow, MessageRow, PhaseRow};
pub use sizes::memory_costs;
pub use windows::WorkRow;
