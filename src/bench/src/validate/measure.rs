//! Real runs of the mini-app, and what they tell.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::Context;
use serde_json::Value;

use crate::suites::Bench;
use crate::suites::jobs::{self, Tuner};
use crate::suites::place::Place;
use colltune_lab::emulate::recording::{self, Recorded, Sent};
use colltune_launch::measuring::helper;
use colltune_output::progress;

/// A deck with its options.
pub struct Problem {
    pub deck: String,
    /// The deck whose costs hold for it.
    pub like: &'static str,
    words: Vec<String>,
}

/// One real run. Seconds.
#[derive(Clone)]
pub struct Sample {
    pub total: f64,
    /// Means over the ranks.
    pub phases: BTreeMap<String, f64>,
    pub sent: Sent,
}

impl Problem {
    pub fn new(deck: &str, like: &'static str, more: &[&str], steps: u64) -> Problem {
        let steps = steps.to_string();
        let words = ["--deck", deck, "--num_tsteps", &steps];
        let words = words.iter().chain(more).map(|word| (*word).to_owned());
        Problem {
            deck: deck.to_owned(),
            like,
            words: words.collect(),
        }
    }

    /// The same blocks on a mesh of one level, so many on each rank.
    pub fn uniform(&self, n_ranks: usize, [y, z]: [usize; 2], steps: u64) -> Problem {
        let [n_ranks, y, z] = [n_ranks, y, z].map(|n| n as u64);
        self.with([
            ("--npx", n_ranks),
            ("--npy", y),
            ("--npz", z),
            ("--num_refine", 0),
            ("--num_tsteps", steps),
        ])
    }

    /// The same with blocks of so many cells, and so many levels, variables that are exchanged together, and steps.
    pub fn refined(&self, cells: [usize; 3], (levels, vars, steps): (u64, u64, u64)) -> Problem {
        let [x, y, z] = cells.map(|n| n as u64);
        self.with([
            ("--nx", x),
            ("--ny", y),
            ("--nz", z),
            ("--num_refine", levels),
            ("--comm_vars", vars),
            ("--num_tsteps", steps),
        ])
    }

    fn with<const N: usize>(&self, options: [(&str, u64); N]) -> Problem {
        let words = options.into_iter();
        let words = words.flat_map(|(name, value)| [name.to_owned(), value.to_string()]);
        Problem {
            deck: self.deck.clone(),
            like: self.like,
            words: self.words.iter().cloned().chain(words).collect(),
        }
    }

    /// The program's words under a policy, with telemetry.
    pub fn words(&self, policy: &str, folder: &Path) -> Vec<String> {
        let folder = folder.display().to_string();
        let more = ["--placement", policy, "--telemetry", &folder];
        let words = self.words.iter().cloned();
        words.chain(more.map(str::to_owned)).collect()
    }
}

/// Where a run's files go for a moment.
fn scratch(bench: &Bench) -> PathBuf {
    bench.out.join(format!(".emulate.{}", std::process::id()))
}

/// Where a run runs, and under which tuner.
#[derive(Clone, Copy)]
pub struct Job<'a> {
    pub bench: &'a Bench,
    pub place: &'a Place,
    pub n_ranks: usize,
    pub tuner: &'a Tuner,
}

impl<'a> Job<'a> {
    fn bare(bench: &'a Bench, place: &'a Place, n_ranks: usize) -> Job<'a> {
        Job {
            bench,
            place,
            n_ranks,
            tuner: &Tuner::Bare,
        }
    }
}

fn start(job: Job, words: &[String], more: &[OsString]) -> anyhow::Result<()> {
    let Job {
        bench,
        place,
        n_ranks,
        tuner,
    } = job;
    let app = helper(place.abi)?.with_file_name("colltune-amr");
    let mut program = vec![app.into_os_string()];
    program.extend(words.iter().map(OsString::from));
    program.extend(more.iter().cloned());
    jobs::run_program(bench, place, n_ranks, tuner, &program)
        .map(|_| ())
        .with_context(|| format!("run colltune-amr {}", words.join(" ")))
}

/// Makes a run whose files go into a folder for a moment. One that fails is made once more: on many ranks, for an hour,
/// a connection fails now and then, and what was measured before must not be lost for it.
fn run_in<T>(bench: &Bench, run: impl Fn(&Path) -> anyhow::Result<T>) -> anyhow::Result<T> {
    let folder = scratch(bench);
    let once = || {
        let made = std::fs::create_dir_all(&folder);
        made.with_context(|| format!("create {}", folder.display()))?;
        let found = run(&folder);
        let _ = std::fs::remove_dir_all(&folder);
        found
    };
    once().or_else(|error| {
        progress::hint(format!("failed to {error:#}; it is run once more"));
        once()
    })
}

/// Runs a problem once with times of blocks.
pub fn recorded(
    bench: &Bench,
    place: &Place,
    n_ranks: usize,
    problem: &Problem,
    policy: &str,
) -> anyhow::Result<Recorded> {
    run_in(bench, |folder| {
        let words = problem.words(policy, folder);
        let job = Job::bare(bench, place, n_ranks);
        start(job, &words, &["--telemetry_blocks".into()])?;
        recording::read(folder)
    })
}

/// Runs a problem once under each policy, on so many ranks; `turn` is which run it is, of how many.
pub fn measured(
    (bench, place, n_ranks): (&Bench, &Place, usize),
    problem: &Problem,
    policies: &[String],
    (turn, turns): (usize, usize),
    samples: &mut [Vec<Sample>],
) -> anyhow::Result<()> {
    for (policy, samples) in policies.iter().zip(samples) {
        progress::show(&format!(
            "{}, {policy}: run {turn} of {turns}",
            problem.deck
        ));
        samples.push(sample(bench, place, n_ranks, problem, policy)?);
    }
    Ok(())
}

fn sample(
    bench: &Bench,
    place: &Place,
    n_ranks: usize,
    problem: &Problem,
    policy: &str,
) -> anyhow::Result<Sample> {
    run_in(bench, |folder| {
        let words = problem.words(policy, folder);
        let job = Job::bare(bench, place, n_ranks);
        let total = total(job, &words, folder)?;
        let (phases, sent) = recording::spent_and_sent(folder)?;
        Ok(Sample {
            total,
            phases: phases
                .into_iter()
                .map(|(phase, ns)| (phase, 1e-9 * ns / n_ranks as f64))
                .collect(),
            sent,
        })
    })
}

fn total(job: Job, words: &[String], folder: &Path) -> anyhow::Result<f64> {
    let answer = folder.join("summary.json");
    start(
        job,
        words,
        &["--json".into(), answer.clone().into_os_string()],
    )?;
    let text =
        std::fs::read_to_string(&answer).with_context(|| format!("read {}", answer.display()))?;
    let summary: Value = serde_json::from_str(&text).context("read the mini-app's summary")?;
    let total = summary["time_s"]["total"].as_f64();
    total.context("find time_s.total in the mini-app's summary")
}
