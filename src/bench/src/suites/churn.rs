//! Short-lived communicators: ten thousand times and more split, one allreduce or a few, free.

use colltune_core::collective::Collective;
use colltune_core::library::Abi;
use colltune_core::request::Mode;
use colltune_statistics as statistics;

use super::jobs::{self, Tuner};
use super::place::Place;
use super::report::{Finding, Report, Row, Target};
use super::{Bench, database};

/// What a job does, time after time.
struct Churn {
    mode: Mode,
    /// Allreduces on each communicator.
    calls: u32,
    /// The job takes half a second, about: 2 % of its first second are free.
    times: u32,
}

/// The second and the third have a set-up on each communicator, and a choice that needs memory shared with neighbours.
const CHURNS: [Churn; 3] = [
    Churn {
        mode: Mode::Explore,
        calls: 1,
        times: 10_000,
    },
    Churn {
        mode: Mode::Exploit,
        calls: 9,
        times: 40_000,
    },
    Churn {
        mode: Mode::Exploit,
        calls: 40,
        times: 20_000,
    },
];

pub fn run(bench: &Bench) -> anyhow::Result<Report> {
    let mut report = Report::comparing("with colltune, ms", "bare library, ms");
    report.notes.push(
        "10,000 times MPI_Comm_split, one MPI_Allreduce of 8 B, MPI_Comm_free on 2 ranks, exploring in generation 0; \
         40,000 and 20,000 times with 9 and 40 of them in exploit, where node:shm was learned"
            .to_owned(),
    );
    for abi in Abi::COMMON {
        match Place::node(abi, 2) {
            Ok(place) => {
                report.notes.push(place.describe());
                for churn in &CHURNS {
                    measure(bench, &place, churn, &mut report)?;
                }
            }
            Err(error) => report
                .skipped
                .push(format!("{}: failed to {error:#}", abi.name())),
        }
    }
    Ok(report)
}

fn measure(bench: &Bench, place: &Place, churn: &Churn, report: &mut Report) -> anyhow::Result<()> {
    let name = format!("{}, {} calls", place.abi.name(), churn.calls);
    let db = format!("churn-{}", place.abi.name());
    let db = match churn.mode {
        Mode::Exploit => database::learned(bench, place, &db, (Collective::Allreduce, "node:shm"))?,
        _ => database::empty(bench, &db)?,
    };
    let rounds = bench.pick(40, 10);
    let ways = [Tuner::shim(&db, churn.mode, 1), Tuner::Bare];
    let words = [
        "churn",
        "--times",
        &churn.times.to_string(),
        "--calls",
        &churn.calls.to_string(),
    ]
    .map(str::to_owned);
    let mut times = [Vec::new(), Vec::new()];
    for round in 0..rounds {
        bench.progress(&format!("churn, {name}: round {} of {rounds}", round + 1));
        for way in [round % 2, 1 - round % 2] {
            let done = jobs::run(bench, place, place.n_ranks, &ways[way], &words)?;
            times[way].push(done.result["time_ns"].as_f64().unwrap_or(f64::NAN) / 1e6);
        }
    }
    let [with, without] = times;
    report.findings.push(Finding {
        what: format!("{name}, with over without"),
        found: statistics::median_ratio(&with, &without),
        unit: "",
        target: Target::AtMost(1.05),
    });
    report.rows.push(Row::of_rounds(name, &with, &without));
    Ok(())
}
