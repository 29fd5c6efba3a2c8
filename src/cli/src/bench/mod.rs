//! What `colltune bench` measures, and how.
//!
//! Two things are compared by many short jobs in alternated order, ranks pinned; a job's own value
//! is the median of its blocks, and the job is the unit of every interval.

pub mod place;

pub mod jobs;

pub mod database;

pub mod amr;
pub mod callers;
pub mod churn;
pub mod exploring;
pub mod learning;
pub mod overhead;
pub mod schedules;
pub mod simulator;
pub mod startup;
pub mod tuned;

pub mod ways;

pub mod choices;

pub mod bound;

pub mod statistics;

pub mod report;

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;

use report::Report;

/// A named benchmark.
pub struct Suite {
    pub name: &'static str,
    pub about: &'static str,
    pub run: fn(&Bench) -> anyhow::Result<Report>,
}

/// Every suite, the short ones first.
pub const SUITES: [Suite; 12] = [
    Suite {
        name: "overhead",
        about: "cost per call on MPI_COMM_SELF, with and without the shim",
        run: overhead::run,
    },
    Suite {
        name: "callers",
        about: "the same by MPI library, PyPI's too, and by the caller's language",
        run: callers::run,
    },
    Suite {
        name: "churn",
        about: "ten thousand times split, one allreduce, free",
        run: churn::run,
    },
    Suite {
        name: "startup",
        about: "whole time of a job that does nothing, on 2 and 32 ranks",
        run: startup::run,
    },
    Suite {
        name: "learning",
        about: "ingest and train a million records",
        run: learning::run,
    },
    Suite {
        name: "exploring",
        about: "what exploring costs a job in generations 0, 1 and 2",
        run: exploring::run,
    },
    Suite {
        name: "simulator",
        about: "simulated against measured order of variants on the cluster; 32,768 ranks simulated",
        run: simulator::run,
    },
    Suite {
        name: "amr",
        about: "the mini-app on 2 ranks, beside miniAMR where MINIAMR names its executable",
        run: amr::run,
    },
    Suite {
        name: "schedules-node",
        about: "our schedules against Open MPI's version of the same algorithm, 8 ranks on one node",
        run: schedules::run_on_node,
    },
    Suite {
        name: "schedules-cluster",
        about: "the same on 4 nodes x 2 ranks at 1 Gbit/s, simulated on this machine",
        run: schedules::run_on_cluster,
    },
    Suite {
        name: "tuned-node",
        about: "default, tuned and best native variant on one node",
        run: tuned::run_on_node,
    },
    Suite {
        name: "tuned-cluster",
        about: "the same on 4 nodes x 2 ranks at 1 Gbit/s, simulated on this machine",
        run: tuned::run_on_cluster,
    },
];

/// What all suites of one command share.
pub struct Bench {
    /// Absolute, so that ranks with another working directory find it.
    pub out: PathBuf,
    pub quick: bool,
    /// Warnings that jobs printed, each once; they belong beside the numbers.
    warnings: RefCell<BTreeSet<String>>,
}

impl Bench {
    pub fn new(out: &Path, quick: bool) -> anyhow::Result<Bench> {
        std::fs::create_dir_all(out).with_context(|| format!("create {}", out.display()))?;
        let out = out
            .canonicalize()
            .with_context(|| format!("open {}", out.display()))?;
        Ok(Bench {
            out,
            quick,
            warnings: RefCell::default(),
        })
    }

    /// One number for the full run, another for `--quick`.
    pub fn pick(&self, full: usize, quick: usize) -> usize {
        if self.quick { quick } else { full }
    }

    /// Shows on a terminal what is being done; silent in a log.
    pub fn progress(&self, what: &str) {
        let mut stderr = std::io::stderr();
        if stderr.is_terminal() {
            let _ = write!(stderr, "\r\x1b[K{what}");
            let _ = stderr.flush();
        }
    }

    /// Keeps what the tuner printed in a job.
    pub fn note_warnings(&self, stderr: &str) {
        let of_ours = stderr.lines().filter(|line| line.starts_with("colltune"));
        self.warnings
            .borrow_mut()
            .extend(of_ours.map(str::to_owned));
    }

    /// Takes the warnings noted since the last call.
    pub fn take_warnings(&self) -> Vec<String> {
        std::mem::take(&mut *self.warnings.borrow_mut())
            .into_iter()
            .collect()
    }
}
