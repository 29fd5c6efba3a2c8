//! `colltune-bench learner`: every policy on every kind of machine.

mod ablation;
mod hazards;
mod learning;
mod programs;

use crate::report::{Row, Table};
use crate::trial::Scope;

/// Rows that are found together.
struct Group {
    name: &'static str,
    run: fn(&Scope, &mut Vec<Row>),
}

const GROUPS: [Group; 11] = [
    Group {
        name: "jobs",
        run: learning::jobs_until_near,
    },
    Group {
        name: "batches",
        run: learning::batches,
    },
    Group {
        name: "recorded",
        run: learning::recorded,
    },
    Group {
        name: "null",
        run: hazards::null,
    },
    Group {
        name: "hidden",
        run: hazards::hidden,
    },
    Group {
        name: "stalls",
        run: hazards::stalls,
    },
    Group {
        name: "late",
        run: hazards::late_ranks,
    },
    Group {
        name: "few",
        run: hazards::few_calls,
    },
    Group {
        name: "long",
        run: programs::long_job,
    },
    Group {
        name: "solver",
        run: programs::solver,
    },
    Group {
        name: "drift",
        run: programs::drift,
    },
];
/// The group of the learner without one of its mechanisms, which is found where it is named alone.
pub const ABLATION: &str = "ablation";

/// Runs the groups that are wanted, telling what it is at.
pub fn run(scope: &Scope, is_wanted: &dyn Fn(&str) -> bool, progress: &dyn Fn(&str)) -> Vec<Table> {
    if is_wanted(ABLATION) && !GROUPS.iter().any(|group| is_wanted(group.name)) {
        return vec![ablation::table(scope, is_wanted, progress)];
    }
    let mut rows = Vec::new();
    for group in GROUPS.iter().filter(|group| is_wanted(group.name)) {
        progress(group.name);
        (group.run)(scope, &mut rows);
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
