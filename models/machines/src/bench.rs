//! `colltune-bench learner`: every policy on every kind of machine.

mod ablation;
mod hazards;
mod learning;
mod programs;

use crate::report::{Row, Table};
use crate::trial::Scope;

/// Rows that are found together, by a name.
type Group = (&'static str, fn(&Scope, &mut Vec<Row>));

const GROUPS: [Group; 11] = [
    ("jobs", learning::jobs_until_near),
    ("batches", learning::batches),
    ("recorded", learning::recorded),
    ("null", hazards::null),
    ("hidden", hazards::hidden),
    ("stalls", hazards::stalls),
    ("late", hazards::late_ranks),
    ("few", hazards::few_calls),
    ("long", programs::long_job),
    ("solver", programs::solver),
    ("drift", programs::drift),
];
/// The group of the learner without one of its mechanisms, which is found where it is named alone.
pub const ABLATION: &str = "ablation";

/// Runs the groups that are wanted, telling what it is at.
pub fn run(scope: &Scope, is_wanted: &dyn Fn(&str) -> bool, progress: &dyn Fn(&str)) -> Vec<Table> {
    if is_wanted(ABLATION) && !GROUPS.iter().any(|(name, _)| is_wanted(name)) {
        return vec![ablation::table(scope, is_wanted, progress)];
    }
    let mut rows = Vec::new();
    for (name, find) in GROUPS.iter().filter(|(name, _)| is_wanted(name)) {
        progress(name);
        find(scope, &mut rows);
    }
    vec![Table {
        title: "learners",
        policies: scope.names(),
        rows,
        notes: vec![
            format!(
                "median [least, largest] over machines of seeds {} to {}; shares of counts are of all machines \
                 together",
                scope.seeds.start(),
                scope.seeds.end()
            ),
            "costs are true means over runs and ranks, with what a call shifts into the next operation, without \
             waiting for late ranks"
                .to_owned(),
        ],
    }]
}
