//! How many steps' rows are gathered together. Every rank, and an emulated run, finds the same.

use crate::exchange::plan::Sweeps;
use crate::settings::Settings;

/// Steps whose rows are gathered together.
const STEPS: u64 = 64;
/// Rows of blocks, of rounds and of spans that a rank holds before they are gathered: some 10 MB.
const ROWS: usize = 1 << 17;

/// Steps between two writes, after a step with so many leaves in the mesh and so many rounds of messages.
pub fn steps_between_writes(
    settings: &Settings,
    n_leaves: usize,
    n_ranks: usize,
    n_rounds: usize,
) -> u64 {
    let options = &settings.options;
    let blocks = match options.telemetry_blocks {
        true => n_leaves / n_ranks,
        false => 0,
    };
    let rounds = match options.telemetry_rounds {
        true => n_rounds,
        false => 0,
    };
    let per_step = rounds.max(blocks).max(spans_per_step(settings));
    STEPS.min((ROWS / per_step.max(1)) as u64).max(1)
}

/// Stretches of phases that a step may have; none where they are not wanted.
fn spans_per_step(settings: &Settings) -> usize {
    let (vars, groups) = (settings.shape.n_vars, settings.groups().len());
    let sweeps = match settings.sweeps {
        Sweeps::ByAxis => 3,
        Sweeps::AtOnce => 1,
    };
    match settings.options.telemetry_spans {
        true => settings.stages as usize * (4 * vars + 8 * groups * sweeps) + 64,
        false => 0,
    }
}
