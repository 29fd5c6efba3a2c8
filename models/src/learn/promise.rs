//! Where a program gains nothing from going on, the model says so and exploring ends.
//!
//! It is the program that gains: cells count by their time, and one need not be certain of each.

use super::cells::Cells;
use super::context::Context;
use crate::ablation::{Mechanism, has};
use crate::belief::{Arm, Belief};
use crate::choice::{Choice, GAIN_LEAST};
use crate::promise::{Promise, Prospect, promise};

/// The share of a cell's time that it may gain if too little is known of it.
const UNKNOWN_GAIN: f64 = 0.25;
/// What is worth finding: a share of the time in collectives.
const GAIN_WORTH: f64 = 0.02;
/// Of so many jobs more, like those so far, it is asked what they would find.
const JOBS_MORE: f64 = 10.0;
/// Fewer runs say nothing of a cell.
const RUNS_LEAST: u64 = 3;
/// Cells that are asked, those with the most time.
const CELLS_MAX: usize = 300;

/// Why nothing is to be gained in any cell; empty where something may be.
pub fn nothing_to_gain(
    cells: &Cells,
    beliefs: &[Belief],
    choices: &[Choice],
    context: &Context,
) -> String {
    let time_ns: f64 = beliefs.iter().map(|belief| belief.time_ns).sum();
    let is_chosen = |choice: &Choice| choice.best.is_some();
    if !has(Mechanism::Promise) || time_ns <= 0.0 || choices.iter().any(is_chosen) {
        return String::new();
    }
    let mut order: Vec<usize> = (0..beliefs.len()).collect();
    order.sort_by(|&a, &b| beliefs[b].time_ns.total_cmp(&beliefs[a].time_ns));
    let Some(of_run) = variance_of_a_run(beliefs) else {
        return String::new();
    };
    let (mut unknown, mut prospects) = (0.0, Vec::new());
    for (rank, index) in order.into_iter().enumerate() {
        let belief = &beliefs[index];
        let share = belief.time_ns / time_ns;
        if rank >= CELLS_MAX || is_new(cells, index) {
            unknown += share * UNKNOWN_GAIN.min(belief.work);
        } else {
            prospects.push(prospect(cells, index, belief, (share, of_run)));
        }
    }
    // That is more than what is worth it without asking what is known.
    if unknown >= GAIN_WORTH {
        return String::new();
    }
    let Promise { known, found } = promise(&prospects, JOBS_MORE, GAIN_LEAST, context.seed);
    if unknown + found >= GAIN_WORTH {
        return String::new();
    }
    format!(
        "knowing which variants are best would gain {:.1} % of the time in collectives, and ten more jobs would find \
         {:.1} %",
        100.0 * (unknown + known),
        100.0 * (unknown + found)
    )
}

/// Whether hardly anything was compared in a cell, be it since the machine changed: others say little of such a one.
fn is_new(cells: &Cells, index: usize) -> bool {
    let changed = cells.watched[index].changed.unwrap_or(0);
    cells.runs_compared_from(index, changed) < RUNS_LEAST
}

/// What one run tells of a contrast, as the median of its variance over all that have data.
fn variance_of_a_run(beliefs: &[Belief]) -> Option<f64> {
    let of_cell = |belief: &Belief| {
        let of = |arm: &Arm| Some(arm.data?.variance * belief.runs as f64);
        belief.arms.iter().filter_map(of).collect::<Vec<_>>()
    };
    let mut all: Vec<f64> = beliefs.iter().flat_map(of_cell).collect();
    all.sort_by(f64::total_cmp);
    all.get(all.len() / 2).copied()
}

fn prospect(cells: &Cells, index: usize, belief: &Belief, (share, of_run): (f64, f64)) -> Prospect {
    let drawable = cells.places(&cells.drawable[index], belief);
    let arms: Vec<usize> = drawable.into_iter().map(|place| place - 1).collect();
    let collective = cells.measured[index].collective;
    let (contestants, shared) =
        belief.contestants(&arms, collective, (&cells.untried[index], of_run));
    Prospect {
        share,
        work: belief.work,
        contestants,
        shared,
        runs: belief.runs as f64,
    }
}
