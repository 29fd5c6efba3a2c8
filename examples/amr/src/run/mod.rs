//! The run: steps of stages, checks, refinement and balance, and the summary.

mod adapt;
mod picture;
mod stage;
mod start;

use std::time::Instant;

use crate::blocks::{Blocks, Moved};
use crate::checksum::{self, Broken, Checksums};
use crate::compat::Compat;
use crate::exact_sum::ExactSum;
use crate::exchange::Exchange;
use crate::exchange::face::Faces;
use crate::exchange::intake::Intake;
use crate::exchange::plan::Plan;
use crate::field::Slot;
use crate::mesh::Mesh;
use crate::object::Objects;
use crate::ranks::{Op, Ranks};
use crate::report::{BlocksPerStep, Summary, Times, rss_max_bytes};
use crate::settings::Settings;
use crate::stencil::Machine;

/// A run on one rank.
pub struct Run<'a> {
    ranks: &'a dyn Ranks,
    settings: &'a Settings,
    mesh: Mesh,
    blocks: Blocks,
    own: Vec<Slot>,
    faces: Faces,
    plan: Plan,
    intake: Intake,
    exchange: Exchange,
    objects: Objects,
    machine: Machine,
    scratch: Vec<f64>,
    sums: Checksums,
    /// Exact sums at start; under `--compat` on rank 0 only.
    first_sums: Vec<f64>,
    own_sums: Vec<ExactSum>,
    compat: Option<Compat<'a>>,
    times: Times,
    /// Of each step since the last report of them: exchange, stencil, checksum, refinement, first two.
    step_times: Vec<[f64; 5]>,
    count: Count,
    n_stages: u64,
}

/// What has been counted so far. Blocks, splits and joins are those of all ranks.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    block_stages: u64,
    blocks_min: u64,
    blocks_max: u64,
    of_a_rank_max: i64,
    splits: u64,
    joins: u64,
    moved: Moved,
}

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
    let mut run = Run::start(ranks, settings);
    run.refine_at_start(tell)?;
    run.picture(0)?;
    run.times.startup = started.elapsed().as_secs_f64();
    let start = Instant::now();
    let steps = run.steps(tell)?;
    run.times.total = start.elapsed().as_secs_f64();
    Ok(run.finish(steps))
}

impl Run<'_> {
    /// All steps; gives how many there were.
    fn steps(&mut self, tell: &mut dyn FnMut(&str)) -> Result<u64, Broken> {
        let options = &self.settings.options;
        let refines = options.num_refine > 0 && options.uniform_refine == 0;
        let (mut step, mut time, mut delta) = (0, 0.0, self.step_length());
        loop {
            step += 1;
            self.step_times.push([0.0; 5]);
            for stage in 0..options.stages_per_ts {
                self.stage(step, stage, tell)?;
            }
            let start = Instant::now();
            let refines_now = options.refine_freq > 0 && step % options.refine_freq == 0;
            if refines {
                self.objects.advance(delta);
                if refines_now {
                    self.refine(step, tell)?;
                }
            }
            let took = start.elapsed().as_secs_f64();
            self.add_step_time(3, took);
            self.picture(step)?;
            time += delta;
            let out_of_steps = self.settings.n_steps.is_some_and(|n| step >= n);
            let out_of_time = options.time.is_some_and(|end| time >= end);
            let done = out_of_steps || out_of_time;
            if refines_now || done {
                let times = std::mem::take(&mut self.step_times);
                if let Some(compat) = &self.compat {
                    compat.step_times(&times);
                }
            }
            if done {
                return Ok(step);
            }
            delta = self.step_length();
        }
    }

    /// How far objects move in the next step.
    fn step_length(&self) -> f64 {
        let Some(time) = self.settings.options.time else {
            return 1.0;
        };
        if let Some(steps) = self.settings.n_steps {
            return time / steps as f64;
        }
        let (grid, cells) = (self.mesh.grid, self.settings.shape.cells);
        let finest = std::array::from_fn(|d| {
            let blocks = u64::from(grid.roots[d]) << (grid.depth + 1);
            (blocks * cells[d] as u64) as f64
        });
        self.objects.time_step(finest)
    }

    fn add_step_time(&mut self, which: usize, seconds: f64) {
        let times = self.step_times.last_mut().expect("a step has begun");
        times[which] += seconds;
        if which < 2 {
            times[4] += seconds;
        }
    }

    fn finish(mut self, steps: u64) -> (Summary, i64) {
        let total = self.times.total;
        // The last check may lie some stages back.
        let own = self.exact_sums();
        let sums = match &self.compat {
            Some(compat) => {
                compat.finish();
                checksum::gather(self.ranks, &own)
            }
            None => checksum::reduce(self.ranks, &own),
        };
        for (var, (&sum, &first)) in sums.iter().zip(&self.first_sums).enumerate() {
            if self.settings.conserves(var) {
                let drift = checksum::relative(sum, first);
                self.sums.drift_max = self.sums.drift_max.max(drift);
            }
        }
        self.sums.last = sums;
        let (times, rss) = self.over_ranks();
        let updates = self.count.block_stages
            * (self.settings.shape.interior_cells() * self.settings.shape.n_vars) as u64;
        let stages = (steps * self.settings.options.stages_per_ts) as f64;
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
            cell_updates: updates,
            updates_per_s: updates as f64 / total,
            mesh_hash: format!("{:016x}", self.mesh.hash()),
            rss_max_bytes: rss,
            ..Summary::default()
        };
        summary.take_sums(&self.sums);
        (summary, self.count.of_a_rank_max)
    }

    fn exact_sums(&self) -> Vec<ExactSum> {
        let mut sums = vec![ExactSum::default(); self.settings.shape.n_vars];
        for (var, sum) in sums.iter_mut().enumerate() {
            checksum::add(&self.blocks.field, &self.own, var, sum);
        }
        sums
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
