//! Long jobs, a strongly scaled solver, and a machine that changes.

use crate::campaign::{History, Plan};
use crate::recipe::{CLUSTER, Recipe};
use crate::report::{Bound, Row};
use crate::score::median;
use crate::trial::{Scope, Trial, each, on_one, overstated, padded, pooled, row};

pub(super) fn long_job(scope: &Scope, rows: &mut Vec<Row>) {
    let usual = on_one(CLUSTER, scope, 0.05);
    let trial = Trial {
        recipe: Recipe {
            calls: 20_000,
            collectives: usual.collectives[..if scope.is_full() { 5 } else { 1 }].to_vec(),
            ..usual
        },
        plan: Plan::each(1),
        seeds: scope.seeds.clone(),
    };
    let lives = trial.live(&scope.learners());
    rows.push(padded(
        scope,
        "one job of 20,000 calls a cell: share of reachable gain, last quarter",
        each(&lives, |one| one.gain_inside(0)),
        Bound::AtLeast(0.8),
        Bound::AtLeast(0.9),
    ));
}

/// The default takes about 150 us there: compute of 5, 20 and 80 us is so much of it.
const SOLVER: [(&str, f64); 3] = [("5 us", 0.03), ("20 us", 0.13), ("80 us", 0.53)];

pub(super) fn solver(scope: &Scope, rows: &mut Vec<Row>) {
    for (name, lateness) in SOLVER {
        let trial = Trial {
            recipe: Recipe::solver(lateness),
            plan: Plan::batches(1),
            seeds: scope.seeds.clone(),
        };
        let lives = trial.live(&scope.policies);
        let name = format!("solver with {name}");
        rows.push(row(
            &format!("{name}: share of reachable gain after ten jobs"),
            each(&lives, |one| one.share_of_gain(10)),
            Bound::AtLeast(0.8),
            Bound::AtLeast(0.95),
        ));
        rows.push(row(
            &format!("{name}: true gain in the stated interval"),
            pooled(&lives, |one| {
                (one.claims().chosen_holding, one.claims().chosen)
            }),
            Bound::AtLeast(0.95),
            Bound::None,
        ));
        rows.push(overstated(&name, &lives));
    }
}

pub(super) fn drift(scope: &Scope, rows: &mut Vec<Row>) {
    let calls = 200;
    let trial = Trial {
        recipe: Recipe {
            calls,
            ..on_one(CLUSTER, scope, 0.05)
        },
        plan: Plan {
            default_improves_after: Some(10),
            ..Plan::each(if scope.is_full() { 40 } else { 20 })
        },
        seeds: scope.seeds.clone(),
    };
    let lives = trial.live(&scope.policies);
    // Of the cells that had something else than the default by then.
    let calls_until = |one: &History| {
        let before = one.trainings.iter().find(|training| training.jobs == 10);
        let Some(before) = before else {
            return f64::NAN;
        };
        let cells = (0..before.best.len()).filter(|&cell| before.best[cell] != 0);
        let of = |cell: usize| {
            let mut after = one.trainings.iter().filter(|training| training.jobs > 10);
            let found = after.find(|training| training.best[cell] == 0);
            found.map_or(f64::INFINITY, |training| {
                f64::from(training.jobs - 10) * calls as f64
            })
        };
        median(cells.map(of).collect())
    };
    rows.push(row(
        "the default becomes 10 % better: calls of the median cell until it is back",
        each(&lives, calls_until),
        Bound::AtMost(2000.0),
        Bound::AtMost(1000.0),
    ));
}
