//! Epochs: stretches of the run in which levers keep their arms, and after which a tuner learns what was done.
//!
//! An epoch ends where costs are shared and a policy may be asked: at a refinement or where a trigger asks. It takes
//! [`STEPS_MIN`] steps at least, since shorter ones say more of noise than of their arms, and [`STEPS_MAX`] at most,
//! so that a mesh that never changes is tuned, too.

use std::time::Instant;

use super::state::Run;
use crate::report::LeverSteps;
use crate::telemetry::{Rows, Table};

pub(super) const STEPS_MIN: u64 = 5;
pub(super) const STEPS_MAX: u64 = 20;

impl Run<'_> {
    /// The first epoch begins with the mesh of the first step, or where a checkpoint was left.
    pub(super) fn begin_epochs(&mut self, step: u64) {
        let levers = &self.settings.levers;
        self.epoch.arms = vec![0; levers.len()];
        let n_arms = levers.iter().map(|lever| lever.names.len());
        self.epoch.steps = n_arms.map(|n| vec![0; n]).collect();
        if step > 0 && !levers.is_empty() {
            // Who read the checkpoint has placed blocks by no arm.
            self.balancer.demand();
        }
        self.begin_epoch(step);
    }

    fn begin_epoch(&mut self, step: u64) {
        let size = self.mesh.len() as f64 / self.ranks.n_ranks() as f64;
        let levers = self.settings.levers.iter();
        for (lever, arm) in levers.zip(&mut self.epoch.arms) {
            let chosen = match lever.names.len() {
                1 => 0,
                n => self.ranks.choose(lever.name, &lever.names, size).min(n - 1),
            };
            if std::mem::replace(arm, chosen) != chosen {
                lever.apply(chosen, &mut self.balancer);
            }
        }
        self.epoch.first_step = step;
        self.epoch.block_stages = self.count.block_stages;
        self.epoch.began = Some(Instant::now());
    }

    /// Ends the epoch after `step` if it has taken so many steps, and begins the next one; the run's last step begins
    /// none.
    pub(super) fn turn_epoch(&mut self, step: u64, steps_min: u64) {
        let steps = step.saturating_sub(self.epoch.first_step);
        let is_last = self.settings.n_steps.is_some_and(|n| step >= n);
        if self.settings.levers.is_empty() || steps < steps_min || is_last {
            return;
        }
        self.end_epoch(step);
        self.begin_epoch(step);
    }

    /// Ends the epoch after `step`: tells what cells were computed in it, whatever they cost.
    pub(super) fn end_epoch(&mut self, step: u64) {
        let Some(began) = self.epoch.began.take() else {
            return;
        };
        let steps = step - self.epoch.first_step;
        if steps == 0 {
            return;
        }
        let time_ns = began.elapsed().as_nanos() as u64;
        let updates = self.updates_since(self.epoch.block_stages);
        let rank = self.ranks.rank() as u64;
        let mut rows = Rows::default();
        for (nth, lever) in self.settings.levers.iter().enumerate() {
            let arm = self.epoch.arms[nth];
            self.epoch.steps[nth][arm] += steps;
            if lever.names.len() > 1 {
                let share = updates as f64 / self.ranks.n_ranks() as f64;
                self.ranks.done(lever.name, share);
            }
            let row = [step, rank, nth as u64, arm as u64, steps, updates, time_ns];
            rows.push(Table::Epochs, row);
        }
        if let Some(telemetry) = &mut self.telemetry {
            telemetry.rows.append(rows);
        }
    }

    /// Updates of single values of cells, of all ranks.
    pub(super) fn updates_since(&self, block_stages: u64) -> u64 {
        let shape = self.settings.shape;
        let of_block = shape.interior_cells() * shape.n_vars;
        (self.count.block_stages - block_stages) * of_block as u64
    }

    /// How many steps each arm of each lever ran.
    pub(super) fn lever_steps(&self) -> LeverSteps {
        let levers = self.settings.levers.iter().zip(&self.epoch.steps);
        let levers = levers.map(|(lever, steps)| {
            let arms = lever.names.iter().cloned().zip(steps.iter().copied());
            (
                lever.name.to_owned(),
                arms.filter(|(_, n)| *n > 0).collect(),
            )
        });
        levers.collect()
    }
}
