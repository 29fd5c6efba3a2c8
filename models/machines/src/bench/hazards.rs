//! What misleads: equal variants, stalls, late ranks, few calls.

use crate::arrival::Arrival;
use crate::campaign::{History, Plan};
use crate::recipe::{CLUSTER, Recipe};
use crate::report::{Bound, Row};
use crate::trial::{
    Lives, Scope, Trial, covered, each, on_one, padded, pooled, row, told, wrong_replacements,
};

pub(super) fn null(scope: &Scope, rows: &mut Vec<Row>) {
    for run_effect in [0.05, 0.15, 0.3] {
        let trial = Trial {
            recipe: Recipe {
                layouts: vec![CLUSTER],
                sizes: if scope.is_full() {
                    Recipe::null(0.0).sizes
                } else {
                    vec![8, 32 << 10]
                },
                calls: 256,
                ..Recipe::null(run_effect)
            },
            plan: Plan::each(if scope.is_full() { 12 } else { 6 }),
            seeds: scope.seeds.clone(),
        };
        let lives = trial.live(&scope.learners());
        let name = format!("twenty equal variants, runs differ by {run_effect}");
        rows.push(padded(
            scope,
            &format!("{name}: cells in which one ever replaced the default"),
            pooled(&lives, |one| {
                (
                    one.replacements().cells_ever_wrong,
                    one.replacements().cells,
                )
            }),
            Bound::AtMost(0.01),
            Bound::AtMost(0.005),
        ));
        rows.push(padded(
            scope,
            &format!("{name}: jobs until told that nothing can be gained"),
            each(&lives, History::jobs_until_told),
            Bound::AtMost(3.0),
            Bound::AtMost(1.0),
        ));
        rows.push(padded(
            scope,
            &format!("{name}: machines that are told in the end"),
            pooled(&lives, |one| {
                let last = one.trainings.last();
                (
                    f64::from(u8::from(last.is_some_and(|last| last.nothing_to_gain))),
                    1.0,
                )
            }),
            Bound::AtLeast(1.0),
            Bound::None,
        ));
        rows.push(padded(
            scope,
            &format!("{name}: share of samples that still explore in the end"),
            each(&lives, History::exploring),
            Bound::None,
            Bound::None,
        ));
    }
}

/// Messages that few programs send often.
const LARGE: [u64; 3] = [256 << 10, 1 << 20, 4 << 20];

/// What one variant of twenty gains over the others, and how unlike runs are.
const HIDDEN: [(f64, f64); 6] = [
    (0.1, 0.05),
    (0.2, 0.05),
    (0.1, 0.15),
    (0.2, 0.15),
    (0.2, 0.3),
    (0.4, 0.3),
];

/// Machines that must not be given up.
pub(super) fn hidden(scope: &Scope, rows: &mut Vec<Row>) {
    for (faster, run_effect) in HIDDEN {
        let trial = Trial {
            recipe: Recipe {
                layouts: vec![CLUSTER],
                sizes: if scope.is_full() {
                    Recipe::null(0.0).sizes
                } else {
                    vec![8, 32 << 10]
                },
                calls: 256,
                ..Recipe::hidden(faster, run_effect)
            },
            plan: Plan::each(12),
            seeds: scope.seeds.clone(),
        };
        let lives = trial.live(&scope.learners());
        let name = format!("one of twenty gains {faster}, runs differ by {run_effect}");
        not_given_up(scope, &name, &lives, rows);
    }
}

/// How often a training says of a machine with a gain that there is none, and how much of it is found.
fn not_given_up(scope: &Scope, name: &str, lives: &Lives, rows: &mut Vec<Row>) {
    rows.push(padded(
        scope,
        &format!("{name}: trainings that say that nothing can be gained"),
        pooled(lives, History::told),
        Bound::AtMost(0.0),
        Bound::None,
    ));
    rows.push(padded(
        scope,
        &format!("{name}: share of the gain after twelve jobs"),
        each(lives, |one| one.share_of_gain(12)),
        Bound::None,
        Bound::None,
    ));
}

pub(super) fn stalls(scope: &Scope, rows: &mut Vec<Row>) {
    let trial = Trial {
        recipe: Recipe {
            layouts: vec![CLUSTER],
            calls: 600,
            ..Recipe::stalling()
        },
        plan: Plan {
            trainings: vec![1, 2, 5, 10],
            ..Plan::each(0)
        },
        seeds: scope.seeds.clone(),
    };
    let lives = trial.live(&scope.policies);
    rows.push(wrong_replacements("stalls", &lives));
    rows.push(row(
        "stalls: cells with default/tuned under 0.97 after ten jobs",
        pooled(&lives, |one| {
            (one.replacements().cells_harmed, one.replacements().cells)
        }),
        Bound::AtMost(0.0),
        Bound::AtMost(0.0),
    ));
    rows.push(told(
        "stalls: share of reachable gain after ten jobs",
        each(&lives, |one| one.share_of_gain(10)),
    ));
    rows.push(covered("stalls", &lives));
}

pub(super) fn late_ranks(scope: &Scope, rows: &mut Vec<Row>) {
    for arrival in [
        Arrival::OneLate(5.0),
        Arrival::Random(1.0),
        Arrival::Random(5.0),
        Arrival::Random(20.0),
    ] {
        let trial = Trial {
            recipe: Recipe {
                arrival,
                skew_most: 0.3,
                calls: 300,
                ..on_one(CLUSTER, scope, 0.05)
            },
            plan: Plan::batches(1),
            seeds: scope.seeds.clone(),
        };
        let lives = trial.live(&scope.policies);
        let name = format!("{arrival:?}, ten jobs");
        rows.push(told(
            &format!("{name}: share of reachable gain"),
            each(&lives, |one| one.share_of_gain(10)),
        ));
        rows.push(wrong_replacements(&name, &lives));
        rows.push(covered(&name, &lives));
    }
}

pub(super) fn few_calls(scope: &Scope, rows: &mut Vec<Row>) {
    for calls in [5, 10] {
        let lives = rare(calls, scope).live(&scope.policies);
        let name = format!("{calls} calls a job, 20 jobs");
        rows.push(told(
            &format!("{name}: share of reachable gain"),
            each(&lives, |one| one.share_of_gain(20)),
        ));
        rows.push(wrong_replacements(&name, &lives));
    }
    few_large(scope, rows);
}

/// Twenty jobs of a program that calls each cell so often.
fn rare(calls: u64, scope: &Scope) -> Trial {
    Trial {
        recipe: Recipe {
            calls,
            ..on_one(CLUSTER, scope, 0.15)
        },
        plan: Plan::batches(2),
        seeds: scope.seeds.clone(),
    }
}

/// Twelve jobs of a program that calls each cell ten times, with long messages.
fn large(scope: &Scope, recipe: Recipe) -> Lives {
    let trial = Trial {
        recipe: Recipe {
            layouts: vec![CLUSTER],
            sizes: LARGE.to_vec(),
            calls: 10,
            ..recipe
        },
        plan: Plan::each(12),
        seeds: scope.seeds.clone(),
    };
    trial.live(&scope.learners())
}

/// Where nothing is gained, or much by one variant of twenty.
fn few_large(scope: &Scope, rows: &mut Vec<Row>) {
    for run_effect in [0.05, 0.15] {
        let name = format!("ten large calls a job, all equal, runs differ by {run_effect}");
        let lives = large(scope, Recipe::null(run_effect));
        rows.push(padded(
            scope,
            &format!("{name}: jobs until told that nothing can be gained"),
            each(&lives, History::jobs_until_told),
            Bound::AtMost(10.0),
            Bound::AtMost(5.0),
        ));
        for faster in [0.2, 0.4] {
            let name = format!(
                "ten large calls, one of twenty gains {faster}, runs differ by {run_effect}"
            );
            not_given_up(
                scope,
                &name,
                &large(scope, Recipe::hidden(faster, run_effect)),
                rows,
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policies::PRODUCT;
    use crate::trial::{Extent, wrong};

    #[test]
    fn a_program_that_calls_each_cell_five_times_has_much_of_the_gain_after_twenty_jobs_and_hardly_anything_wrong()
     {
        let scope = Scope {
            extent: Extent::Quick,
            seeds: 401..=405,
            policies: vec![PRODUCT],
        };
        let lives = rare(5, &scope).live(&scope.policies);
        let share = each(&lives, |one| one.share_of_gain(20))[0].expect("each machine has one");
        assert!(share.median > 0.4, "{share:?}");
        let (wrong, all) = lives[0]
            .iter()
            .map(wrong)
            .fold((0.0, 0.0), |(a, b), (c, d)| (a + c, b + d));
        // Some forty replacements tell nothing of one in a hundred.
        assert!(wrong <= 0.05 * all, "{wrong} of {all}");
    }

    #[test]
    fn a_program_of_ten_large_calls_that_are_all_equal_is_told_so_and_one_with_a_variant_much_faster_is_not()
     {
        let scope = Scope {
            extent: Extent::Quick,
            seeds: 401..=405,
            policies: vec![PRODUCT],
        };
        let equal = large(&scope, Recipe::null(0.05));
        let told = each(&equal, History::jobs_until_told)[0].expect("each machine has one");
        assert!(told.median <= 10.0, "{told:?}");
        let hidden = large(&scope, Recipe::hidden(0.4, 0.05));
        let (told, all) = hidden[0]
            .iter()
            .map(History::told)
            .fold((0.0, 0.0), |(a, b), (c, d)| (a + c, b + d));
        assert!(told == 0.0, "{told} of {all} trainings");
    }
}
