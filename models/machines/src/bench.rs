//! `colltune bench learner`: every policy on every kind of machine.

mod hazards;
mod layouts;
mod learning;
mod programs;

use crate::policies::POLICIES;
use crate::report::Table;
use crate::trial::Extent;

/// Runs it, telling what it is at.
pub fn run(extent: Extent, progress: &dyn Fn(&str)) -> Vec<Table> {
    let full = extent == Extent::Full;
    let seeds = if full { 7 } else { 5 };
    let mut rows = Vec::new();
    progress("usual machines, trainings behind each job");
    learning::jobs_until_near(seeds, full, &mut rows);
    progress("usual machines, batches of ten");
    learning::batches(seeds, full, &mut rows);
    progress("equal variants");
    hazards::null(seeds, full, &mut rows);
    progress("stalls");
    hazards::stalls(seeds, full, &mut rows);
    progress("late ranks");
    hazards::late_ranks(seeds, full, &mut rows);
    progress("one long job");
    programs::long_job(seeds, full, &mut rows);
    progress("few calls");
    hazards::few_calls(seeds, full, &mut rows);
    progress("a solver");
    programs::solver(seeds, full, &mut rows);
    progress("a default that becomes better");
    programs::drift(seeds, full, &mut rows);
    progress("layouts that were left out");
    let learners = Table {
        title: "learners",
        policies: POLICIES.iter().map(|policy| policy.name()).collect(),
        rows,
        notes: vec![
            format!("median [least, largest] over {seeds} machines of seeds 1 to {seeds}; shares of counts are of all machines together"),
            "costs are true means over runs and ranks, with what a call shifts into the next operation, without waiting for late ranks".to_owned(),
        ],
    };
    let predictors = layouts::left_out(seeds, full);
    progress("");
    vec![learners, predictors]
}
