//! One stage: ghosts, stencil and checksums, a group of variables at a time.

use std::ops::Range;
use std::time::Instant;

use super::Run;
use crate::checksum::{self, Broken};
use crate::exact_sum::ExactSum;
use crate::exchange::Order;
use crate::settings::Work;
use crate::stencil::{Points, average, reciprocal};

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
        let checks = freq > 0 && stage % freq == 0;
        for vars in self.settings.groups() {
            if self.plan.sweeps.len() == 1 {
                self.exchange_and_update(&vars, checks);
                self.check_each(step, stage, vars, checks, tell)?;
            } else {
                let permuted = self.settings.options.permute;
                let order = PERMUTATIONS[if permuted { (self.n_stages % 6) as usize } else { 0 }];
                let start = Instant::now();
                self.exchange.run(
                    self.ranks,
                    &self.faces,
                    &mut self.blocks.field,
                    &self.plan,
                    vars.clone(),
                    self.settings.manner,
                    &order,
                );
                self.spend_comm(start);
                for var in vars {
                    self.update(var);
                    self.sum_up(var, checks);
                    self.check_each(step, stage, var..var + 1, checks, tell)?;
                }
            }
        }
        self.n_stages += 1;
        if checks && self.compat.is_none() {
            let start = Instant::now();
            let own = std::mem::take(&mut self.own_sums);
            let sums = checksum::reduce(self.ranks, &own);
            self.own_sums = vec![ExactSum::default(); own.len()];
            self.spend_reduce(start);
            self.accept(step, stage, 0, &sums, tell)?;
        }
        Ok(())
    }

    /// Exchange in one sweep; each variable's ghosts are filled just before its stencil needs them, so
    /// that its blocks are read from memory once.
    fn exchange_and_update(&mut self, vars: &Range<usize>, checks: bool) {
        let start = Instant::now();
        let sweep = &self.plan.sweeps[0];
        let (field, faces) = (&mut self.blocks.field, &self.faces);
        let manner = self.settings.manner;
        let first = vars.start;
        if manner.order == Order::CopiesFirst {
            self.exchange.copy(faces, field, sweep, first);
        }
        let posted = self
            .exchange
            .post(self.ranks, faces, field, sweep, vars.clone(), manner);
        if manner.order == Order::SendsFirst {
            self.exchange.copy(faces, field, sweep, first);
        }
        let arrived = self.exchange.wait(self.ranks, posted);
        self.spend_comm(start);
        for var in vars.clone() {
            let start = Instant::now();
            let (sweep, field) = (&self.plan.sweeps[0], &mut self.blocks.field);
            if var != first {
                self.exchange.copy(&self.faces, field, sweep, var);
            }
            self.exchange
                .unpack(&self.faces, field, sweep, &arrived, vars, var);
            self.spend_comm(start);
            self.update(var);
            self.sum_up(var, checks);
        }
        self.exchange.recycle(arrived);
    }

    fn update(&mut self, var: usize) {
        let start = Instant::now();
        let (shape, machine) = (self.settings.shape, self.machine);
        let points = match self.settings.work {
            Work::Seven => Some(Points::Seven),
            Work::TwentySeven => Some(Points::TwentySeven),
            Work::Mixed => None,
        };
        let points = points.unwrap_or(Points::Seven);
        let n = match points {
            Points::Seven => 7,
            Points::TwentySeven => 27,
        };
        let factor = reciprocal(n, self.n_stages);
        for &slot in &self.own {
            let cells = self.blocks.field.var_mut(slot, var);
            average(machine, points, shape, factor, cells, &mut self.scratch);
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
        let sum = &mut self.own_sums[var];
        checksum::add(&self.blocks.field, &self.own, var, sum);
        self.spend_reduce(start);
    }

    /// Under `--compat`, the sums of `vars`, one call each.
    fn check_each(
        &mut self,
        step: u64,
        stage: u64,
        vars: Range<usize>,
        checks: bool,
        tell: &mut dyn FnMut(&str),
    ) -> Result<(), Broken> {
        for var in vars.filter(|_| checks) {
            let start = Instant::now();
            let Some(compat) = &self.compat else {
                return Ok(());
            };
            let own = checksum::quick(&self.blocks.field, &self.own, var);
            let sum = compat.sum(own);
            self.spend_reduce(start);
            self.accept(step, stage, var, &[sum], tell)?;
        }
        Ok(())
    }

    fn accept(
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
        let tolerance = 10f64.powi(-(settings.options.error_tol as i32));
        self.sums
            .accept((step, stage), first_var, sums, tolerance, |var| {
                settings.conserves(var)
            })
    }

    fn spend_comm(&mut self, start: Instant) {
        let took = start.elapsed().as_secs_f64();
        self.times.comm += took;
        self.add_step_time(0, took);
    }

    fn spend_reduce(&mut self, start: Instant) {
        let took = start.elapsed().as_secs_f64();
        self.times.reduce += took;
        self.add_step_time(2, took);
    }
}
