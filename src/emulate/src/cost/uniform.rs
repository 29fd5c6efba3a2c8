//! Memory's costs, measured on uniform meshes, one run for each size: nothing but the stencil and the blocks' memory
//! decides there. What refinement adds is fitted to runs that refine.

use std::collections::BTreeMap;

use colltune_amr::settings::Settings;
use colltune_amr::telemetry::Phase;
use colltune_statistics::median;

use super::memory::{MemoryCost, resident_mib};
use super::model::Work;
use super::observed::Observed;
use crate::EmulateError;
use crate::mesh::{RecordedStep, settings};

/// What runs on uniform meshes measured; runs of the same blocks and size give their middle. A run's first step, which
/// touches its memory for the first time, does not count.
///
/// Errors: `Mesh` for a mesh that is refined, blocks that iterate, a run without a second step, and blocks of over 65,535
///         cells in a direction.
pub fn memory_costs(runs: &[Observed]) -> Result<Vec<MemoryCost>, EmulateError> {
    let mut found: BTreeMap<([u16; 3], u64), Vec<MemoryCost>> = BTreeMap::new();
    for run in runs {
        let recording = run.mesh;
        let settings = settings(&recording.words, recording.n_ranks, recording.n_ranks)?;
        let one = measured(run, &settings)?;
        let size = one.resident_mib.to_bits();
        found.entry((one.cells, size)).or_default().push(one);
    }
    let middle = |same: Vec<MemoryCost>| {
        let times: Vec<f64> = same.iter().map(|one| one.cell_ns).collect();
        MemoryCost {
            cell_ns: median(&times),
            ..same[0]
        }
    };
    Ok(found.into_values().map(middle).collect())
}

/// What an update took in the middle of a run's steps.
fn measured(run: &Observed, settings: &Settings) -> Result<MemoryCost, EmulateError> {
    let recording = run.mesh;
    let refuse = |why: &str| {
        let words = recording.words.join(" ");
        EmulateError::Mesh(format!("a uniform run {why}: {words}"))
    };
    let steps = recording.steps.iter();
    let mut leaves = steps.clone().flat_map(|step| &step.leaves);
    let first = leaves
        .clone()
        .next()
        .ok_or_else(|| refuse("has no blocks"))?;
    if !leaves.all(|leaf| leaf.level == first.level) {
        return Err(refuse(
            "has one level, as by --num_refine 0, and this one more",
        ));
    }
    if steps
        .clone()
        .flat_map(|step| &step.iterations)
        .any(|&n| n > 0)
    {
        return Err(refuse(
            "has blocks that cost alike (no --cost), and these iterate",
        ));
    }
    let cells = settings.shape.cells.map(u16::try_from);
    let [Ok(x), Ok(y), Ok(z)] = cells else {
        return Err(refuse(
            "has blocks of 65,535 cells in a direction at the most",
        ));
    };
    let of_step = |step: &RecordedStep| {
        let summed = run.phases.iter().filter(|row| row.step == step.step);
        let summed = summed.filter(|row| row.phase == Phase::Sum);
        let summed: f64 = summed.map(|row| row.time_ns).sum();
        let updates = Work::of(settings, 0, 0, 0).updates * step.leaves.len() as f64;
        (step.time_ns.iter().sum::<f64>() - summed) / updates
    };
    let times: Vec<f64> = steps.skip(1).map(of_step).collect();
    let cell_ns = if times.is_empty() {
        0.0
    } else {
        median(&times)
    };
    if cell_ns <= 0.0 {
        return Err(refuse("has two steps at the least, with times of blocks"));
    }
    let n_blocks = recording.steps[0].leaves.len().div_ceil(recording.n_ranks);
    Ok(MemoryCost {
        cells: [x, y, z],
        resident_mib: resident_mib(settings.shape, n_blocks),
        cell_ns,
    })
}
