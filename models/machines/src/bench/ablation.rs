//! The learner without one of its mechanisms at a time, on the same machines as with all of them.

use colltune_models::ablation::{Mechanism, leave_out};

use crate::arrival::Arrival;
use crate::campaign::{History, Plan};
use crate::policies::PRODUCT;
use crate::recipe::{CLUSTER, NODE, Recipe};
use crate::report::{Bound, Row, Spread, Table};
use crate::trial::{Scope, Trial, on_one, pooled_of};

/// A kind of machine on which mechanisms are judged.
struct Kind {
    name: &'static str,
    trial: Trial,
}

/// The machines of one kind, each lived through.
type Lived = Vec<History>;

fn kinds(scope: &Scope) -> Vec<Kind> {
    let trial = |recipe: Recipe, plan: Plan| Trial {
        recipe,
        plan,
        seeds: scope.seeds.clone(),
    };
    let small = |recipe: Recipe| Recipe {
        layouts: vec![CLUSTER],
        sizes: vec![8, 32 << 10],
        calls: 256,
        ..recipe
    };
    let changing = Plan {
        default_improves_after: Some(8),
        ..Plan::each(16)
    };
    let late = Recipe {
        arrival: Arrival::Random(5.0),
        skew_most: 0.3,
        calls: 300,
        ..on_one(CLUSTER, scope, 0.05)
    };
    let stalling = Recipe {
        calls: 300,
        ..small(Recipe::stalling())
    };
    let few = Recipe {
        calls: 10,
        ..on_one(CLUSTER, scope, 0.15)
    };
    let usual = |layout, run_effect| on_one(layout, scope, run_effect);
    vec![
        Kind {
            name: "node",
            trial: trial(usual(NODE, 0.05), Plan::each(10)),
        },
        Kind {
            name: "batches",
            trial: trial(usual(CLUSTER, 0.15), Plan::batches(2)),
        },
        Kind {
            name: "null 0.15",
            trial: trial(small(Recipe::null(0.15)), Plan::each(6)),
        },
        Kind {
            name: "null 0.3",
            trial: trial(small(Recipe::null(0.3)), Plan::each(6)),
        },
        Kind {
            name: "stalls",
            trial: trial(stalling, Plan::each(10)),
        },
        Kind {
            name: "late",
            trial: trial(late, Plan::batches(1)),
        },
        Kind {
            name: "few",
            trial: trial(few, Plan::batches(2)),
        },
        Kind {
            name: "changes",
            trial: trial(
                Recipe {
                    calls: 200,
                    ..usual(CLUSTER, 0.05)
                },
                changing,
            ),
        },
    ]
}

/// A column for the whole learner, and one for each mechanism without which it was tried.
pub(super) fn table(
    scope: &Scope,
    is_wanted: &dyn Fn(&str) -> bool,
    progress: &dyn Fn(&str),
) -> Table {
    // Each alone, and where there are several all of them.
    let wanted: Vec<Mechanism> = Mechanism::ALL
        .into_iter()
        .filter(|mechanism| is_wanted(mechanism.name()))
        .collect();
    let mut tried: Vec<(&str, Vec<Mechanism>)> = wanted
        .iter()
        .map(|mechanism| (mechanism.name(), vec![*mechanism]))
        .collect();
    if wanted.len() > 1 {
        tried.push(("all of these", wanted));
    }
    let mut rows = Vec::new();
    for kind in kinds(scope) {
        let live = |name: &str, without: &[Mechanism]| {
            progress(&format!("{}: without {name}", kind.name));
            let _left_out = leave_out(without);
            kind.trial.live(&[PRODUCT]).remove(0)
        };
        let mut lived: Vec<Lived> = vec![live("nothing", &[])];
        lived.extend(tried.iter().map(|(name, without)| live(name, without)));
        rows.extend(judged(kind.name, &lived));
    }
    let mut policies = vec!["all of it"];
    policies.extend(tried.iter().map(|(name, _)| *name));
    let (first, last) = (scope.seeds.start(), scope.seeds.end());
    Table {
        title: "the learner without one mechanism",
        policies,
        rows,
        notes: vec![format!(
            "machines of seeds {first} to {last}; rows of time lost are paired differences with all of it, in parts \
             of the program's time in collectives: mean [less, more two standard errors]"
        )],
    }
}

fn judged(name: &str, lived: &[Lived]) -> Vec<Row> {
    let jobs = |one: &History| one.accounts.len() as u32;
    let spent = |one: &History| (1.0 + one.regret(0..jobs(one))).ln();
    let published = |one: &History| -one.share_of_gain(jobs(one)) * one.reachable().ln();
    let none = |figure: &str, found| Row {
        figure: format!("{name}: {figure}"),
        found,
        must: Bound::None,
        aim: Bound::None,
    };
    let beside = |of: &dyn Fn(&History) -> f64| -> Vec<Option<Spread>> {
        let difference = |own: &Lived| {
            let pairs = lived[0].iter().zip(own);
            mean_with_error(pairs.map(|(all, own)| of(own) - of(all)).collect())
        };
        lived.iter().map(difference).collect()
    };
    let counted = |of: &dyn Fn(&History) -> (f64, f64)| -> Vec<Option<Spread>> {
        lived.iter().map(|own| pooled_of(own, of)).collect()
    };
    vec![
        none("time lost in jobs", beside(&spent)),
        none("time lost by what is chosen in the end", beside(&published)),
        none(
            "coverage",
            counted(&|one| (one.claims().holding, one.claims().all)),
        ),
        none(
            "wrong replacements",
            counted(&|one| (one.replacements().wrong, one.replacements().all)),
        ),
        none(
            "cells ever wrong",
            counted(&|one| {
                (
                    one.replacements().cells_ever_wrong,
                    one.replacements().cells,
                )
            }),
        ),
        none(
            "trainings that say that nothing is to gain",
            counted(&History::told),
        ),
    ]
}

fn mean_with_error(values: Vec<f64>) -> Option<Spread> {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let error = (squares / (n - 1.0).max(1.0) / n).sqrt();
    Some(Spread {
        least: mean - 2.0 * error,
        median: mean,
        most: mean + 2.0 * error,
    })
}
