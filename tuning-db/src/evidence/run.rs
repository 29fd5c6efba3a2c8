//! Runs of which there is evidence, and what they say.

use std::collections::HashMap;
use std::path::PathBuf;

use colltune_core::context::COLUMNS;
use colltune_models::evidence::Evidence;
use serde::{Deserialize, Serialize};

use crate::passed::Passed;
use crate::reduce::{Reduced, Row};

/// One run of which a file speaks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    pub job: String,
    /// The records behind it, as a [`Coverage`] is written.
    pub held: String,
    /// Of all that was published for a library, the later has the greater number.
    pub sequence: u64,
    /// Set by earlier versions, where it speaks of records of a running job, too, which are not in `held` and came again
    /// when that had ended.
    pub provisional: bool,
    pub started_unix_ms: u64,
    pub generation: u64,
    pub records: u64,
    pub calls: u64,
    /// A check word over its records' times.
    pub content: u64,
    /// In the order of the core's names of context columns.
    pub context: [String; COLUMNS.len()],
    /// Who owned its traces' files, by number; what was taken by earlier versions does not say.
    #[serde(default)]
    pub owner: Option<u32>,
    /// The component of the library that its own choice is of, where it says so.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub component: String,
    /// The host that its first trace says to be of, and the shape that the traces claim: ranks of the job, and the
    /// most nodes, and ranks on one, of any of its communicators.
    #[serde(default)]
    pub host: String,
    #[serde(default)]
    pub ranks: u32,
    #[serde(default)]
    pub nodes: u32,
    #[serde(default)]
    pub ppn: u32,
    /// Whether its rows were removed, for good, since newer runs of its kind say enough.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub thinned: bool,
}

/// What a run is to a training.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It is learned from.
    Counts,
    /// Newer runs of its kind say enough.
    Thinned,
    /// A user has left it out.
    LeftOut,
}

/// A run that has just been reduced.
pub(crate) struct Fresh {
    pub run: Run,
    pub rows: Vec<Row>,
}

impl Fresh {
    pub fn new(run: Run, reduced: Reduced) -> Fresh {
        let run = Run {
            records: reduced.records,
            calls: reduced.calls,
            content: reduced.content,
            ..run
        };
        let rows = reduced.rows;
        Fresh { run, rows }
    }
}

/// One file, by its footer.
pub(super) struct Stored {
    pub path: PathBuf,
    pub bytes: u64,
    pub runs: Vec<Run>,
    /// Whether something else speaks of the same records.
    pub superseded: Vec<bool>,
    /// Whether newer runs of its kind say enough.
    pub thinned: Vec<bool>,
    /// Whether a run counts: it is neither of these, and no user has left it out.
    pub counts: Vec<bool>,
}

impl Stored {
    pub fn new(path: PathBuf, runs: Vec<Run>) -> Stored {
        Stored {
            bytes: path.metadata().map_or(0, |metadata| metadata.len()),
            superseded: vec![false; runs.len()],
            thinned: vec![false; runs.len()],
            counts: vec![true; runs.len()],
            path,
            runs,
        }
    }

    /// Whether the rows of a run stay when the file is written anew.
    pub fn keeps_rows(&self, place: usize) -> bool {
        !self.superseded[place] && !self.thinned[place]
    }

    /// How many runs have rows that stay, and how many have rows that may go.
    pub fn kept_and_spare(&self) -> (usize, usize) {
        let places = 0..self.runs.len();
        let (kept, gone): (Vec<_>, Vec<_>) = places.partition(|&place| self.keeps_rows(place));
        let spare = gone.iter().filter(|&&place| !self.runs[place].thinned);
        (kept.len(), spare.count())
    }
}

/// All that the runs say, the oldest run first.
pub struct Said {
    /// Those that count; a run that came in parts stands here more than once.
    pub runs: Vec<Run>,
    /// The job of each run to which evidence belongs, by its place.
    pub jobs: Vec<String>,
    /// Of each run to which evidence belongs, by its place: when it was last reduced. They never fall.
    pub sequences: Vec<u64>,
    pub evidence: Vec<Evidence>,
    /// Of the default's calls a half once more.
    pub copies: Vec<Evidence>,
    pub passed: Vec<Passed>,
    /// The time of all tuned calls, mean over the ranks.
    pub seconds: f64,
    /// Rows that speak of variants that this colltune does not know.
    pub unknown: u64,
}

impl Said {
    /// How many different runs there are.
    pub fn n_runs(&self) -> usize {
        self.sequences.len()
    }

    /// The component that `default` is of in the last run that says so.
    pub fn component(&self) -> &str {
        let mut all = self.runs.iter().rev().map(|run| run.component.as_str());
        all.find(|component| !component.is_empty()).unwrap_or("")
    }

    /// When each run began to which evidence belongs, by its place.
    pub fn started_unix_ms(&self) -> Vec<Option<u64>> {
        let runs = self.runs.iter();
        let of: HashMap<&str, u64> = runs
            .map(|run| (run.job.as_str(), run.started_unix_ms))
            .collect();
        let jobs = self.jobs.iter();
        jobs.map(|job| of.get(job.as_str()).copied()).collect()
    }

    /// How many of them stood there when that was the last that had been published.
    pub fn n_runs_until(&self, sequence: u64) -> usize {
        self.sequences.partition_point(|&one| one <= sequence)
    }
}
