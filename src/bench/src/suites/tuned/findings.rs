//! The figures over all cells.

use std::collections::BTreeMap;

use colltune_core::catalogue::is_default;
use colltune_statistics::{Interval, geometric_mean_over_rounds, ratios, upper_bound};

use super::super::choices::Choices;
use super::super::jobs::Cell;
use super::super::report::{Finding, Target};
use super::super::ways::{CONTROL_WAY, DEFAULT_WAY, ONE_BATCH_WAY, TUNED_WAY};

/// What the means over all cells have to reach.
pub struct Targets {
    pub default_over_tuned: Target,
    pub best_over_tuned: Target,
}

/// A cell that may have less of the default's speed than this is not known to be unharmed.
const UNHARMED: f64 = 0.97;

/// Each figure with its interval: over trainings, of one training over its rounds.
pub fn findings(
    name: &str,
    cells: &[Cell],
    choices: &Choices,
    learned: &BTreeMap<Cell, String>,
    slower: &[Cell],
    targets: &Targets,
) -> Vec<Finding> {
    let over = |cells: &[Cell], of: &dyn Fn(Cell) -> Vec<f64>| {
        let columns: Vec<Vec<f64>> = cells.iter().map(|cell| of(*cell)).collect();
        let n_rounds = columns.iter().map(Vec::len).min().unwrap_or(0);
        let together = if choices.trainings > 1 {
            n_rounds / choices.trainings
        } else {
            1
        };
        let units: Vec<Vec<f64>> = (0..n_rounds / together.max(1))
            .map(|unit| unit * together..(unit + 1) * together)
            .map(|unit| {
                columns
                    .iter()
                    .flat_map(|c| &c[unit.clone()])
                    .copied()
                    .collect()
            })
            .collect();
        geometric_mean_over_rounds(&units)
    };
    let default_over =
        |way: usize| move |cell: Cell| ratios(choices.of(DEFAULT_WAY, cell), choices.of(way, cell));
    let n = cells.len();
    let exactly = |count: usize| Interval {
        low: count as f64,
        value: count as f64,
        high: count as f64,
    };
    let finding = |what: String, found, unit, target| Finding {
        what: format!("{name}, {what}"),
        found,
        unit,
        target,
    };
    let mut findings = vec![
        finding(
            format!("best fixed choice over tuned, geometric mean of {n} cells"),
            over(cells, &|cell| choices.best_over_tuned(cell)),
            "x",
            targets.best_over_tuned,
        ),
        finding(
            format!("default over tuned, geometric mean of {n} cells"),
            over(cells, &default_over(TUNED_WAY)),
            "x",
            targets.default_over_tuned,
        ),
        finding(
            "after one batch: time after two over it".to_owned(),
            over(cells, &|cell| {
                ratios(choices.of(TUNED_WAY, cell), choices.of(ONE_BATCH_WAY, cell))
            }),
            "x",
            Target::AtLeast(0.95),
        ),
        finding(
            "to be had here: default over best fixed choice".to_owned(),
            over(cells, &|cell| choices.default_over_best(cell)),
            "x",
            Target::None,
        ),
        finding(
            "control: default over the same again".to_owned(),
            over(cells, &default_over(CONTROL_WAY)),
            "x",
            Target::None,
        ),
    ];
    let kept: Vec<Cell> = cells
        .iter()
        .copied()
        .filter(|cell| learned.get(cell).is_some_and(|best| is_default(best)))
        .collect();
    if !kept.is_empty() {
        findings.push(finding(
            format!(
                "default over tuned where tuned runs the default too ({} cells)",
                kept.len()
            ),
            over(&kept, &default_over(TUNED_WAY)),
            "x",
            Target::None,
        ));
    }
    findings.push(finding(
        "cells in which tuned is slower than the default".to_owned(),
        exactly(slower.len()),
        "",
        Target::AtMost(0.0),
    ));
    let uncertain = |way: usize| {
        let cells = cells.iter();
        cells
            .filter(|cell| choices.at_least(way, **cell) < UNHARMED)
            .count()
    };
    findings.push(finding(
        format!("cells whose lower 95 % bound of default over tuned is under {UNHARMED}"),
        exactly(uncertain(TUNED_WAY)),
        "",
        Target::AtMost(0.0),
    ));
    findings.push(finding(
        format!("control: cells whose lower 95 % bound of default over the same again is under {UNHARMED}"),
        exactly(uncertain(CONTROL_WAY)),
        "",
        Target::None,
    ));
    let beaten = cells
        .iter()
        .filter(|cell| upper_bound(&choices.best_over_tuned(**cell)) < 1.0);
    findings.push(finding(
        "cells in which tuned is slower than the best fixed choice, beyond noise".to_owned(),
        exactly(beaten.count()),
        "",
        Target::AtMost(0.0),
    ));
    findings
}
