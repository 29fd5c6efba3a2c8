//! A tuning's levers: what was learned of them, and the comparison at its end.

use colltune_core::catalogue;
use colltune_core::request::Mode;
use colltune_models::levers::LeverJudged;

use super::session::Session;
use super::state::Choice;
use crate::command::lever;
use crate::together::Round;

impl Session {
    /// What the jobs taught of the levers.
    pub fn learned(&self) -> Vec<LeverJudged> {
        match self.levers.is_empty() {
            true => Vec::new(),
            false => lever::learned(Some(&self.db), &self.levers, &self.trials.line),
        }
    }

    pub fn n_sides(&self) -> usize {
        let state = &self.kept.state;
        // The default beside itself is no comparison.
        let is_other = |choice: &Choice| !catalogue::is_default(&choice.best);
        let has_other = !state.collectives_are_over && state.choices().iter().any(is_other);
        match self.levers.is_empty() || !has_other {
            true => 2,
            false => 4,
        }
    }

    pub fn n_rounds(&self) -> usize {
        let state = &self.kept.state;
        state.rounds.len().max(state.pairs.len())
    }

    /// Rounds of the first arms and the chosen ones, with and without what is chosen for the collectives.
    pub fn compare_together(&mut self, n_rounds: usize) -> anyhow::Result<()> {
        let first = lever::first(&self.levers);
        let chosen = lever::chosen(&self.levers, &self.learned());
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
