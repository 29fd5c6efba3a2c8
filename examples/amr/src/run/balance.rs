//! Placing blocks anew, and moving those that change owner.

use std::time::Instant;

use colltune_placement::{Prospect, Situation, Trigger};

use super::owners::{chosen, is_uneven, limit_moves};
use super::state::Run;
use crate::checksum::Broken;
use crate::cost::Measured;
use crate::placement::{Question, imbalance};
use crate::ranks::Op;
use crate::telemetry::Phase;

impl Run<'_> {
    pub(super) fn balance_within_pass(&mut self, step: u64) -> Result<bool, Broken> {
        if let Some(compat) = &self.compat {
            compat.loads(&self.mesh);
        }
        if !self.is_uneven() {
            return Ok(false);
        }
        let moved = self.balance(step)?;
        if let Some(compat) = &self.compat {
            compat.levels(&self.mesh);
        }
        Ok(moved)
    }

    /// Whether numbers of blocks differ enough for a new placement.
    pub(super) fn is_uneven(&self) -> bool {
        let options = &self.settings.options;
        if options.uniform_refine == 1 && options.compat {
            return false;
        }
        let costs = self.measured.as_ref().map(Measured::costs);
        is_uneven(options, &self.mesh, costs.as_deref(), self.ranks.n_ranks())
    }

    /// Places all blocks anew and moves those that change owner; says whether any did.
    ///
    /// Errors: a policy that fails, on every rank alike.
    pub(super) fn balance(&mut self, step: u64) -> Result<bool, Broken> {
        let owners = self.owners_to_be(step)?;
        Ok(self.move_blocks(owners))
    }

    /// What the policy answers now, within the limit of what may move.
    ///
    /// Errors: a policy that fails, on every rank alike.
    fn owners_to_be(&mut self, step: u64) -> Result<Vec<u32>, Broken> {
        let start = Instant::now();
        let _place = self.clock().during(Phase::Place);
        let costs = self.costs();
        let question = Question {
            mesh: &self.mesh,
            costs: &costs,
            n_ranks: self.ranks.n_ranks(),
        };
        let placed = chosen(self.settings, question, self.topology.as_ref());
        let mut owners = placed.map_err(|error| Broken::Placement {
            step,
            what: error.to_string(),
        })?;
        let limit = self.settings.options.limit_move as usize;
        let limited = limit > 0 && step > 0;
        if let Some(compat) = &self.compat {
            compat.balance(self.settings, &self.mesh, &owners, limited);
        }
        if limited {
            limit_moves(&self.mesh, &mut owners, limit, self.ranks.n_ranks());
        }
        self.times.place += start.elapsed().as_secs_f64();
        self.placed_at = step;
        Ok(owners)
    }

    /// Says whether any block moved.
    fn move_blocks(&mut self, owners: Vec<u32>) -> bool {
        if owners == self.mesh.owners() {
            return false;
        }
        let start = Instant::now();
        let _migrate = self.clock().during(Phase::Migrate);
        let moved = self.blocks.migrate(self.ranks, &self.mesh, &owners);
        self.count.moved.n_blocks += moved.n_blocks;
        self.count.moved.n_bytes += moved.n_bytes;
        self.mesh.place_on(owners);
        self.times.migrate += start.elapsed().as_secs_f64();
        true
    }

    /// What the leaves cost: measured, or all the same.
    fn costs(&self) -> Vec<f64> {
        match &self.measured {
            // A policy of this app wants positive costs.
            Some(measured) => measured.costs().into_iter().map(|c| c.max(1e-12)).collect(),
            None => vec![1.0; self.mesh.len()],
        }
    }

    /// Tells all ranks what the blocks have cost per step since this was last asked.
    pub(super) fn observe(&mut self, step: u64) -> Result<(), Broken> {
        let Some(measured) = &mut self.measured else {
            return Ok(());
        };
        if self.steps_observed == 0 {
            return Ok(());
        }
        let mut times: Vec<(usize, f64)> = self
            .own_leaves
            .iter()
            .zip(&self.block_times)
            .map(|(&i, time)| (i, time / self.steps_observed as f64))
            .collect();
        times.sort_unstable_by_key(|&(i, _)| i);
        let times: Vec<f64> = times.into_iter().map(|(_, time)| time).collect();
        self.block_times.fill(0.0);
        self.steps_observed = 0;
        let observed = measured.observe(self.ranks, &self.mesh, &times);
        observed.map_err(|error| Broken::Placement {
            step,
            what: error.to_string(),
        })
    }

    /// Balances where `--balance_when` says so; `before` counts splits and joins before this step's.
    pub(super) fn balance_when_due(&mut self, step: u64, before: u64) -> Result<(), Broken> {
        let Some(trigger) = self.settings.trigger else {
            return Ok(());
        };
        self.observe(step)?;
        let mesh_changed = self.count.splits + self.count.joins != before;
        if mesh_changed {
            self.mesh_life.ended(step - self.mesh_since);
            self.mesh_since = step;
        }
        let costs = self.costs();
        let n_ranks = self.ranks.n_ranks();
        let mean = costs.iter().sum::<f64>() / n_ranks as f64;
        let mut situation = Situation {
            steps_since_placed: step - self.placed_at,
            mesh_changed,
            makespan: mean * imbalance(&costs, self.mesh.owners(), n_ranks),
            mean,
            prospect: None,
        };
        let moved = match trigger {
            Trigger::BreakEven => self.balance_if_it_pays(step, &costs, &mut situation)?,
            trigger => trigger.is_due(&situation) && self.balance(step)?,
        };
        if moved {
            self.connect();
            return self.check(step);
        }
        Ok(())
    }

    /// Asks the policy and moves blocks if what is gained until the mesh changes exceeds what asking and moving takes.
    fn balance_if_it_pays(
        &mut self,
        step: u64,
        costs: &[f64],
        situation: &mut Situation,
    ) -> Result<bool, Broken> {
        let mut prospect = Prospect {
            // No placement is better than that.
            makespan: situation.mean,
            steps_left: self.mesh_life.steps_left(step - self.mesh_since),
            placing: self.placing_s,
            migrating: 0.0,
        };
        if prospect.gain(situation.makespan) <= 0.0 {
            return Ok(false);
        }
        let (start, last) = (Instant::now(), self.placed_at);
        let owners = self.owners_to_be(step)?;
        let mut took = [start.elapsed().as_secs_f64()];
        // Each rank has placed, and the slowest one is waited for.
        self.ranks.allreduce_f64(&mut took, Op::Max);
        self.placing_s = took[0];
        let (before, n_ranks) = (self.mesh.owners(), self.ranks.n_ranks());
        let bytes = self.blocks.field.bytes_per_block();
        let topology = self.topology.as_ref();
        prospect.makespan = situation.mean * imbalance(costs, &owners, n_ranks);
        prospect.placing = self.placing_s;
        prospect.migrating = topology.map_or(0.0, |t| t.migration_s(before, &owners, bytes));
        situation.prospect = Some(prospect);
        if !Trigger::BreakEven.is_due(situation) {
            self.placed_at = last;
            return Ok(false);
        }
        Ok(self.move_blocks(owners))
    }
}
