//! Refinement between steps.

use std::time::Instant;

use super::start::fill_pulse;
use super::state::Run;
use super::wanted::wanted;
use crate::checksum::Broken;
use crate::options::CriterionName;
use crate::physics::indicator::jump_within_max;
use crate::refine::{Mark, apply, first_marks, is_balanced, settle_across, widen};
use crate::telemetry::Phase;

impl Run<'_> {
    pub(super) fn refine_at_start(&mut self, tell: &mut dyn FnMut(&str)) -> Result<(), Broken> {
        let options = &self.settings.options;
        if options.num_refine > 0 || options.uniform_refine == 1 {
            self.refine(0, tell)?;
            if self.gas.is_some() {
                // The gas at time 0 is known: cells that were split take it as it is.
                self.fill_gas();
                self.sum_at_start();
            } else if options.refine_by == CriterionName::Gradient {
                // The field has been filled anew at each pass.
                self.sum_at_start();
            }
        }
        let n = self.mesh.len() as u64;
        (self.count.blocks_min, self.count.blocks_max) = (n, n);
        Ok(())
    }

    /// Refines and joins, then balances if that is due. `step` 0 is before the first step.
    pub(super) fn refine(&mut self, step: u64, tell: &mut dyn FnMut(&str)) -> Result<(), Broken> {
        let refine = self.clock().during(Phase::Refine);
        self.observe(step)?;
        let start = Instant::now();
        let options = &self.settings.options;
        let passes = match step {
            0 => options.num_refine,
            _ => self.settings.passes,
        };
        if let Some(compat) = &self.compat {
            compat.levels(&self.mesh);
        }
        let mut changed = false;
        for _ in 0..passes {
            let changes = self.pass(step)?;
            changed |= changes;
            if let Some(compat) = &self.compat {
                compat.levels(&self.mesh);
            } else if !changes {
                // Objects stand still between passes: the next one would change nothing either.
                break;
            }
            if options.lb_opt == 2 && self.settings.trigger.is_none() {
                changed |= self.balance_within_pass(step)?;
            }
        }
        if let Some(compat) = &self.compat {
            compat.loads(&self.mesh);
            compat.moved();
        }
        self.times.refine += start.elapsed().as_secs_f64();
        if options.report_perf & 8 != 0 && self.ranks.rank() == 0 {
            for (level, n) in self.mesh.per_level().into_iter().enumerate() {
                tell(&format!(
                    "Number of blocks at level {level} at timestep {step} is {n}"
                ));
            }
            let n = self.mesh.len();
            tell(&format!("Total number of blocks at timestep {step} is {n}"));
        }
        if options.lb_opt > 0 && self.settings.trigger.is_none() && self.is_uneven() {
            changed |= self.balance(step)?;
            if let Some(compat) = &self.compat {
                compat.loads(&self.mesh);
                compat.levels(&self.mesh);
            }
        }
        let start = Instant::now();
        if changed {
            self.connect();
        }
        if let Some(compat) = &self.compat {
            compat.groups_and_partners(&self.mesh, &self.plan.n_partners());
        }
        self.times.refine += start.elapsed().as_secs_f64();
        drop(refine);
        let n = self.mesh.len() as u64;
        self.count.blocks_min = self.count.blocks_min.min(n);
        self.count.blocks_max = self.count.blocks_max.max(n);
        self.check(step)
    }

    /// One pass: each block goes up or down by one level at most. Says whether any did.
    ///
    /// Errors: no room for the blocks that splits add.
    fn pass(&mut self, step: u64) -> Result<bool, Broken> {
        let settings = self.settings;
        let field_wants = self.gas_wants(step).or_else(|| self.gradient_wants());
        let wants = |i: usize| {
            let leaf = self.mesh.leaves()[i];
            if settings.options.uniform_refine == 1 {
                return if leaf.level < settings.grid.depth {
                    Mark::Split
                } else {
                    Mark::Stay
                };
            }
            match &field_wants {
                Some(wants) => wants[i],
                None => wanted(settings, &self.objects, &self.mesh, leaf),
            }
        };
        let all = (0..self.mesh.len()).map(wants).collect();
        let widened = widen(&self.mesh, all, settings.refine_rings);
        let mut marks = first_marks(&self.mesh, |i| widened[i]);
        settle_across(&self.mesh, &mut marks, settings.across());
        if let Some(compat) = &self.compat {
            compat.pass(&self.mesh, wants);
            compat.gather_families(&self.mesh, &marks);
        }
        if marks.iter().all(|&mark| mark == Mark::Stay) {
            return Ok(false);
        }
        self.make_room(step, &marks)?;
        let (mesh, pass) = apply(&self.mesh, &marks);
        let moved = self
            .blocks
            .follow(self.ranks, &self.mesh, &mesh, &pass.origins);
        self.count.moved.n_blocks += moved.n_blocks;
        self.count.moved.n_bytes += moved.n_bytes;
        self.count.splits += pass.n_splits;
        self.count.joins += pass.n_joins;
        self.mesh = mesh;
        if let Some(gas) = &mut self.gas {
            gas.fastest = None;
        }
        if let Some(measured) = &mut self.measured {
            measured.adapt(&self.mesh);
        }
        if step == 0 && settings.options.refine_by == CriterionName::Gradient {
            // The field at time 0 is known: finer cells say more about it.
            fill_pulse(&mut self.blocks, &self.mesh, self.ranks.rank());
        }
        Ok(true)
    }

    /// With `--refine_by gradient`: what the first variable wants of each leaf of the whole mesh.
    fn gradient_wants(&self) -> Option<Vec<Mark>> {
        let options = &self.settings.options;
        if options.refine_by != CriterionName::Gradient {
            return None;
        }
        let own = self.mesh.own(self.ranks.rank()).map(|i| {
            let cells = self.blocks.field.var(self.blocks.slots[i], 0);
            self.mark_of_jump(jump_within_max(self.settings.shape, cells))
        });
        Some(self.marks_of_all(own.collect()))
    }

    /// What a block wants whose largest relative jump between cells is `jump`.
    pub(super) fn mark_of_jump(&self, jump: f64) -> Mark {
        let options = &self.settings.options;
        match jump {
            jump if jump > options.refine_above => Mark::Split,
            jump if jump < options.join_below => Mark::Join,
            _ => Mark::Stay,
        }
    }

    /// The marks of all leaves, from those that each rank gives for its own in their order.
    pub(super) fn marks_of_all(&self, own: Vec<Mark>) -> Vec<Mark> {
        let own: Vec<u8> = own.into_iter().map(|mark| mark as i8 as u8).collect();
        let all = self.ranks.allgather_bytes(&own);
        let mut next: Vec<_> = all.iter().map(|marks| marks.iter()).collect();
        let marks = self.mesh.owners().iter().map(|&owner| {
            let mark = next[owner as usize].next();
            match *mark.expect("a mark for each leaf of its owner") as i8 {
                1 => Mark::Split,
                -1 => Mark::Join,
                _ => Mark::Stay,
            }
        });
        marks.collect()
    }

    pub(super) fn check(&self, step: u64) -> Result<(), Broken> {
        if let Some(most) = self.settings.options.max_blocks {
            let counts = self.mesh.per_rank(self.ranks.n_ranks());
            if let Some(rank) = counts.iter().position(|&n| n as usize > most) {
                return Err(Broken::TooManyBlocks {
                    step,
                    rank,
                    n_blocks: counts[rank],
                    most,
                });
            }
        }
        if !self.settings.options.validate {
            return Ok(());
        }
        let mesh = self.mesh.is_valid(self.ranks.n_ranks());
        let mesh = mesh.and_then(|()| is_balanced(&self.mesh, self.settings.across()));
        let blocks = self.blocks.is_valid(&self.mesh, self.ranks.rank());
        // One rank's blocks may be wrong while another's are right: all stop.
        let mut wrong = [i32::from(blocks.is_err())];
        self.ranks.agree_max(&mut wrong);
        let what = match (mesh, blocks) {
            (Err(what), _) | (_, Err(what)) => what,
            _ if wrong[0] == 1 => "the blocks of another rank".into(),
            _ => return Ok(()),
        };
        Err(Broken::Invalid { step, what })
    }
}
