//! Placing blocks anew, and moving those that change owner.

use std::time::Instant;

use colltune_placement::bound::lower_bound_of;
use colltune_placement::{Balancer, Loads, PlacementError, Problem, Trigger, makespan};

use super::owners::{chosen, is_uneven, limit_moves};
use super::state::Run;
use crate::checksum::Broken;
use crate::measured::{Measured, reference_s};
use crate::placement::Question;
use crate::placement::library::Told;
use crate::ranks::Op;
use crate::settings::PlacementName;
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
        let told = Told {
            topology: self.topology.as_ref(),
            speeds: self.speeds(),
        };
        let placed = chosen(self.settings, question, told);
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
        let reference_s = reference_s(self.slowness);
        let observed = measured.observe(self.ranks, &self.mesh, &times, reference_s);
        observed.map_err(|error| Broken::Placement {
            step,
            what: error.to_string(),
        })
    }

    /// The speeds that the policy heeds, where they differ.
    fn speeds(&self) -> Option<&[f64]> {
        let speeds = self.measured.as_ref()?.speeds();
        match &self.settings.placement {
            PlacementName::Library(policy) => speeds.filter(|_| policy.heeds_speeds()),
            _ => None,
        }
    }

    /// Balances where `--balance_when` says so; `before` counts splits and joins before this step's.
    pub(super) fn balance_when_due(&mut self, step: u64, before: u64) -> Result<(), Broken> {
        let Some(mut balancer) = self.balancer.take() else {
            return Ok(());
        };
        let moved = self.balance_by(&mut balancer, step, before);
        self.balancer = Some(balancer);
        if moved? {
            self.connect();
            return self.check(step);
        }
        Ok(())
    }

    /// All costs are told to all only where loads, or steps and the mesh, say that a policy has to be asked.
    fn balance_by(
        &mut self,
        balancer: &mut Balancer,
        step: u64,
        before: u64,
    ) -> Result<bool, Broken> {
        let mesh_changed = self.count.splits + self.count.joins != before;
        if mesh_changed {
            balancer.mesh_changed(step);
        }
        let loads = match balancer.weighs_loads() {
            true => self.loads(step)?,
            false => Loads::default(),
        };
        if !balancer.asks(step, mesh_changed, loads) {
            return Ok(false);
        }
        self.observe(step)?;
        if balancer.trigger() == Trigger::BreakEven {
            return self.balance_if_it_pays(balancer, step);
        }
        balancer.placed(step);
        self.balance(step)
    }

    /// What the ranks take in a step: since costs were last told, or by these costs where that is now.
    fn loads(&self, step: u64) -> Result<Loads, Broken> {
        if self.measured.is_none() || self.steps_observed == 0 {
            return self.loads_by_costs(step, self.mesh.owners());
        }
        // Of the slow rank, what others would take, unless the policy knows that it is slow.
        let rank = self.ranks.rank();
        let of_rank = |speeds: Option<&[f64]>| speeds.map_or(1.0, |speeds| speeds[rank]);
        let speed = of_rank(self.measured.as_ref().and_then(Measured::speeds));
        let heeded = self.speeds();
        let per_step = speed / self.steps_observed as f64;
        let work: f64 = self.block_times.iter().sum::<f64>() * per_step;
        let largest = self.block_times.iter().copied().fold(0.0, f64::max) * per_step;
        // Whole nanoseconds: every rank has to find the same sum.
        let whole = |seconds: f64| (seconds * 1e9) as i64;
        let mut most = [whole(work / of_rank(heeded)), whole(largest)];
        self.ranks.allreduce_i64(&mut most, Op::Max);
        let mut sum = [whole(work)];
        self.ranks.allreduce_i64(&mut sum, Op::Sum);
        let n_ranks = self.ranks.n_ranks() as f64;
        let (all, fastest) = heeded.map_or((n_ranks, 1.0), |speeds| {
            (
                speeds.iter().sum(),
                speeds.iter().copied().fold(0.0, f64::max),
            )
        });
        let ideal = 1e-9 * sum[0] as f64 / all;
        Ok(Loads {
            makespan: 1e-9 * most[0] as f64,
            ideal,
            least: ideal.max(1e-9 * most[1] as f64 / fastest),
        })
    }

    /// The same of any owners, by what every rank knows.
    fn loads_by_costs(&self, step: u64, owners: &[u32]) -> Result<Loads, Broken> {
        let (costs, speeds) = (self.costs(), self.speeds());
        let n_ranks = self.ranks.n_ranks();
        let loads = || -> Result<Loads, PlacementError> {
            let mut problem = Problem::new(&costs, n_ranks as u32)?;
            if let Some(speeds) = speeds {
                problem = problem.with_speeds(speeds)?;
            }
            let makespan = makespan(&problem, owners);
            let ideal = costs.iter().sum::<f64>() / problem.total_speed();
            Ok(Loads {
                makespan,
                ideal,
                least: lower_bound_of(&problem, makespan),
            })
        };
        loads().map_err(|error| Broken::Placement {
            step,
            what: error.to_string(),
        })
    }

    /// Asks the policy and moves blocks if what is gained until the mesh changes exceeds what asking and moving takes.
    fn balance_if_it_pays(&mut self, balancer: &mut Balancer, step: u64) -> Result<bool, Broken> {
        let now = self.loads_by_costs(step, self.mesh.owners())?;
        if !balancer.asks(step, false, now) {
            balancer.refuse(now);
            return Ok(false);
        }
        let start = Instant::now();
        let owners = self.owners_to_be(step)?;
        let mut placing = [start.elapsed().as_secs_f64()];
        // Each rank has placed, and the slowest one is waited for.
        self.ranks.allreduce_f64(&mut placing, Op::Max);
        let bytes = self.blocks.field.bytes_per_block();
        let topology = self.topology.as_ref();
        let before = self.mesh.owners();
        let migrating = topology.map_or(0.0, |t| t.migration_s(before, &owners, bytes));
        let then = self.loads_by_costs(step, &owners)?;
        if !balancer.pays(step, now, then.makespan, [placing[0], migrating]) {
            return Ok(false);
        }
        balancer.placed(step);
        Ok(self.move_blocks(owners))
    }
}
