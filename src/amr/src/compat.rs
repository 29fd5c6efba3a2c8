//! miniAMR's collective calls, where this app needs fewer or others.
//!
//! Under `--compat` the same calls are made in the same order: kind, element type, count and
//! communicator. What decides their number (sweeps until nothing changes, cuts of the bisection,
//! blocks that move to be joined) follows from facts that every rank holds. The contents are this
//! run's own numbers where they exist, so that sums come out as they should, and zeros elsewhere.
//!
//! Not followed: what miniAMR does when a rank's blocks come near `--max_blocks`.

mod sweeps;

use crate::leaf::{FACES, Leaf};
use crate::mesh::{Mesh, Neighbour};

use crate::placement::factors;
use crate::placement::rcb::{Rcb, Step};
use crate::ranks::{Op, Ranks};
use crate::refine::Mark;
use crate::settings::{PlacementName, Settings};

/// The sub-communicators of the bisection, as miniAMR makes them at start.
pub struct Compat<'a> {
    world: &'a dyn Ranks,
    /// One below the world for each prime factor but the last; the last one is made and never used.
    parts: Vec<Box<dyn Ranks>>,
}

impl<'a> Compat<'a> {
    /// Hands out the parameters and splits the world by the factors of its size.
    pub fn start(world: &'a dyn Ranks, settings: &Settings) -> Compat<'a> {
        world.broadcast_i32(0, &mut [0; 39]);
        if let Some(time) = settings.options.time {
            world.broadcast_f64(0, &mut [time]);
        }
        let mut objects: Vec<f64> = settings
            .objects
            .as_slice()
            .iter()
            .flat_map(|object| object.arguments())
            .collect();
        world.broadcast_f64(0, &mut objects);
        let mut compat = Compat {
            world,
            parts: Vec::new(),
        };
        let mut size = world.n_ranks();
        for factor in all_factors(size) {
            size /= factor;
            let above = compat.part(compat.parts.len());
            let colour = above.rank() / size;
            let part = above.split(colour);
            compat.parts.push(part);
        }
        compat
    }

    /// The ranks among which the `depth`-th cut is made.
    fn part(&self, depth: usize) -> &dyn Ranks {
        match depth.checked_sub(1) {
            None => self.world,
            Some(i) => self.parts[i].as_ref(),
        }
    }

    fn ints(&self, n: usize) {
        self.world.allreduce_i32(&mut vec![0; n], Op::Sum);
    }

    /// Numbers of blocks per level.
    pub fn levels(&self, mesh: &Mesh) {
        let grid = mesh.grid;
        let mut counts = vec![0; usize::from(grid.depth) + 1];
        for i in mesh.own(self.world.rank()) {
            counts[usize::from(mesh.leaves()[i].level)] += 1;
        }
        self.world.allreduce_i64(&mut counts, Op::Sum);
        debug_assert_eq!(counts, mesh.per_level());
    }

    /// The sweeps that settle the marks of one pass, and the checks for room before splitting.
    ///
    /// `wants` is what each leaf wants for itself.
    pub fn pass(&self, mesh: &Mesh, wants: impl Fn(usize) -> Mark) {
        let finest = mesh.per_level().iter().rposition(|&n| n > 0);
        let finest = finest.expect("a mesh has leaves");
        let sweeps = sweeps::count(mesh, wants);
        for of_level in sweeps[..=finest].iter().rev() {
            let n = of_level.by_splits + of_level.by_stays;
            (0..n).for_each(|_| self.ints(1));
        }
        self.world.allreduce_i32(&mut [0], Op::Max);
        self.world.allreduce_i32(&mut [0], Op::Max);
    }

    /// Moves of blocks to where they will be joined.
    pub fn gather_families(&self, mesh: &Mesh, marks: &[Mark]) {
        let n_ranks = self.world.n_ranks();
        self.ints(n_ranks);
        self.ints(n_ranks);
        self.ints(1);
        let homes = mesh.homes().expect("kept under --compat");
        let home = |leaf: Leaf| homes.get(&leaf.packed()).copied();
        let moves = (0..mesh.len()).any(|i| {
            let parent = mesh.leaves()[i].parent();
            marks[i] == Mark::Join && parent.and_then(home) != Some(mesh.owners()[i])
        });
        if moves {
            self.world.allreduce_i32(&mut [0], Op::Max);
            self.world.alltoall_i32(&mut vec![0; n_ranks]);
            self.ints(1);
        }
    }

    /// The least, most and total number of blocks of a rank.
    pub fn loads(&self, mesh: &Mesh) {
        let own = mesh.own(self.world.rank()).count() as i32;
        for op in [Op::Min, Op::Max, Op::Sum] {
            self.world.allreduce_i32(&mut [own], op);
        }
    }

    /// Blocks moved by a refinement.
    pub fn moved(&self) {
        self.ints(1);
    }

    /// Counting for a new placement, up to where blocks move; `owners` is what it led to.
    pub fn balance(
        &self,
        settings: &Settings,
        policy: &PlacementName,
        mesh: &Mesh,
        owners: &[u32],
        limited: bool,
    ) {
        match policy {
            PlacementName::Rcb => self.bisect(settings, mesh),
            _ => self.cut_curve(mesh),
        }
        self.ints(1);
        if owners != mesh.owners() {
            let n_ranks = self.world.n_ranks();
            self.world.alltoall_i32(&mut vec![0; n_ranks]);
            if limited {
                self.world.alltoall_i32(&mut vec![0; n_ranks]);
                self.ints(1);
            }
            self.ints(1);
        }
    }

    fn bisect(&self, settings: &Settings, mesh: &Mesh) {
        let costs = vec![1.0; mesh.len()];
        let question = crate::placement::Question {
            mesh,
            costs: &costs,
            n_ranks: self.world.n_ranks(),
        };
        let rcb: Rcb = settings.rcb;
        let (_, steps) = rcb.place_stepwise(question);
        let rank = self.world.rank();
        let mine = |step: &&Step| (step.first_rank..step.first_rank + step.n_ranks).contains(&rank);
        for step in steps.iter().filter(mine) {
            let part = self.part(step.depth);
            if settings.options.change_dir {
                part.allreduce_i32(&mut [0; 3], Op::Min);
                part.allreduce_i32(&mut [0; 3], Op::Max);
            }
            let bins = |axis: usize| (mesh.grid.roots[axis] as usize) << (mesh.grid.depth + 1);
            part.allreduce_i32(&mut [0], Op::Sum);
            part.allreduce_i32(&mut vec![0; bins(step.axis)], Op::Sum);
            if settings.options.break_ties {
                let n_cuts = step.tie_axes.iter().filter(|&&a| a == (step.axis + 1) % 3);
                n_cuts.for_each(|_| part.scan_i32(&mut [0]));
            } else {
                for &axis in &step.tie_axes {
                    part.allreduce_i32(&mut vec![0; bins(axis)], Op::Sum);
                }
            }
        }
    }

    /// Each cut that does not fall between root blocks is looked for level by level.
    fn cut_curve(&self, mesh: &Mesh) {
        let (rank, mut first, mut last) = (self.world.rank(), 0, mesh.len());
        let mut size = self.world.n_ranks();
        for (depth, factor) in factors(size).into_iter().enumerate() {
            let part = self.part(depth);
            part.allreduce_i32(&mut [0], Op::Sum);
            part.allreduce_i32(&mut vec![0; mesh.grid.n_roots()], Op::Sum);
            let share = (last - first).div_ceil(factor);
            let ends: Vec<usize> = (1..=factor)
                .map(|j| (first + j * share).min(last))
                .collect();
            for &end in &ends[..factor - 1] {
                for _ in 0..levels_to_part(mesh, end) {
                    part.allreduce_i32(&mut [0; 8], Op::Sum);
                }
            }
            let place = rank % size / (size / factor);
            let start = place.checked_sub(1).map_or(first, |before| ends[before]);
            (first, last, size) = (start, ends[place], size / factor);
        }
    }

    /// Connected sets of each rank's blocks and partners of the exchange.
    pub fn groups_and_partners(&self, mesh: &Mesh, partners: &[usize]) {
        let n_groups = connected_sets(mesh, self.world.rank());
        let mut counts = [n_groups, i32::from(n_groups > 1)];
        self.world.allreduce_i32(&mut counts, Op::Sum);
        if counts[0] as usize > self.world.n_ranks() {
            self.world.allreduce_i32(&mut [n_groups], Op::Max);
        }
        let mut partners: Vec<i32> = partners.iter().map(|&n| n as i32).collect();
        partners.resize(5, 0);
        for op in [Op::Min, Op::Max, Op::Sum] {
            self.world.allreduce_i32(&mut partners.clone(), op);
        }
    }

    /// The sum of one variable, by the collective that miniAMR uses for it.
    pub fn sum(&self, own: f64) -> f64 {
        let mut sum = [own];
        self.world.allreduce_f64(&mut sum, Op::Sum);
        sum[0]
    }

    /// Slowest and fastest rank's five times of each of `steps` steps.
    pub fn step_times(&self, steps: &[[f64; 5]]) {
        for times in steps {
            self.world.allreduce_f64(&mut times.clone(), Op::Max);
            self.world.allreduce_f64(&mut times.clone(), Op::Min);
        }
    }

    /// Statistics at the end.
    pub fn finish(&self) {
        self.world.allreduce_i32(&mut [0], Op::Max);
        self.world.allreduce_f64(&mut [0.0; 142], Op::Sum);
        self.world.allreduce_f64(&mut [0.0; 139], Op::Min);
        self.world.allreduce_f64(&mut [0.0; 139], Op::Max);
        self.world.allreduce_f64(&mut [0.0; 139], Op::Sum);
        self.world.barrier();
    }
}

/// The prime factors, and 1 for a single rank, which miniAMR counts as a factor of itself.
fn all_factors(n_ranks: usize) -> Vec<usize> {
    match n_ranks {
        1 => vec![1],
        n => factors(n),
    }
}

/// The level on which the leaves before and after a cut lie in different blocks.
fn levels_to_part(mesh: &Mesh, end: usize) -> u8 {
    if end == 0 || end >= mesh.len() {
        return 0;
    }
    let keys = [end - 1, end].map(|i| mesh.grid.key(mesh.leaves()[i]));
    let parts = |level: &u8| keys[0] / mesh.grid.span(*level) != keys[1] / mesh.grid.span(*level);
    (0..=mesh.grid.depth).find(parts).unwrap_or(0)
}

/// How many sets of face-connected leaves a rank owns.
fn connected_sets(mesh: &Mesh, rank: usize) -> i32 {
    let mut seen = vec![false; mesh.len()];
    let mut n_sets = 0;
    for start in mesh.own(rank) {
        if std::mem::replace(&mut seen[start], true) {
            continue;
        }
        n_sets += 1;
        let mut open = vec![start];
        while let Some(i) = open.pop() {
            for face in 0..FACES {
                let beyond = match mesh.neighbour(i, face) {
                    Neighbour::Boundary => continue,
                    Neighbour::Same(j) | Neighbour::Coarser(j) => vec![j],
                    Neighbour::Finer(quad) => quad.to_vec(),
                };
                for j in beyond {
                    if mesh.owners()[j] as usize == rank && !std::mem::replace(&mut seen[j], true) {
                        open.push(j);
                    }
                }
            }
        }
    }
    n_sets
}
