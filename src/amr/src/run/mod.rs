//! The run: steps of stages, checks, refinement and balance, and the summary.

mod adapt;
mod agree;
mod balance;
mod bandwidth;
mod checkpoint;
mod epoch;
mod gas;
mod mesh_run;
mod owners;
mod picture;
mod refining;
mod room;
mod stage;
mod start;
mod state;
mod surroundings;
mod telemetry;
mod vtk;
mod wanted;

use std::time::Instant;

use adapt::Adaptive;
pub use adapt::Event;
pub use mesh_run::{Chooser, MeshRun};
pub use owners::chosen;
use state::Run;
use wanted::step_length;

use crate::checksum::{self, Broken};
use crate::exact_sum::ExactSum;
use crate::field::Slot;
use crate::leaf::Grid;
use crate::ranks::{Op, Ranks};
use crate::report::{BlocksPerStep, Summary, Times, rss_max_bytes};
use crate::settings::{Settings, Work};
use crate::telemetry::{Clock, Counting, Phase};

/// Runs `settings` to the end. The summary is complete on rank 0.
///
/// Errors: the same on every rank, see [`Broken`]. `started` is when the program did; `tell` takes
/// lines for the user, on rank 0 only.
pub fn run(
    ranks: &dyn Ranks,
    settings: &Settings,
    started: Instant,
    tell: &mut dyn FnMut(&str),
) -> Result<(Summary, i64), Broken> {
    let counting = Counting::new(ranks);
    room::for_roots(&counting, settings)?;
    let topology = surroundings::topology(&counting, settings)?;
    let mut run = Run::start(&counting, settings, topology);
    let first = match &settings.options.restart {
        Some(folder) => run.restart(folder)?,
        None => {
            run.refine_at_start(tell)?;
            0
        }
    };
    run.begin_epochs(first);
    if run.balancer.is_demanded() {
        run.balance_when_due(first, run.count.splits + run.count.joins)?;
    }
    run.picture(first)?;
    run.write_vtk(first)?;
    run.times.startup = started.elapsed().as_secs_f64();
    let start = Instant::now();
    run.open_telemetry(first)?;
    let steps = run.steps(first, tell)?;
    run.end_epoch(steps);
    run.close_telemetry(steps)?;
    run.times.total = start.elapsed().as_secs_f64();
    let (mut summary, blocks_max) = run.finish(steps)?;
    if settings.options.bandwidth {
        summary.memory = Some(bandwidth::measure(ranks, summary.updates_per_s));
    }
    Ok((summary, blocks_max))
}

impl Run<'_> {
    /// All steps after `first`; gives the number of the last one.
    fn steps(&mut self, first: u64, tell: &mut dyn FnMut(&str)) -> Result<u64, Broken> {
        let options = &self.settings.options;
        let refines = options.num_refine > 0 && options.uniform_refine == 0;
        let mut step = first;
        if self.is_over(step) {
            return Ok(step);
        }
        loop {
            step += 1;
            self.begin_step(step);
            self.step_times.push([0.0; 5]);
            let delta = match self.settings.work {
                Work::Euler => self.gas_step(step, tell)?,
                _ => {
                    for stage in 0..self.settings.stages {
                        self.stage(step, stage, tell)?;
                    }
                    self.step_length()
                }
            };
            self.take_blocks(step);
            let start = Instant::now();
            self.steps_observed += 1;
            let splits_and_joins = self.count.splits + self.count.joins;
            let refines_now = options.refine_freq > 0 && step.is_multiple_of(options.refine_freq);
            if refines {
                self.objects.advance(delta);
                if refines_now {
                    self.refine(step, tell)?;
                }
            }
            let took = start.elapsed().as_secs_f64();
            self.add_step_time(3, took);
            self.turn_epoch(step, epoch::STEPS_MAX);
            self.balance_when_due(step, splits_and_joins)?;
            self.time += delta;
            {
                let _output = self.clock().during(Phase::Output);
                self.picture(step)?;
                self.write_vtk(step)?;
                self.checkpoint(step)?;
            }
            self.take_rows(step)?;
            let done = self.is_over(step);
            if refines_now || done {
                let times = std::mem::take(&mut self.step_times);
                if let Some(compat) = &self.compat {
                    compat.step_times(&times);
                }
            }
            if done {
                return Ok(step);
            }
        }
    }

    /// Where this rank's time is booked.
    fn clock(&self) -> &Clock {
        &self.counting.recorder.clock
    }

    fn is_over(&self, step: u64) -> bool {
        let end = self.settings.options.time;
        self.settings.n_steps.is_some_and(|n| step >= n) || end.is_some_and(|end| self.time >= end)
    }

    /// How far objects move in the next step.
    fn step_length(&self) -> f64 {
        step_length(self.settings, &self.objects, self.mesh.grid)
    }

    fn add_step_time(&mut self, which: usize, seconds: f64) {
        let times = self.step_times.last_mut().expect("a step has begun");
        times[which] += seconds;
        if which < 2 {
            times[4] += seconds;
        }
    }

    /// Judges the state that the run ends with, and sums the run up.
    ///
    /// Errors: a state that the last check, some stages back, could not see. Every rank finds the same.
    fn finish(mut self, steps: u64) -> Result<(Summary, i64), Broken> {
        let total = self.times.total;
        if self.gas.is_some() {
            self.fastest_signal(steps + 1)?;
        }
        let sums = match &self.compat {
            Some(compat) => {
                compat.finish();
                checksum::gather(self.ranks, &self.exact_sums())
            }
            None => self.reduced_sums(),
        };
        for (var, (&sum, &first)) in sums.iter().zip(&self.first_sums).enumerate() {
            if self.settings.conserves(var) {
                let drift = checksum::relative(sum, first);
                self.sums.drift_max = self.sums.drift_max.max(drift);
            }
        }
        let settings = self.settings;
        let last = (steps, settings.stages - 1);
        self.sums
            .accept(last, 0, &sums, settings.tolerance(), |var| {
                settings.conserves(var)
            })?;
        let shock = self.shock();
        let wave = self.wave_error();
        let (times, rss) = self.over_ranks();
        let updates = self.updates_since(self.count.block_stages_before);
        let stages = (steps * self.settings.stages) as f64;
        let mut summary = Summary {
            ranks: self.ranks.n_ranks(),
            steps,
            time_s: times,
            blocks_per_step: BlocksPerStep {
                min: self.count.blocks_min,
                avg: self.count.block_stages as f64 / stages,
                max: self.count.blocks_max,
            },
            splits: self.count.splits,
            joins: self.count.joins,
            refined_late: self.count.refined_late,
            steps_redone: self.count.steps_redone,
            cell_updates: updates,
            updates_per_s: updates as f64 / total,
            mesh_hash: format!("{:016x}", self.mesh.hash()),
            rss_max_bytes: rss,
            shock,
            wave,
            levers: self.lever_steps(),
            ..Summary::default()
        };
        summary.take_sums(&self.sums);
        Ok((summary, self.count.of_a_rank_max))
    }

    fn exact_sums(&self) -> Vec<ExactSum> {
        let mut sums = vec![ExactSum::default(); self.settings.shape.n_vars];
        if self.gas.is_some() {
            self.add_by_volume(&mut sums);
            return sums;
        }
        for (var, sum) in sums.iter_mut().enumerate() {
            checksum::add(&self.blocks.field, &self.own, var, sum);
        }
        sums
    }

    /// Adds means times volume, in units of the finest cell's volume: powers of two, so exactly.
    fn add_by_volume(&self, sums: &mut [ExactSum]) {
        let depth = self.mesh.grid.depth;
        for level in 0..=depth {
            let leaves = self.own.iter().zip(&self.own_leaves);
            let of_level = leaves.filter(|&(_, &i)| self.mesh.leaves()[i].level == level);
            let slots: Vec<Slot> = of_level.map(|(&slot, _)| slot).collect();
            for (var, sum) in sums.iter_mut().enumerate() {
                let mut part = ExactSum::default();
                checksum::add(&self.blocks.field, &slots, var, &mut part);
                part.times_power_of_two(3 * u32::from(depth - level));
                sum.merge(&part);
            }
        }
    }

    /// The sums over all ranks: of a gas, integrals over the domain.
    fn reduced_sums(&self) -> Vec<f64> {
        self.reduced(&self.exact_sums())
    }

    fn reduced(&self, own: &[ExactSum]) -> Vec<f64> {
        let sums = checksum::reduce(self.ranks, own);
        if self.gas.is_none() {
            return sums;
        }
        let Grid { roots, depth, .. } = self.mesh.grid;
        let blocks: f64 = roots.iter().map(|&n| f64::from(n << depth)).product();
        let cells = blocks * self.settings.shape.interior_cells() as f64;
        let volume = self.settings.domain().volume();
        sums.into_iter().map(|sum| sum / cells * volume).collect()
    }

    /// Mean times and the largest memory. Under `--compat` those of this rank: no further calls.
    fn over_ranks(&self) -> (Times, u64) {
        let rss = rss_max_bytes();
        if self.compat.is_some() {
            return (self.times, rss);
        }
        let mut times = self.times.to_array();
        self.ranks.allreduce_f64(&mut times, Op::Sum);
        let n = self.ranks.n_ranks() as f64;
        let mut rss = [rss as i64];
        self.ranks.allreduce_i64(&mut rss, Op::Max);
        (Times::from_array(times.map(|t| t / n)), rss[0] as u64)
    }
}
