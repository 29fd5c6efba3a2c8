//! The cost of one call above the bare library, on MPI_COMM_SELF.

use std::collections::BTreeMap;
use std::path::Path;

use colltune_core::collective::Collective;
use colltune_core::library::Abi;
use colltune_core::record;
use colltune_core::request::Mode;

use super::jobs::{self, Cell, Tuner};
use super::place::Place;
use super::report::{Finding, Report, Row, Target};
use super::{Bench, database, statistics};

const CELLS: [Cell; 2] = [(Collective::Allreduce, 8), (Collective::Bcast, 8)];
const CALLS_PER_BLOCK: usize = 450;
/// One more block of each cell warms up; all calls fit into the 10,000 records of a run.
const BLOCKS: usize = 9;

pub fn run(bench: &Bench) -> anyhow::Result<Report> {
    let mut report = Report::comparing("with the shim, ns per call", "without, ns per call");
    report.notes.push(format!(
        "medians over jobs of the median of {BLOCKS} blocks of {CALLS_PER_BLOCK} calls on MPI_COMM_SELF; jobs alternate; \
         intervals are 95 % bootstrap over jobs"
    ));
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

/// A way to run, and what it may cost.
struct Case {
    name: &'static str,
    tuner: Tuner,
    target: Target,
}

fn cases(db: &Path) -> [Case; 5] {
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
    [
        Case {
            name: "bare",
            tuner: Tuner::Bare,
            target: Target::None,
        },
        Case {
            name: "passed",
            tuner: Tuner::shim(db, Mode::Off, 1),
            target: Target::AtMost(5.0),
        },
        Case {
            name: "known",
            tuner: Tuner::shim(db, Mode::Exploit, 1),
            target: Target::None,
        },
        Case {
            name: "drawn",
            tuner: every_call("0"),
            target: Target::AtMost(30.0),
        },
        Case {
            name: "recorded",
            tuner: every_call("1"),
            target: Target::AtMost(60.0),
        },
    ]
}

fn measure(bench: &Bench, place: &Place, report: &mut Report) -> anyhow::Result<()> {
    let name = place.abi.name();
    let db = database::empty(bench, &format!("overhead-{name}"))?;
    let cases = cases(&db);
    let rounds = bench.pick(40, 8);
    let mut arguments = vec!["overhead".to_owned()];
    arguments.extend(jobs::cells_argument(&CELLS));
    arguments.extend([
        "--blocks".into(),
        BLOCKS.to_string(),
        "--calls".into(),
        CALLS_PER_BLOCK.to_string(),
    ]);

    let mut times: BTreeMap<(usize, Cell), Vec<f64>> = BTreeMap::new();
    for round in 0..rounds {
        bench.progress(&format!(
            "overhead, {name}: round {} of {rounds}",
            round + 1
        ));
        for place_in_round in 0..cases.len() {
            let case = (place_in_round + round) % cases.len();
            let done = jobs::run(bench, place, 1, &cases[case].tuner, &arguments)?;
            for (cell, time) in jobs::medians(&done.result)? {
                times.entry((case, cell)).or_default().push(time);
            }
        }
    }

    for (
        case,
        Case {
            name: way, target, ..
        },
    ) in cases.iter().enumerate().skip(1)
    {
        for cell in CELLS {
            let (with, without) = (&times[&(case, cell)], &times[&(0, cell)]);
            let difference = statistics::median_difference(with, without);
            let title = format!("{name} {} 8 B, {way}", cell.0);
            report.rows.push(
                Row::of_rounds(title.clone(), with, without)
                    .with("difference_ns", difference.value),
            );
            report.findings.push(Finding {
                what: title,
                found: difference,
                unit: " ns",
                target: *target,
            });
        }
    }
    let calls = CELLS.len() * (BLOCKS + 1) * CALLS_PER_BLOCK;
    report.notes.push(format!(
        "{name}: a recorded job of {calls} calls left {} records",
        records_per_trace(&db)
    ));
    Ok(())
}

/// How many records the traces hold, in words: a recorded call that left no record was none.
fn records_per_trace(db: &Path) -> String {
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
