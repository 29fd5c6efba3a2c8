//! A step's blocks: what each had to do, and what it took.

use std::collections::BTreeMap;

use colltune_amr::leaf::Leaf;
use colltune_amr::settings::Settings;
use colltune_amr::telemetry::Phase;

use super::model::Work;
use super::observed::Observed;
use crate::mesh::RecordedStep;
use crate::traffic::finer_faces;

/// One block in one step.
pub struct Block {
    pub leaf: Leaf,
    pub owner: u32,
    /// Blocks of its rank.
    pub n_own: usize,
    /// As with the dearest memory.
    pub work: Work,
    /// Without its share of what checksums took, which is fitted by itself: blocks share alike.
    pub time_ns: f64,
}

/// The blocks of a run's step, in the order of its leaves.
pub fn blocks(run: &Observed, settings: &Settings, step: &RecordedStep) -> Vec<Block> {
    let mut summed: BTreeMap<u32, f64> = BTreeMap::new();
    let sums = run.phases.iter().filter(|row| row.phase == Phase::Sum);
    for row in sums.filter(|row| row.step == step.step) {
        *summed.entry(row.rank).or_default() += row.time_ns;
    }
    let mut n_own: BTreeMap<u32, usize> = BTreeMap::new();
    for &owner in &step.owners {
        *n_own.entry(owner).or_default() += 1;
    }
    let finer = finer_faces(settings, &step.mesh(settings));
    let block = |i: usize| {
        let (leaf, owner) = (step.leaves[i], step.owners[i]);
        let n_own = n_own[&owner];
        let sum = summed.get(&owner).map_or(0.0, |sum| sum / n_own as f64);
        Block {
            leaf,
            owner,
            n_own,
            work: Work::of(settings, leaf.level, step.iterations[i], finer[i]),
            time_ns: (step.time_ns[i] - sum).max(0.0),
        }
    };
    (0..step.leaves.len()).map(block).collect()
}
