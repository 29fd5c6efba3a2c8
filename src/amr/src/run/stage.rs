//! One stage: ghosts, stencil and checksums, a group of variables at a time.

use std::ops::Range;
use std::time::Instant;

use super::state::Run;
use crate::checksum::{self, Broken};
use crate::cost::{self, CostModel};
use crate::exact_sum::ExactSum;
use crate::exchange::intake::{Givers, Variable};
use crate::exchange::{Arrived, Task};
use crate::settings::Work;
use crate::stencil::between::average_between;
use crate::stencil::{Points, average, reciprocal};
use crate::telemetry::Phase;

/// The orders of the axes that `--permute` goes through.
const PERMUTATIONS: [[usize; 3]; 6] = [
    [0, 1, 2],
    [1, 2, 0],
    [2, 0, 1],
    [0, 2, 1],
    [1, 0, 2],
    [2, 1, 0],
];

impl Run<'_> {
    pub(super) fn stage(
        &mut self,
        step: u64,
        stage: u64,
        tell: &mut dyn FnMut(&str),
    ) -> Result<(), Broken> {
        self.count.block_stages += self.mesh.len() as u64;
        let freq = self.settings.options.checksum_freq;
        let checks = freq > 0 && stage.is_multiple_of(freq);
        let n = self.n_stages % 6;
        let order = match (self.plan.sweeps.len(), self.settings.options.permute) {
            (1, _) => &[0][..],
            (_, permuted) => &PERMUTATIONS[if permuted { n as usize } else { 0 }],
        };
        for vars in self.settings.groups() {
            let start = Instant::now();
            let task = Task {
                ranks: self.ranks,
                faces: &self.faces,
                plan: &self.plan,
                manner: self.settings.manner,
                order,
            };
            if self.settings.work == Work::Seven {
                let arrived = self.exchange.gather(task, &self.blocks.field, &vars);
                self.spend_comm(start);
                let clock = self.clock().clone();
                let _compute = clock.during(Phase::Compute);
                let before = clock.spent_in(Phase::Compute);
                for var in vars.clone() {
                    self.average_seven(&arrived, &vars, var);
                    self.sum_up(var, checks);
                    self.check_each(step, stage, var, checks, tell)?;
                }
                let computed = clock.spent_in(Phase::Compute) - before;
                let intake = self.intake_share * computed as f64;
                clock.rebook(Phase::Compute, Phase::Unpack, intake as u64);
                self.exchange.recycle(arrived);
                continue;
            }
            self.exchange.run(task, &mut self.blocks.field, &vars);
            self.spend_comm(start);
            for var in vars {
                self.update(var);
                self.sum_up(var, checks);
                self.check_each(step, stage, var, checks, tell)?;
            }
        }
        self.n_stages += 1;
        if checks && self.compat.is_none() {
            let start = Instant::now();
            let own = std::mem::take(&mut self.own_sums);
            let sums = {
                let _sum = self.clock().during(Phase::Sum);
                checksum::reduce(self.ranks, &own)
            };
            self.own_sums = vec![ExactSum::default(); own.len()];
            self.spend_reduce(start);
            self.accept(step, stage, 0, &sums, tell)?;
        }
        Ok(())
    }

    /// Seven points: each block is averaged between its neighbours' cells into the spare variable, so that
    /// memory is read and written once.
    fn average_seven(&mut self, arrived: &Arrived, vars: &Range<usize>, var: usize) {
        let start = Instant::now();
        let (machine, faces) = (self.machine, &self.faces);
        let cells = faces.stored.cells;
        let factor = reciprocal(7, self.n_stages);
        let variable = Variable {
            var,
            nth: var - vars.start,
            n_vars: vars.len(),
        };
        let uneven = self.settings.cost != CostModel::Uniform;
        // Reading the clock for each block and variable costs a few percent: blocks are measured where they are
        // asked for, and what ghosts take is measured for one variable of a group.
        let measures = self.balancer.measures() || self.wants_blocks();
        let measures_intake = variable.nth == 0 && self.clock().runs();
        let mut intake_s = 0.0;
        let (mut spare, field) = self.blocks.field.lend_spare();
        let (x_sums, planes) = self.scratch.split_at_mut(cells[0] * cells[1]);
        for (i, &slot) in self.own.iter().enumerate() {
            let of_block = (measures || measures_intake).then(Instant::now);
            let pace = self.slowness.begin();
            let old = field.var(slot, var);
            let givers = Givers {
                faces,
                field,
                arrived,
            };
            let ghosts = self.intake.planes(i, variable, givers, old, planes);
            if let Some(start) = of_block.filter(|_| measures_intake) {
                intake_s += start.elapsed().as_secs_f64();
            }
            let new = spare.block_mut(slot);
            average_between(machine, cells, factor, old, ghosts, new, x_sums);
            if uneven {
                let leaf = self.mesh.leaves()[self.own_leaves[i]];
                cost::iterate(old, self.settings.cost.iterations(leaf, || false));
            }
            self.slowness.end(pace);
            if let Some(start) = of_block.filter(|_| measures) {
                self.block_times[i] += start.elapsed().as_secs_f64();
            }
        }
        self.blocks.field.take_spare(var, spare);
        let took = start.elapsed().as_secs_f64();
        if measures_intake {
            self.intake_share = (intake_s / took.max(1e-9)).min(1.0);
        }
        self.times.calc += took;
        self.add_step_time(1, took);
    }

    fn update(&mut self, var: usize) {
        let start = Instant::now();
        let _compute = self.clock().during(Phase::Compute);
        let (shape, machine) = (self.settings.shape, self.machine);
        let n = self.n_stages;
        let (points, factor) = match self.settings.work {
            Work::SevenWithGhosts => (Points::Seven, reciprocal(7, n)),
            _ => (Points::TwentySeven, reciprocal(27, n)),
        };
        for (nth, &slot) in self.own.iter().enumerate() {
            let of_block = Instant::now();
            let pace = self.slowness.begin();
            let (field, scratch) = (&mut self.blocks.field, &mut self.scratch);
            let cells = field.var_mut(slot, var);
            average(machine, points, shape, factor, cells, scratch);
            let leaf = self.mesh.leaves()[self.own_leaves[nth]];
            let cells = self.blocks.field.var(slot, var);
            cost::iterate(cells, self.settings.cost.iterations(leaf, || false));
            self.slowness.end(pace);
            self.block_times[nth] += of_block.elapsed().as_secs_f64();
        }
        let took = start.elapsed().as_secs_f64();
        self.times.calc += took;
        self.add_step_time(1, took);
    }

    /// This rank's part of the sum of one variable, while its blocks are near.
    fn sum_up(&mut self, var: usize, checks: bool) {
        if !checks || self.compat.is_some() {
            return;
        }
        let start = Instant::now();
        let _sum = self.clock().during(Phase::Sum);
        let sum = &mut self.own_sums[var];
        checksum::add(&self.blocks.field, &self.own, var, sum);
        self.share_among_blocks(start);
        self.spend_reduce(start);
    }

    /// Blocks have as many cells each: they share alike in what all of them took since `start`.
    pub(super) fn share_among_blocks(&mut self, start: Instant) {
        let share = start.elapsed().as_secs_f64() / self.own.len().max(1) as f64;
        self.block_times.iter_mut().for_each(|time| *time += share);
    }

    /// Under `--compat`, the sum of one variable by a separate call.
    fn check_each(
        &mut self,
        step: u64,
        stage: u64,
        var: usize,
        checks: bool,
        tell: &mut dyn FnMut(&str),
    ) -> Result<(), Broken> {
        let start = Instant::now();
        let Some(compat) = self.compat.as_ref().filter(|_| checks) else {
            return Ok(());
        };
        let sum = compat.sum(checksum::quick(&self.blocks.field, &self.own, var));
        self.spend_reduce(start);
        self.accept(step, stage, var, &[sum], tell)
    }

    pub(super) fn accept(
        &mut self,
        step: u64,
        stage: u64,
        first_var: usize,
        sums: &[f64],
        tell: &mut dyn FnMut(&str),
    ) -> Result<(), Broken> {
        let settings = self.settings;
        if settings.options.report_diffusion && self.ranks.rank() == 0 {
            for (var, sum) in (first_var..).zip(sums) {
                let old = self.sums.last[var];
                tell(&format!(
                    "{step} var {var} sum {sum} old {old} diff {:e}",
                    sum - old
                ));
            }
        }
        let tolerance = settings.tolerance();
        self.sums
            .accept((step, stage), first_var, sums, tolerance, |var| {
                settings.conserves(var)
            })
    }

    pub(super) fn spend_comm(&mut self, start: Instant) {
        let took = start.elapsed().as_secs_f64();
        self.times.comm += took;
        self.add_step_time(0, took);
    }

    pub(super) fn spend_reduce(&mut self, start: Instant) {
        let took = start.elapsed().as_secs_f64();
        self.times.reduce += took;
        self.add_step_time(2, took);
    }
}
