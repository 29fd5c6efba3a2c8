//! How long a training takes on a long history, and how much memory.
//!
//! The history is written as evidence, by the code by which trainings write and thin it: 40 kinds of runs, of 8 users on
//! 5 layouts, with 600 rows each. Then jobs come one by one, each with a training.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use colltune_db::test_support::{LIBRARY, Run, write_history};
use colltune_db::{Database, partition};
use colltune_statistics::{Interval, median, spread};

use super::report::{Finding, Report, Row, Target};
use super::{Bench, database};
use colltune_launch::own;

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

/// Adds what must be below a limit.
fn add_limited(
    report: &mut Report,
    what: &str,
    values: &[f64],
    (limit, unit): (f64, &'static str),
) {
    let ratio: Vec<f64> = values.iter().map(|value| value / limit).collect();
    let found = spread(values);
    report.rows.push(Row {
        case: format!("{what},{unit}"),
        a: median(values),
        b: limit,
        ratio: spread(&ratio),
        n: values.len(),
        more: Vec::new(),
    });
    report.findings.push(Finding {
        what: what.to_owned(),
        found: Interval {
            low: found.min,
            value: found.median,
            high: found.max,
        },
        unit,
        target: Target::AtMost(limit),
    });
}

struct Training {
    seconds: f64,
    peak_mib: f64,
}

/// Runs `colltune train` and watches its memory.
fn timed_training(db: &Path) -> anyhow::Result<Training> {
    let own = own::colltune()?;
    let mut command = Command::new(own);
    command
        .args(["train", "--db"])
        .arg(db)
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    let start = Instant::now();
    let mut child = command.spawn().context("start colltune train")?;
    let status_file = format!("/proc/{}/status", child.id());
    let mut peak_mib = 0.0f64;
    let status = loop {
        // The kernel keeps the high-water mark, so that only what comes in the last 10 ms can be missed.
        peak_mib = peak_mib.max(high_water_mib(&status_file).unwrap_or(0.0));
        if let Some(status) = child.try_wait().context("wait for colltune train")? {
            break status;
        }
        if start.elapsed() > Duration::from_secs(180) {
            let _ = child.kill();
            let _ = child.wait();
            bail!("train {}: not done after 180 s", db.display());
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    if !status.success() {
        bail!("train {}: {status}", db.display());
    }
    Ok(Training {
        seconds: start.elapsed().as_secs_f64(),
        peak_mib,
    })
}

fn high_water_mib(status_file: &str) -> Option<f64> {
    let text = std::fs::read_to_string(status_file).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<f64>().ok()? / 1024.0)
}
