//! The steps of a tuning, one after the other, each from what the state says.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use colltune_core::catalogue;
use colltune_core::request::Mode;
use colltune_db::{Database, Generation, LibraryReport};
use colltune_models::statistics::CellStatistics;

use super::state::{Accounted, Choice, End, JOBS_MAX, Kept};
use super::words;
use crate::asked;
use crate::command::compare::Found;
use crate::command::lever;
use crate::command::train::{counted, goes_on};
use crate::command::verdict::{self, Judged};
use crate::comparison::{Until, is_clear, orders, percent, seconds, tried};
use colltune_launch::levers::Lever;
use colltune_launch::trial::{Done, Trials, Way, summary};
use colltune_output::failure::Stopped;
use colltune_output::progress;

/// So many jobs look whether there is anything to gain.
const LOOKS: usize = 3;
/// Below this share of the whole time, collectives beyond waiting are not worth tuning. Halved, they give half of it.
pub const WORTH: f64 = 0.02;
/// A comparison has so many pairs at least, however short the budget is.
pub const PAIRS_LEAST: usize = 3;
/// A cell matters from this share of the time on.
const MATTERS: f64 = 0.01;
/// Variants of a cell are alike where the slower one costs less than this share of the time in collectives.
const ALIKE: f64 = 0.005;

/// One invocation.
pub struct Session {
    pub kept: Kept,
    pub trials: Trials,
    pub db: Database,
    pub batch: usize,
    pub pairs: usize,
    /// Whether fewer pairs do where they are clear.
    pub is_brief: bool,
    pub until: Option<Until>,
    pub budget: Option<Duration>,
    /// How many jobs this invocation runs at most, and how many ran before it.
    pub max_jobs: Option<usize>,
    pub n_jobs_before: usize,
    pub anyway: bool,
    pub levers: Vec<Lever>,
    /// Whether `--lever nonblocking` is to stand for further ones.
    pub wants_nonblocking: bool,
    /// How its end is told.
    pub as_json: bool,
    pub begun: Instant,
    /// What is told once.
    pub told: BTreeSet<String>,
    /// Until when its time is in the state.
    pub counted_until: Instant,
}

impl Session {
    /// Goes on until the end, the budget's end, or a failure.
    pub fn run(&mut self) -> anyhow::Result<End> {
        loop {
            self.forget_other_sides();
            let state = &self.kept.state;
            let is_stable = state.is_stable() && self.levers_are_settled();
            let (n_sides, n_left) = (self.n_sides(), self.left_in_batch());
            let of_batch =
                n_left + state.n_accounts_due(n_left) + self.n_sides_most() * PAIRS_LEAST;
            // A comparison that was interrupted is not begun anew for a batch.
            let is_last = self.max_jobs.is_some() && self.n_rounds() > 0
                || state.n_learned() > 0 && !self.allows(of_batch);
            let is_settled = is_stable || state.n_learned() >= JOBS_MAX;
            let next = match is_settled || is_last {
                true => n_sides * PAIRS_LEAST.saturating_sub(self.n_rounds()),
                false if self.max_jobs.is_some() => of_batch,
                false => n_left + n_sides * PAIRS_LEAST,
            };
            if !self.fits(next) || !self.allows(next) {
                return self.out_of_budget(next);
            }
            if is_settled || is_last {
                if !is_settled {
                    progress::tell(
                        "The choices are not stable yet, and are compared as they are (--max-jobs); the same command goes on.",
                    );
                }
                self.compare()?;
                return Ok(End::Compared);
            }
            // Pairs that a budget left behind are of choices that will be others.
            self.kept.state.forget_pairs();
            self.explore()?;
            if let Some(end) = self.learn()? {
                return Ok(end);
            }
        }
    }

    /// Whether further jobs would tell next to nothing of options, nor of levers that the program asks about.
    fn levers_are_settled(&self) -> bool {
        self.learned().iter().all(|one| one.is_settled) && asked::is_settled(&self.asked())
    }

    /// The first jobs: how long one takes, and how much of it collectives could give back.
    pub fn look(&mut self) -> anyhow::Result<Option<End>> {
        if self.kept.state.n_learned() > 0 {
            return Ok(None);
        }
        loop {
            let n_looks = self.kept.state.accounts.len();
            match self.promise() {
                Some(share) if share >= WORTH => return Ok(None),
                Some(share) if share < WORTH / 2.0 => break,
                None if n_looks > 0 => return Ok(None),
                _ if n_looks == LOOKS => break,
                _ => {}
            }
            if !self.allows(1) {
                return self.out_of_budget(1).map(Some);
            }
            progress::show(&format!(
                "job {}: how long it takes, and how much of it is collectives",
                n_looks + 1
            ));
            self.account()?;
            if n_looks == 0 {
                self.tell_first();
            }
        }
        if self.kept.state.collectives_are_over {
            return Ok(None);
        }
        let Some(share) = self.promise().filter(|share| *share < WORTH) else {
            return Ok(None);
        };
        progress::tell(&format!(
            "The time in collectives beyond waiting is {} of the whole time from the launcher's start to its end, so at most {} can be gained: nothing to tune.",
            percent(share),
            percent(share)
        ));
        if self.anyway {
            progress::tell("Going on all the same (--anyway).");
            return Ok(None);
        }
        Ok(self.collectives_end())
    }

    /// Collectives are not worth tuning: the end, unless there are levers.
    fn collectives_end(&mut self) -> Option<End> {
        if self.levers.is_empty() && !self.is_asked() && !self.wants_nonblocking {
            return Some(End::NothingToGain);
        }
        progress::tell("Going on with the levers alone.");
        self.kept.state.collectives_are_over = true;
        None
    }

    /// The largest share of a job's time that collectives beyond waiting took; `None` where no job told.
    fn promise(&self) -> Option<f64> {
        let told = self.kept.state.accounts.iter();
        let shares = told.filter_map(|one| one.summary.as_ref().map(summary::beyond_waiting));
        shares.reduce(f64::max)
    }

    fn tell_first(&self) {
        let Some(first) = self.kept.state.accounts.first() else {
            return;
        };
        let told = match &first.summary {
            None => "it did not tell where the time goes".to_owned(),
            Some(job) => {
                let waiting = job.waiting_share.map_or_else(
                    || "; how much of that is waiting for late ranks is not known".to_owned(),
                    |share| format!(", {} of that waiting for late ranks", percent(share)),
                );
                let share = percent(summary::collectives_share(job));
                format!("{share} of it in collectives{waiting}")
            }
        };
        progress::tell(&format!("A job takes {}, {told}.", seconds(first.wall_s)));
    }

    /// One job with the default.
    fn account(&mut self) -> anyhow::Result<()> {
        self.trials.arms = lever::first(&self.levers);
        let before = self.trials.traces();
        let done = self.job(Way::Tuned(Mode::Record), "with the default")?;
        ran_the_tuner(&done, self.trials.traces() != before)?;
        self.kept.state.accounts.push(Accounted {
            wall_s: done.wall_s,
            summary: done.summary,
        });
        self.save()
    }

    fn left_in_batch(&self) -> usize {
        let last = self.kept.state.batches.last();
        let open = last.filter(|batch| batch.choices.is_none());
        self.batch
            .saturating_sub(open.map_or(0, |batch| batch.walls_s.len()))
    }

    /// The rest of a batch of jobs that explore, now and then one with the default among them.
    fn explore(&mut self) -> anyhow::Result<()> {
        while self.left_in_batch() > 0 {
            let state = &self.kept.state;
            if state.wants_account() {
                progress::show("a job with the default, to compare with");
                self.account()?;
                continue;
            }
            let so_far = state.so_far().map_or_else(String::new, words::so_far);
            let number = state.n_explored() + 1;
            // Jobs that only look run the first arms: `compare` knows them by that.
            let tries = match state.collectives_are_over {
                true => "the levers' arms",
                false => "variants",
            };
            progress::show(&format!("job {number}: tries {tries}{so_far}"));
            let learned = self.learned();
            self.trials.arms = lever::draw(&self.levers, &learned, state.n_jobs() as u64);
            let done = self.job(Way::Tuned(Mode::Explore), &format!("that tries {tries}"))?;
            self.kept.state.open_batch().walls_s.push(done.wall_s);
            self.save()?;
        }
        Ok(())
    }

    /// Learns from the batch, and says what changed; the end where nothing is left to find.
    fn learn(&mut self) -> anyhow::Result<Option<End>> {
        if self.kept.state.collectives_are_over {
            if self.is_asked() {
                self.train()?;
            }
            self.kept.state.open_batch().choices = Some(Vec::new());
            self.save()?;
            return Ok(None);
        }
        progress::show("learns from what the jobs recorded");
        let report = self.train()?;
        for warning in report.ingest.warnings {
            if self.told.insert(warning.clone()) {
                progress::tell(&format!("colltune: {warning}"));
            }
        }
        let choices = choices(&self.db)?;
        let nothing = nothing_to_gain(&self.db, &report.libraries)?;
        self.kept.state.open_batch().choices = Some(choices);
        self.save()?;
        let sentence = words::learned(&self.kept.state, self.levers_are_settled());
        if let Some(sentence) = sentence.filter(|one| self.told.insert(one.clone())) {
            progress::tell(&sentence);
        }
        let Some(why) = nothing else {
            return Ok(None);
        };
        let n_jobs = counted(self.kept.state.n_learned() as u64, "job");
        // With `--anyway` every training would say it again.
        if self.anyway {
            return Ok(None);
        }
        progress::tell(&format!(
            "After {n_jobs} that tried variants: {why}. Nothing to tune."
        ));
        Ok(self.collectives_end())
    }

    /// As many pairs as the budget holds, and fewer where they are clear.
    pub fn compare(&mut self) -> anyhow::Result<()> {
        let mut n_pairs = self.pairs;
        let (n_sides, n_done) = (self.n_sides(), self.n_rounds());
        let has_room = |session: &Session, n_jobs| session.fits(n_jobs) && session.allows(n_jobs);
        while n_pairs > PAIRS_LEAST && !has_room(self, n_sides * n_pairs.saturating_sub(n_done)) {
            n_pairs -= 1;
        }
        if self.has_levers() {
            self.compare_together(n_pairs)?;
            while self.wants_more() && has_room(self, n_sides) {
                self.compare_together(self.kept.state.rounds.len() + 1)?;
            }
            return Ok(());
        }
        let mut found = Found {
            pairs: self.kept.state.pairs.clone(),
            with: self.kept.state.with.clone(),
            ..Found::default()
        };
        // Pair by pair, so that no more than one is lost.
        for pair in orders(1).skip(found.pairs.len()) {
            let is_clear = self.is_brief && is_clear(&found.pairs);
            let is_further = is_clear || found.pairs.len() >= n_pairs;
            if is_further && !(self.wants_more() && has_room(self, n_sides)) {
                break;
            }
            found.collect(&mut self.trials, &pair, n_pairs, Mode::Exploit)?;
            self.kept.state.pairs.clone_from(&found.pairs);
            self.kept.state.with.clone_from(&found.with);
            self.save()?;
        }
        self.pass_on();
        Ok(())
    }

    /// Leaves the comparison's verdict in the database; what that puts out of force.
    ///
    /// Errors: those of [`verdict::record`]; the same comparison can be judged again.
    pub fn judge(&mut self) -> anyhow::Result<Judged> {
        let state = &self.kept.state;
        let Some(found) = state.comparison() else {
            return Ok(Judged::default());
        };
        progress::show("what the comparison says of the choices");
        let compared = (&found, state.pairs.len());
        let interrupt = &self.trials.interrupt;
        let judged = verdict::record(&self.db, compared, &state.with, &|| goes_on(interrupt));
        progress::clear();
        judged
    }

    /// Writes the state, with all the time of this invocation in it.
    pub fn save(&mut self) -> anyhow::Result<()> {
        let now = Instant::now();
        let passed = now.duration_since(self.counted_until);
        self.kept.state.spent_s += passed.as_secs_f64();
        self.counted_until = now;
        self.kept.save()
    }

    fn job(&mut self, way: Way, how: &str) -> anyhow::Result<Done> {
        let done = tried(&mut self.trials, way, how);
        self.pass_on();
        done
    }

    /// What the tuner said in the jobs.
    pub fn pass_on(&mut self) {
        for line in std::mem::take(&mut self.trials.said) {
            progress::tell(&line);
        }
    }
}

/// Stops where a job told nothing: what comes of further ones could not be learned from.
fn ran_the_tuner(done: &Done, left_traces: bool) -> anyhow::Result<()> {
    if done.summary.is_some() || left_traces {
        return Ok(());
    }
    Err(Stopped {
        message: "no rank of the first job ran the tuner, so there is nothing to learn from: the program does not call \
                  MPI_Init, or calls that of a library inside itself, or its ranks run untuned for the reason above. \
                  `colltune doctor -- LINE` looks at the line"
            .to_owned(),
        code: 1,
    }
    .into())
}

/// Why nothing is to be gained, where what a training published says so of all libraries that it learned for.
fn nothing_to_gain(db: &Database, trained: &[LibraryReport]) -> anyhow::Result<Option<String>> {
    let mut why = None;
    for report in trained.iter().filter(|report| report.published) {
        let meta = Generation::load(db, report.library.clone())?.meta;
        let of_library = meta.map(|meta| meta.nothing_to_gain);
        match of_library.filter(|text| !text.is_empty()) {
            Some(text) => why = Some(text),
            None => return Ok(None),
        }
    }
    Ok(why)
}

/// What is chosen in the cells that matter, of every library.
fn choices(db: &Database) -> anyhow::Result<Vec<Choice>> {
    let mut found = Vec::new();
    for key in db.keys()? {
        let generation = Generation::load(db, key)?;
        let library = &generation.key;
        let matters = |cell: &&CellStatistics| cell.time_share >= MATTERS;
        found.extend(generation.cells.iter().filter(matters).map(|cell| Choice {
            cell: format!("{library} {}", cell.cell),
            best: cell.best.clone(),
            alike: alike(cell),
        }));
    }
    found.sort();
    Ok(found)
}

/// What would cost next to nothing in place of a cell's choice, as far as was measured.
fn alike(cell: &CellStatistics) -> Vec<String> {
    let gain = |name: &str| match catalogue::is_default(name) {
        true => Some(1.0),
        false => Some(cell.variant(name)?.contrast?.gain),
    };
    let costs_little = |name: &&str| {
        let longer = gain(&cell.best)
            .zip(gain(name))
            .map(|(best, its)| best / its - 1.0);
        *name != cell.best && longer.is_some_and(|longer| longer.abs() * cell.time_share < ALIKE)
    };
    let names = cell.variants.iter().map(|variant| variant.name.as_str());
    names.filter(costs_little).map(str::to_owned).collect()
}

/// Where the tables go.
pub fn tables(db: &Database) -> PathBuf {
    db.root().join("tables")
}

#[cfg(test)]
mod tests {
    use super::*;
    use colltune_core::model::{Model, SCHEMA};
    use colltune_core::space::Space;
    use colltune_db::{DataKey, generation};
    use colltune_models::Learned;

    /// What a training reports that published a generation of no cells, which says so.
    fn published(db: &Database, library: &str, nothing_to_gain: &str) -> LibraryReport {
        let key: DataKey = library.parse().unwrap();
        let learned = Learned {
            model: Model {
                schema: SCHEMA,
                library: library.to_owned(),
                machine: "test".to_owned(),
                generation: 1,
                learner: Default::default(),
                cells: Vec::new(),
            },
            statistics: Vec::new(),
            calls: 9,
            work: 1.0,
            control: Default::default(),
            nothing_to_gain: nothing_to_gain.to_owned(),
            notes: Vec::new(),
        };
        let meta = serde_json::json!({
            "schema": 2, "generation": 1, "library": library, "machine": "test", "colltune_version": "0",
            "created_unix_ms": 0, "seed": 1, "runs": 1, "records": 9, "calls": 9, "cells_measured": 0,
            "nothing_to_gain": nothing_to_gain, "learn_ms": 1,
        });
        let meta = serde_json::from_value(meta).unwrap();
        let space = Space { blocks: Vec::new() };
        generation::publish(db, &key, &learned, &space, &meta).unwrap();
        LibraryReport {
            library: key,
            generation: 1,
            published: true,
            runs: 1,
            records: 9,
            calls: 9,
            evidence: 0,
            seconds: 0.0,
            cells_measured: 0,
            cells_tuned: 0,
            cells_changed: 0,
            partitions_removed: 0,
        }
    }

    #[test]
    fn nothing_is_to_be_gained_where_all_libraries_that_were_learned_for_say_so() {
        let folder = tempfile::tempdir().unwrap();
        let db = Database::create_or_open(folder.path()).unwrap();
        let waits = published(&db, "openmpi-4.1.4", "nearly all of it is waiting");
        let equal = published(&db, "openmpi-5.0.3", "no variant is faster");
        let silent = published(&db, "mpich-4.0.2", "");
        let why = |trained: &[&LibraryReport]| {
            let trained: Vec<LibraryReport> = trained.iter().copied().cloned().collect();
            nothing_to_gain(&db, &trained).unwrap()
        };
        let text = |why: &str| Some(why.to_owned());
        assert_eq!(why(&[&waits]), text("nearly all of it is waiting"));
        assert_eq!(why(&[&waits, &equal]), text("no variant is faster"));
        // One that says nothing may gain, wherever it stands.
        assert_eq!(why(&[&silent]), None);
        assert_eq!(why(&[&waits, &silent]), None);
        assert_eq!(why(&[&silent, &waits]), None);
        // What was not learned anew is not asked.
        let old = |report: &LibraryReport| LibraryReport {
            published: false,
            ..report.clone()
        };
        let (old_waits, old_silent) = (old(&waits), old(&silent));
        assert_eq!(why(&[]), None);
        assert_eq!(why(&[&old_waits]), None);
        assert_eq!(
            why(&[&old_silent, &waits]),
            text("nearly all of it is waiting")
        );
    }
}
