//! Short-lived communicators: ten thousand times split, one allreduce, free.

use colltune_core::library::Abi;
use colltune_core::request::Mode;
use colltune_statistics as statistics;

use super::jobs::{self, Tuner};
use super::place::Place;
use super::report::{Finding, Report, Row, Target};
use super::{Bench, database};

pub fn run(bench: &Bench) -> anyhow::Result<Report> {
    let mut report = Report::comparing("exploring in generation 0, ms", "bare library, ms");
    report.notes.push(
        "10,000 times MPI_Comm_split, one MPI_Allreduce of 8 B, MPI_Comm_free on 2 ranks"
            .to_owned(),
    );
    for abi in Abi::COMMON {
        match Place::node(abi, 2) {
            Ok(place) => measure(bench, &place, &mut report)?,
            Err(error) => report
                .skipped
                .push(format!("{}: failed to {error:#}", abi.name())),
        }
    }
    Ok(report)
}

fn measure(bench: &Bench, place: &Place, report: &mut Report) -> anyhow::Result<()> {
    let name = place.abi.name();
    let db = database::empty(bench, &format!("churn-{name}"))?;
    let rounds = bench.pick(40, 10);
    let ways = [Tuner::shim(&db, Mode::Explore, 1), Tuner::Bare];
    let mut times = [Vec::new(), Vec::new()];
    for round in 0..rounds {
        bench.progress(&format!("churn, {name}: round {} of {rounds}", round + 1));
        for way in [round % 2, 1 - round % 2] {
            let done = jobs::run(
                bench,
                place,
                place.n_ranks,
                &ways[way],
                &["churn".to_owned()],
            )?;
            times[way].push(done.result["time_ns"].as_f64().unwrap_or(f64::NAN) / 1e6);
        }
    }
    let [with, without] = times;
    let found = statistics::median_ratio(&with, &without);
    let what = format!("{name}, with over without");
    report.findings.push(Finding {
        what,
        found,
        unit: "",
        target: Target::AtMost(1.05),
    });
    report
        .rows
        .push(Row::of_rounds(name.to_owned(), &with, &without));
    report.notes.push(place.describe());
    Ok(())
}
