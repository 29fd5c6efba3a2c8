//! What recording telemetry costs the mini-app: runs with and without it on two ranks, in turns.
//!
//! The time is the program's own from its first step to its end. So opening the files, writing them every 64 steps
//! and moving them to their places at the end count, and starting MPI does not dilute them.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::Context;
use colltune_core::library::Abi;
use colltune_statistics::median_ratio;
use serde_json::Value;

use super::Bench;
use super::jobs::{self, Tuner};
use super::place::Place;
use super::report::{Finding, Report, Row, Target};
use colltune_launch::shim;

/// A deck, with the steps of a full run and of `--quick`.
struct Problem {
    name: &'static str,
    arguments: &'static str,
    steps: [usize; 2],
}

const PROBLEMS: [Problem; 2] = [
    Problem {
        name: "blast wave",
        arguments: "--physics euler --nx 8 --ny 8 --nz 8 --npx 2 --npy 2 --npz 2 --num_refine 2 --refine_freq 10 \
                    --refine_buffer 0 --sedov_centre .3 .4 .2 --checksum_freq 4",
        steps: [240, 60],
    },
    Problem {
        name: "stencil",
        arguments: "--nx 16 --ny 16 --nz 16 --num_vars 8 --npx 2 --npy 2 --npz 2 --num_refine 1 --stages_per_ts 4 \
                    --refine_freq 8 --object 2 0 .2 .3 .4 .05 .04 .02 .15 .15 .15 0 0 0",
        steps: [160, 40],
    },
];

/// What is recorded: its name, the options, and how many times as long the run may take.
type Recording = (&'static str, &'static [&'static str], f64);

const RECORDINGS: [Recording; 2] = [
    ("windows", &[], 1.01),
    ("windows and rounds", &["--telemetry_rounds"], 1.03),
];

pub fn run(bench: &Bench) -> anyhow::Result<Report> {
    let mut report = Report::comparing("with telemetry, s", "without, s");
    for abi in Abi::COMMON {
        match Place::node(abi, 2) {
            Ok(place) => {
                report.notes.push(place.describe());
                for problem in &PROBLEMS {
                    measure(bench, &place, problem, &mut report)?;
                }
            }
            Err(error) => report
                .skipped
                .push(format!("{}: failed to {error:#}", abi.name())),
        }
    }
    Ok(report)
}

fn measure(
    bench: &Bench,
    place: &Place,
    problem: &Problem,
    report: &mut Report,
) -> anyhow::Result<()> {
    let app = shim::file(place.abi)?.with_file_name("colltune-amr");
    let [full, quick] = problem.steps;
    let steps = bench.pick(full, quick);
    let deck = format!("{} --num_tsteps {steps}", problem.arguments);
    let rounds = bench.pick(20, 5);
    let folder = bench.out.join(format!(".telemetry.{}", std::process::id()));
    let (abi, name) = (place.abi.name(), problem.name);
    let mut seconds: Vec<Vec<f64>> = vec![Vec::new(); 1 + RECORDINGS.len()];
    let mut bytes = [0; RECORDINGS.len()];
    for round in 0..rounds {
        bench.progress(&format!(
            "telemetry, {abi}, {name}: round {} of {rounds}",
            round + 1
        ));
        // Each way is as often first, second and last.
        for turn in 0..seconds.len() {
            let way = (round + turn) % seconds.len();
            let mut more: Vec<OsString> = Vec::new();
            let recording = way.checked_sub(1);
            if let Some(nth) = recording {
                more.extend(["--telemetry".into(), folder.clone().into_os_string()]);
                more.extend(RECORDINGS[nth].1.iter().map(OsString::from));
            }
            let time = time_of(bench, place, &app, &deck, more)?;
            seconds[way].push(time);
            if let Some(nth) = recording {
                bytes[nth] = size_of(&folder)?;
                std::fs::remove_dir_all(&folder)
                    .with_context(|| format!("remove {}", folder.display()))?;
            }
        }
    }
    let (without, with) = seconds.split_first().expect("runs without telemetry");
    for (((what, _, limit), bytes), with) in RECORDINGS.iter().zip(bytes).zip(with) {
        report.findings.push(Finding {
            what: format!("{abi}, {name}: time with {what} over time without"),
            found: median_ratio(with, without),
            unit: "",
            target: Target::AtMost(*limit),
        });
        let row = Row::of_rounds(format!("{abi}, {name}, {what}"), with, without);
        let row = row.with("files_KB", bytes as f64 / 1e3);
        report.rows.push(row.with("steps", steps as u64));
    }
    Ok(())
}

/// The program's own time of one run, in seconds.
fn time_of(
    bench: &Bench,
    place: &Place,
    app: &Path,
    deck: &str,
    more: Vec<OsString>,
) -> anyhow::Result<f64> {
    let file: PathBuf = bench.out.join(format!(".amr.{}.json", std::process::id()));
    let mut program = vec![app.as_os_str().to_owned()];
    program.extend(deck.split_whitespace().map(OsString::from));
    program.extend(more);
    program.extend([OsString::from("--json"), file.clone().into_os_string()]);
    jobs::run_program(bench, place, 2, &Tuner::Bare, &program)?;
    let text =
        std::fs::read_to_string(&file).with_context(|| format!("read {}", file.display()))?;
    let _ = std::fs::remove_file(&file);
    let summary: Value = serde_json::from_str(&text).context("read what colltune-amr wrote")?;
    let time = summary.pointer("/time_s/total").and_then(Value::as_f64);
    time.context("read /time_s/total in what colltune-amr wrote")
}

fn size_of(folder: &Path) -> anyhow::Result<u64> {
    let read = || {
        let mut bytes = 0;
        for entry in std::fs::read_dir(folder)? {
            bytes += entry?.metadata()?.len();
        }
        Ok(bytes)
    };
    read().map_err(|error: std::io::Error| {
        anyhow::Error::new(error).context(format!("read {}", folder.display()))
    })
}
