//! What a tuning says while it learns, and where it goes on.

use super::state::{Choice, JOBS_MAX, State};
use colltune_core::catalogue;
use colltune_statistics::Interval;

use crate::command::train::counted;

/// Where an earlier invocation was.
pub fn place(state: &State) -> String {
    let of_these = match (state.n_explored(), state.pairs.len()) {
        (0, _) => String::new(),
        (n_explored, 0) => format!(", {n_explored} of which tried variants"),
        (_, n_pairs) => format!(
            ", with {} of the comparison",
            counted(n_pairs as u64, "pair")
        ),
    };
    format!(
        "Going on where it was, after {}{of_these}.",
        counted(state.n_jobs() as u64, "job")
    )
}

/// What a training found, where that is news.
pub fn learned(state: &State, levers_are_settled: bool) -> Option<String> {
    let (n_jobs, changed) = (state.n_learned(), state.n_changed());
    if state.is_stable() && !levers_are_settled && n_jobs < JOBS_MAX {
        return Some(LEVERS_GO_ON.to_owned());
    }
    let after = match n_jobs {
        1 => "After 1 job that tried variants".to_owned(),
        _ => format!("After {n_jobs} jobs that tried variants"),
    };
    if state.is_stable() {
        return Some(format!(
            "{after}: what is chosen is stable, {}. Now with and without colltune.",
            chosen(state)
        ));
    }
    if n_jobs >= JOBS_MAX {
        return Some(format!(
            "{after} what is chosen still changes; it is compared as it is, {}.",
            chosen(state)
        ));
    }
    let so_far = || state.so_far().map_or_else(String::new, so_far);
    match changed {
        Some(0) => None,
        Some(_) => Some(format!("{after}: {}{}.", chosen(state), so_far())),
        None => Some(format!(
            "{after}: {}. (A cell is a collective with a range of message sizes, nodes and ranks per node; it matters from 1 % of the time in collectives on.)",
            chosen(state)
        )),
    }
}

/// What comes where collectives are settled and levers are not.
const LEVERS_GO_ON: &str = "What collectives run is stable; which arms are fastest is not known yet, so jobs go on to draw them.";

fn chosen(state: &State) -> String {
    let choices = state.choices();
    let other = |choice: &&Choice| !catalogue::is_default(&choice.best);
    let n_cells = match choices.len() {
        1 => "the one cell that matters".to_owned(),
        n_cells => format!("the {n_cells} cells that matter"),
    };
    match choices.iter().filter(other).count() {
        0 => format!("the default in {n_cells}"),
        n_other if n_other == choices.len() => {
            format!("another variant than the default in {n_cells}")
        }
        n_other => format!("another variant than the default in {n_other} of {n_cells}"),
    }
}

/// How the newest jobs that explored did.
pub fn so_far(ratio: Interval) -> String {
    let Interval { low, value, high } = ratio;
    format!(
        "; jobs that try variants are {value:.2} times as fast as with the default (95 % interval {low:.2} to {high:.2})"
    )
}
