//! Default, tuned and best native variant: what two batches of ten runs achieve.
//!
//! Tuned is `exploit` after training on other seeds and call orders. The best fixed choice of a
//! cell is found on one half of the rounds and compared on the other, both ways round: the best of
//! twenty noisy values would otherwise be partly luck. The library itself is told to run the fixed
//! choices, without the shim.

use std::collections::BTreeMap;

use colltune_core::catalogue::is_default;
use colltune_core::collective::Collective;
use colltune_core::library::Abi;
use colltune_core::variant::Size;
use serde_json::Value;

use super::choices::Choices;
use super::jobs::Cell;
use super::place::Place;
use super::report::{Finding, Report, Row, Target};
use super::statistics::{
    Interval, geometric_mean, geometric_mean_over_rounds, ratios, upper_bound,
};
use super::ways::{CONTROL_WAY, DEFAULT_WAY, MEASURED, TUNED_WAY, rounds, ways};
use super::{Bench, database};

const SIZES: [u64; 6] = [8, 64, 512, 4 << 10, 32 << 10, 256 << 10];
const SIZES_QUICK: [u64; 3] = [8, 4 << 10, 32 << 10];

/// How much is run at a place.
pub struct Effort {
    /// Blocks of each cell in one explore run.
    training: usize,
    pub rounds: usize,
    /// Blocks of each cell in one measured job, and untimed calls before them.
    pub repetitions: usize,
    pub warmup: usize,
}

pub fn run_on_node(bench: &Bench) -> anyhow::Result<Report> {
    let mut report = new_report();
    let effort = Effort {
        training: bench.pick(40, 30),
        rounds: bench.pick(10, 4),
        repetitions: bench.pick(6, 4),
        warmup: 5,
    };
    match Place::node(Abi::OpenMpi, 8) {
        Ok(place) => measure(bench, &place, &effort, Target::AtLeast(1.15), &mut report)?,
        Err(error) => report.skipped.push(format!("openmpi: failed to {error:#}")),
    }
    match Place::node(Abi::Mpich, 2) {
        Ok(place) => measure(bench, &place, &effort, Target::None, &mut report)?,
        Err(error) => report.skipped.push(format!("mpich: failed to {error:#}")),
    }
    Ok(report)
}

pub fn run_on_cluster(bench: &Bench) -> anyhow::Result<Report> {
    let mut report = new_report();
    let effort = Effort {
        training: bench.pick(60, 30),
        rounds: bench.pick(6, 4),
        repetitions: bench.pick(4, 3),
        warmup: 2,
    };
    match Place::cluster() {
        Ok(place) => measure(bench, &place, &effort, Target::AtLeast(1.24), &mut report)?,
        Err(error) => report.skipped.push(format!("failed to {error:#}")),
    }
    Ok(report)
}

fn new_report() -> Report {
    let mut report = Report::comparing(
        "default (bare library), us per call",
        "tuned (exploit), us per call",
    );
    report.notes = [
        "tuned: exploit after 2 batches of 10 explore runs of the same program with other seeds and call orders; time of a call: the \
         slowest rank's, a barrier before each call",
        "best over tuned: the best fixed choice (default and every native variant, run by the library's own settings \
         without the shim), found on one half of the rounds and compared on the other, both ways round",
        "slower: the one-sided upper 95 % bound of default over tuned is below 1, and again when measured anew",
    ]
    .map(str::to_owned)
    .to_vec();
    report
}

fn measure(
    bench: &Bench,
    place: &Place,
    effort: &Effort,
    target: Target,
    report: &mut Report,
) -> anyhow::Result<()> {
    let name = place.abi.name();
    let sizes: &[u64] = if bench.quick { &SIZES_QUICK } else { &SIZES };
    let cells: Vec<Cell> = MEASURED
        .iter()
        .flat_map(|c| sizes.iter().map(move |size| (*c, *size)))
        .collect();
    let db = database::empty(bench, &format!("tuned-{name}-{}", place.nodes))?;
    database::train_two_batches(bench, place, &db, &cells, effort.training)?;

    let ways = ways(place, &db, &cells);
    let times = rounds(bench, place, effort, &ways, 1)?;
    let choices = Choices {
        ways: &ways,
        times: &times,
    };
    let learned = learned(&db, place);
    let suspects: Vec<Cell> = cells
        .iter()
        .copied()
        .filter(|cell| choices.is_slower(*cell))
        .collect();
    let slower = measured_again(bench, place, effort, &db, &suspects)?;

    for &cell in &cells {
        let (default, tuned) = (choices.of(DEFAULT_WAY, cell), choices.of(TUNED_WAY, cell));
        let (best_name, best_ns) = choices.best(cell, |_| true);
        let micro = |values: &[f64]| values.iter().map(|value| value / 1e3).collect::<Vec<_>>();
        let row = Row::of_rounds(
            format!("{name} {} {}", cell.0, Size(cell.1)),
            &micro(default),
            &micro(tuned),
        );
        report.rows.push(
            row.with("upper_95", upper_bound(&ratios(default, tuned)))
                .with(
                    "control",
                    geometric_mean(&ratios(default, choices.of(CONTROL_WAY, cell))),
                )
                .with("slower", if slower.contains(&cell) { "SLOWER" } else { "" })
                .with(
                    "best_over_tuned",
                    geometric_mean(&choices.best_over_tuned(cell)),
                )
                .with(
                    "tuned_runs",
                    learned.get(&cell).cloned().unwrap_or_default(),
                )
                .with("best_fixed", best_name)
                .with("best_us", best_ns / 1e3),
        );
    }

    report
        .findings
        .extend(findings(name, &cells, &choices, &learned, &slower, target));
    report.notes.push(format!(
        "{}; {} rounds; {} cells suspected at first, {} confirmed",
        place.describe(),
        effort.rounds,
        suspects.len(),
        slower.len()
    ));
    Ok(())
}

/// The figures over all cells, each with its interval over rounds.
fn findings(
    name: &str,
    cells: &[Cell],
    choices: &Choices,
    learned: &BTreeMap<Cell, String>,
    slower: &[Cell],
    target: Target,
) -> Vec<Finding> {
    let over = |cells: &[Cell], of: &dyn Fn(Cell) -> Vec<f64>| {
        let columns: Vec<Vec<f64>> = cells.iter().map(|cell| of(*cell)).collect();
        let n_rounds = columns.iter().map(Vec::len).min().unwrap_or(0);
        let rounds: Vec<Vec<f64>> = (0..n_rounds)
            .map(|round| columns.iter().map(|c| c[round]).collect())
            .collect();
        geometric_mean_over_rounds(&rounds)
    };
    let default_over =
        |way: usize| move |cell: Cell| ratios(choices.of(DEFAULT_WAY, cell), choices.of(way, cell));
    let n = cells.len();
    let count = slower.len() as f64;
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
            Target::AtLeast(0.95),
        ),
        finding(
            format!("default over tuned, geometric mean of {n} cells"),
            over(cells, &default_over(TUNED_WAY)),
            "x",
            target,
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
        Interval {
            low: count,
            value: count,
            high: count,
        },
        "",
        Target::AtMost(0.0),
    ));
    findings
}

/// Measures suspected cells once more, and keeps those that are slower again.
fn measured_again(
    bench: &Bench,
    place: &Place,
    effort: &Effort,
    db: &std::path::Path,
    suspects: &[Cell],
) -> anyhow::Result<Vec<Cell>> {
    if suspects.is_empty() {
        return Ok(Vec::new());
    }
    let mut ways = ways(place, db, suspects);
    ways.truncate(CONTROL_WAY + 1);
    let times = rounds(bench, place, effort, &ways, 2)?;
    let choices = Choices {
        ways: &ways,
        times: &times,
    };
    Ok(suspects
        .iter()
        .copied()
        .filter(|cell| choices.is_slower(*cell))
        .collect())
}

/// What the database says it runs in each measured cell; empty where it cannot be asked.
fn learned(db: &std::path::Path, place: &Place) -> BTreeMap<Cell, String> {
    let status = || -> Option<Value> {
        let own = std::env::current_exe().ok()?;
        let output = std::process::Command::new(own)
            .args(["status", "--json", "--db"])
            .arg(db)
            .output()
            .ok()?;
        serde_json::from_slice(&output.stdout).ok()
    };
    let status = status().unwrap_or(Value::Null);
    let holds = |range: &Value, value: u64| {
        range[0].as_u64().is_some_and(|lo| lo <= value)
            && range[1].as_u64().is_none_or(|hi| value < hi)
    };
    let ppn = place.n_ranks / place.nodes;
    let mut learned = BTreeMap::new();
    for cell in status["cells"].as_array().into_iter().flatten() {
        let Some(collective) = cell["collective"].as_str().and_then(Collective::from_name) else {
            continue;
        };
        if !holds(&cell["nodes"], place.nodes as u64) || !holds(&cell["ppn"], ppn as u64) {
            continue;
        }
        for size in SIZES
            .into_iter()
            .filter(|size| holds(&cell["bytes"], *size))
        {
            learned.insert(
                (collective, size),
                cell["best"].as_str().unwrap_or("").to_owned(),
            );
        }
    }
    learned
}
