//! What a tuning of one line has done so far, on disk after every job, so that it goes on where it was.

use std::ffi::OsString;
use std::fs::File;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use colltune_core::account::JobSummary;
use colltune_db::check_word::check_word;
use colltune_db::write;
use colltune_files::read_text;
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use crate::comparison::{Comparison, Pair};
use crate::statistics::median;

const SCHEMA: u32 = 1;
const BYTES_MAX: u64 = 16 << 20;

/// The state of one line, in `DB/tune/`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct State {
    pub schema: u32,
    pub line: Vec<String>,
    /// Jobs that ran the default and told where the time goes.
    pub accounts: Vec<Accounted>,
    /// Whole times of the jobs that explored, batch by batch; the last batch may go on.
    pub batches: Vec<Batch>,
    /// The comparison after the last batch.
    pub pairs: Vec<Pair>,
    /// Jobs that ran and are not listed any more.
    pub n_jobs_before: usize,
    /// Seconds spent in jobs and trainings, over all invocations.
    pub spent_s: f64,
    /// How it ended, if it did.
    pub end: Option<End>,
}

/// A job that ran the default.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Accounted {
    pub wall_s: f64,
    pub summary: Option<JobSummary>,
}

/// The jobs between two trainings, and the choices that matter after the second.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Batch {
    pub walls_s: Vec<f64>,
    pub choices: Option<Vec<Choice>>,
}

/// What is chosen in one cell.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Choice {
    pub cell: String,
    pub best: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// The choices are stable and compared.
    Compared,
    /// Collectives take too little of the time.
    NothingToGain,
}

/// A state with its place, which nobody else writes to meanwhile.
pub struct Kept {
    pub state: State,
    path: PathBuf,
    _lock: File,
}

impl Kept {
    /// Reads the state of a line, or begins one.
    ///
    /// Errors: somebody tunes this line in this database already; a folder that cannot be written.
    pub fn open(db: &Path, line: &[OsString]) -> anyhow::Result<Kept> {
        let folder = db.join("tune");
        std::fs::create_dir_all(&folder)
            .with_context(|| format!("make the folder {}", folder.display()))?;
        let mut bytes = Vec::new();
        for word in line {
            bytes.extend_from_slice(word.as_bytes());
            bytes.push(0);
        }
        let name = format!("{:016x}", check_word(&bytes));
        let lock_path = folder.join(format!("{name}.lock"));
        let lock =
            File::create(&lock_path).with_context(|| format!("write {}", lock_path.display()))?;
        if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
            bail!(
                "tune this line: another `colltune tune` does so ({} is locked)",
                lock_path.display()
            );
        }
        let path = folder.join(format!("{name}.json"));
        let read = read_text(&path, BYTES_MAX).ok();
        // What cannot be read is begun anew: what the jobs recorded is in the database itself.
        let state = read.and_then(|text| serde_json::from_str::<State>(&text).ok());
        let state = state.filter(|state| state.schema == SCHEMA);
        let state = state.unwrap_or_else(|| State {
            schema: SCHEMA,
            line: line
                .iter()
                .map(|word| word.to_string_lossy().into_owned())
                .collect(),
            ..State::default()
        });
        Ok(Kept {
            state,
            path,
            _lock: lock,
        })
    }

    pub fn save(&self) -> anyhow::Result<()> {
        let text = serde_json::to_string_pretty(&self.state).context("write the state as JSON")?;
        Ok(write::atomically(&self.path, text.as_bytes())?)
    }
}

impl State {
    /// Forgets a finished tuning, to begin another one with what the database knows.
    pub fn again(&mut self) {
        *self = State {
            schema: self.schema,
            line: std::mem::take(&mut self.line),
            ..State::default()
        };
    }

    pub fn n_jobs(&self) -> usize {
        let explored = self.batches.iter().map(|batch| batch.walls_s.len());
        self.n_jobs_before + self.accounts.len() + explored.sum::<usize>() + 2 * self.pairs.len()
    }

    /// Drops a comparison of choices that will be others.
    pub fn forget_pairs(&mut self) {
        self.n_jobs_before += 2 * self.pairs.len();
        self.pairs.clear();
    }

    /// Goes on after a comparison: what the next batch changes is held against the last one's choices.
    pub fn reopen(&mut self) {
        self.forget_pairs();
        let n_dropped = self.batches.len().saturating_sub(1);
        let dropped = self.batches.drain(..n_dropped);
        self.n_jobs_before += dropped.map(|batch| batch.walls_s.len()).sum::<usize>();
        self.end = None;
    }

    pub fn n_trained(&self) -> usize {
        let trained = |batch: &&Batch| batch.choices.is_some();
        self.batches.iter().filter(trained).count()
    }

    /// The batch that goes on: the last one, unless it is trained.
    pub fn open_batch(&mut self) -> &mut Batch {
        if self
            .batches
            .last()
            .is_none_or(|batch| batch.choices.is_some())
        {
            self.batches.push(Batch::default());
        }
        self.batches.last_mut().expect("one was put there")
    }

    /// Whether the last training left every choice that matters as it was.
    pub fn is_stable(&self) -> bool {
        let trained: Vec<_> = self
            .batches
            .iter()
            .filter_map(|batch| batch.choices.as_ref())
            .collect();
        match trained[..] {
            [.., before, last] => before == last,
            _ => false,
        }
    }

    /// How long a job takes, by the slowest kind; `None` before the first.
    pub fn job_s(&self) -> Option<f64> {
        let last = self
            .batches
            .iter()
            .rev()
            .find(|batch| !batch.walls_s.is_empty());
        let explored = last.map(|batch| median(&batch.walls_s));
        let plain: Vec<f64> = self.accounts.iter().map(|one| one.wall_s).collect();
        let plain = (!plain.is_empty()).then(|| median(&plain));
        explored.into_iter().chain(plain).reduce(f64::max)
    }

    /// The whole time of jobs with the default over that of the last batch, which also explores.
    pub fn so_far(&self) -> Option<f64> {
        let last = self
            .batches
            .iter()
            .rev()
            .find(|batch| batch.walls_s.len() >= 3)?;
        let plain: Vec<f64> = self.accounts.iter().map(|one| one.wall_s).collect();
        (!plain.is_empty()).then(|| median(&plain) / median(&last.walls_s))
    }

    /// How many times as long as with the default the jobs took that explored, all together.
    pub fn exploring(&self) -> Option<f64> {
        let plain: Vec<f64> = self.accounts.iter().map(|one| one.wall_s).collect();
        let explored: Vec<f64> = self
            .batches
            .iter()
            .flat_map(|batch| batch.walls_s.clone())
            .collect();
        let known = !plain.is_empty() && !explored.is_empty();
        known.then(|| explored.iter().sum::<f64>() / explored.len() as f64 / median(&plain))
    }

    pub fn comparison(&self) -> Option<Comparison> {
        Comparison::of(&self.pairs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choices(best: &str) -> Option<Vec<Choice>> {
        Some(vec![Choice {
            cell: "allreduce [8, 16)".to_owned(),
            best: best.to_owned(),
        }])
    }

    fn batch(best: &str) -> Batch {
        Batch {
            walls_s: vec![2.0; 3],
            choices: choices(best),
        }
    }

    #[test]
    fn choices_are_stable_when_a_training_changed_none_that_matters() {
        let mut state = State::default();
        assert!(!state.is_stable());
        state.batches = vec![batch("default")];
        assert!(!state.is_stable(), "one training shows nothing");
        state.batches.push(batch("node:shm"));
        assert!(!state.is_stable());
        state.batches.push(batch("node:shm"));
        assert!(state.is_stable());
        state.open_batch().walls_s.push(1.0);
        assert!(state.is_stable(), "a batch that goes on changes nothing");
        assert_eq!((state.n_trained(), state.batches.len()), (3, 4));
    }

    #[test]
    fn a_state_is_read_back_by_the_same_line_alone_and_by_one_at_a_time() {
        let db = tempfile::tempdir().unwrap();
        let line = |last: &str| ["mpirun", "-n", "2", last].map(OsString::from).to_vec();
        let mut kept = Kept::open(db.path(), &line("./a")).unwrap();
        kept.state.open_batch().walls_s.push(1.5);
        kept.state.pairs.push(Pair {
            first: crate::comparison::Side::With,
            without_s: 2.0,
            with_s: 1.0,
        });
        kept.save().unwrap();
        let error = Kept::open(db.path(), &line("./a")).err().unwrap();
        assert!(error.to_string().contains("another"), "{error}");
        let state = kept.state.clone();
        drop(kept);
        assert_eq!(Kept::open(db.path(), &line("./a")).unwrap().state, state);
        assert_eq!(state.n_jobs(), 3);
        assert_eq!(
            Kept::open(db.path(), &line("./b")).unwrap().state.n_jobs(),
            0
        );
        // A torn or strange file is begun anew.
        let kept = Kept::open(db.path(), &line("./a")).unwrap();
        std::fs::write(&kept.path, "{").unwrap();
        drop(kept);
        assert_eq!(
            Kept::open(db.path(), &line("./a")).unwrap().state.n_jobs(),
            0
        );
    }
}
