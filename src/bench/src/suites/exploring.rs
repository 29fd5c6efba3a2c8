//! What exploring costs a job: explore runs against the bare library, generation by generation.

use std::ffi::OsString;
use std::path::Path;

use colltune_core::library::Abi;
use colltune_core::request::Mode;
use colltune_statistics as statistics;

use super::jobs::{self, Tuner};
use super::place::Place;
use super::report::{Finding, Report, Row, Target};
use super::{Bench, database};
use colltune_launch::shim;

const GENERATIONS: u64 = 3;

/// A job whose time is compared.
enum Job {
    /// The random workload, with gaps of computing up to this long.
    Mix { gap_us: u64, calls: usize },
    /// The conjugate-gradient example, where it is built; its whole time counts.
    Poisson(OsString),
}

pub fn run(bench: &Bench) -> anyhow::Result<Report> {
    let mut report = Report::comparing("explore, ms", "bare library, ms");
    report.notes.push("one batch of ten explore runs per generation, each beside a bare run of the same seed, then a \
                       training; generations 1 and 2 also gain from what was learned, so a ratio below 1 is a gain"
        .to_owned());
    report.notes.push("mix: all five collectives at 8 B to 32 KiB in random order; the number is the longest gap of \
                       computing between two calls"
        .to_owned());
    match Place::node(Abi::OpenMpi, 8) {
        Ok(place) => {
            report.notes.push(place.describe());
            for (name, job) in jobs_of(bench, &place) {
                measure(bench, &place, &name, &job, &mut report)?;
            }
        }
        Err(error) => report.skipped.push(format!("failed to {error:#}")),
    }
    Ok(report)
}

fn jobs_of(bench: &Bench, place: &Place) -> Vec<(String, Job)> {
    let mix = |gap_us, calls| (format!("mix {gap_us} us"), Job::Mix { gap_us, calls });
    let mut jobs = vec![mix(200, bench.pick(6000, 1200))];
    if bench.quick {
        return jobs;
    }
    jobs.push(mix(10, 12_000));
    let poisson = shim::file(place.abi)
        .ok()
        .map(|shim| shim.with_file_name("poisson-cg"));
    if let Some(program) = poisson.filter(|program| program.is_file()) {
        jobs.push((
            "poisson-cg".to_owned(),
            Job::Poisson(program.into_os_string()),
        ));
    }
    jobs
}

fn measure(
    bench: &Bench,
    place: &Place,
    name: &str,
    job: &Job,
    report: &mut Report,
) -> anyhow::Result<()> {
    let db = database::empty(bench, "exploring")?;
    for generation in 0..GENERATIONS {
        let (mut exploring, mut bare) = (Vec::new(), Vec::new());
        for run in 0..database::RUNS {
            bench.progress(&format!(
                "exploring, {name}, generation {generation}: run {} of {}",
                run + 1,
                database::RUNS
            ));
            let seed = 1 + generation * database::RUNS + run;
            let one = |tuner: Tuner, times: &mut Vec<f64>| -> anyhow::Result<()> {
                times.push(time_ms(bench, place, job, &tuner, seed)?);
                Ok(())
            };
            if run % 2 == 0 {
                one(Tuner::shim(&db, Mode::Explore, seed), &mut exploring)?;
                one(Tuner::Bare, &mut bare)?;
            } else {
                one(Tuner::Bare, &mut bare)?;
                one(Tuner::shim(&db, Mode::Explore, seed), &mut exploring)?;
            }
        }
        let what = format!("{name}, generation {generation}");
        report
            .rows
            .push(Row::of_rounds(what.clone(), &exploring, &bare));
        let found = statistics::median_ratio(&exploring, &bare);
        report.findings.push(Finding {
            what,
            found,
            unit: "x",
            target: Target::AtMost(1.02),
        });
        if generation + 1 < GENERATIONS {
            train(bench, &db)?;
        }
    }
    Ok(())
}

fn train(bench: &Bench, db: &Path) -> anyhow::Result<()> {
    bench.progress("exploring: learning");
    database::train(bench, db).map(drop)
}

fn time_ms(
    bench: &Bench,
    place: &Place,
    job: &Job,
    tuner: &Tuner,
    seed: u64,
) -> anyhow::Result<f64> {
    match job {
        Job::Mix { gap_us, calls } => {
            let numbers = [
                ("--calls", *calls as u64),
                ("--gap-us", *gap_us),
                ("--seed", seed),
            ];
            let mut arguments = vec![
                "mix".to_owned(),
                "--sizes".to_owned(),
                "8,64,512,4KiB,32KiB".to_owned(),
            ];
            arguments.extend(
                numbers
                    .iter()
                    .flat_map(|(name, value)| [(*name).to_owned(), value.to_string()]),
            );
            let done = jobs::run(bench, place, place.n_ranks, tuner, &arguments)?;
            Ok(done.result["time_ns"].as_f64().unwrap_or(f64::NAN) / 1e6)
        }
        Job::Poisson(program) => {
            let wall = jobs::run_program(
                bench,
                place,
                place.n_ranks,
                tuner,
                std::slice::from_ref(program),
            )?;
            Ok(wall.as_secs_f64() * 1e3)
        }
    }
}
