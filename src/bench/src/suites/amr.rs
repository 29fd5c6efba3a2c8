//! The mini-app on two ranks: time, start-up, memory, the memory's bandwidth, and refinement.
//!
//! Where MINIAMR names a miniAMR 1.7 for the first MPI library found here, both run each problem in
//! alternated order with the same arguments, and their times are compared. A problem on which the two
//! meshes differ is an error.

use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::{Context, bail};
use colltune_core::library::Abi;
use colltune_statistics::{Interval, median_ratio, spread};
use serde_json::Value;

use super::Bench;
use super::jobs::{self, Tuner};
use super::place::Place;
use super::report::{Finding, Report, Row, Target};
use colltune_launch::shim;

struct Problem {
    name: &'static str,
    arguments: &'static str,
    /// Steps, and those of `--quick`.
    steps: [usize; 2],
    /// What miniAMR needs besides: room for its blocks where its default is too little.
    of_reference: &'static str,
    /// How many times as long as the mini-app miniAMR is to take.
    ratio_min: f64,
}

const OMPICOLLTUNE: Problem = Problem {
    name: "OMPICollTune",
    arguments: "--nx 32 --ny 16 --nz 16 --npx 2",
    steps: [120, 20],
    of_reference: "",
    ratio_min: 1.0,
};

const EXPANDING_SPHERE: Problem = Problem {
    name: "expanding sphere",
    arguments: "--num_refine 4 --init_y 2 --init_z 2 --npx 2 --comm_vars 2 --num_objects 1 \
                --object 2 0 -.01 -.01 -.01 0 0 0 0 0 0 .009 .009 .009",
    steps: [50, 20],
    of_reference: "--max_blocks 1500",
    ratio_min: 1.4,
};

/// A sphere's surface that moves: refined in every step, on small blocks, so that hardly anything else is done.
const REFINEMENT: &str = "--nx 2 --ny 2 --nz 2 --num_vars 1 --stages_per_ts 1 --checksum_freq 0 --refine_freq 1 \
    --npx 4 --npy 4 --npz 4 --num_refine 5 --num_objects 1 \
    --object 2 0 .45 .48 .5 .004 .002 .001 .36 .36 .36 0 0 0";
const REFINEMENT_STEPS: [usize; 2] = [2, 12];

/// A tenth of what miniAMR takes of the first problem at its default options.
const MEMORY_MAX_MB: f64 = 204.0;

pub fn run(bench: &Bench) -> anyhow::Result<Report> {
    let mut report = Report::comparing("miniAMR, s", "mini-app, s");
    let places = Abi::ALL.map(|abi| Place::node(abi, 2));
    let Some(place) = places.iter().find_map(|place| place.as_ref().ok()) else {
        let reasons = places.iter().filter_map(|place| place.as_ref().err());
        report
            .skipped
            .extend(reasons.map(|error| format!("failed to {error:#}")));
        return Ok(report);
    };
    let apps = Apps {
        bench,
        place,
        own: shim::file(place.abi)?.with_file_name("colltune-amr"),
        reference: std::env::var_os("MINIAMR").filter(|name| !name.is_empty()),
    };
    report.notes.push(place.describe());
    if apps.reference.is_none() {
        let reason = "MINIAMR names no miniAMR: nothing to compare with";
        report.skipped.push(reason.to_owned());
    }
    for problem in [OMPICOLLTUNE, EXPANDING_SPHERE] {
        apps.compare(&problem, &mut report)?;
        apps.bandwidth(&problem, &mut report)?;
    }
    apps.refinement(&mut report)?;
    Ok(report)
}

/// Both programs, and where they run.
struct Apps<'a> {
    bench: &'a Bench,
    place: &'a Place,
    own: PathBuf,
    reference: Option<OsString>,
}

/// What one run reported: seconds, and of the mini-app its whole summary.
struct Outcome {
    /// From the start of mpirun to its end.
    wall: f64,
    /// As the program counts it, without start-up.
    time: f64,
    blocks_per_step: f64,
    summary: Value,
}

impl Apps<'_> {
    fn run_own(&self, arguments: &str) -> anyhow::Result<Outcome> {
        let file = format!(".amr.{}.json", std::process::id());
        let file = self.bench.out.join(file);
        let mut program = vec![self.own.clone().into_os_string()];
        program.extend(words(arguments));
        program.extend([OsString::from("--json"), file.clone().into_os_string()]);
        let wall = jobs::run_program(self.bench, self.place, 2, &Tuner::Bare, &program)?;
        let text =
            std::fs::read_to_string(&file).with_context(|| format!("read {}", file.display()))?;
        let _ = std::fs::remove_file(&file);
        let summary: Value = serde_json::from_str(&text).context("read what colltune-amr wrote")?;
        Ok(Outcome {
            wall: wall.as_secs_f64(),
            time: number(&summary, "/time_s/total")?,
            blocks_per_step: number(&summary, "/blocks_per_step/avg")?,
            summary,
        })
    }

    fn run_reference(&self, program: &OsString, arguments: &str) -> anyhow::Result<Outcome> {
        let mut line = vec![program.clone()];
        line.extend(words(arguments));
        line.extend(["--report_perf", "4"].map(OsString::from));
        let (wall, stdout) = jobs::output_of(self.bench, self.place, 2, &Tuner::Bare, &line)?;
        let summary = stdout.lines().find(|line| line.starts_with("Summary:"));
        let summary = summary.context("find the summary of miniAMR in what it printed")?;
        let value = |name: &str| -> anyhow::Result<f64> {
            let mut words = summary.split_whitespace().skip_while(|word| *word != name);
            let value = words.nth(1).and_then(|word| word.parse().ok());
            value.with_context(|| format!("read {name} in {summary:?}"))
        };
        Ok(Outcome {
            wall: wall.as_secs_f64(),
            time: value("time")?,
            blocks_per_step: value("blocks/ts")?,
            summary: Value::Null,
        })
    }

    fn compare(&self, problem: &Problem, report: &mut Report) -> anyhow::Result<()> {
        let rounds = self.bench.pick(3, 2);
        let steps = self.steps(problem);
        let arguments = format!("{} --num_tsteps {steps}", problem.arguments);
        let with_room = format!("{arguments} {}", problem.of_reference);
        let (mut own, mut theirs) = (Vec::new(), Vec::new());
        for round in 0..rounds {
            let (name, nth) = (problem.name, round + 1);
            self.bench
                .progress(&format!("amr, {name}: round {nth} of {rounds}"));
            for way in [round % 2, 1 - round % 2] {
                match (&self.reference, way) {
                    (Some(program), 0) => theirs.push(self.run_reference(program, &with_room)?),
                    (None, 0) => {}
                    _ => own.push(self.run_own(&arguments)?),
                }
            }
        }
        for (own, theirs) in own.iter().zip(&theirs) {
            let (a, b) = (theirs.blocks_per_step, own.blocks_per_step);
            if (a - b).abs() > 1e-5 {
                let name = problem.name;
                bail!("compare {name}: {b} blocks a step, miniAMR has {a}");
            }
        }
        tell_own(problem, &own, report)?;
        tell_ratios(problem, &theirs, &own, report);
        Ok(())
    }

    /// One read and one write of 8 bytes for each update, over what plain copying reaches at the run's end.
    /// The blocks of the first problem fit in the caches of many machines; those of the second do not.
    fn bandwidth(&self, problem: &Problem, report: &mut Report) -> anyhow::Result<()> {
        self.bench.progress("amr: the memory's bandwidth");
        let steps = self.steps(problem);
        let line = format!("{} --num_tsteps {steps} --bandwidth", problem.arguments);
        let mut shares = Vec::new();
        for _ in 0..self.bench.pick(3, 1) {
            shares.push(number(&self.run_own(&line)?.summary, "/memory/share")?);
        }
        let name = problem.name;
        let what = format!("{name}: updates over what the memory's bandwidth allows");
        tell(report, &what, &shares, "", Target::AtLeast(0.5));
        Ok(())
    }

    fn steps(&self, problem: &Problem) -> usize {
        let [full, quick] = problem.steps;
        self.bench.pick(full, quick)
    }

    /// From runs of two lengths: what the further steps took.
    fn refinement(&self, report: &mut Report) -> anyhow::Result<()> {
        self.bench.progress("amr: refinement");
        let mut steps_ms = Vec::new();
        let mut leaves = 0.0;
        for _ in 0..self.bench.pick(5, 2) {
            let mut seconds = [0.0; 2];
            for (seconds, steps) in seconds.iter_mut().zip(REFINEMENT_STEPS) {
                let done = self.run_own(&format!("{REFINEMENT} --num_tsteps {steps}"))?;
                for phase in ["refine", "place", "migrate"] {
                    *seconds += number(&done.summary, &format!("/time_s/{phase}"))?;
                }
                leaves = done.blocks_per_step;
            }
            let [few, many] = REFINEMENT_STEPS;
            steps_ms.push((seconds[1] - seconds[0]) * 1e3 / (many - few) as f64);
        }
        let what = format!("refinement, balance and migration a step, {leaves:.0} leaves");
        tell(report, &what, &steps_ms, " ms", Target::AtMost(100.0));
        Ok(())
    }
}

/// What is asked of the mini-app alone.
fn tell_own(problem: &Problem, own: &[Outcome], report: &mut Report) -> anyhow::Result<()> {
    let name = problem.name;
    let of = |value: fn(&Outcome) -> f64| own.iter().map(value).collect::<Vec<f64>>();
    tell(
        report,
        &format!("{name}: whole job"),
        &of(|o| o.wall),
        " s",
        Target::None,
    );
    tell(
        report,
        &format!("{name}: its steps"),
        &of(|o| o.time),
        " s",
        Target::None,
    );
    let startup = own.iter().map(|o| {
        let startup = number(&o.summary, "/time_s/startup")?;
        Ok(startup / (startup + o.time))
    });
    let startup: Vec<f64> = startup.collect::<anyhow::Result<_>>()?;
    let what = format!("{name}: start-up over the program's whole time");
    tell(report, &what, &startup, "", Target::AtMost(0.3));
    let memory = own.iter().map(|o| number(&o.summary, "/rss_max_bytes"));
    let memory: Vec<f64> = memory.collect::<anyhow::Result<_>>()?;
    let memory: Vec<f64> = memory.into_iter().map(|bytes| bytes / 1e6).collect();
    let what = format!("{name}: largest memory of a rank");
    tell(report, &what, &memory, " MB", Target::AtMost(MEMORY_MAX_MB));
    Ok(())
}

fn tell_ratios(problem: &Problem, theirs: &[Outcome], own: &[Outcome], report: &mut Report) {
    if theirs.is_empty() {
        return;
    }
    let of = |outcomes: &[Outcome], value: fn(&Outcome) -> f64| {
        outcomes.iter().map(value).collect::<Vec<f64>>()
    };
    let name = problem.name;
    let (a, b) = (of(theirs, |o| o.time), of(own, |o| o.time));
    report.findings.push(Finding {
        what: format!("{name}, steps: miniAMR over mini-app"),
        found: median_ratio(&a, &b),
        unit: "",
        target: Target::AtLeast(problem.ratio_min),
    });
    report
        .rows
        .push(Row::of_rounds(format!("{name}, steps"), &a, &b));
    let (a, b) = (of(theirs, |o| o.wall), of(own, |o| o.wall));
    report
        .rows
        .push(Row::of_rounds(format!("{name}, whole job"), &a, &b));
}

/// Least, median and largest of several runs.
fn tell(report: &mut Report, what: &str, values: &[f64], unit: &'static str, target: Target) {
    let spread = spread(values);
    report.findings.push(Finding {
        what: format!("{what} (n = {})", values.len()),
        found: Interval {
            low: spread.min,
            value: spread.median,
            high: spread.max,
        },
        unit,
        target,
    });
}

fn words(line: &str) -> impl Iterator<Item = OsString> + '_ {
    line.split_whitespace().map(OsString::from)
}

fn number(summary: &Value, pointer: &str) -> anyhow::Result<f64> {
    let value = summary.pointer(pointer).and_then(Value::as_f64);
    value.with_context(|| format!("read {pointer} in what colltune-amr wrote"))
}
