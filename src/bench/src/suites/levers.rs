//! Placement and collectives together: which share of the best pair do ten jobs find?
//!
//! The mini-app on the cluster, with blocks of uneven cost. Every pair of a placement policy and a variant of its
//! allreduce is forced; the best of them is measured anew beside the app that asks (`--placement tuned`), after ten
//! exploring jobs and trainings from nothing.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::Context;
use colltune_core::request::Mode;
use colltune_statistics::{Interval, median, spread};
use serde_json::Value;

use super::Bench;
use super::database;
use super::jobs::{self, Tuner};
use super::place::Place;
use super::report::{Finding, Report, Row, Target};
use colltune_launch::shim;

struct Problem {
    name: &'static str,
    arguments: &'static str,
    steps: [usize; 2],
}

const PROBLEMS: [Problem; 2] = [
    Problem {
        name: "blast, shock costs",
        arguments: "--nx 4 --ny 4 --nz 4 --physics euler --npx 2 --npy 2 --npz 2 --refine_buffer 0 --num_refine 2 \
                    --sedov_centre .3 .4 .2 --checksum_freq 1 --cost shock --weigh measured",
        steps: [150, 60],
    },
    Problem {
        name: "four spheres, random costs",
        arguments: "--nx 4 --ny 4 --nz 4 --npx 2 --npy 2 --npz 2 --num_refine 2 --num_vars 16 --refine_freq 5 --checksum_freq 1 \
                    --cost random:1 --weigh measured --num_objects 4 \
                    --object 2 0 .18 .25 .25 .016 0 0 .15 .15 .15 0 0 0 --object 2 0 .18 .75 .75 .016 0 0 .15 .15 .15 0 0 0 \
                    --object 2 0 .82 .75 .25 -.016 0 0 .15 .15 .15 0 0 0 --object 2 0 .82 .25 .75 -.016 0 0 .15 .15 .15 0 0 0",
        steps: [60, 30],
    },
];
const POLICIES: [&str; 5] = ["contiguous", "rcb", "lpt-swap", "cplx:25", "cplx:50"];
const VARIANTS: [&str; 4] = [
    "default",
    "native:recursive_doubling",
    "node:shm+recursive_doubling",
    "native:ring",
];
const JOBS: u64 = 10;
/// A chosen pair is as good as the best one up to here.
const AS_GOOD: f64 = 1.03;

pub fn run(bench: &Bench) -> anyhow::Result<Report> {
    let mut report = Report::comparing("best forced pair, s in the app", "asks, after ten jobs, s");
    report.notes = [
        "pairs: a placement policy and a variant of every allreduce, forced; the app's own time without start-up, medians",
        "asks: `--placement tuned` with the same policies, in mode exploit after ten explore runs, each followed by a training, from an \
         empty database; its collectives are tuned, too, all of them",
        "neither: the first policy without the shim, beside the other two in each round",
    ]
    .map(str::to_owned)
    .to_vec();
    let place = match Place::cluster() {
        Ok(place) => place,
        Err(error) => {
            report.skipped.push(format!("failed to {error:#}"));
            return Ok(report);
        }
    };
    report.notes.push(place.describe());
    let calibrated = database::empty(bench, "levers-calibrated")?;
    bench.progress("levers: calibrate");
    database::calibrate(&place, &calibrated)?;
    let nothing_known = database::empty(bench, "levers-forced")?;
    for problem in &PROBLEMS {
        let app = App {
            bench,
            place: &place,
            program: shim::file(place.abi)?.with_file_name("colltune-amr"),
            problem,
            nothing_known: nothing_known.clone(),
        };
        app.measure(&calibrated, &mut report)?;
    }
    Ok(report)
}

struct App<'a> {
    bench: &'a Bench,
    place: &'a Place,
    program: PathBuf,
    problem: &'a Problem,
    /// The database of forced jobs.
    nothing_known: PathBuf,
}

/// A policy and a variant, by their places.
type Pair = (usize, usize);

impl App<'_> {
    fn measure(&self, calibrated: &Path, report: &mut Report) -> anyhow::Result<()> {
        let best = self.best_pair(report)?;
        let mut as_good = Vec::new();
        for training in 0..self.bench.trainings() {
            let db = database::copy(self.bench, calibrated, "levers")?;
            for run in 0..JOBS {
                self.progress(&format!("training {}, job {}", training + 1, run + 1));
                let seed = 1000 + 100 * training as u64 + run;
                self.seconds(&Tuner::shim(&db, Mode::Explore, seed), &tuned())?;
                database::train(self.bench, &db)?;
            }
            let [neither, asks, pair] = self.rounds(&db, best)?;
            let ratio = median(&asks) / median(&pair);
            as_good.push(f64::from(u8::from(ratio <= AS_GOOD)));
            let row = Row::of_rounds(
                format!("{}, training {}", self.problem.name, training + 1),
                &pair,
                &asks,
            );
            report.rows.push(
                row.with("best_pair", name_of(best))
                    .with("neither_s", median(&neither))
                    .with("neither_over_asks", median(&neither) / median(&asks)),
            );
        }
        let share = spread(&as_good);
        let mean = as_good.iter().sum::<f64>() / as_good.len() as f64;
        report.findings.push(Finding {
            what: format!(
                "{}: share of {} trainings whose app takes at most {AS_GOOD} times as long as the best of {} pairs",
                self.problem.name,
                as_good.len(),
                POLICIES.len() * VARIANTS.len()
            ),
            found: Interval {
                low: share.min,
                value: mean,
                high: share.max,
            },
            unit: "",
            target: Target::AtLeast(0.8),
        });
        Ok(())
    }

    /// Forces every pair in several rounds; each is a row.
    fn best_pair(&self, report: &mut Report) -> anyhow::Result<Pair> {
        let pairs: Vec<Pair> = (0..POLICIES.len())
            .flat_map(|policy| (0..VARIANTS.len()).map(move |variant| (policy, variant)))
            .collect();
        let rounds = self.bench.pick(5, 1);
        let mut times = vec![Vec::new(); pairs.len()];
        for round in 0..rounds {
            for place in 0..pairs.len() {
                let k = (7 * place + round) % pairs.len();
                self.progress(&format!(
                    "pairs, round {} of {rounds}, {}",
                    round + 1,
                    place + 1
                ));
                let (policy, variant) = pairs[k];
                let seconds = self.seconds(&self.forced(VARIANTS[variant]), POLICIES[policy])?;
                times[k].push(seconds);
            }
        }
        let bare = &times[0].clone();
        for (pair, times) in pairs.iter().zip(&times) {
            let name = format!("{}, {}", self.problem.name, name_of(*pair));
            report.rows.push(Row::of_rounds(name, bare, times));
        }
        let medians = times.iter().map(|times| median(times)).enumerate();
        let best = medians.min_by(|a, b| a.1.total_cmp(&b.1));
        best.map(|(k, _)| pairs[k]).context("measure a pair")
    }

    /// Neither, the app that asks, and the best pair, beside each other.
    fn rounds(&self, db: &Path, best: Pair) -> anyhow::Result<[Vec<f64>; 3]> {
        let asks = Tuner::shim(db, Mode::Exploit, 7);
        let ways = [
            (Tuner::Bare, POLICIES[0].to_owned()),
            (asks, tuned()),
            (self.forced(VARIANTS[best.1]), POLICIES[best.0].to_owned()),
        ];
        let mut times: [Vec<f64>; 3] = Default::default();
        for round in 0..self.bench.pick(5, 3) {
            for place in 0..ways.len() {
                let k = (round + place) % ways.len();
                self.progress(&format!("round {}", round + 1));
                times[k].push(self.seconds(&ways[k].0, &ways[k].1)?);
            }
        }
        Ok(times)
    }

    /// The app's own time, without start-up.
    fn seconds(&self, tuner: &Tuner, placement: &str) -> anyhow::Result<f64> {
        let file = self
            .bench
            .out
            .join(format!(".levers.{}.json", std::process::id()));
        let [full, quick] = self.problem.steps;
        let mut line = vec![self.program.clone().into_os_string()];
        line.extend(
            self.problem
                .arguments
                .split_whitespace()
                .map(OsString::from),
        );
        let steps = self.bench.pick(full, quick).to_string();
        line.extend(
            ["--num_tsteps", &steps, "--placement", placement, "--json"].map(OsString::from),
        );
        line.push(file.clone().into_os_string());
        jobs::run_program(self.bench, self.place, self.place.n_ranks, tuner, &line)?;
        let text =
            std::fs::read_to_string(&file).with_context(|| format!("read {}", file.display()))?;
        let _ = std::fs::remove_file(&file);
        let summary: Value = serde_json::from_str(&text).context("read what colltune-amr wrote")?;
        let total = summary.pointer("/time_s/total").and_then(Value::as_f64);
        total.context("find time_s.total in what colltune-amr wrote")
    }

    fn forced(&self, variant: &str) -> Tuner {
        Tuner::Shim {
            db: Some(self.nothing_known.clone()),
            mode: Mode::Exploit,
            seed: 7,
            settings: vec![("COLLTUNE_FORCE", format!("allreduce={variant}"))],
        }
    }

    fn progress(&self, what: &str) {
        self.bench
            .progress(&format!("levers, {}: {what}", self.problem.name));
    }
}

fn tuned() -> String {
    format!("tuned:{}", POLICIES.join(","))
}

fn name_of((policy, variant): Pair) -> String {
    format!("{} + {}", POLICIES[policy], VARIANTS[variant])
}
