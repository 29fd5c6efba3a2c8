//! A tuning's levers: what was learned of them, and the comparison at its end.

use colltune_core::account::JobSummary;
use colltune_core::catalogue;
use colltune_core::levers::learned::LearnedLever;
use colltune_core::library::Library;
use colltune_core::request::Mode;
use colltune_launch::levers::Lever;
use colltune_launch::nonblocking;
use colltune_models::levers::LeverJudged;
use colltune_output::progress;

use super::session::{Session, WORTH};
use super::state::{Choice, End};
use crate::asked;
use crate::command::lever;
use crate::comparison::percent;
use crate::together::{Round, Sides};

impl Session {
    /// Puts levers in place of `--lever nonblocking`, by what the first jobs recorded; the end where there is nothing to
    /// tune then.
    pub fn expand(&mut self, all: &[Lever]) -> anyhow::Result<Option<End>> {
        if self.kept.state.n_learned() == 0 {
            self.train()?;
        }
        let (levers, said) =
            lever::expanded(all, &self.trials.line, Some(&self.db), self.library());
        said.iter().for_each(|sentence| progress::tell(sentence));
        let names: Vec<&str> = levers.iter().map(|lever| &*lever.name).collect();
        if !names.is_empty() {
            progress::tell(&format!("Levers: {}.", names.join(", ")));
        }
        self.levers = levers;
        let is_over = self.levers.is_empty() && !self.is_asked();
        let is_over = is_over && self.kept.state.collectives_are_over;
        Ok(is_over.then_some(End::NothingToGain))
    }

    /// The library that the jobs ran on.
    pub fn library(&self) -> Option<Library> {
        self.newest_account()?.library.parse().ok()
    }

    fn newest_account(&self) -> Option<&JobSummary> {
        let told = self.kept.state.accounts.iter();
        told.rev().find_map(|one| one.summary.as_ref())
    }

    /// What `--lever nonblocking` could be about, in a sentence, where it is worth it and was not asked for.
    pub fn untried(&self) -> Option<String> {
        let job = self.newest_account()?;
        if self.wants_nonblocking || job.passed == 0 {
            return None;
        }
        if self.kept.state.n_learned() == 0 {
            self.train().ok()?;
        }
        let (library, passed) =
            lever::recorded(&self.db, self.library().map(|library| library.product))?;
        let per_rank = job.passed as f64 / job.ranks.max(1) as f64;
        let share = per_rank * nonblocking::mean_s(&passed)? / job.wall_s;
        let (line, reproducible) = (&self.trials.line, self.db.settings().ok()?.reproducible);
        let has_any = !nonblocking::levers(library, &passed, line, reproducible)
            .0
            .is_empty();
        (has_any && share >= WORTH).then(|| {
            format!(
                "From their starts to their ends the nonblocking, persistent and neighbourhood collectives are under way for \
                 about {} of a job, computing included: `--lever nonblocking` tries {library}'s algorithms for them.\n",
                percent(share.min(1.0))
            )
        })
    }

    /// What the jobs taught of the levers.
    pub fn learned(&self) -> Vec<LeverJudged> {
        match self.levers.is_empty() {
            true => Vec::new(),
            false => lever::learned(Some(&self.db), &self.levers, &self.trials.line),
        }
    }

    /// What is known of the levers about which the program itself asks.
    pub fn asked(&self) -> Vec<LearnedLever> {
        match self.newest_account() {
            Some(job) => asked::of_program(&self.db, job),
            None => Vec::new(),
        }
    }

    /// Whether the program said in its first jobs that it has any.
    pub fn is_asked(&self) -> bool {
        let told = self.kept.state.accounts.iter();
        let mut told = told.filter_map(|one| one.summary.as_ref());
        told.any(|job| !job.asked.is_empty())
    }

    /// Whether arms are compared: of levers on the line, or others than the first ones where the program asks.
    pub fn has_levers(&self) -> bool {
        !self.levers.is_empty() || !asked::changed(&self.asked()).1.is_empty()
    }

    pub fn n_sides(&self) -> usize {
        let state = &self.kept.state;
        // The default beside itself is no comparison.
        let is_other = |choice: &Choice| !catalogue::is_default(&choice.best);
        let has_other = !state.collectives_are_over && state.choices().iter().any(is_other);
        match self.has_levers() && has_other {
            true => 4,
            false => 2,
        }
    }

    /// How many sides a comparison may have once more is learned.
    pub fn n_sides_most(&self) -> usize {
        let has_levers = !self.levers.is_empty() || self.is_asked();
        match has_levers && !self.kept.state.collectives_are_over {
            true => 4,
            false => 2,
        }
    }

    /// Rounds of another comparison than the next one are nothing to go on from: others may have trained the database.
    pub fn forget_other_sides(&mut self) {
        let n_sides = self.n_sides();
        let mut rounds = self.kept.state.rounds.iter();
        if rounds.any(|round| round.seconds.len() != n_sides) {
            self.kept.state.forget_pairs();
        }
    }

    pub fn n_rounds(&self) -> usize {
        let state = &self.kept.state;
        state.rounds.len().max(state.pairs.len())
    }

    /// Rounds of the first arms and the chosen ones, with and without what is chosen for the collectives.
    pub fn compare_together(&mut self, n_rounds: usize) -> anyhow::Result<()> {
        let (told_first, told_chosen) = asked::changed(&self.asked());
        let first = Sides {
            line: lever::first(&self.levers),
            asked: told_first,
        };
        let chosen = Sides {
            line: lever::chosen(&self.levers, &self.learned()),
            asked: told_chosen,
        };
        let n_sides = self.n_sides();
        while self.kept.state.rounds.len() < n_rounds {
            let state = &mut self.kept.state;
            let how = (Mode::Exploit, state.rounds.len());
            let arms = (&first, &chosen);
            let round = Round::run(&mut self.trials, arms, n_sides, how, &mut state.with)?;
            state.pairs.extend(round.pair());
            state.rounds.push(round);
            self.pass_on();
            self.save()?;
        }
        Ok(())
    }
}
