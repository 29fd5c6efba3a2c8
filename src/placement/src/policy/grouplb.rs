//! GroupLB: neighbouring blocks become groups, groups are packed level by level and near each other.
//!
//! 1. Friends of friends: blocks that share a face are linked, the deepest refined faces first, while
//!    the group's work stays within a quarter of a rank's share. Where groups meet, refinement is
//!    therefore as low as it can be.
//! 2. Bin packing, the groups with most work first: a group goes to the rank that holds most of its Voronoi
//!    neighbours and has room, both in all and on each level. Otherwise it goes to the least loaded rank of that
//!    one's node, if that has room. Otherwise it goes to the least loaded of all ranks, or to one hardly more loaded
//!    that has not yet its share of the group's levels.
//!
//! The Voronoi cells are those that the mesh itself gives: every point belongs to the group of the
//! block around it, and two groups are neighbours if blocks of theirs share a face; the nearer
//! neighbour is the one with more shared faces. With `grouplb:roots` a root and what was refined from
//! it is never divided, as in the code that the scheme comes from. Where nothing costs anything there
//! is no work to group: the blocks are placed as by SFCLB.
//! Source: Wu et al., CLUSTER 2011, section IV-C.

use std::cmp::Reverse;

use super::least_loaded::Tournament;
use super::row::Argument;
use super::sfclb;
use super::units::roots;
use crate::curve::{LEVEL_MAX, Octant};
use crate::problem::Problem;
use crate::sort::descending_order;

/// A group holds at most this share of a rank's mean work, if it has more than one unit.
const GRANULARITY: f64 = 0.25;

/// Near its neighbours a group may bring a rank this far above the mean.
const EXCESS: f64 = 0.02;

/// A rank that has its share of a level counts as that much fuller, in shares of the whole work.
const RESERVE: f64 = 0.05;

/// The owners of the blocks of `problem`, which has a mesh and a graph.
pub(super) fn place(problem: &Problem, argument: &Argument) -> Vec<u32> {
    if problem.total() <= 0.0 {
        return sfclb::place(problem, argument);
    }
    let faces = faces(problem);
    let groups = groups(problem, argument, &faces);
    let neighbours = neighbours(&groups, &faces);
    let owners = pack(problem, &groups, &neighbours);
    groups
        .of_block
        .iter()
        .map(|&g| owners[g as usize])
        .collect()
}

/// Two blocks that share a face, the lower one first.
type Face = [u32; 2];

/// The faces between blocks, by the finer level of the two.
fn faces(problem: &Problem) -> Vec<Vec<Face>> {
    let mesh = problem.mesh().expect("a need in the table");
    let graph = problem.graph().expect("a need in the table");
    let mut by_level = vec![Vec::new(); usize::from(LEVEL_MAX) + 1];
    let rows = graph.offsets.windows(2);
    let longest = rows.clone().map(|row| row[1] - row[0]).max();
    let mut found: Vec<u32> = vec![0; longest.unwrap_or(0) as usize + 1];
    for ((a, octant), row) in (0u32..).zip(mesh.octants).zip(rows) {
        // Which contacts are later blocks, and which of those are faces, cannot be predicted: each is
        // written, and stays if it is one.
        let mut later = 0;
        for &b in &graph.neighbours[row[0] as usize..row[1] as usize] {
            found[later] = b;
            later += usize::from(b > a);
        }
        let mut n = 0;
        for place in 0..later {
            let b = found[place];
            let is_face = share_a_face(octant, &mesh.octants[b as usize], mesh.dimensions);
            found[n] = b;
            n += usize::from(is_face);
        }
        // In which order a caller names neighbours decides nothing.
        found[..n].sort_unstable();
        for &b in &found[..n] {
            let level = octant.level.max(mesh.octants[b as usize].level);
            by_level[usize::from(level)].push([a, b]);
        }
    }
    by_level
}

/// True if two octants touch along one axis and overlap along the others.
fn share_a_face(a: &Octant, b: &Octant, dimensions: u8) -> bool {
    let (side_a, side_b) = (a.side(), b.side());
    let axis = |a: u32, b: u32| {
        // How far each starts behind the other; the one that is ahead gets a huge number.
        let (behind, ahead) = (b.wrapping_sub(a), a.wrapping_sub(b));
        let touch = (behind == side_a) | (ahead == side_b);
        let overlap = (behind < side_a) | (ahead < side_b);
        (u32::from(touch), u32::from(overlap))
    };
    let (x, y) = (axis(a.x, b.x), axis(a.y, b.y));
    let z = if dimensions == 3 {
        axis(a.z, b.z)
    } else {
        (0, 1)
    };
    (x.0 + y.0 + z.0 == 1) & (x.1 + y.1 + z.1 == 2)
}

/// Groups of blocks, numbered by their first block.
struct Groups {
    of_block: Vec<u32>,
    work: Vec<f64>,
    /// The work of each group on each level that it has, in compressed rows; root blocks are level 0.
    offsets: Vec<u32>,
    on_levels: Vec<(u8, f64)>,
}

fn groups(problem: &Problem, argument: &Argument, faces: &[Vec<Face>]) -> Groups {
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
    for &[a, b] in faces.iter().rev().flatten() {
        sets.join(a, b, most);
    }
    let mut groups = Groups {
        of_block: vec![0; problem.n_blocks()],
        work: Vec::new(),
        offsets: Vec::new(),
        on_levels: Vec::new(),
    };
    for block in 0..problem.n_blocks() as u32 {
        let first = sets.find(block);
        if first == block {
            groups.of_block[block as usize] = groups.work.len() as u32;
            groups.work.push(sets.work[block as usize]);
        }
        groups.of_block[block as usize] = groups.of_block[first as usize];
    }
    groups.split_by_level(problem);
    groups
}

impl Groups {
    fn split_by_level(&mut self, problem: &Problem) {
        let mesh = problem.mesh().expect("a need in the table");
        let n = self.work.len();
        let mut ends = vec![0u32; n + 1];
        self.of_block
            .iter()
            .for_each(|&group| ends[group as usize] += 1);
        let mut end = 0;
        for count in &mut ends {
            (*count, end) = (end, end + *count);
        }
        // Blocks sorted by group: each group's end moves from its start to the next one's.
        let mut blocks = vec![0u32; self.of_block.len()];
        for (block, &group) in (0u32..).zip(&self.of_block) {
            blocks[ends[group as usize] as usize] = block;
            ends[group as usize] += 1;
        }
        let mut start = 0;
        for &end in &ends[..n] {
            let first = self.on_levels.len();
            self.offsets.push(first as u32);
            for &block in &blocks[start..end as usize] {
                let level = mesh.octants[block as usize].level - mesh.root_level;
                let cost = problem.costs()[block as usize];
                match self.on_levels[first..]
                    .iter_mut()
                    .find(|(l, _)| *l == level)
                {
                    Some((_, work)) => *work += cost,
                    None => self.on_levels.push((level, cost)),
                }
            }
            start = end as usize;
        }
        self.offsets.push(self.on_levels.len() as u32);
    }

    fn on_levels(&self, group: usize) -> &[(u8, f64)] {
        &self.on_levels[self.offsets[group] as usize..self.offsets[group + 1] as usize]
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

fn neighbours(groups: &Groups, faces: &[Vec<Face>]) -> Neighbours {
    let n = groups.work.len();
    let mut pairs = Vec::new();
    let mut offsets = vec![0u32; n + 1];
    for face in faces.iter().flatten() {
        let [a, b] = face.map(|block| groups.of_block[block as usize]);
        if a != b {
            pairs.push([a, b]);
            offsets[a as usize + 1] += 1;
            offsets[b as usize + 1] += 1;
        }
    }
    (1..=n).for_each(|group| offsets[group] += offsets[group - 1]);
    let mut next = offsets.clone();
    let mut sorted = vec![0; offsets[n] as usize];
    for [a, b] in pairs {
        for (from, to) in [(a, b), (b, a)] {
            let place = &mut next[from as usize];
            sorted[*place as usize] = to;
            *place += 1;
        }
    }
    Neighbours {
        offsets,
        groups: sorted,
    }
}

const UNPLACED: u32 = u32::MAX;

/// The rank of each group.
fn pack(problem: &Problem, groups: &Groups, neighbours: &Neighbours) -> Vec<u32> {
    let order = descending_order(&groups.work);
    let mut packing = Packing::new(problem, groups, &order);
    for &group in &order {
        let group = group as usize;
        let rank = packing.near(neighbours, group);
        let rank = rank.unwrap_or_else(|| packing.least_loaded(group));
        packing.give(rank, group);
    }
    packing.owners
}

struct Packing<'a> {
    problem: &'a Problem<'a>,
    groups: &'a Groups,
    owners: Vec<u32>,
    ranks: Tournament,
    /// The work of each rank on each level, level after level for one rank.
    on_level: Vec<f64>,
    mean_on_level: Vec<f64>,
    /// What a rank may have with neighbours.
    ceiling: f64,
    reserve: f64,
    /// Ranks that hold neighbours of the group at hand, with the number of shared faces.
    nearby: Vec<(u32, u32)>,
}

impl<'a> Packing<'a> {
    fn new(problem: &'a Problem<'a>, groups: &'a Groups, order: &[u32]) -> Self {
        let mesh = problem.mesh().expect("a need in the table");
        let ranks = problem.ranks() as usize;
        let mean = problem.total() / ranks as f64;
        let work = |place: usize| order.get(place).map_or(0.0, |&g| groups.work[g as usize]);
        // Some rank has two of the ranks + 1 largest groups.
        let pair = work(ranks - 1) + work(ranks);
        let above = |level: u8| usize::from(level - mesh.root_level);
        let levels = mesh.octants.iter().map(|octant| above(octant.level) + 1);
        let mut mean_on_level = vec![0.0; levels.max().unwrap_or(1)];
        for (octant, cost) in mesh.octants.iter().zip(problem.costs()) {
            mean_on_level[above(octant.level)] += cost / ranks as f64;
        }
        Packing {
            problem,
            groups,
            owners: vec![UNPLACED; groups.work.len()],
            ranks: Tournament::new(&vec![0.0; ranks]),
            on_level: vec![0.0; ranks * mean_on_level.len()],
            mean_on_level,
            ceiling: pair.max((1.0 + EXCESS) * mean),
            reserve: RESERVE * mean,
            nearby: Vec::new(),
        }
    }

    fn give(&mut self, rank: u32, group: usize) {
        self.owners[group] = rank;
        self.ranks
            .set(rank, self.ranks.load(rank) + self.groups.work[group]);
        let first = rank as usize * self.mean_on_level.len();
        for &(level, work) in self.groups.on_levels(group) {
            self.on_level[first + usize::from(level)] += work;
        }
    }

    /// True if no level of the group would end farther above its mean than it is below.
    fn has_levels_free(&self, rank: u32, group: usize) -> bool {
        let first = rank as usize * self.mean_on_level.len();
        self.groups.on_levels(group).iter().all(|&(level, work)| {
            let level = usize::from(level);
            self.on_level[first + level] + work / 2.0 <= self.mean_on_level[level].max(work / 2.0)
        })
    }

    fn has_room(&self, rank: u32, group: usize) -> bool {
        self.ranks.load(rank) + self.groups.work[group] <= self.ceiling
            && self.has_levels_free(rank, group)
    }

    /// The rank with most neighbours of `group` among those with room; if none has, the least loaded
    /// rank on the node of the nearest, if it has room.
    fn near(&mut self, neighbours: &Neighbours, group: usize) -> Option<u32> {
        self.nearby.clear();
        let row = neighbours.offsets[group] as usize..neighbours.offsets[group + 1] as usize;
        for &other in &neighbours.groups[row] {
            let rank = self.owners[other as usize];
            if rank == UNPLACED {
                continue;
            }
            match self.nearby.iter_mut().find(|(r, _)| *r == rank) {
                Some((_, faces)) => *faces += 1,
                None => self.nearby.push((rank, 1)),
            }
        }
        let nearer = |&&(rank, faces): &&(u32, u32)| (faces, Reverse(rank));
        let with_room = self
            .nearby
            .iter()
            .filter(|&&(rank, _)| self.has_room(rank, group));
        with_room
            .max_by_key(nearer)
            .map(|&(rank, _)| rank)
            .or_else(|| {
                let &(nearest, _) = self.nearby.iter().max_by_key(nearer)?;
                let per_node = self.problem.ranks_per_node();
                let first = self.problem.node(nearest) * per_node;
                let end = first.saturating_add(per_node).min(self.problem.ranks());
                let least = self.ranks.least_of(first..end);
                least.filter(|&rank| self.has_room(rank, group))
            })
    }

    /// The least loaded rank, or one hardly more loaded among the least loaded of each part of the ranks.
    fn least_loaded(&self, group: usize) -> u32 {
        let least = self.ranks.least();
        if self.has_levels_free(least, group) {
            return least;
        }
        let load = |rank: &u32| self.ranks.load(*rank);
        let reach = load(&least) + self.reserve;
        let parts = self
            .ranks
            .least_of_parts()
            .filter(|rank| load(rank) < reach);
        let free = parts.filter(|&rank| self.has_levels_free(rank, group));
        free.min_by(|a, b| load(a).total_cmp(&load(b)))
            .unwrap_or(least)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::certificate::{certify, loads};
    use crate::generate::{Distribution, Refined, octree};
    use crate::policy::{lpt, shamrock};

    fn case(seed: u64) -> Refined {
        Refined::new(octree(seed, 3, 2, 6, 3000), Distribution::Exponential, seed)
    }

    #[test]
    fn groups_are_connected_small_and_together() {
        let case = case(1);
        let problem = case.problem(64);
        let faces = faces(&problem);
        let groups = groups(&problem, &Argument::None, &faces);
        let mean = problem.total() / 64.0;
        let several = groups.work.len() < case.costs.len() / 3;
        assert!(
            several,
            "{} groups of {} blocks",
            groups.work.len(),
            case.costs.len()
        );
        let mut linked = Sets::new(&case.costs);
        for &[a, b] in faces.iter().flatten() {
            if groups.of_block[a as usize] == groups.of_block[b as usize] {
                linked.join(a, b, f64::INFINITY);
            }
        }
        let owners = place(&problem, &Argument::None);
        let mut first = vec![None; groups.work.len()];
        for (block, &group) in (0u32..).zip(&groups.of_block) {
            let first = *first[group as usize].get_or_insert(block);
            assert_eq!(
                linked.find(block),
                linked.find(first),
                "a group hangs together"
            );
            assert_eq!(
                owners[block as usize], owners[first as usize],
                "a group stays together"
            );
        }
        for (group, &work) in groups.work.iter().enumerate() {
            let blocks = groups
                .of_block
                .iter()
                .filter(|&&g| g as usize == group)
                .count();
            assert!(blocks == 1 || work <= mean * GRANULARITY);
        }
    }

    #[test]
    fn groups_meet_where_refinement_is_low() {
        let case = case(2);
        let problem = case.problem(64);
        let faces = faces(&problem);
        let groups = groups(&problem, &Argument::None, &faces);
        let deepest = faces.iter().rposition(|faces| !faces.is_empty()).unwrap();
        let cut_share = |deep: bool| {
            let of_kind = |(level, _): &(usize, &Vec<Face>)| (*level == deepest) == deep;
            let kind = faces.iter().enumerate().filter(of_kind);
            let kind: Vec<&Face> = kind.flat_map(|(_, faces)| faces).collect();
            let is_cut = |face: &&&Face| {
                let [a, b] = face.map(|block| groups.of_block[block as usize]);
                a != b
            };
            kind.iter().filter(is_cut).count() as f64 / kind.len() as f64
        };
        assert!(
            cut_share(true) < cut_share(false),
            "{} {}",
            cut_share(true),
            cut_share(false)
        );
    }

    #[test]
    fn every_level_is_balanced_and_neighbours_are_near() {
        for seed in 1..4 {
            let case = case(seed);
            let problem = case.problem(40);
            let owners = place(&problem, &Argument::None);
            let levels = case.mesh.octants.iter().map(|octant| octant.level);
            let levels: Vec<u8> = levels.collect();
            let whole = problem.total() / 40.0;
            for level in 2..=6 {
                let on_level: Vec<f64> = case
                    .costs
                    .iter()
                    .zip(&levels)
                    .map(|(&cost, &of)| if of == level { cost } else { 0.0 })
                    .collect();
                let level_problem = Problem::new(&on_level, 40).unwrap();
                let highest = loads(&level_problem, &owners)
                    .into_iter()
                    .fold(0.0, f64::max);
                let mean = level_problem.total() / 40.0;
                // A group more than the share, and what other levels' groups bring along.
                assert!(
                    highest <= mean + 2.0 * GRANULARITY * whole,
                    "level {level}: {highest}, mean {mean}"
                );
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
        let problem = case.problem(8);
        let owners = place(&problem, &Argument::Roots);
        let roots = roots(case.mesh.as_mesh());
        let mut owner_of = vec![None; roots.len()];
        for (&root, &owner) in roots.of_block.iter().zip(&owners) {
            assert_eq!(*owner_of[root as usize].get_or_insert(owner), owner);
        }
    }

    #[test]
    fn the_order_of_the_neighbours_in_the_graph_decides_nothing() {
        let case = case(4);
        let problem = case.problem(24);
        let mut reversed = case.graph.clone();
        for row in case.graph.offsets.windows(2) {
            let row = row[0] as usize..row[1] as usize;
            reversed.neighbours[row.clone()].reverse();
            reversed.bytes[row].reverse();
        }
        let other = problem.with_graph(reversed.as_graph()).unwrap();
        for argument in [Argument::None, Argument::Roots] {
            assert_eq!(place(&other, &argument), place(&problem, &argument));
        }
    }

    #[test]
    fn groups_are_nearer_to_their_neighbours_than_where_work_alone_decides() {
        for seed in 1..4 {
            let case = case(seed);
            let problem = case.problem(40);
            let faces = faces(&problem);
            let groups = groups(&problem, &Argument::None, &faces);
            let by_work = lpt::place(&Problem::new(&groups.work, 40).unwrap());
            let anywhere: Vec<u32> = groups
                .of_block
                .iter()
                .map(|&group| by_work[group as usize])
                .collect();
            let one_rank_each = Problem::new(&case.costs, groups.work.len() as u32)
                .and_then(|p| p.with_graph(case.graph.as_graph()))
                .unwrap();
            let inside = certify(&one_rank_each, &groups.of_block).unwrap();
            let inside = inside.locality.same_rank.bytes;
            // Of the bytes between groups, those that stay on a rank.
            let local = |owners: &[u32]| {
                certify(&problem, owners).unwrap().locality.same_rank.bytes - inside
            };
            let near = local(&place(&problem, &Argument::None));
            let anywhere = local(&anywhere);
            assert!(near > 2 * anywhere, "seed {seed}: {near}, {anywhere}");
        }
    }
}
