//! The suites of benches: what they measure, and how.
//!
//! Two things are compared by many short jobs in alternated order, ranks pinned; a job's own value
//! is the median of its blocks, and the job is the unit of every interval.

mod session;

pub mod line;

pub mod place;

pub mod jobs;

pub mod database;

pub mod callers;
pub mod churn;
pub mod exploring;
pub mod fixed_order;
pub mod history;
pub mod learner;
pub mod levers;
pub mod ompicolltune;
pub mod overhead;
pub mod programs;
pub mod solver;
pub mod startup;
pub mod telemetry;
pub mod tuned;

pub mod ways;

pub mod choices;

pub mod report;

pub use session::{Bench, FOLDER};

use report::Report;

/// A named benchmark.
pub struct Suite {
    pub name: &'static str,
    pub about: &'static str,
    pub run: fn(&Bench) -> anyhow::Result<Report>,
}

/// Every suite, the short ones first.
pub const SUITES: [Suite; 18] = [
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
        about: "ten thousand times and more split, one allreduce or a few, free",
        run: churn::run,
    },
    Suite {
        name: "startup",
        about: "whole time of a job that does nothing, on 2 and 32 ranks",
        run: startup::run,
    },
    Suite {
        name: "learner",
        about: "learners side by side on synthetic machines with known truth; no MPI is needed",
        run: learner::run,
    },
    Suite {
        name: "history",
        about: "a training on the evidence of 100,000 jobs, which is made first (minutes; 2,000 with --quick)",
        run: history::run,
    },
    Suite {
        name: "exploring",
        about: "what exploring costs a job in generations 0, 1 and 2",
        run: exploring::run,
    },
    Suite {
        name: "telemetry",
        about: "what recording telemetry costs the mini-app on 2 ranks, and how large its files are",
        run: telemetry::run,
    },
    Suite {
        name: "programs-node",
        about: "whole time of programs that people run: bare, exploring, tuned; what could be gained at all",
        run: programs::run_on_node,
    },
    Suite {
        name: "programs-cluster",
        about: "the same on 4 nodes x 2 ranks at 1 Gbit/s, simulated on this machine",
        run: programs::run_on_cluster,
    },
    Suite {
        name: "ompicolltune",
        about: "figures 3 to 5 of the tuner's own paper on the cluster, by its learner and ours: draws, an unseen layout, whole runs (half an hour)",
        run: ompicolltune::run,
    },
    Suite {
        name: "solver-node",
        about: "a strongly scaled solver on one node: the share of the reachable gain after ten jobs",
        run: solver::run_on_node,
    },
    Suite {
        name: "solver-cluster",
        about: "the same on 4 nodes x 2 ranks at 1 Gbit/s, simulated on this machine",
        run: solver::run_on_cluster,
    },
    Suite {
        name: "levers-blast",
        about: "the mini-app's placement and allreduce on the cluster: all pairs by hand, and what ten jobs that ask find (half an hour)",
        run: levers::run_blast,
    },
    Suite {
        name: "levers-spheres",
        about: "the same of four moving spheres whose blocks' costs are random (an hour)",
        run: levers::run_spheres,
    },
    Suite {
        name: "fixed-order",
        about: "what one order of additions costs on the cluster: reductions tuned with and without reproducible = \"fixed\"",
        run: fixed_order::run,
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
