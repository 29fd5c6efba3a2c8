//! Memory's costs, measured by runs of other sizes.
//!
//! On uniform meshes nothing but the stencil and the blocks' memory decides what updates take. What those beside finer
//! neighbours take besides is learned from refined meshes, block against block of one run.

use std::collections::BTreeMap;

use colltune_amr::settings::Settings;

use super::blocks::{Block, blocks};
use super::least_squares::relative;
use super::memory::{Memory, MemoryCost, exchanged_mib, resident_mib};
use super::observed::Observed;
use crate::EmulateError;
use crate::mesh::settings;

/// What runs of other sizes measured; where refined ones are among them, the steps of `runs` that `wanted` takes tell of
/// their own size, too. Runs of the same blocks and size give their mean. A run's first step, which touches its memory
/// for the first time, does not count.
///
/// Errors: `Mesh` for blocks of a uniform mesh that iterate, and a run without a second step or without times of
/// blocks. Also for a refined run without blocks of two levels, and blocks of over 65,535 cells in a direction.
pub fn memory_costs(
    sizes: &[Observed],
    runs: &[Observed],
    wanted: &dyn Fn(u64) -> bool,
) -> Result<Memory, EmulateError> {
    let (uniform, refined): (Vec<&Observed>, Vec<_>) =
        sizes.iter().partition(|run| is_uniform(run));
    let own = match refined.is_empty() {
        true => &[],
        false => runs,
    };
    let own = own.iter().filter(|run| !is_uniform(run));
    let updates = uniform.into_iter().map(|run| {
        let mut iterations = run.mesh.steps.iter().flat_map(|step| &step.iterations);
        match iterations.any(|&n| n > 0) {
            true => Err(refused(
                run,
                "blocks that cost alike (no --cost), and these iterate",
            )),
            false => measured(run, &|_| true, &of_uniform),
        }
    });
    let refined = refined
        .into_iter()
        .map(|run| measured(run, &|_| true, &of_refined));
    // A run that is fitted need not tell: it may have one step.
    let own = own
        .map(|run| measured(run, wanted, &of_refined))
        .filter(Result::is_ok);
    let beside_finer = refined.chain(own);
    Ok(Memory {
        updates: means(updates.collect::<Result<_, _>>()?),
        beside_finer: means(beside_finer.collect::<Result<_, _>>()?),
    })
}

/// Whether a run's mesh had one level alone, in each step.
pub fn is_uniform(run: &Observed) -> bool {
    run.mesh.steps.iter().all(|step| {
        let mut levels = step.leaves.iter().map(|leaf| leaf.level);
        let first = levels.next();
        levels.all(|level| Some(level) == first)
    })
}

/// One for each size: its runs' mean, as that of costs that are fitted to several runs.
fn means(all: Vec<MemoryCost>) -> Vec<MemoryCost> {
    let mut found: BTreeMap<([u16; 3], u64), Vec<MemoryCost>> = BTreeMap::new();
    for one in all {
        let size = one.working_set_mib.to_bits();
        found.entry((one.cells, size)).or_default().push(one);
    }
    let mean = |same: Vec<MemoryCost>| MemoryCost {
        update_ns: same.iter().map(|one| one.update_ns).sum::<f64>() / same.len() as f64,
        ..same[0]
    };
    found.into_values().map(mean).collect()
}

fn refused(run: &Observed, why: &str) -> EmulateError {
    let words = run.mesh.words.join(" ");
    EmulateError::Mesh(format!("a run of another size needs {why}: {words}"))
}

/// What so many blocks a rank reached into, and what an update took, by the blocks of some steps.
type Reading = dyn Fn(&Settings, usize, &[Vec<Block>]) -> Option<(f64, f64)>;

/// What a run measured by the blocks of its steps.
fn measured(
    run: &Observed,
    wanted: &dyn Fn(u64) -> bool,
    of_blocks: &Reading,
) -> Result<MemoryCost, EmulateError> {
    let recording = run.mesh;
    let settings = settings(&recording.words, recording.n_ranks, recording.n_ranks)?;
    let refuse = |why: &str| refused(run, why);
    let [Ok(x), Ok(y), Ok(z)] = settings.shape.cells.map(u16::try_from) else {
        return Err(refuse("blocks of 65,535 cells in a direction at the most"));
    };
    let steps: Vec<Vec<Block>> = recording
        .steps
        .iter()
        .skip(1)
        .filter(|step| wanted(step.step))
        .map(|step| blocks(run, &settings, step))
        .collect();
    if steps.iter().flatten().all(|block| block.time_ns <= 0.0) {
        return Err(refuse("two steps at the least, with times of blocks"));
    }
    let n_blocks = steps.iter().map(Vec::len).sum::<usize>() / steps.len();
    let n_blocks = n_blocks.div_ceil(recording.n_ranks);
    let found = of_blocks(&settings, n_blocks, &steps);
    let found = found.ok_or_else(|| refuse("finer blocks beside coarser ones on one rank"));
    found.map(|(working_set_mib, update_ns)| MemoryCost {
        cells: [x, y, z],
        working_set_mib,
        update_ns,
    })
}

/// What an update took. A rank that is stopped now and then takes longer at every size: the middle of many short steps
/// would not know, and that of few long ones would.
fn of_uniform(settings: &Settings, n_blocks: usize, steps: &[Vec<Block>]) -> Option<(f64, f64)> {
    let blocks = || steps.iter().flatten();
    let updates: f64 = blocks().map(|block| block.work.updates).sum();
    let time_ns: f64 = blocks().map(|block| block.time_ns).sum();
    Some((resident_mib(settings.shape, n_blocks), time_ns / updates))
}

/// What blocks of all levels and steps took for each update beside finer neighbours; none where there was none.
fn of_refined(settings: &Settings, n_blocks: usize, steps: &[Vec<Block>]) -> Option<(f64, f64)> {
    let mut beside_finer = steps.iter().flatten().map(|block| block.work.beside_finer);
    if beside_finer.all(|updates| updates == 0.0) {
        return None;
    }
    let rows = steps.iter().flatten();
    let rows = rows.map(|block| (block.work.regressors(), block.time_ns));
    let [_, _, update_ns] = relative(&rows.collect::<Vec<_>>());
    Some((exchanged_mib(settings, n_blocks), update_ns))
}
