//! Refinement, balance and migration between steps.

use std::time::Instant;

use super::Run;
use crate::checksum::Broken;
use crate::leaf::Leaf;
use crate::mesh::Mesh;
use crate::placement::Question;
use crate::refine::{Mark, apply, first_marks, settle};
use crate::settings::Settings;

impl Run<'_> {
    pub(super) fn refine_at_start(&mut self, tell: &mut dyn FnMut(&str)) -> Result<(), Broken> {
        let options = &self.settings.options;
        if options.num_refine > 0 || options.uniform_refine == 1 {
            self.refine(0, tell)?;
        }
        let n = self.mesh.len() as u64;
        (self.count.blocks_min, self.count.blocks_max) = (n, n);
        Ok(())
    }

    /// Refines and joins, then balances if that is due. `step` 0 is before the first step.
    pub(super) fn refine(&mut self, step: u64, tell: &mut dyn FnMut(&str)) -> Result<(), Broken> {
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
            let changes = self.pass();
            changed |= changes;
            if let Some(compat) = &self.compat {
                compat.levels(&self.mesh);
            } else if !changes {
                // Objects stand still between passes: the next one would change nothing either.
                break;
            }
            if options.lb_opt == 2 {
                changed |= self.balance_within_pass(step);
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
        if options.lb_opt > 0 && self.is_uneven() {
            changed |= self.balance(step);
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
        let n = self.mesh.len() as u64;
        self.count.blocks_min = self.count.blocks_min.min(n);
        self.count.blocks_max = self.count.blocks_max.max(n);
        self.check(step)
    }

    /// One pass: each block goes up or down by one level at most. Says whether any did.
    fn pass(&mut self) -> bool {
        let settings = self.settings;
        let mut marks = first_marks(&self.mesh, |i| {
            let leaf = self.mesh.leaves()[i];
            if settings.options.uniform_refine == 1 {
                return if leaf.level < settings.grid.depth {
                    Mark::Split
                } else {
                    Mark::Stay
                };
            }
            self.wanted(leaf)
        });
        let changed = settle(&self.mesh, &mut marks);
        if let Some(compat) = &self.compat {
            compat.pass(&self.mesh, &changed);
            compat.gather_families(&self.mesh, &marks);
        }
        if marks.iter().all(|&mark| mark == Mark::Stay) {
            return false;
        }
        let (mesh, pass) = apply(&self.mesh, &marks);
        let moved = self
            .blocks
            .follow(self.ranks, &self.mesh, &mesh, &pass.origins);
        self.count.moved.n_blocks += moved.n_blocks;
        self.count.moved.n_bytes += moved.n_bytes;
        self.count.splits += pass.n_splits;
        self.count.joins += pass.n_joins;
        self.mesh = mesh;
        true
    }

    /// What the objects want of a block: finer cells where one touches it.
    fn wanted(&self, leaf: Leaf) -> Mark {
        let roots = self.mesh.grid.roots;
        let (mut lower, mut upper) = (leaf.lower(roots), leaf.upper(roots));
        if !self.settings.options.refine_ghost {
            return match self.objects.touch(lower, upper) {
                true => Mark::Split,
                false => Mark::Join,
            };
        }
        let ghost = ghost_widths(self.settings, &self.mesh, leaf.level);
        for d in 0..3 {
            lower[d] -= 2.0 * ghost[d];
            upper[d] += 2.0 * ghost[d];
        }
        if self.objects.touch(lower, upper) {
            return Mark::Split;
        }
        if leaf.level == 0 {
            return Mark::Join;
        }
        // Joined now, its parent would be split again at once.
        let ghost = ghost_widths(self.settings, &self.mesh, leaf.level - 1);
        for d in 0..3 {
            lower[d] -= ghost[d];
            upper[d] += ghost[d];
        }
        match self.objects.touch(lower, upper) {
            true => Mark::Stay,
            false => Mark::Join,
        }
    }

    fn balance_within_pass(&mut self, step: u64) -> bool {
        if let Some(compat) = &self.compat {
            compat.loads(&self.mesh);
        }
        if !self.is_uneven() {
            return false;
        }
        let moved = self.balance(step);
        if let Some(compat) = &self.compat {
            compat.levels(&self.mesh);
        }
        moved
    }

    /// Whether numbers of blocks differ enough for a new placement.
    fn is_uneven(&self) -> bool {
        let options = &self.settings.options;
        if options.uniform_refine == 1 && options.compat {
            return false;
        }
        let n_ranks = self.ranks.n_ranks();
        let counts = self.mesh.per_rank(n_ranks);
        let (min, max) = (counts.iter().min(), counts.iter().max());
        let (min, max) = (min.copied().unwrap_or(0), max.copied().unwrap_or(0));
        let ratio = ((max - min) * n_ranks as i64) as f64 / self.mesh.len() as f64;
        max > min + 1 && ratio > f64::from(options.inbalance) / 100.0
    }

    /// Places all blocks anew and moves those that change owner; says whether any did.
    fn balance(&mut self, step: u64) -> bool {
        let start = Instant::now();
        let costs = vec![1.0; self.mesh.len()];
        let mut owners = self.settings.policy().place(Question {
            mesh: &self.mesh,
            costs: &costs,
            n_ranks: self.ranks.n_ranks(),
        });
        let limit = self.settings.options.limit_move as usize;
        let limited = limit > 0 && step > 0;
        if let Some(compat) = &self.compat {
            compat.balance(self.settings, &self.mesh, &owners, limited);
        }
        if limited {
            limit_moves(&self.mesh, &mut owners, limit, self.ranks.n_ranks());
        }
        self.times.place += start.elapsed().as_secs_f64();
        if owners == self.mesh.owners() {
            return false;
        }
        let start = Instant::now();
        let moved = self.blocks.migrate(self.ranks, &self.mesh, &owners);
        self.count.moved.n_blocks += moved.n_blocks;
        self.count.moved.n_bytes += moved.n_bytes;
        self.mesh.place_on(owners);
        self.times.migrate += start.elapsed().as_secs_f64();
        true
    }

    fn check(&self, step: u64) -> Result<(), Broken> {
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
        self.ranks.allreduce_i32(&mut wrong, crate::ranks::Op::Max);
        let what = match (mesh, blocks) {
            (Err(what), _) | (_, Err(what)) => what,
            _ if wrong[0] == 1 => "the blocks of another rank".into(),
            _ => return Ok(()),
        };
        Err(Broken::Invalid { step, what })
    }
}

/// Half the extent of a cell of `level`, in the unit cube.
fn ghost_widths(settings: &Settings, mesh: &Mesh, level: u8) -> [f64; 3] {
    let depth = mesh.grid.depth;
    let half = f64::from(1u32 << (depth - level));
    std::array::from_fn(|d| {
        let mesh_size = f64::from(mesh.grid.roots[d] << (depth + 1));
        (half / settings.shape.cells[d] as f64) / mesh_size
    })
}

/// Lets each rank give away at most `percent` of its blocks: the finest first, as miniAMR chooses.
fn limit_moves(mesh: &Mesh, owners: &mut [u32], percent: usize, n_ranks: usize) {
    let counts = mesh.per_rank(n_ranks);
    let mut left: Vec<usize> = counts.iter().map(|&n| percent * n as usize / 100).collect();
    let number = |leaf: Leaf| {
        let [nx, ny, _] = mesh.grid.roots.map(|n| u64::from(n) << leaf.level);
        let [x, y, z] = leaf.at.map(u64::from);
        (z * ny + y) * nx + x
    };
    let mut order: Vec<usize> = (0..mesh.len()).collect();
    order.sort_by_cached_key(|&i| {
        let leaf = mesh.leaves()[i];
        (std::cmp::Reverse(leaf.level), number(leaf))
    });
    for i in order {
        let from = mesh.owners()[i];
        if owners[i] == from {
            continue;
        }
        match left[from as usize].checked_sub(1) {
            Some(rest) => left[from as usize] = rest,
            None => owners[i] = from,
        }
    }
}
