//! How soon the best is found on usual machines, and what that costs.

use crate::campaign::{History, Plan};
use crate::recipe::{CLUSTER, NODE, Recipe};
use crate::recorded::Recorded;
use crate::report::{Bound, Row};
use crate::trial::{
    Lives, Scope, Trial, covered, each, on_one, overstated, pooled, row, told, wrong_replacements,
};

fn reachable(name: &str, lives: &Lives) -> Row {
    let figure = format!("{name}: reachable gain");
    told(&figure, each(lives, History::reachable))
}

fn until_near(name: &str, lives: &Lives) -> Row {
    row(
        &format!("{name}: jobs until within 5 % of the best, geometric mean"),
        each(lives, History::jobs_until_near),
        Bound::AtMost(10.0),
        Bound::AtMost(5.0),
    )
}

fn first_over_second(name: &str, lives: &Lives) -> Row {
    row(
        &format!("{name}: batch 1 over batch 2"),
        each(lives, |one| one.share_of_gain(10) / one.share_of_gain(20)),
        Bound::AtLeast(0.95),
        Bound::None,
    )
}

pub(super) fn jobs_until_near(scope: &Scope, rows: &mut Vec<Row>) {
    for (name, layout) in [("node", NODE), ("cluster", CLUSTER)] {
        let trial = Trial {
            recipe: on_one(layout, scope, 0.05),
            plan: Plan::each(if scope.is_full() { 30 } else { 12 }),
            seeds: scope.seeds.clone(),
        };
        let lives = trial.live(&scope.policies);
        rows.push(reachable(name, &lives));
        rows.push(told(
            &format!("{name}: share of it that generation 0 draws at all"),
            each(&lives, History::share_of_generation_0),
        ));
        rows.push(until_near(name, &lives));
        rows.push(told(
            &format!("{name}: the same, median cell"),
            each(&lives, History::median_jobs_until_near),
        ));
        for jobs in [1, 3, 5, 10] {
            rows.push(told(
                &format!("{name}: share of reachable gain after {jobs} jobs"),
                each(&lives, |one| one.share_of_gain(jobs)),
            ));
        }
        rows.push(row(
            &format!("{name}: trainings that say that nothing can be gained"),
            pooled(&lives, History::told),
            Bound::AtMost(0.0),
            Bound::None,
        ));
        rows.push(told(
            &format!("{name}: regret over the first ten jobs"),
            each(&lives, |one| one.regret(0..10)),
        ));
        rows.push(wrong_replacements(name, &lives));
    }
}

/// The machines that were measured, with synthetic noise.
pub(super) fn recorded(scope: &Scope, rows: &mut Vec<Row>) {
    for machine in Recorded::ALL {
        let trial = |run_effect: f64, plan: Plan| Trial {
            recipe: Recipe::recorded(machine, run_effect),
            plan,
            seeds: scope.seeds.clone(),
        };
        let name = format!("recorded {}", machine.name());
        let lives = trial(0.05, Plan::each(12)).live(&scope.policies);
        rows.push(reachable(&name, &lives));
        rows.push(until_near(&name, &lives));
        rows.push(told(
            &format!("{name}: share of reachable gain after 10 jobs"),
            each(&lives, |one| one.share_of_gain(10)),
        ));
        rows.push(wrong_replacements(&name, &lives));
        let lives = trial(0.15, Plan::batches(2)).live(&scope.policies);
        let name = format!("{name}, batches, runs differ by 15 %");
        rows.push(first_over_second(&name, &lives));
        rows.push(wrong_replacements(&name, &lives));
    }
}

pub(super) fn batches(scope: &Scope, rows: &mut Vec<Row>) {
    let batches = if scope.is_full() { 4 } else { 2 };
    for (name, layout) in [("node", NODE), ("cluster", CLUSTER)] {
        let trial = Trial {
            recipe: on_one(layout, scope, 0.15),
            plan: Plan::batches(batches),
            seeds: scope.seeds.clone(),
        };
        let lives = trial.live(&scope.policies);
        let name = format!("{name}, batches, runs differ by 15 %");
        rows.push(row(
            &format!("{name}: jobs until within 5 %, geometric mean"),
            each(&lives, History::jobs_until_near),
            Bound::AtMost(10.0),
            Bound::AtMost(5.0),
        ));
        for batch in [1, 2] {
            rows.push(told(
                &format!("{name}: share of reachable gain after batch {batch}"),
                each(&lives, |one| one.share_of_gain(10 * batch)),
            ));
        }
        rows.push(first_over_second(&name, &lives));
        for (generation, must) in [(0, 0.02), (1, 0.01), (2, 0.01)] {
            if generation < batches {
                rows.push(row(
                    &format!("{name}: cost of exploring, generation {generation}"),
                    each(&lives, |one| {
                        one.cost_of_exploring(10 * generation..10 * generation + 10)
                    }),
                    Bound::AtMost(must),
                    Bound::AtMost(0.01),
                ));
            }
        }
        rows.push(covered(&name, &lives));
        rows.push(told(
            &format!("{name}: the same, of what was chosen"),
            pooled(&lives, |one| {
                (one.claims().chosen_holding, one.claims().chosen)
            }),
        ));
        rows.push(overstated(&name, &lives));
        rows.push(wrong_replacements(&name, &lives));
        rows.push(row(
            &format!("{name}: cells with default/tuned under 0.97"),
            pooled(&lives, |one| {
                (one.replacements().cells_harmed, one.replacements().cells)
            }),
            Bound::AtMost(0.0),
            Bound::AtMost(0.0),
        ));
        rows.push(row(
            &format!("{name}: the last training, s"),
            each(&lives, |one| {
                one.trainings
                    .last()
                    .map_or(f64::NAN, |last| last.took.as_secs_f64())
            }),
            Bound::AtMost(10.0),
            Bound::AtMost(3.0),
        ));
    }
}
