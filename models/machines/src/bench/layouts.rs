//! Which predictor says best what was never measured.

use colltune_models::predict::Predictor;
use rayon::prelude::*;

use crate::report::{Bound, Spread, Table};
use crate::transfer::{Transferred, leave_out, limit, predictors};
use crate::trial::{Scope, row};

pub(super) fn left_out(scope: &Scope) -> Table {
    let collectives = if scope.is_full() { 5 } else { 2 };
    let seeds = || scope.seeds.clone().into_par_iter();
    let of = |predictor: &dyn Predictor| -> Vec<Transferred> {
        seeds()
            .map(|seed| leave_out(seed, collectives, predictor))
            .collect()
    };
    let predictors = predictors();
    let mut found: Vec<Vec<Transferred>> =
        predictors.iter().map(|predictor| of(*predictor)).collect();
    found.push(seeds().map(|seed| limit(seed, collectives)).collect());
    let share = |of: fn(&Transferred) -> f64| {
        let spread = |machines: &Vec<Transferred>| {
            Spread::of(machines.iter().map(|one| of(one) / one.cells).collect())
        };
        found.iter().map(spread).collect::<Vec<_>>()
    };
    Table {
        title: "predictors of left-out layouts",
        policies: predictors
            .iter()
            .map(|predictor| predictor.name())
            .chain(["limit"])
            .collect(),
        rows: vec![
            row(
                "choice within 5 % of the best, share of cells",
                share(|one| one.near),
                Bound::AtLeast(0.9),
                Bound::AtLeast(0.95),
            ),
            row(
                "choice more than 3 % slower than the default, share of cells",
                share(|one| one.harmed),
                Bound::None,
                Bound::None,
            ),
            row(
                "the choice's time over the best's, mean logarithm",
                share(|one| one.lost),
                Bound::None,
                Bound::None,
            ),
            row(
                "coverage of 95 % intervals",
                share(|one| one.holding / one.intervals * one.cells),
                Bound::Within(0.93, 0.97),
                Bound::None,
            ),
            row(
                "rank correlation, mean over cells",
                share(|one| one.correlation),
                Bound::None,
                Bound::None,
            ),
        ],
        notes: vec![
            "limit: who knows the machine and the default's times, and of each variant's random field how smooth it is"
                .to_string(),
        ],
    }
}
