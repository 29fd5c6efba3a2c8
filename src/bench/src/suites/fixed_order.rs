//! What one order of additions costs: tuned with `reproducible = "fixed"` beside tuned in any order and the bare library.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use colltune_core::collective::Collective;
use colltune_core::request::Mode;
use colltune_core::variant::{DEFAULT, Size};
use colltune_statistics::{geometric_mean_over_rounds, ratios};

use super::jobs::{Cell, Tuner};
use super::place::Place;
use super::report::{Finding, Report, Row, Target};
use super::ways::{Effort, Way, rounds};
use super::{Bench, database};

const MEASURED: [Collective; 4] = [
    Collective::Allreduce,
    Collective::Reduce,
    Collective::ReduceScatterBlock,
    Collective::Scan,
];
const SIZES: [u64; 6] = [8, 512, 4 << 10, 32 << 10, 256 << 10, 1 << 20];
const SIZES_QUICK: [u64; 2] = [8, 256 << 10];

/// Places in the list of ways.
const BARE: usize = 0;
const ANY_ORDER: usize = 1;
const FIXED: usize = 2;
const UNLEARNED: usize = 3;

pub fn run(bench: &Bench) -> anyhow::Result<Report> {
    let mut report = Report::comparing(
        "tuned in any order, us per call",
        "tuned in the fixed order, us per call",
    );
    report.notes.push(
        "tuned: exploit after 2 batches of 10 explore runs each, of one database without and one with reproducible = \
         \"fixed\"; unlearned: the fixed order before any training; time of a call: the slowest rank's, a barrier before \
         each call"
            .to_owned(),
    );
    match Place::cluster() {
        Ok(place) => measure(bench, &place, &mut report)?,
        Err(error) => report.skipped.push(format!("failed to {error:#}")),
    }
    Ok(report)
}

fn measure(bench: &Bench, place: &Place, report: &mut Report) -> anyhow::Result<()> {
    let sizes: &[u64] = if bench.quick { &SIZES_QUICK } else { &SIZES };
    let cells = MEASURED
        .iter()
        .flat_map(|c| sizes.iter().map(move |size| (*c, *size)));
    let cells: Vec<Cell> = cells.collect();
    let any = database::empty(bench, "any-order")?;
    bench.progress("training: calibrating");
    database::calibrate(place, &any)?;
    let fixed = with_fixed_order(bench, &any, "fixed-order")?;
    let trained = |number: u64, calibrated: &Path, name: &str| -> anyhow::Result<PathBuf> {
        let blocks = bench.pick(60, 30);
        let batches =
            database::train_two_batches(bench, place, calibrated, number, &cells, blocks)?;
        database::copy(bench, &batches.two, name)
    };
    let any = trained(0, &any, "any-order-tuned")?;
    let tuned = trained(1, &fixed, "fixed-order-tuned")?;
    let way = |tuner| Way {
        tuner,
        cells: cells.clone(),
        names: MEASURED.map(|one| (one, DEFAULT.to_owned())).into(),
    };
    let ways = [
        way(Tuner::Bare),
        way(Tuner::shim(&any, Mode::Exploit, 7)),
        way(Tuner::shim(&tuned, Mode::Exploit, 7)),
        way(Tuner::shim(&fixed, Mode::Exploit, 7)),
    ];
    let effort = Effort {
        training: 0,
        rounds: bench.pick(12, 4),
        repetitions: bench.pick(6, 4),
        warmup: 5,
    };
    let times = rounds(bench, place, &effort, &ways, 3, 0..effort.rounds as u64)?;
    let of = |way: usize, cell: Cell| &times[&(way, cell)][..];
    let best = chosen(&tuned, place, &cells)?;
    for &cell in &cells {
        let micro = |way| of(way, cell).iter().map(|ns| ns / 1e3).collect::<Vec<_>>();
        let median = |way| colltune_statistics::median(&micro(way));
        let case = format!("{} {}", cell.0, Size(cell.1));
        report.rows.push(
            Row::of_rounds(case, &micro(ANY_ORDER), &micro(FIXED))
                .with("bare_us", median(BARE))
                .with("unlearned_us", median(UNLEARNED))
                .with("fixed_runs", best.get(&cell).cloned().unwrap_or_default()),
        );
    }
    let over = |a: usize, b: usize, cells: &[Cell]| {
        let columns: Vec<_> = cells
            .iter()
            .map(|&cell| ratios(of(a, cell), of(b, cell)))
            .collect();
        let round = |round: usize| {
            columns
                .iter()
                .map(|column| column[round])
                .collect::<Vec<_>>()
        };
        geometric_mean_over_rounds(&(0..effort.rounds).map(round).collect::<Vec<_>>())
    };
    for collective in MEASURED {
        let mine: Vec<Cell> = cells
            .iter()
            .copied()
            .filter(|cell| cell.0 == collective)
            .collect();
        report.findings.push(Finding {
            what: format!("{collective}: speed of the fixed order beside any order"),
            found: over(ANY_ORDER, FIXED, &mine),
            unit: "x",
            target: Target::AtLeast(0.9),
        });
        report.findings.push(Finding {
            what: format!("{collective}: speed of the fixed order beside the bare library"),
            found: over(BARE, FIXED, &mine),
            unit: "x",
            target: Target::None,
        });
    }
    Ok(())
}

/// A copy of a database for jobs that keep the order.
fn with_fixed_order(bench: &Bench, db: &Path, name: &str) -> anyhow::Result<PathBuf> {
    let fixed = database::copy(bench, db, name)?;
    let settings = fixed.join("colltune.toml");
    let text = std::fs::read_to_string(&settings).context("read the settings")?;
    std::fs::write(&settings, text + "reproducible = \"fixed\"\n").context("write the settings")?;
    Ok(fixed)
}

/// What a database chooses in each cell.
fn chosen(db: &Path, place: &Place, cells: &[Cell]) -> anyhow::Result<BTreeMap<Cell, String>> {
    let status = database::status(db)?;
    let best = |cell: &Cell| {
        let found = status
            .iter()
            .find(|one| database::holds(one, place, *cell))?;
        Some((*cell, found["best"].as_str()?.to_owned()))
    };
    Ok(cells.iter().filter_map(best).collect())
}
