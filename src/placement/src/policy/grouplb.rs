//! GroupLB: neighbouring blocks become groups, groups are packed level by level and near each other.
//!
//! 1. Friends of friends: blocks that share a face are linked, the deepest refined faces first, while
//!    the group's work stays within a quarter of a rank's share. Where groups meet, refinement is
//!    therefore as low as it can be.
//! 2. Bin packing: a group belongs to its finest level. Levels are packed from the finest to the
//!    coarsest, in each the groups with most work first. A group goes to the rank that holds most of
//!    its Voronoi neighbours, if neither that rank's work on the level nor its whole work would end
//!    farther above the mean than it now is below; otherwise to the least loaded rank that has not
//!    yet its share of the level.
//!
//! The Voronoi cells are those that the mesh itself gives: every point belongs to the group of the
//! block around it, and two groups are neighbours if blocks of theirs share a face; the nearer
//! neighbour is the one with more shared faces. With `grouplb:roots` a root and what was refined from
//! it is never divided, as in the code that the scheme comes from. Where nothing costs anything there
//! is no work to group: the blocks are placed as by SFCLB.
//! Source: Wu et al., CLUSTER 2011, section IV-C.

use super::least_loaded::Tournament;
use super::name::Argument;
use super::sfclb;
use super::units::roots;
use crate::problem::Problem;
use crate::sort::descending_order;

/// A group holds at most this share of a rank's mean work, if it has more than one unit.
const GRANULARITY: f64 = 0.25;

/// The owners of the blocks of `problem`, which has a mesh and a graph.
pub(super) fn place(problem: &Problem, argument: &Argument) -> Vec<u32> {
    if problem.total() <= 0.0 {
        return sfclb::place(problem, argument);
    }
    let faces = faces(problem);
    let groups = groups(problem, argument, &faces);
    let neighbours = neighbours(&groups, &faces);
    let owners = pack(problem, &groups, &neighbours);
    groups.of_block.iter().map(|&g| owners[g as usize]).collect()
}

/// Two blocks that share a face, the lower one first, and the finer of their levels.
struct Face {
    blocks: [u32; 2],
    level: u8,
}

fn faces(problem: &Problem) -> Vec<Face> {
    let mesh = problem.mesh().expect("a need in the table");
    let graph = problem.graph().expect("a need in the table");
    let mut faces = Vec::new();
    for (a, octant) in (0u32..).zip(mesh.octants) {
        for (b, _) in graph.row(a as usize).filter(|&(b, _)| b > a) {
            let other = &mesh.octants[b as usize];
            if octant.touching_axes(other, mesh.dimensions) == Some(1) {
                faces.push(Face {
                    blocks: [a, b],
                    level: octant.level.max(other.level),
                });
            }
        }
    }
    faces
}

/// Groups of blocks, numbered by their first block.
struct Groups {
    of_block: Vec<u32>,
    work: Vec<f64>,
    /// The finest level of each, and the part of its work that is on that level.
    finest: Vec<u8>,
    work_on_finest: Vec<f64>,
}

fn groups(problem: &Problem, argument: &Argument, faces: &[Face]) -> Groups {
    let mesh = problem.mesh().expect("a need in the table");
    let mut sets = Sets::new(problem.costs());
    if *argument == Argument::Roots {
        let roots = roots(mesh);
        let mut first = vec![u32::MAX; roots.len()];
        for (block, &root) in (0u32..).zip(&roots.of_block) {
            match first[root as usize] {
                u32::MAX => first[root as usize] = block,
                other => sets.join(other, block, f64::INFINITY),
            }
        }
    }
    let most = problem.total() / f64::from(problem.ranks()) * GRANULARITY;
    let deepest = mesh.octants.iter().map(|octant| octant.level).max();
    // One block above half of the limit links with nothing: no need to look at its faces.
    for level in (mesh.root_level..=deepest.unwrap_or(0)).rev() {
        for face in faces.iter().filter(|face| face.level == level) {
            sets.join(face.blocks[0], face.blocks[1], most);
        }
    }
    let mut groups = Groups {
        of_block: vec![0; problem.n_blocks()],
        work: Vec::new(),
        finest: Vec::new(),
        work_on_finest: Vec::new(),
    };
    for block in 0..problem.n_blocks() as u32 {
        let first = sets.find(block);
        if first == block {
            groups.of_block[block as usize] = groups.work.len() as u32;
            groups.work.push(0.0);
            groups.finest.push(0);
            groups.work_on_finest.push(0.0);
        }
        let group = groups.of_block[first as usize];
        groups.of_block[block as usize] = group;
        groups.add(group as usize, problem.costs()[block as usize], mesh.octants[block as usize].level);
    }
    groups
}

impl Groups {
    fn add(&mut self, group: usize, cost: f64, level: u8) {
        self.work[group] += cost;
        if level > self.finest[group] {
            self.finest[group] = level;
            self.work_on_finest[group] = 0.0;
        }
        if level == self.finest[group] {
            self.work_on_finest[group] += cost;
        }
    }
}

/// Disjoint sets of blocks with the work of each; a set is named by its first block.
struct Sets {
    parent: Vec<u32>,
    work: Vec<f64>,
}

impl Sets {
    fn new(costs: &[f64]) -> Self {
        Sets {
            parent: (0..costs.len() as u32).collect(),
            work: costs.to_vec(),
        }
    }

    fn find(&mut self, mut block: u32) -> u32 {
        while self.parent[block as usize] != block {
            let above = self.parent[self.parent[block as usize] as usize];
            self.parent[block as usize] = above;
            block = above;
        }
        block
    }

    /// Unites the sets of two blocks unless they would hold more work than `most`.
    fn join(&mut self, a: u32, b: u32, most: f64) {
        let (a, b) = (self.find(a), self.find(b));
        let work = self.work[a as usize] + self.work[b as usize];
        if a != b && work <= most {
            self.parent[a.max(b) as usize] = a.min(b);
            self.work[a.min(b) as usize] = work;
        }
    }
}

/// The Voronoi neighbours of each group, once for each face that they share, in compressed rows.
struct Neighbours {
    offsets: Vec<u32>,
    groups: Vec<u32>,
}

fn neighbours(groups: &Groups, faces: &[Face]) -> Neighbours {
    let between = || {
        faces.iter().filter_map(|face| {
            let [a, b] = face.blocks.map(|block| groups.of_block[block as usize]);
            (a != b).then_some([a, b])
        })
    };
    let mut offsets = vec![0u32; groups.work.len() + 1];
    between().flatten().for_each(|group| offsets[group as usize + 1] += 1);
    (1..offsets.len()).for_each(|g| offsets[g] += offsets[g - 1]);
    let mut next = offsets.clone();
    let mut entries = vec![0; offsets[groups.work.len()] as usize];
    for [a, b] in between() {
        for (from, to) in [(a, b), (b, a)] {
            entries[next[from as usize] as usize] = to;
            next[from as usize] += 1;
        }
    }
    Neighbours {
        offsets,
        groups: entries,
    }
}

const UNPLACED: u32 = u32::MAX;

/// The rank of each group.
fn pack(problem: &Problem, groups: &Groups, neighbours: &Neighbours) -> Vec<u32> {
    let mesh = problem.mesh().expect("a need in the table");
    let ranks = problem.ranks() as usize;
    let mut owners = vec![UNPLACED; groups.work.len()];
    let mut loads = vec![0.0; ranks];
    let mean = problem.total() / ranks as f64;
    let order = descending_order(&groups.work);
    let levels = mesh.octants.iter().map(|octant| octant.level);
    for level in (0..=levels.max().unwrap_or(0)).rev() {
        let here: Vec<u32> = order.iter().copied().filter(|&g| groups.finest[g as usize] == level).collect();
        if here.is_empty() {
            continue;
        }
        let mut packing = Level::new(problem, groups, level, &owners, &loads);
        for group in here {
            let rank = packing.near(groups, group as usize, neighbours, &owners, mean);
            let rank = rank.unwrap_or_else(|| packing.eligible.least());
            packing.give(rank, groups.work[group as usize], groups.work_on_finest[group as usize]);
            owners[group as usize] = rank;
        }
        loads = packing.loads;
    }
    owners
}

/// One level's packing.
struct Level {
    /// Each rank's work on this level.
    on_level: Vec<f64>,
    mean_on_level: f64,
    /// Each rank's work on all levels.
    loads: Vec<f64>,
    /// Ranks by their whole work; those that have their share of the level are out.
    eligible: Tournament,
    /// Ranks that hold neighbours of the group at hand, with the number of shared faces.
    near: Vec<(u32, u32)>,
}

impl Level {
    fn new(problem: &Problem, groups: &Groups, level: u8, owners: &[u32], loads: &[f64]) -> Self {
        let mesh = problem.mesh().expect("a need in the table");
        let mut on_level = vec![0.0; loads.len()];
        let mut total = 0.0;
        for (block, octant) in mesh.octants.iter().enumerate() {
            if octant.level == level {
                let cost = problem.costs()[block];
                total += cost;
                let owner = owners[groups.of_block[block] as usize];
                if owner != UNPLACED {
                    on_level[owner as usize] += cost;
                }
            }
        }
        let mean_on_level = total / loads.len() as f64;
        let key = |(&on_level, &load): (&f64, &f64)| key(on_level, mean_on_level, load);
        let eligible = on_level.iter().zip(loads).map(key).collect();
        Level {
            on_level,
            mean_on_level,
            loads: loads.to_vec(),
            eligible: Tournament::new(eligible),
            near: Vec::new(),
        }
    }

    fn give(&mut self, rank: u32, work: f64, work_on_level: f64) {
        let at = rank as usize;
        self.loads[at] += work;
        self.on_level[at] += work_on_level;
        let key = key(self.on_level[at], self.mean_on_level, self.loads[at]);
        self.eligible.set(rank, key);
    }

    /// The rank with most neighbours of `group` among those on which it fits.
    fn near(
        &mut self,
        groups: &Groups,
        group: usize,
        neighbours: &Neighbours,
        owners: &[u32],
        mean: f64,
    ) -> Option<u32> {
        self.near.clear();
        let row = neighbours.offsets[group] as usize..neighbours.offsets[group + 1] as usize;
        for &other in &neighbours.groups[row] {
            let rank = owners[other as usize];
            match self.near.iter_mut().find(|(r, _)| *r == rank) {
                _ if rank == UNPLACED => {}
                Some((_, faces)) => *faces += 1,
                None => self.near.push((rank, 1)),
            }
        }
        let (work, on_level) = (groups.work[group], groups.work_on_finest[group]);
        let fits = |&&(rank, _): &&(u32, u32)| {
            self.loads[rank as usize] + work / 2.0 <= mean
                && self.on_level[rank as usize] + on_level / 2.0 <= self.mean_on_level
        };
        let fitting = self.near.iter().filter(fits);
        let best = fitting.max_by_key(|&&(rank, faces)| (faces, std::cmp::Reverse(rank)));
        best.map(|&(rank, _)| rank)
    }
}

/// A rank's place in the tournament. Ranks that have their share of the level come after all others;
/// rounding may leave only such.
fn key(on_level: f64, mean_on_level: f64, load: f64) -> f64 {
    match on_level < mean_on_level {
        true => load,
        false => f64::MAX / 4.0 + load,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::certificate::{certify, loads};
    use crate::curve::{ContactBytes, Neighbours as Contacts, neighbours as contacts};
    use crate::generate::{Distribution, Octree, costs, octree};
    use crate::policy::shamrock;

    const BYTES: ContactBytes = ContactBytes {
        face: 4096,
        edge: 256,
        corner: 16,
    };

    fn case(seed: u64) -> (Octree, Contacts, Vec<f64>) {
        let mesh = octree(seed, 3, 2, 6, 3000);
        let graph = contacts(mesh.as_mesh(), BYTES);
        let costs = costs(Distribution::Exponential, seed, mesh.octants.len());
        (mesh, graph, costs)
    }

    fn problem<'a>(case: &'a (Octree, Contacts, Vec<f64>), ranks: u32) -> Problem<'a> {
        Problem::new(&case.2, ranks)
            .and_then(|p| p.with_mesh(case.0.as_mesh()))
            .and_then(|p| p.with_graph(case.1.as_graph()))
            .unwrap()
    }

    #[test]
    fn groups_are_connected_small_and_together() {
        let case = case(1);
        let problem = problem(&case, 64);
        let faces = faces(&problem);
        let groups = groups(&problem, &Argument::None, &faces);
        let mean = problem.total() / 64.0;
        let several = groups.work.len() < case.2.len() / 3;
        assert!(several, "{} groups of {} blocks", groups.work.len(), case.2.len());
        let mut linked = Sets::new(&case.2);
        for face in &faces {
            let [a, b] = face.blocks;
            if groups.of_block[a as usize] == groups.of_block[b as usize] {
                linked.join(a, b, f64::INFINITY);
            }
        }
        let owners = place(&problem, &Argument::None);
        let mut first = vec![None; groups.work.len()];
        for (block, &group) in (0u32..).zip(&groups.of_block) {
            let first = *first[group as usize].get_or_insert(block);
            assert_eq!(linked.find(block), linked.find(first), "a group hangs together");
            assert_eq!(owners[block as usize], owners[first as usize], "a group stays together");
        }
        for (group, &work) in groups.work.iter().enumerate() {
            let blocks = groups.of_block.iter().filter(|&&g| g as usize == group).count();
            assert!(blocks == 1 || work <= mean * GRANULARITY);
        }
    }

    #[test]
    fn groups_meet_where_refinement_is_low() {
        let case = case(2);
        let problem = problem(&case, 64);
        let faces = faces(&problem);
        let groups = groups(&problem, &Argument::None, &faces);
        let cut_share = |deep: bool| {
            let deepest = faces.iter().map(|face| face.level).max().unwrap();
            let of_kind = |face: &&Face| (face.level == deepest) == deep;
            let kind: Vec<&Face> = faces.iter().filter(of_kind).collect();
            let cut = |face: &&&Face| {
                let [a, b] = face.blocks.map(|block| groups.of_block[block as usize]);
                a != b
            };
            kind.iter().filter(cut).count() as f64 / kind.len() as f64
        };
        assert!(cut_share(true) < cut_share(false), "{} {}", cut_share(true), cut_share(false));
    }

    #[test]
    fn every_level_is_balanced_and_neighbours_are_near() {
        for seed in 1..4 {
            let case = case(seed);
            let problem = problem(&case, 40);
            let owners = place(&problem, &Argument::None);
            let levels: Vec<u8> = case.0.octants.iter().map(|octant| octant.level).collect();
            let whole = problem.total() / 40.0;
            for level in 2..=6 {
                let on_level: Vec<f64> = case
                    .2
                    .iter()
                    .zip(&levels)
                    .map(|(&cost, &of)| if of == level { cost } else { 0.0 })
                    .collect();
                let level_problem = Problem::new(&on_level, 40).unwrap();
                let highest = loads(&level_problem, &owners).into_iter().fold(0.0, f64::max);
                let mean = level_problem.total() / 40.0;
                // A group more than the share, and what other levels' groups bring along.
                assert!(highest <= mean + 2.0 * GRANULARITY * whole, "level {level}: {highest}, mean {mean}");
            }
            let grouped = certify(&problem, &owners).unwrap();
            let dealt = certify(&problem, &shamrock::round_robin(&problem)).unwrap();
            assert!(grouped.locality.same_rank.bytes > 3 * dealt.locality.same_rank.bytes);
            assert!(grouped.makespan <= 1.25 * grouped.mean, "{grouped:?}");
        }
    }

    #[test]
    fn a_root_stays_whole_where_roots_are_placed() {
        let case = case(3);
        let problem = problem(&case, 8);
        let owners = place(&problem, &Argument::Roots);
        let roots = roots(case.0.as_mesh());
        let mut owner_of = vec![None; roots.len()];
        for (&root, &owner) in roots.of_block.iter().zip(&owners) {
            assert_eq!(*owner_of[root as usize].get_or_insert(owner), owner);
        }
    }
}
