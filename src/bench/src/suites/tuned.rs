//! Default, tuned and best native variant: what one batch of ten runs achieves, and two.
//!
//! Tuned is `exploit` after training on other seeds and call orders. The best fixed choice of a
//! cell is found on one half of the rounds and compared on the other, both ways round: the best of
//! twenty noisy values would otherwise be partly luck. The library's own settings force the fixed choices, without
//! the shim.

mod findings;
mod picture;

use std::collections::BTreeMap;

use anyhow::Context as _;
use colltune_core::library::Abi;
use colltune_core::variant::Size;
use colltune_statistics::{geometric_mean, ratios, upper_bound};

use super::choices::Choices;
use super::database::Batches;
use super::jobs::Cell;
use super::place::Place;
use super::report::{Report, Row, Target};
use super::ways::{
    CONTROL_WAY, DEFAULT_WAY, Effort, MEASURED, ONE_BATCH_WAY, TUNED_WAY, Times, rounds, ways,
};
use super::{Bench, database};
use findings::{Targets, findings};
use picture::picture;

const SIZES: [u64; 6] = [8, 64, 512, 4 << 10, 32 << 10, 256 << 10];
const SIZES_QUICK: [u64; 3] = [8, 4 << 10, 32 << 10];

const ON_NODE: Targets = Targets {
    default_over_tuned: Target::AtLeast(1.4),
    best_over_tuned: Target::AtLeast(1.15),
};
const ON_CLUSTER: Targets = Targets {
    default_over_tuned: Target::AtLeast(1.4),
    best_over_tuned: Target::AtLeast(1.1),
};
const NONE: Targets = Targets {
    default_over_tuned: Target::None,
    best_over_tuned: Target::None,
};

pub fn run_on_node(bench: &Bench) -> anyhow::Result<Report> {
    let mut report = new_report();
    let effort = Effort {
        training: bench.pick(40, 30),
        rounds: rounds_of_each(bench, bench.pick(10, 4)),
        repetitions: bench.pick(6, 4),
        warmup: 5,
    };
    match Place::node(Abi::OpenMpi, 8) {
        Ok(place) => measure(bench, &place, &effort, &ON_NODE, &mut report)?,
        Err(error) => report.skipped.push(format!("openmpi: failed to {error:#}")),
    }
    match Place::node(Abi::Mpich, 2) {
        Ok(place) => measure(bench, &place, &effort, &NONE, &mut report)?,
        Err(error) => report.skipped.push(format!("mpich: failed to {error:#}")),
    }
    Ok(report)
}

pub fn run_on_cluster(bench: &Bench) -> anyhow::Result<Report> {
    let mut report = new_report();
    let effort = Effort {
        training: bench.pick(120, 30),
        rounds: rounds_of_each(bench, bench.pick(10, 4)),
        repetitions: bench.pick(4, 3),
        warmup: 2,
    };
    match Place::cluster() {
        Ok(place) => measure(bench, &place, &effort, &ON_CLUSTER, &mut report)?,
        Err(error) => report.skipped.push(format!("failed to {error:#}")),
    }
    Ok(report)
}

/// Of each training, an even number: choices are found on one half and compared on the other.
fn rounds_of_each(bench: &Bench, all: usize) -> usize {
    all.div_ceil(2 * bench.trainings()) * 2
}

fn new_report() -> Report {
    let mut report = Report::comparing(
        "default (bare library), us per call",
        "tuned (exploit), us per call",
    );
    report.notes = [
        "tuned: exploit after `colltune calibrate` and 2 batches of 10 explore runs of the same program with other seeds \
         and call orders; one_batch_over: the time after the first of them over it; time of a call: the slowest rank's, a \
         barrier before each call",
        "best over tuned: the best fixed choice (default and every native variant, run by the library's own settings \
         without the shim), found on one half of the rounds and compared on the other, both ways round",
        "slower: the one-sided upper 95 % bound of default over tuned is below 1, and again when measured anew",
        "lower_95: the one-sided lower 95 % bound of default over tuned, over trainings where there are several; \
         control_lower_95: that of the default over the same again, which is noise alone",
    ]
    .map(str::to_owned)
    .to_vec();
    report
}

fn measure(
    bench: &Bench,
    place: &Place,
    effort: &Effort,
    targets: &Targets,
    report: &mut Report,
) -> anyhow::Result<()> {
    let name = place.abi.name();
    let sizes: &[u64] = if bench.quick { &SIZES_QUICK } else { &SIZES };
    let cells: Vec<Cell> = MEASURED
        .iter()
        .flat_map(|c| sizes.iter().map(move |size| (*c, *size)))
        .collect();
    let calibrated = database::empty(bench, "tuned-calibrated")?;
    bench.progress("training: calibrating");
    database::calibrate(place, &calibrated)?;
    let trainings = bench.trainings();
    let mut times = Times::new();
    let train = |number: usize| {
        let number = number as u64;
        let effort = effort.training;
        database::train_two_batches(bench, place, &calibrated, number, &cells, effort)
    };
    let mut last = None;
    for number in 0..trainings {
        let batches = train(number)?;
        let ways = ways(place, &batches, &cells);
        let mine = number * effort.rounds..(number + 1) * effort.rounds;
        let mine = mine.start as u64..mine.end as u64;
        for (key, measured) in rounds(bench, place, effort, &ways, 1, mine)? {
            times.entry(key).or_default().extend(measured);
        }
        last = Some((batches, ways));
    }
    let (batches, ways) = last.context("train at least once")?;
    let choices = Choices {
        ways: &ways,
        times: &times,
        trainings,
    };
    let learned = learned(&batches.two, place);
    let suspects: Vec<Cell> = cells
        .iter()
        .copied()
        .filter(|cell| choices.is_slower(*cell))
        .collect();
    let slower = measured_again(bench, place, effort, &batches, &suspects)?;

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
                .with("lower_95", choices.at_least(TUNED_WAY, cell))
                .with(
                    "control",
                    geometric_mean(&ratios(default, choices.of(CONTROL_WAY, cell))),
                )
                .with("control_lower_95", choices.at_least(CONTROL_WAY, cell))
                .with(
                    "one_batch_over",
                    geometric_mean(&ratios(choices.of(ONE_BATCH_WAY, cell), tuned)),
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
        .extend(findings(name, &cells, &choices, &learned, &slower, targets));
    report
        .pictures
        .push((name, picture(&place.describe(), &cells, &choices)?));
    report.notes.push(format!(
        "{}; {} blocks of each cell in a training run; {trainings} trainings from nothing, {} rounds of each, and the \
         intervals are over trainings where there are several; {} cells suspected at first, {} confirmed",
        place.describe(),
        effort.training,
        effort.rounds,
        suspects.len(),
        slower.len()
    ));
    Ok(())
}

/// Measures suspected cells once more, and keeps those that are slower again.
fn measured_again(
    bench: &Bench,
    place: &Place,
    effort: &Effort,
    batches: &Batches,
    suspects: &[Cell],
) -> anyhow::Result<Vec<Cell>> {
    if suspects.is_empty() {
        return Ok(Vec::new());
    }
    let mut ways = ways(place, batches, suspects);
    ways.truncate(CONTROL_WAY + 1);
    let n = (effort.rounds * bench.trainings()) as u64;
    let times = rounds(bench, place, effort, &ways, 2, 0..n)?;
    let choices = Choices {
        ways: &ways,
        times: &times,
        trainings: 1,
    };
    Ok(suspects
        .iter()
        .copied()
        .filter(|cell| choices.is_slower(*cell))
        .collect())
}

/// What the database says it runs in each measured cell; empty where it cannot be asked.
fn learned(db: &std::path::Path, place: &Place) -> BTreeMap<Cell, String> {
    let mut learned = BTreeMap::new();
    for told in database::status(db).unwrap_or_default() {
        let cells = MEASURED
            .iter()
            .flat_map(|collective| SIZES.map(|size| (*collective, size)));
        for cell in cells.filter(|cell| database::holds(&told, place, *cell)) {
            learned.insert(cell, told["best"].as_str().unwrap_or("").to_owned());
        }
    }
    learned
}
