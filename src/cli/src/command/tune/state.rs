//! What a tuning of one line has done so far, on disk after every job, so that it goes on where it was.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use anyhow::{Context as _, bail};
use colltune_core::account::JobSummary;
use colltune_db::check_word::check_word;
use colltune_db::folder::Folder;
use colltune_db::{Database, write};
use colltune_files::read_text;
use colltune_statistics::{Interval, median, median_ratio};
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use crate::comparison::{Comparison, Pair};
use crate::together::Round;

const SCHEMA: u32 = 1;
const BYTES_MAX: u64 = 16 << 20;

/// Fewer jobs that explored make no choices stable.
const JOBS_LEAST: usize = 10;
/// After so many the choices are compared, stable or not.
pub const JOBS_MAX: usize = 50;
/// The machine drifts, so what is said on the way is held against the newest jobs, of both kinds.
const NEWEST: usize = 5;
/// Fewer of each kind give no interval that is worth showing.
const TELLING: usize = 5;

/// The state of one line, in `DB/tune/`. The line itself is nobody's business, as it may hold secrets: a hash of it is
/// the file's name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct State {
    pub schema: u32,
    /// Jobs that ran the default and told where the time goes.
    pub accounts: Vec<Accounted>,
    /// Whole times of the jobs that explored, batch by batch; the last batch may go on.
    pub batches: Vec<Batch>,
    /// The comparison after the last batch.
    pub pairs: Vec<Pair>,
    /// The comparison of levers and collectives; where there are levers, the pairs are those of its collectives.
    pub rounds: Vec<Round>,
    /// The levers' names.
    pub levers: Vec<String>,
    /// Collectives are not worth tuning, so only the levers are.
    pub collectives_are_over: bool,
    /// What its jobs said, with the choices.
    pub with: Vec<JobSummary>,
    /// Jobs that ran and are not listed any more.
    pub n_jobs_before: usize,
    /// Seconds spent in all, over all invocations: jobs, trainings, calibration and what lies between.
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

/// The jobs before a training, and the choices that matter after it.
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
    /// Variants that are as good, as far as it matters.
    #[serde(default)]
    pub alike: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// The choices are stable and compared.
    Compared,
    /// Collectives take too little of the time, or no variant is worth looking for any longer.
    NothingToGain,
}

/// A state with its place, which nobody else writes to meanwhile.
pub struct Kept {
    pub state: State,
    folder: Folder,
    name: String,
    _lock: File,
}

impl Kept {
    /// Reads the state of a line, or begins one.
    ///
    /// Errors: somebody tunes this line in this database already; a folder that cannot be written.
    pub fn open(db: &Path, line: &[OsString]) -> anyhow::Result<Kept> {
        let db = Database::open(db)?;
        let folder = db.make_folder(&db.root().join("tune"))?;
        let mut bytes = Vec::new();
        for word in line {
            bytes.extend_from_slice(word.as_bytes());
            bytes.push(0);
        }
        let name = format!("{:016x}", check_word(&bytes));
        let lock_name = format!("{name}.lock");
        let lock_path = folder.path().join(&lock_name);
        let lock = folder
            .open_or_create(OsStr::new(&lock_name))
            .with_context(|| format!("write {}", lock_path.display()))?;
        if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
            bail!(
                "tune this line: another `colltune tune` does so ({} is locked)",
                lock_path.display()
            );
        }
        let name = format!("{name}.json");
        let path = folder.path().join(&name);
        let read = read_text(&path, BYTES_MAX).ok();
        // What cannot be read is begun anew: what the jobs recorded is in the database itself.
        let state = read.and_then(|text| serde_json::from_str::<State>(&text).ok());
        let state = state.filter(|state| state.schema == SCHEMA);
        let state = state.unwrap_or_else(|| State {
            schema: SCHEMA,
            ..State::default()
        });
        Ok(Kept {
            state,
            folder,
            name,
            _lock: lock,
        })
    }

    #[cfg(test)]
    fn path(&self) -> std::path::PathBuf {
        self.folder.path().join(&self.name)
    }

    pub fn save(&self) -> anyhow::Result<()> {
        let text = serde_json::to_string_pretty(&self.state).context("write the state as JSON")?;
        Ok(write::atomically(
            &self.folder,
            &self.name,
            text.as_bytes(),
        )?)
    }
}

impl State {
    /// Forgets a finished tuning, to begin another one with what the database knows.
    pub fn again(&mut self) {
        *self = State {
            schema: self.schema,
            ..State::default()
        };
    }

    pub fn n_jobs(&self) -> usize {
        self.n_jobs_before + self.accounts.len() + self.n_explored() + self.n_compared()
    }

    /// Jobs of the comparison.
    fn n_compared(&self) -> usize {
        let of_rounds = self.rounds.iter().map(|round| round.seconds.len());
        match self.rounds.is_empty() {
            true => 2 * self.pairs.len(),
            false => of_rounds.sum(),
        }
    }

    /// Jobs that explored, trained from or not.
    pub fn n_explored(&self) -> usize {
        self.batches.iter().map(|batch| batch.walls_s.len()).sum()
    }

    /// Drops a comparison of choices that will be others.
    pub fn forget_pairs(&mut self) {
        self.n_jobs_before += self.n_compared();
        self.rounds.clear();
        self.pairs.clear();
        self.with.clear();
    }

    /// Goes on after a comparison: what the next jobs change is held against the last training's choices.
    pub fn reopen(&mut self) {
        self.forget_pairs();
        let n_dropped = self.batches.len().saturating_sub(1);
        let dropped = self.batches.drain(..n_dropped);
        self.n_jobs_before += dropped.map(|batch| batch.walls_s.len()).sum::<usize>();
        let n_dropped = self.accounts.len().saturating_sub(1);
        self.n_jobs_before += self.accounts.drain(..n_dropped).count();
        self.end = None;
    }

    /// The choices after each training, with how many jobs had explored by then.
    fn trainings(&self) -> Vec<(usize, &[Choice])> {
        let mut n_jobs = 0;
        let mut found = Vec::new();
        for batch in &self.batches {
            n_jobs += batch.walls_s.len();
            found.extend(batch.choices.as_deref().map(|choices| (n_jobs, choices)));
        }
        found
    }

    /// How many jobs had explored at the last training; none before the first.
    pub fn n_learned(&self) -> usize {
        self.trainings().last().map_or(0, |last| last.0)
    }

    /// The choices that matter now; none before the first training.
    pub fn choices(&self) -> &[Choice] {
        self.trainings().last().map_or(&[], |last| last.1)
    }

    /// How many of them the last training changed; `None` before the second.
    pub fn n_changed(&self) -> Option<usize> {
        match self.trainings()[..] {
            [.., (_, before), (_, last)] => Some(changes(before, last)),
            _ => None,
        }
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

    /// Whether no training changed a choice that matters since half as many jobs had explored as did by now, or more.
    ///
    /// One rule whatever the jobs between two trainings are: a training after each of few jobs changes little because
    /// it learned little, so the jobs count and not the trainings, and what changed late is given longer.
    pub fn is_stable(&self) -> bool {
        let mut trainings = self.trainings().into_iter().rev();
        let Some((n_jobs, last)) = trainings.next().filter(|last| last.0 >= JOBS_LEAST) else {
            return false;
        };
        let same = trainings.take_while(|(_, choices)| changes(choices, last) == 0);
        same.last().is_some_and(|(since, _)| 2 * since <= n_jobs)
    }

    /// How long a job takes, by the slower kind; `None` before the first.
    pub fn job_s(&self) -> Option<f64> {
        let kinds = [self.newest_explored(), self.newest_plain()];
        let known = kinds.iter().filter(|walls_s| !walls_s.is_empty());
        known.map(|walls_s| median(walls_s)).reduce(f64::max)
    }

    /// The whole time of jobs with the default over that of the newest that explored, where there are enough of both.
    pub fn so_far(&self) -> Option<Interval> {
        let (explored, plain) = (self.newest_explored(), self.newest_plain());
        let tells = explored.len() >= TELLING && plain.len() >= TELLING;
        tells.then(|| median_ratio(&plain, &explored))
    }

    fn newest_explored(&self) -> Vec<f64> {
        let walls_s = self
            .batches
            .iter()
            .rev()
            .flat_map(|batch| batch.walls_s.iter().rev());
        walls_s.take(NEWEST).copied().collect()
    }

    fn newest_plain(&self) -> Vec<f64> {
        let newest = self.accounts.iter().rev().take(NEWEST);
        newest.map(|one| one.wall_s).collect()
    }

    /// Whether the next job should run the default: one beside so many that explore, or drift looks like a gain.
    pub fn wants_account(&self) -> bool {
        self.accounts.len() * NEWEST <= self.n_explored()
    }

    /// How many jobs with the default come before the last of `n` more that explore.
    pub fn n_accounts_due(&self, n: usize) -> usize {
        let Some(before_last) = (self.n_explored() + n).checked_sub(1) else {
            return 0;
        };
        let wanted = before_last / NEWEST + 1;
        wanted.saturating_sub(self.accounts.len()) * usize::from(n > 0)
    }

    /// How many times as long as with the default the jobs took that explored, where there are enough of both.
    pub fn exploring(&self) -> Option<Interval> {
        let plain: Vec<f64> = self.accounts.iter().map(|one| one.wall_s).collect();
        let explored: Vec<f64> = self
            .batches
            .iter()
            .flat_map(|batch| batch.walls_s.clone())
            .collect();
        let tells = explored.len() >= TELLING && plain.len() >= TELLING;
        tells.then(|| median_ratio(&explored, &plain))
    }

    pub fn comparison(&self) -> Option<Comparison> {
        Comparison::of(&self.pairs)
    }
}

/// In how many cells another variant is chosen, and not one that is as good by what is known now. A cell that matters on
/// one side alone is about as large as what does not matter, and no change.
fn changes(before: &[Choice], now: &[Choice]) -> usize {
    let before: BTreeMap<&str, &str> = before
        .iter()
        .map(|choice| (choice.cell.as_str(), choice.best.as_str()))
        .collect();
    let differs = |choice: &&Choice| {
        let was = before.get(choice.cell.as_str());
        was.is_some_and(|was| *was != choice.best && !choice.alike.iter().any(|one| one == was))
    };
    now.iter().filter(differs).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choices(best: &str) -> Option<Vec<Choice>> {
        Some(vec![Choice {
            cell: "allreduce [8, 16)".to_owned(),
            best: best.to_owned(),
            alike: vec!["p2p:ring".to_owned()],
        }])
    }

    /// Trainings after so many jobs each, with what they chose.
    fn trained(batches: &[(usize, &str)]) -> State {
        let batch = |&(n_jobs, best): &(usize, &str)| Batch {
            walls_s: vec![2.0; n_jobs],
            choices: choices(best),
        };
        State {
            batches: batches.iter().map(batch).collect(),
            ..State::default()
        }
    }

    #[test]
    fn choices_are_stable_when_none_that_matters_changed_in_the_last_half_of_ten_jobs_or_more() {
        assert!(!State::default().is_stable());
        let each = |bests: &[(usize, &str)]| -> State {
            let jobs = bests.iter().flat_map(|&(n, best)| vec![(1, best); n]);
            trained(&jobs.collect::<Vec<_>>())
        };
        assert!(!each(&[(9, "default")]).is_stable(), "too few");
        assert!(each(&[(10, "default")]).is_stable());
        assert!(!each(&[(5, "default"), (5, "node:shm")]).is_stable());
        assert!(each(&[(4, "default"), (6, "node:shm")]).is_stable());
        assert!(!each(&[(14, "default"), (14, "node:shm")]).is_stable());
        assert!(each(&[(14, "default"), (16, "node:shm")]).is_stable());
        // What was chosen before is as good.
        assert!(each(&[(9, "p2p:ring"), (1, "node:shm")]).is_stable());
        assert!(!each(&[(9, "node:shm"), (1, "p2p:ring")]).is_stable());
        // By the jobs, however many lie between two trainings.
        assert!(
            !trained(&[(10, "default")]).is_stable(),
            "one shows nothing"
        );
        assert!(!trained(&[(10, "default"), (10, "node:shm")]).is_stable());
        assert!(!trained(&[(10, "default"), (10, "node:shm"), (10, "node:shm")]).is_stable());
        let mut state = trained(&[(10, "default"), (10, "default")]);
        assert!(state.is_stable());
        state.open_batch().walls_s.push(1.0);
        assert!(state.is_stable(), "a batch that goes on changes nothing");
        let counts = (state.n_learned(), state.n_explored(), state.n_changed());
        assert_eq!(counts, (20, 21, Some(0)));
        // A cell that begins to matter changes no choice, and one that ceases to does not.
        state.batches[0].choices = Some(Vec::new());
        assert!(state.is_stable());
    }

    #[test]
    fn going_on_after_a_comparison_takes_as_many_jobs_as_before() {
        let mut state = trained(&[(1, "node:shm"); 12]);
        state.accounts = vec![
            Accounted {
                wall_s: 1.0,
                summary: None
            };
            3
        ];
        let n_jobs = state.n_jobs();
        state.reopen();
        assert_eq!(state.n_jobs(), n_jobs);
        assert!(!state.is_stable() && state.choices()[0].best == "node:shm");
        state.batches.extend(trained(&[(1, "node:shm"); 9]).batches);
        assert!(state.is_stable());
    }

    #[test]
    fn one_job_in_six_runs_the_default_to_compare_with() {
        let mut state = State::default();
        let mut ran = String::new();
        for _ in 0..13 {
            if state.wants_account() {
                state.accounts.push(Accounted {
                    wall_s: 3.0,
                    summary: None,
                });
                ran.push('d');
            } else {
                state.open_batch().walls_s.push(2.0);
                ran.push('e');
            }
        }
        assert_eq!(ran, "deeeeedeeeeed");
        assert_eq!(
            (state.so_far(), state.job_s()),
            (None, Some(3.0)),
            "three tell nothing"
        );
        for _ in 0..12 {
            match state.wants_account() {
                true => state.accounts.push(Accounted {
                    wall_s: 3.0,
                    summary: None,
                }),
                false => state.open_batch().walls_s.push(2.0),
            }
        }
        let so_far = state.so_far().expect("five of each");
        assert_eq!((so_far.low, so_far.value, so_far.high), (1.5, 1.5, 1.5));
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
        let text = std::fs::read_to_string(Kept::open(db.path(), &line("./a")).unwrap().path());
        assert!(
            !text.unwrap().contains("mpirun"),
            "the line is kept as a hash alone"
        );
        // A torn or strange file is begun anew.
        let kept = Kept::open(db.path(), &line("./a")).unwrap();
        std::fs::write(kept.path(), "{").unwrap();
        drop(kept);
        assert_eq!(
            Kept::open(db.path(), &line("./a")).unwrap().state.n_jobs(),
            0
        );
    }
}
