//! Refinement of a run with its cells.

use std::time::Instant;

use super::adapt::Adaptive;
use super::state::Run;
use super::wanted::wanted;
use crate::checksum::Broken;
use crate::placement::library::octants;
use crate::refine::{Mark, apply};
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
            }
        }
        let n = self.mesh.len() as u64;
        (self.count.blocks_min, self.count.blocks_max) = (n, n);
        Ok(())
    }

    /// Refines, joins and balances after `step`, and keeps its times.
    pub(super) fn refine(&mut self, step: u64, tell: &mut dyn FnMut(&str)) -> Result<(), Broken> {
        let refine = self.clock().during(Phase::Refine);
        let (start, placed) = (Instant::now(), self.times.place + self.times.migrate);
        self.adapt(step)?;
        let placed = self.times.place + self.times.migrate - placed;
        self.times.refine += start.elapsed().as_secs_f64() - placed;
        drop(refine);
        let n = self.mesh.len() as u64;
        if self.settings.options.report_perf & 8 != 0 && self.ranks.rank() == 0 {
            for (level, n) in self.mesh.per_level().into_iter().enumerate() {
                tell(&format!(
                    "Number of blocks at level {level} at timestep {step} is {n}"
                ));
            }
            tell(&format!("Total number of blocks at timestep {step} is {n}"));
        }
        self.count.blocks_min = self.count.blocks_min.min(n);
        self.count.blocks_max = self.count.blocks_max.max(n);
        Ok(())
    }

    /// What each leaf of the whole mesh wants.
    pub(super) fn marks_wanted(&mut self, step: u64) -> Vec<Mark> {
        let of_gas = match self.settings.options.uniform_refine {
            1 => None,
            _ => self.gas_wants(step),
        };
        of_gas.unwrap_or_else(|| wanted(self.settings, &self.objects, &self.mesh))
    }

    /// Splits and joins.
    ///
    /// Errors: no room for the blocks that splits add.
    pub(super) fn split_and_join(&mut self, step: u64, marks: &[Mark]) -> Result<(), Broken> {
        self.make_room(step, marks)?;
        let (mesh, pass) = apply(&self.mesh, marks);
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
        if self.balancer.measures() {
            self.balancer.adapt(&octants(&self.mesh).1);
        }
        Ok(())
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

    pub(super) fn check_mesh(&self, step: u64) -> Result<(), Broken> {
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
