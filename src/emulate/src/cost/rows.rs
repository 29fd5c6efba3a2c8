//! Rows of telemetry, as values.

use colltune_amr::leaf::Leaf;
use colltune_amr::telemetry::{Kind, Phase};

/// What a block took in a step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BlockRow {
    pub step: u64,
    pub rank: u32,
    pub leaf: Leaf,
    pub time_ns: f64,
    /// Solver iterations that each of its cells needed besides.
    pub iterations: u32,
}

/// What a rank spent on a phase in a step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PhaseRow {
    pub step: u64,
    pub rank: u32,
    pub phase: Phase,
    pub time_ns: f64,
}

/// What a rank sent in a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageRow {
    pub step: u64,
    pub rank: u32,
    pub kind: Kind,
    pub messages: u64,
    pub bytes: u64,
}
