//! What the shim adds to the start of a job.

use std::path::Path;

use colltune_core::library::Abi;
use colltune_core::request::Mode;
use colltune_statistics::{median, median_difference};

use super::jobs::{self, Tuner};
use super::place::Place;
use super::report::{Finding, Report, Row, Target};
use super::{Bench, database};

pub fn run(bench: &Bench) -> anyhow::Result<Report> {
    let mut report = Report::comparing("with `colltune run` and the shim, ms", "plain mpirun, ms");
    report.notes.push("whole time from mpirun's start to its end of a program that calls MPI_Init and MPI_Finalize; \
                       init: MPI_Init alone on the slowest rank".to_owned());
    for abi in Abi::COMMON {
        match Place::node(abi, 2) {
            Ok(place) => {
                let db = database::empty(bench, &format!("startup-{}", place.abi.name()))?;
                measure(bench, &place, 2, (&db, Mode::Explore), &mut report)?;
                measure(bench, &place, 32, (&db, Mode::Explore), &mut report)?;
                learn(bench, &place, &db)?;
                measure(bench, &place, 2, (&db, Mode::Exploit), &mut report)?;
            }
            Err(error) => report
                .skipped
                .push(format!("{}: failed to {error:#}", abi.name())),
        }
    }
    Ok(report)
}

/// Something to read for jobs that exploit: what a training makes of one job.
fn learn(bench: &Bench, place: &Place, db: &Path) -> anyhow::Result<()> {
    let mix = [
        "mix", "--sizes", "8,4KiB", "--gap-us", "10", "--calls", "2000",
    ]
    .map(str::to_owned);
    jobs::run(bench, place, 2, &Tuner::shim(db, Mode::Explore, 1), &mix)?;
    database::train(bench, db).map(drop)
}

fn measure(
    bench: &Bench,
    place: &Place,
    n_ranks: usize,
    (db, mode): (&Path, Mode),
    report: &mut Report,
) -> anyhow::Result<()> {
    let name = format!("{}, {n_ranks} ranks, {}", place.abi.name(), mode.name());
    let rounds = if n_ranks > 2 {
        bench.pick(12, 4)
    } else {
        bench.pick(40, 10)
    };
    let ways = [Tuner::shim(db, mode, 1), Tuner::Bare];
    let (mut walls, mut inits) = ([Vec::new(), Vec::new()], [Vec::new(), Vec::new()]);
    for round in 0..rounds {
        bench.progress(&format!("startup, {name}: round {} of {rounds}", round + 1));
        for way in [round % 2, 1 - round % 2] {
            let done = jobs::run(bench, place, n_ranks, &ways[way], &["startup".to_owned()])?;
            walls[way].push(done.wall.as_secs_f64() * 1e3);
            inits[way].push(done.result["init_ns"].as_f64().unwrap_or(f64::NAN) / 1e6);
        }
    }
    let found = median_difference(&walls[0], &walls[1]);
    let what = format!("{name}: added to the job's whole time");
    report.findings.push(Finding {
        what,
        found,
        unit: " ms",
        target: Target::None,
    });
    let row = Row::of_rounds(name, &walls[0], &walls[1]);
    report.rows.push(
        row.with("init_a", median(&inits[0]))
            .with("init_b", median(&inits[1])),
    );
    Ok(())
}
