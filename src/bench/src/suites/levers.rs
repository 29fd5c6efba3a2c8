//! Placement and collectives together: which share of the best pair do ten jobs find?
//!
//! The mini-app on the cluster, with blocks of uneven cost. Every pair of a placement policy and a variant of its
//! allreduce is forced; the best of them is measured anew beside the app that asks (`--placement tuned`), after ten
//! exploring jobs and trainings from nothing. Beside that stands what the emulator says of the pairs, and what its times
//! are worth as the weights of a first job.

mod app;
mod emulated;

use std::path::Path;

use anyhow::Context;
use colltune_core::request::Mode;
use colltune_statistics::{Interval, median, spread};
use serde_json::Value;

use super::Bench;
use super::database;
use super::jobs::Tuner;
use super::place::Place;
use super::report::{Finding, Report, Row, Target};
use app::{AS_GOOD, App, POLICIES, Problem, VARIANTS};
use colltune_launch::shim;
use emulated::Emulated;

const BLAST: Problem = Problem {
    name: "blast, shock costs",
    arguments: "--nx 4 --ny 4 --nz 4 --physics euler --npx 2 --npy 2 --npz 2 --refine_buffer 0 --num_refine 2 \
                --sedov_centre .3 .4 .2 --checksum_freq 1 --cost shock --weigh measured",
    steps: [150, 60],
};
const SPHERES: Problem = Problem {
    name: "four spheres, random costs",
    arguments: "--nx 4 --ny 4 --nz 4 --npx 2 --npy 2 --npz 2 --num_refine 2 --num_vars 16 --refine_freq 5 --checksum_freq 1 \
                --cost random:1 --weigh measured --num_objects 4 \
                --object 2 0 .18 .25 .25 .016 0 0 .15 .15 .15 0 0 0 --object 2 0 .18 .75 .75 .016 0 0 .15 .15 .15 0 0 0 \
                --object 2 0 .82 .75 .25 -.016 0 0 .15 .15 .15 0 0 0 --object 2 0 .82 .25 .75 -.016 0 0 .15 .15 .15 0 0 0",
    steps: [60, 30],
};
const JOBS: u64 = 10;
/// Further columns.
const EMULATED: &str = "emulated_s";
const BEST: &str = "best_pair";
const NEITHER: &str = "neither_s";
const GAIN: &str = "neither_over_asks";

pub fn run_blast(bench: &Bench) -> anyhow::Result<Report> {
    run(bench, &BLAST)
}

pub fn run_spheres(bench: &Bench) -> anyhow::Result<Report> {
    run(bench, &SPHERES)
}

fn run(bench: &Bench, problem: &Problem) -> anyhow::Result<Report> {
    let mut report = Report::comparing("best forced pair, s in the app", "asks, after ten jobs, s");
    report.notes = [
        "pairs: a placement policy and a variant of every allreduce, forced; the app's own time without start-up, medians",
        "asks: `--placement tuned` with the same policies, in mode exploit after ten explore runs, each followed by a training, from an \
         empty database; its collectives are tuned, too, all of them",
        "neither: the first policy without the shim, beside the other two in each round",
        "emulated: by costs fitted to one recorded run under the first policy, and the cluster's calibration",
        "a first job explores with an empty database, or with one whose first weights are the emulated times",
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
    let app = App {
        bench,
        place: &place,
        program: shim::file(place.abi)?.with_file_name("colltune-amr"),
        problem,
        nothing_known,
    };
    app.measure(&calibrated, &mut report)?;
    Ok(report)
}

/// A policy and a variant, by their places.
type Pair = (usize, usize);

impl App<'_> {
    fn measure(&self, calibrated: &Path, report: &mut Report) -> anyhow::Result<()> {
        let emulated = Emulated::of(self, calibrated)?;
        let best = self.best_pair(&emulated, report)?;
        report.rows.push(self.first_jobs(&emulated, calibrated)?);
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
                row.with(EMULATED, Value::Null)
                    .with(BEST, name_of(best))
                    .with(NEITHER, median(&neither))
                    .with(GAIN, median(&neither) / median(&asks)),
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

    /// Jobs that explore with nothing known, and with first weights.
    fn first_jobs(&self, emulated: &Emulated, calibrated: &Path) -> anyhow::Result<Row> {
        let mut times: [Vec<f64>; 2] = Default::default();
        for round in 0..self.bench.pick(5, 3) {
            for place in 0..2 {
                let is_weighed = (round + place) % 2 == 1;
                self.progress(&format!("first jobs, round {}", round + 1));
                let db = database::copy(self.bench, calibrated, "levers-first")?;
                if is_weighed {
                    emulated.weigh(&db, self.place.n_ranks)?;
                }
                let explores = Tuner::shim(&db, Mode::Explore, 500 + round as u64);
                times[usize::from(is_weighed)].push(self.seconds(&explores, &tuned())?);
            }
        }
        let [nothing, weighed] = times;
        let name = format!(
            "{}, a first job, from nothing over weighed",
            self.problem.name
        );
        Ok(Row::of_rounds(name, &nothing, &weighed).with(EMULATED, Value::Null))
    }

    /// Forces every pair in several rounds; each is a row.
    fn best_pair(&self, emulated: &Emulated, report: &mut Report) -> anyhow::Result<Pair> {
        let pairs: Vec<Pair> = (0..POLICIES.len())
            .flat_map(|policy| (0..VARIANTS.len()).map(move |variant| (policy, variant)))
            .collect();
        let rounds = self.bench.pick(3, 1);
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
        for ((pair, times), emulated_s) in pairs.iter().zip(&times).zip(emulated.pairs()) {
            let name = format!("{}, {}", self.problem.name, name_of(*pair));
            let row = Row::of_rounds(name, bare, times);
            let none = [BEST, NEITHER, GAIN].map(|key| (key, Value::Null));
            let row = row.with(EMULATED, emulated_s);
            report.rows.push(
                none.into_iter()
                    .fold(row, |row, (key, value)| row.with(key, value)),
            );
        }
        let medians: Vec<f64> = times.iter().map(|times| median(times)).collect();
        let findings = emulated.findings(self.problem.name, &medians);
        report.findings.extend(findings);
        let medians = medians.into_iter().enumerate();
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

    fn forced(&self, variant: &str) -> Tuner {
        Tuner::Shim {
            db: Some(self.nothing_known.clone()),
            mode: Mode::Exploit,
            seed: 7,
            settings: vec![("COLLTUNE_FORCE", format!("allreduce={variant}"))],
        }
    }
}

fn tuned() -> String {
    format!("tuned:{}", POLICIES.join(","))
}

fn name_of((policy, variant): Pair) -> String {
    format!("{} + {}", POLICIES[policy], VARIANTS[variant])
}
