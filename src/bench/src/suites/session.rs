//! One `colltune-bench`: where its files go, how much it measures, and what its jobs warned of.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::Context;

use colltune_output::failure::usage;
use colltune_output::progress;

/// The default.
pub const FOLDER: &str = "target/bench";
/// Of programs on one node, by default.
const RANKS: usize = 8;
/// A file in folders that are ours.
const MARK: &str = ".made-by-colltune";

/// What all suites of one command share.
pub struct Bench {
    /// Absolute, so that ranks with another working directory find it.
    pub out: PathBuf,
    pub quick: bool,
    /// Trainings behind an interval, where the user says how many.
    trainings: Option<usize>,
    /// Ranks on one node, where the user says how many.
    ranks: Option<usize>,
    /// The programs that are wanted of those that are measured; all of them by default.
    pub programs: Vec<String>,
    /// Warnings that jobs printed, each once; they belong beside the numbers.
    warnings: RefCell<BTreeSet<String>>,
}

impl Bench {
    ///
    /// Errors: a folder that holds anything else than what benches wrote, because they remove what they find there.
    pub fn new(out: &Path, quick: bool) -> anyhow::Result<Bench> {
        std::fs::create_dir_all(out).with_context(|| format!("create {}", out.display()))?;
        let mark = out.join(MARK);
        if !mark.exists() {
            let is_empty = std::fs::read_dir(out).is_ok_and(|mut inside| inside.next().is_none());
            if !is_empty && out != Path::new(FOLDER) {
                return Err(usage(format!(
                    "write into {}: it holds what `colltune-bench` has not made; name a new or an empty folder with --out",
                    out.display()
                )));
            }
            std::fs::write(&mark, "").with_context(|| format!("write {}", mark.display()))?;
        }
        let out = out
            .canonicalize()
            .with_context(|| format!("open {}", out.display()))?;
        Ok(Bench {
            out,
            quick,
            trainings: None,
            ranks: None,
            programs: Vec::new(),
            warnings: RefCell::default(),
        })
    }

    /// The same of these programs alone.
    pub fn of_programs(self, programs: Vec<String>) -> Bench {
        Bench { programs, ..self }
    }

    /// The same with so many trainings behind an interval.
    pub fn with_trainings(self, trainings: Option<usize>) -> Bench {
        Bench { trainings, ..self }
    }

    /// The same with so many ranks in programs on one node.
    pub fn with_ranks(self, ranks: Option<usize>) -> Bench {
        Bench { ranks, ..self }
    }

    /// Ranks of the programs that are run on one node.
    pub fn ranks(&self) -> usize {
        self.ranks.unwrap_or(RANKS)
    }

    /// Trainings from nothing behind an interval of what tuning achieves: rounds of one training say nothing of the next.
    pub fn trainings(&self) -> usize {
        self.trainings.unwrap_or_else(|| self.pick(5, 1))
    }

    /// One number for the full run, another for `--quick`.
    pub fn pick(&self, full: usize, quick: usize) -> usize {
        if self.quick { quick } else { full }
    }

    /// Shows on a terminal what is being done; silent in a log.
    pub fn progress(&self, what: &str) {
        progress::show(what);
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
