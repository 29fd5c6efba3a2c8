//! The mini-app on the cluster, and what is chosen among.

use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::Context;
use serde_json::Value;

use super::super::Bench;
use super::super::jobs::{self, Tuner};
use super::super::place::Place;

pub struct Problem {
    pub name: &'static str,
    pub arguments: &'static str,
    pub steps: [usize; 2],
}

pub const POLICIES: [&str; 5] = ["contiguous", "rcb", "lpt-swap", "cplx:25", "cplx:50"];
pub const VARIANTS: [&str; 4] = [
    "default",
    "native:recursive_doubling",
    "node:shm+recursive_doubling",
    "native:ring",
];
/// A chosen pair is as good as the best one up to here.
pub const AS_GOOD: f64 = 1.03;

/// The mini-app with one problem.
pub struct App<'a> {
    pub bench: &'a Bench,
    pub place: &'a Place,
    pub program: PathBuf,
    pub problem: &'a Problem,
    /// The database of forced jobs.
    pub nothing_known: PathBuf,
}

impl App<'_> {
    /// The app's own time, without start-up.
    pub fn seconds(&self, tuner: &Tuner, placement: &str) -> anyhow::Result<f64> {
        self.timed(tuner, placement, &[])
    }

    /// The same with more options.
    pub fn timed(&self, tuner: &Tuner, placement: &str, more: &[&str]) -> anyhow::Result<f64> {
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
        line.extend(more.iter().map(OsString::from));
        jobs::run_program(self.bench, self.place, self.place.n_ranks, tuner, &line)?;
        let text =
            std::fs::read_to_string(&file).with_context(|| format!("read {}", file.display()))?;
        let _ = std::fs::remove_file(&file);
        let summary: Value = serde_json::from_str(&text).context("read what colltune-amr wrote")?;
        let total = summary.pointer("/time_s/total").and_then(Value::as_f64);
        total.context("find time_s.total in what colltune-amr wrote")
    }

    pub fn progress(&self, what: &str) {
        self.bench
            .progress(&format!("levers, {}: {what}", self.problem.name));
    }
}
