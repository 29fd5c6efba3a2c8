//! The cost of one call above the bare library, on MPI_COMM_SELF.

use std::collections::BTreeMap;
use std::path::Path;

use colltune_core::collective::Collective;
use colltune_core::library::Abi;
use colltune_core::record;
use colltune_core::request::Mode;
use colltune_statistics::{self as statistics, Interval};

use super::jobs::{self, Cell, Tuner};
use super::place::Place;
use super::report::{Finding, Report, Row, Target};
use super::{Bench, database};

const CELLS: [Cell; 2] = [(Collective::Allreduce, 8), (Collective::Bcast, 8)];
pub const CALLS_PER_BLOCK: usize = 450;
/// One more block of each cell warms up; all calls fit into the 10,000 records of a run.
pub const BLOCKS: usize = 9;

pub fn run(bench: &Bench) -> anyhow::Result<Report> {
    let mut report = comparison();
    report.notes.push("passed: mode off; known: mode exploit; drawn: every call drawn, no rank records; recorded: every \
                       call drawn and recorded".to_owned());
    for abi in Abi::COMMON {
        match Place::node(abi, 1) {
            Ok(place) => measure(bench, &place, &mut report)?,
            Err(error) => report
                .skipped
                .push(format!("{}: failed to {error:#}", abi.name())),
        }
    }
    Ok(report)
}

/// An empty report of costs per call, with how they are measured.
pub fn comparison() -> Report {
    let mut report = Report::comparing("with the shim, ns per call", "without, ns per call");
    report.notes.push(format!(
        "medians over jobs of the median of {BLOCKS} blocks of {CALLS_PER_BLOCK} calls on MPI_COMM_SELF; jobs alternate; \
         intervals are 95 % bootstrap over jobs"
    ));
    report
}

/// A way to run, and what a call of it may cost.
pub struct Way {
    pub name: &'static str,
    tuner: Tuner,
    pub target: Target,
}

/// The ways to run with the shim.
pub fn ways(db: &Path) -> Vec<Way> {
    let every_call = |ranks: &str| {
        let settings = vec![
            ("COLLTUNE_SAMPLES_PER_CELL", "1000000".to_owned()),
            ("COLLTUNE_EXPLORE_BUDGET", "1".to_owned()),
            ("COLLTUNE_RECORDING_RANKS", ranks.to_owned()),
        ];
        Tuner::Shim {
            db: Some(db.to_owned()),
            mode: Mode::Explore,
            seed: 1,
            settings,
        }
    };
    let way = |name, tuner, target| Way {
        name,
        tuner,
        target,
    };
    vec![
        way("passed", Tuner::shim(db, Mode::Off, 1), Target::AtMost(5.0)),
        way("known", Tuner::shim(db, Mode::Exploit, 1), Target::None),
        way("drawn", every_call("0"), Target::AtMost(30.0)),
        way("recorded", every_call("1"), Target::AtMost(60.0)),
    ]
}

/// What a way costs in a cell, in nanoseconds a call: one value per round, with it and bare.
pub struct Cost<'a> {
    pub way: &'a Way,
    pub cell: Cell,
    with: Vec<f64>,
    bare: Vec<f64>,
}

impl Cost<'_> {
    pub fn difference(&self) -> Interval {
        statistics::median_difference(&self.with, &self.bare)
    }

    pub fn row(&self, case: String) -> Row {
        Row::of_rounds(case, &self.with, &self.bare).with("difference_ns", self.difference().value)
    }
}

/// Runs jobs bare and in each of the ways, one after the other, each round beginning with another. `job`
/// runs one and gives the median time of a call in each cell.
pub fn costs<'a>(
    ways: &'a [Way],
    rounds: usize,
    job: impl Fn(usize, &Tuner) -> anyhow::Result<BTreeMap<Cell, f64>>,
) -> anyhow::Result<Vec<Cost<'a>>> {
    let tuners: Vec<&Tuner> = std::iter::once(&Tuner::Bare)
        .chain(ways.iter().map(|way| &way.tuner))
        .collect();
    let mut times: BTreeMap<(usize, Cell), Vec<f64>> = BTreeMap::new();
    for round in 0..rounds {
        for place_in_round in 0..tuners.len() {
            let which = (place_in_round + round) % tuners.len();
            for (cell, time) in job(round, tuners[which])? {
                times.entry((which, cell)).or_default().push(time);
            }
        }
    }
    let cost = |((which, cell), with): (&(usize, Cell), &Vec<f64>)| {
        Some(Cost {
            way: &ways[which.checked_sub(1)?],
            cell: *cell,
            with: with.clone(),
            bare: times[&(0, *cell)].clone(),
        })
    };
    Ok(times.iter().filter_map(cost).collect())
}

fn measure(bench: &Bench, place: &Place, report: &mut Report) -> anyhow::Result<()> {
    let name = place.abi.name();
    let db = database::empty(bench, &format!("overhead-{name}"))?;
    let rounds = bench.pick(40, 8);
    let mut arguments = vec!["overhead".to_owned()];
    arguments.extend(jobs::cells_argument(&CELLS));
    arguments.extend([
        "--blocks".into(),
        BLOCKS.to_string(),
        "--calls".into(),
        CALLS_PER_BLOCK.to_string(),
    ]);
    let ways = ways(&db);
    let costs = costs(&ways, rounds, |round, tuner| {
        bench.progress(&format!(
            "overhead, {name}: round {} of {rounds}",
            round + 1
        ));
        jobs::medians(&jobs::run(bench, place, 1, tuner, &arguments)?.result)
    })?;
    for cost in &costs {
        let title = format!("{name} {} 8 B, {}", cost.cell.0, cost.way.name);
        report.rows.push(cost.row(title.clone()));
        report.findings.push(Finding {
            what: title,
            found: cost.difference(),
            unit: " ns",
            target: cost.way.target,
        });
    }
    let calls = CELLS.len() * (BLOCKS + 1) * CALLS_PER_BLOCK;
    report.notes.push(format!(
        "{name}: a recorded job of {calls} calls left {} records",
        records_per_trace(&db)
    ));
    Ok(())
}

/// How many records the traces hold, in words: a recorded call that left no record was none.
pub fn records_per_trace(db: &Path) -> String {
    let files = std::fs::read_dir(db.join("incoming"))
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path());
    let traces = files.filter(|path| {
        path.extension()
            .is_some_and(|extension| extension == "trace")
    });
    let count = |path| {
        std::fs::read(path)
            .ok()
            .and_then(|bytes| record::read(&bytes).ok())
            .map(|(_, records)| records.len())
    };
    let counts: Vec<usize> = traces.filter_map(count).collect();
    match (counts.iter().min(), counts.iter().max()) {
        (Some(least), Some(most)) if least == most => most.to_string(),
        (Some(least), Some(most)) => format!("{least} to {most}"),
        _ => "no".to_owned(),
    }
}
