//! What a run holds between its steps.

use std::time::Instant;

use colltune_placement::Balancer;

use crate::blocks::{Blocks, Moved};
use crate::checksum::Checksums;
use crate::compat::Compat;
use crate::cost::Slowness;
use crate::exact_sum::ExactSum;
use crate::exchange::Exchange;
use crate::exchange::face::Faces;
use crate::exchange::gas::GasFaces;
use crate::exchange::intake::Intake;
use crate::exchange::plan::Plan;
use crate::field::Slot;
use crate::mesh::Mesh;
use crate::object::Objects;
use crate::physics::rarefaction::Rarefaction;
use crate::physics::sedov::Blast;
use crate::physics::wave::Wave;
use crate::physics::{FaceFluxes, Scheme, Scratch};
use crate::placement::topology::Topology;
use crate::ranks::Ranks;
use crate::report::Times;
use crate::settings::{PlacementName, Settings};
use crate::stencil::Machine;
use crate::telemetry::host::Usage;
use crate::telemetry::{Counting, Phase, Rows, Traffic, Writer};

/// A run on one rank.
pub(super) struct Run<'a> {
    pub ranks: &'a dyn Ranks,
    /// The same ranks, by what they have sent.
    pub counting: &'a Counting<'a>,
    pub settings: &'a Settings,
    pub mesh: Mesh,
    pub blocks: Blocks,
    pub own: Vec<Slot>,
    /// The leaves in `own`, in its order.
    pub own_leaves: Vec<usize>,
    /// Places in `own` of what a gas advances before its messages have come, and after.
    pub parts: [Vec<usize>; 2],
    pub gas: Option<Gas>,
    /// Time simulated so far.
    pub time: f64,
    pub telemetry: Option<Telemetry>,
    pub vtk_steps: Vec<(u64, f64)>,
    pub last_checkpoint: Option<u64>,
    /// Seconds of the blocks in `own` since they were last observed, and over how many steps.
    pub block_times: Vec<f64>,
    pub steps_observed: u64,
    /// Of the blocks in `own`, where the cost model asked.
    pub near_shock: Vec<bool>,
    pub slowness: Slowness,
    pub balancer: Balancer<PlacementName>,
    pub epoch: Epoch,
    /// None under `--compat`, which does not use it.
    pub topology: Option<Topology>,
    pub faces: Faces,
    pub plan: Plan,
    pub intake: Intake,
    /// The share of the computation that went into taking ghosts, as last measured.
    pub intake_share: f64,
    pub exchange: Exchange,
    pub objects: Objects,
    pub machine: Machine,
    pub scratch: Vec<f64>,
    pub sums: Checksums,
    /// Exact sums at start.
    pub first_sums: Vec<f64>,
    pub own_sums: Vec<ExactSum>,
    pub compat: Option<Compat<'a>>,
    pub times: Times,
    /// Of each step since the last report of them: exchange, stencil, checksum, refinement, first two.
    pub step_times: Vec<[f64; 5]>,
    pub count: Count,
    pub n_stages: u64,
}

/// What has been counted so far. Blocks, splits and joins are those of all ranks.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Count {
    pub block_stages: u64,
    /// Those of the runs before a restart.
    pub block_stages_before: u64,
    pub blocks_min: u64,
    pub blocks_max: u64,
    pub of_a_rank_max: i64,
    pub splits: u64,
    pub joins: u64,
    /// Of the gas: see [`crate::report::Summary`].
    pub refined_late: u64,
    pub steps_redone: u64,
    pub moved: Moved,
}

/// The epoch of the levers' arms that is under way, and what there has been before it.
#[derive(Default)]
pub(super) struct Epoch {
    pub first_step: u64,
    pub block_stages: u64,
    /// By lever: the arm of the moment.
    pub arms: Vec<usize>,
    /// By lever and arm: steps so far.
    pub steps: Vec<Vec<u64>>,
    pub began: Option<Instant>,
}

/// Where the gas starts, and what is known of it.
#[derive(Clone, Copy)]
pub(super) enum Problem {
    Sedov(Blast),
    Wave(Wave),
    Rarefaction(Rarefaction),
}

/// What a run holds for the gas besides its blocks.
pub(super) struct Gas {
    pub faces: GasFaces,
    pub scheme: Scheme,
    pub problem: Problem,
    pub scratch: Scratch,
    /// By slot: fluxes through faces, and the block before the first stage.
    pub fluxes: Vec<FaceFluxes>,
    pub before: Vec<Vec<f64>>,
    pub delta: f64,
    /// The fastest signal, where neither state nor mesh has changed since it was looked for.
    pub fastest: Option<f64>,
    /// What went wrong on this rank since the ranks last agreed.
    pub failed: Option<String>,
}

/// What had been spent and sent before this step, and rows that have not been gathered yet.
pub(super) struct Telemetry {
    pub phases_before: [u64; Phase::ALL.len()],
    pub traffic_before: Traffic,
    pub usage_before: Usage,
    /// Seconds by own block before this step, where blocks are asked for.
    pub blocks_before: Vec<f64>,
    pub wants_blocks: bool,
    /// The host and the clock of this rank, numbered by the first rank that has them.
    pub node: u64,
    pub clock: u64,
    pub rows: Rows,
    /// Ranks that share a file.
    pub group: Box<dyn Ranks>,
    /// On the first rank of the group.
    pub writer: Option<Writer>,
}
