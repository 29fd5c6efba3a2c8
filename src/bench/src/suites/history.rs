//! How long a training takes on a long history, and how much memory.
//!
//! The history is written as evidence, by the code by which trainings write and thin it: 40 kinds of runs, of 8 users on
//! 5 layouts, with 600 rows each. Then jobs come one by one, each with a training.

use anyhow::Context;
use colltune_db::test_support::{LIBRARY, Run, write_history};
use colltune_db::{Database, partition};

use super::learning::{add_limited, timed_training};
use super::report::Report;
use super::{Bench, database};

const CELLS: u64 = 50;
const VARIANTS: u16 = 12;
const RECORDS_PER_RUN: u64 = 20_000;
const TRAININGS: u64 = 3;

pub fn run(bench: &Bench) -> anyhow::Result<Report> {
    let runs = bench.pick(100_000, 2_000) as u64;
    let folder = database::empty(bench, "history")?;
    let db = Database::open(&folder)?;
    bench.progress(&format!("history: writing the evidence of {runs} runs"));
    let rows = write_history(&db, runs, CELLS, VARIANTS, RECORDS_PER_RUN)?;
    let (mut seconds, mut memory) = (Vec::new(), Vec::new());
    for number in 0..TRAININGS {
        let job = Run {
            machine: "bench".to_owned(),
            recording_ranks: 2,
            ..Run::new(&format!("new-{number}"), runs + number)
        };
        job.write(&db.incoming())
            .context("write the traces of a new job")?;
        bench.progress(&format!("history: training {} of {TRAININGS}", number + 1));
        let training = timed_training(&folder)?;
        seconds.push(training.seconds);
        memory.push(training.peak_mib);
    }
    let mut report = Report::comparing("measured", "the most it may be");
    for (what, values, limit, unit) in [
        ("training, whole command", &seconds, 10.0, " s"),
        ("peak resident memory", &memory, 1024.0, " MiB"),
    ] {
        add_limited(&mut report, what, values, (limit, unit));
    }
    let files = partition::list(&db.evidence(LIBRARY))?;
    let bytes: u64 = files
        .iter()
        .map(|file| file.metadata().map_or(0, |metadata| metadata.len()))
        .sum();
    report.notes.push(format!(
        "{runs} runs of 40 kinds, {rows} rows of evidence in all, of which thinning leaves {} MiB in {} files; {TRAININGS} \
         new jobs of 2,000 records, each with a training; intervals are least and most of these",
        bytes >> 20,
        files.len()
    ));
    // A benchmark need not leave its database behind.
    let _ = std::fs::remove_dir_all(&folder);
    Ok(report)
}
