//! The fit: from rows of telemetry to costs, and how good they are.

use std::collections::BTreeMap;

use colltune_amr::leaf::Leaf;
use colltune_amr::settings::Settings;
use colltune_amr::telemetry::Kind;
use serde::Serialize;

use super::blocks::blocks;
use super::components::Components;
use super::least_squares::relative;
use super::memory::{Memory, Slowness};
use super::model::{Costs, LevelCosts, NoiseCosts, SCHEMA, Work, kernel_name};
use super::observed::Observed;
use super::phases::{Day, phases};
use super::rows::{MessageRow, PhaseRow};
use super::sizes::{is_uniform, memory_costs};
use super::spread::{Residual, spread};
use super::windows::{WorkRow, paces, stops};
use crate::EmulateError;
use crate::mesh::{self, RecordedStep, Recording, settings};
use crate::program::{message_work, needs_cells};

/// Fewer rows of a level than these say nothing of it by themselves.
const ROWS_MIN: usize = 30;

/// Costs, and how well they fit.
#[derive(Clone, Debug)]
pub struct Fit {
    pub costs: Costs,
    pub levels: Vec<LevelQuality>,
    pub components: Components,
}

/// How well a level's costs fit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct LevelQuality {
    pub level: u8,
    pub rows: usize,
    /// The share of the times' variance that the fit explains.
    pub r2: f64,
    /// The standard deviation of measured over fitted times.
    pub residual_cv: f64,
    /// Another level's costs stand here.
    pub borrowed: bool,
}

/// What the blocks of a level took on a rank in a step, and what they had to do.
struct Row {
    level: u8,
    regressors: [f64; 3],
    time_ns: f64,
}

/// What keeps steps of different runs apart: this many times the run's place.
const RUN: u64 = 1 << 32;

/// Fits costs to the steps that `wanted` takes of one run, or of several that count alike. Runs of other `sizes`, if there
/// are any, say how fast ranks are by their memory ([`memory_costs`]); those on uniform meshes count for what messages
/// cost.
///
/// Errors: `TooFewRows` where no level has enough rows; `Mesh` for runs of several kernels; those of [`memory_costs`].
pub fn fit(
    runs: &[Observed],
    sizes: &[Observed],
    wanted: impl Fn(u64) -> bool,
) -> Result<Fit, EmulateError> {
    let memory = memory_costs(sizes, runs, &wanted)?;
    let mut all: Vec<Day> = Vec::new();
    let (mut blocks, mut work) = (Vec::new(), Vec::new());
    let (mut first, mut n_steps): (Option<Settings>, usize) = (None, 0);
    for (place, run) in (0..).zip(runs) {
        let recording = run.mesh;
        let settings = settings(&recording.words, recording.n_ranks, recording.n_ranks)?;
        let days = days(
            recording,
            (&settings, &memory),
            run.phases,
            run.messages,
            &wanted,
        );
        let depth = settings.grid.depth;
        for step in recording.steps.iter().filter(|step| wanted(step.step)) {
            let of_run = place * RUN;
            blocks_of(step, of_run, (run, &settings, &memory), &mut blocks);
            n_steps += 1;
        }
        let of_run = run.work.iter().filter(|row| wanted(row.step));
        work.extend(of_run.map(|row| WorkRow {
            step: row.step + place * RUN,
            ..*row
        }));
        all.extend(days.into_values());
        if let Some(first) = &first {
            same_kernel(first, &settings)?;
        }
        let known = first.get_or_insert(settings);
        known.grid.depth = known.grid.depth.max(depth);
    }
    let Some(settings) = first else {
        return Err(too_few(0));
    };
    let mut uniform = Vec::new();
    for run in sizes {
        let recording = run.mesh;
        let of_run = mesh::settings(&recording.words, recording.n_ranks, recording.n_ranks)?;
        same_kernel(&settings, &of_run)?;
        if !is_uniform(run) {
            continue;
        }
        let days = days(
            recording,
            (&of_run, &memory),
            run.phases,
            run.messages,
            &|step| step > 1,
        );
        uniform.push(days.into_values().collect());
    }
    let rows = rows_of(&blocks);
    let (costs, levels) = levels(&rows, &blocks, usize::from(settings.grid.depth) + 1)?;
    let residuals: Vec<Residual> = blocks
        .iter()
        .filter_map(|(residual, work, time_ns)| {
            let fitted = costs[usize::from(work.level)].time_ns(work);
            let usable = *time_ns > 0.0 && fitted > 0.0;
            usable.then(|| Residual {
                log: (time_ns / fitted).ln(),
                ..*residual
            })
        })
        .collect();
    let regressors: Vec<Vec<f64>> = rows.iter().map(|row| row.regressors.to_vec()).collect();
    let first = runs[0].mesh;
    let of_runs = match runs.len() {
        1 => String::new(),
        n => format!(" of {n} runs"),
    };
    let beside = match sizes.len() {
        0 => String::new(),
        n => format!(" and {n} runs of other sizes"),
    };
    let source = format!(
        "telemetry of {} ranks, {n_steps} steps{of_runs}{beside}: {}",
        first.n_ranks,
        first.words.join(" ")
    );
    Ok(Fit {
        costs: Costs {
            schema: SCHEMA,
            kernel: kernel_name(settings.work).to_owned(),
            source,
            phases: phases(settings.work, &all, &uniform),
            noise: noise(&residuals, &work),
            levels: costs,
            memory,
        },
        levels,
        components: Components::of(&["cells", "iterations", "beside_finer"], &regressors),
    })
}

/// Noise of blocks by their residuals, and of ranks by their windows too.
fn noise(residuals: &[Residual], work: &[WorkRow]) -> NoiseCosts {
    let noise = spread(residuals);
    let (stop_share, stop_ns) = stops(work);
    let (window_cv, n_windows) = paces(work);
    // What comes and goes from window to window is in the means of steps, too.
    let in_step = window_cv * window_cv / n_windows.max(1.0);
    NoiseCosts {
        pace_cv: (noise.pace_cv * noise.pace_cv - in_step).max(0.0).sqrt(),
        window_cv,
        stop_share,
        stop_ns,
        ..noise
    }
}

type Days = BTreeMap<(u64, u32), Day>;

/// What each rank did and spent in each wanted step.
fn days(
    recording: &Recording,
    (settings, memory): (&Settings, &Memory),
    phase_rows: &[PhaseRow],
    message_rows: &[MessageRow],
    wanted: &impl Fn(u64) -> bool,
) -> Days {
    let mut days = Days::new();
    for row in phase_rows.iter().filter(|row| wanted(row.step)) {
        let day = days.entry((row.step, row.rank)).or_default();
        day.time_ns[row.phase as usize] += row.time_ns;
    }
    for row in message_rows.iter().filter(|row| wanted(row.step)) {
        let day = days.entry((row.step, row.rank)).or_default();
        day.messages[row.kind as usize] += row.messages;
        day.bytes[row.kind as usize] += row.bytes;
    }
    for (place, step) in recording.steps.iter().enumerate() {
        if !wanted(step.step) {
            continue;
        }
        let mesh = step.mesh(settings);
        let all = message_work((settings, memory), &mesh, recording.n_ranks, step.step);
        for (rank, work) in all.into_iter().enumerate() {
            let day = days.entry((step.step, rank as u32)).or_default();
            day.read_bytes = work.read_bytes;
            day.received_messages = work.received_messages as f64;
            day.received_bytes = work.received_bytes as f64;
        }
        let values = (settings.shape.n_vars * settings.shape.interior_cells()) as f64;
        let checks = checks(settings, step.step);
        for &owner in &step.owners {
            let day = days.entry((step.step, owner)).or_default();
            day.summed += values * checks;
        }
        let next = recording.steps.get(place + 1);
        if let Some(next) = next.filter(|next| next.step == step.step + 1) {
            changes(settings, step, next, recording.n_ranks, &mut days);
        }
    }
    days
}

/// Checks of the sums in a step.
pub fn checks(settings: &Settings, step: u64) -> f64 {
    use colltune_amr::settings::Work as Kernel;
    match (settings.options.checksum_freq, settings.work) {
        (0, _) => 0.0,
        (freq, Kernel::Euler) => f64::from(u8::from(step.is_multiple_of(freq))),
        (freq, _) => settings.stages.div_ceil(freq) as f64,
    }
}

/// Books what the refinement between two steps had to do with the first of them.
fn changes(
    settings: &Settings,
    step: &RecordedStep,
    next: &RecordedStep,
    n_ranks: usize,
    days: &mut Days,
) {
    let freq = settings.options.refine_freq;
    if freq == 0 || !step.step.is_multiple_of(freq) {
        return;
    }
    // Each pass goes over all leaves; where objects decide, a last one finds nothing to do. Then ranks are connected.
    let (old, new) = (step.leaves.len(), next.leaves.len());
    let passed = match needs_cells(settings) || step.leaves == next.leaves {
        true => old,
        false => old + new,
    };
    for rank in 0..n_ranks as u32 {
        let day = days.entry((step.step, rank)).or_default();
        day.refinements = 1.0;
        day.refined_leaves = (passed + new) as f64;
        day.placed_leaves = new as f64;
        day.migrated_bytes = day.bytes[Kind::Block as usize] as f64;
    }
    let values = (settings.shape.n_vars * settings.shape.interior_cells()) as f64;
    let stays: std::collections::BTreeSet<Leaf> = step.leaves.iter().copied().collect();
    for (leaf, &owner) in next.leaves.iter().zip(&next.owners) {
        if !stays.contains(leaf) {
            let day = days.entry((step.step, owner)).or_default();
            day.refined_values += values;
        }
    }
}

/// A block's residual, whose fitted time is not known yet; what it had to do; and what it took.
type Known = (Residual, Work, f64);

fn blocks_of(
    step: &RecordedStep,
    of_run: u64,
    (run, settings, memory): (&Observed, &Settings, &Memory),
    all: &mut Vec<Known>,
) {
    let blocks = blocks(run, settings, step);
    let slow: BTreeMap<u32, Slowness> = blocks
        .iter()
        .map(|block| (block.owner, memory.slowness(settings, block.n_own)))
        .collect();
    all.extend(blocks.into_iter().map(|block| {
        let residual = Residual {
            block: block.leaf.packed(),
            rank: block.owner,
            step: of_run + step.step,
            log: 0.0,
        };
        (residual, block.work.on(slow[&block.owner]), block.time_ns)
    }));
}

/// The sums of blocks over steps, ranks and levels.
fn rows_of(blocks: &[Known]) -> Vec<Row> {
    let mut sums: BTreeMap<(u64, u32, u8), Row> = BTreeMap::new();
    for (residual, work, time_ns) in blocks {
        let of = (residual.step, residual.rank, work.level);
        let row = sums.entry(of).or_insert(Row {
            level: work.level,
            regressors: [0.0; 3],
            time_ns: 0.0,
        });
        row.time_ns += time_ns;
        let pairs = row.regressors.iter_mut().zip(work.regressors());
        pairs.for_each(|(sum, x)| *sum += x);
    }
    sums.into_values().collect()
}

/// Costs are fitted to blocks, which differ by more than their sums do; sums say whether there are enough, and how good
/// the costs are.
fn levels(
    rows: &[Row],
    blocks: &[Known],
    n_levels: usize,
) -> Result<(Vec<LevelCosts>, Vec<LevelQuality>), EmulateError> {
    let of = |level: usize| -> Vec<&Row> {
        let same = |row: &&Row| usize::from(row.level) == level && row.time_ns > 0.0;
        rows.iter().filter(same).collect()
    };
    let most = (0..n_levels)
        .map(|level| of(level).len())
        .max()
        .unwrap_or(0);
    // Few steps on few ranks: the rows of all levels together may do where no level's own do.
    let joint = most < ROWS_MIN;
    if joint && rows.len() < ROWS_MIN {
        return Err(too_few(rows.len()));
    }
    let coefficients = |level: Option<usize>| {
        let own = blocks
            .iter()
            .filter(|(_, work, _)| level.is_none_or(|level| usize::from(work.level) == level));
        let own: Vec<_> = own
            .map(|(_, work, time_ns)| (work.regressors(), *time_ns))
            .collect();
        LevelCosts::of(relative(&own))
    };
    let mut found: Vec<Option<LevelCosts>> = Vec::new();
    for level in 0..n_levels {
        let enough = of(level).len() >= ROWS_MIN;
        let own = enough.then(|| coefficients(Some(level)));
        // A few blocks that were stopped for long can leave nothing for cells: such a level does not know.
        found.push(own.filter(|costs| costs.cell_ns > 0.0));
    }
    let shared = found
        .iter()
        .all(Option::is_none)
        .then(|| coefficients(None));
    let nearest = |level: usize| {
        let known = (0..n_levels).filter(|&other| found[other].is_some());
        let near = known.min_by_key(|&other| other.abs_diff(level));
        near.and_then(|other| found[other]).or(shared)
    };
    let costs: Vec<LevelCosts> = (0..n_levels)
        .map(|level| nearest(level).expect("one level at least, or all together"))
        .collect();
    let quality = (0..n_levels).map(|level| LevelQuality {
        level: level as u8,
        borrowed: found[level].is_none(),
        ..quality(&of(level), &costs[level])
    });
    Ok((costs.clone(), quality.collect()))
}

/// Errors: `Mesh` naming both kernels.
fn same_kernel(one: &Settings, another: &Settings) -> Result<(), EmulateError> {
    let [one, another] = [one, another].map(|settings| kernel_name(settings.work));
    match one == another {
        true => Ok(()),
        false => Err(EmulateError::Mesh(format!(
            "one run's kernel is {one}, and another's {another}: fit each by itself"
        ))),
    }
}

fn too_few(rows: usize) -> EmulateError {
    EmulateError::TooFewRows {
        what: "blocks' times (a row for each step, rank and level)".to_owned(),
        rows,
        least: ROWS_MIN,
    }
}

fn quality(rows: &[&Row], costs: &LevelCosts) -> LevelQuality {
    let n = rows.len().max(1) as f64;
    let fitted = |row: &Row| {
        let weights = [costs.cell_ns, costs.iteration_ns, costs.finer_ns];
        let pairs = weights.iter().zip(row.regressors);
        pairs.map(|(w, x)| w * x).sum::<f64>()
    };
    let mean = rows.iter().map(|row| row.time_ns).sum::<f64>() / n;
    let off = rows
        .iter()
        .map(|row| (row.time_ns - fitted(row)).powi(2))
        .sum::<f64>();
    let all = rows
        .iter()
        .map(|row| (row.time_ns - mean).powi(2))
        .sum::<f64>();
    let ratio = |row: &&&Row| row.time_ns / fitted(row).max(f64::MIN_POSITIVE);
    let mean_ratio = rows.iter().map(|row| ratio(&row)).sum::<f64>() / n;
    let squares = rows.iter().map(|row| (ratio(&row) - mean_ratio).powi(2));
    LevelQuality {
        rows: rows.len(),
        r2: if all > 0.0 { 1.0 - off / all } else { 0.0 },
        residual_cv: (squares.sum::<f64>() / n).sqrt(),
        ..LevelQuality::default()
    }
}
