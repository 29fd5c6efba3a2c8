//! Recursive coordinate bisection: space is cut in two, and each half again, until one rank is left.
//!
//! A part that has `k` ranks is cut across its longest side into parts for `k / 2` and `k - k / 2`
//! ranks, so any number of ranks will do. Blocks stand by the coordinate of their centre, equal ones
//! in curve order. Of the two sides of the block at which the weighted cut falls, the one is taken that leaves the
//! smaller of the larger loads per rank. While there are blocks enough, neither part gets fewer blocks than ranks.
//! Source: Berger & Bokhari, IEEE Transactions on Computers C-36(5), 1987.
//!
//! Each cut is found by a weighted selection in linear time, so the whole takes
//! O(blocks * log(ranks)).

use crate::problem::Problem;

/// A block as the bisection sees it.
#[derive(Clone, Copy)]
struct Item {
    /// Twice the coordinates of the centre.
    centre: [u32; 3],
    block: u32,
    cost: f64,
}

impl Item {
    /// The order along an axis; no two blocks are equal.
    fn key(&self, axis: usize) -> u64 {
        u64::from(self.centre[axis]) << 32 | u64::from(self.block)
    }
}

/// The owners of the blocks of `problem`, which has a mesh.
pub(super) fn place(problem: &Problem) -> Vec<u32> {
    let mesh = problem.mesh().expect("a need in the table");
    let item = |(block, octant): (u32, &crate::curve::Octant)| Item {
        centre: [octant.x, octant.y, octant.z].map(|c| 2 * c + octant.side()),
        block,
        cost: problem.costs()[block as usize],
    };
    let mut items: Vec<Item> = (0u32..).zip(mesh.octants).map(item).collect();
    let mut owners = vec![0; items.len()];
    let axes = usize::from(mesh.dimensions);
    bisect(&mut items, axes, 0, problem.ranks(), &mut owners);
    owners
}

fn bisect(items: &mut [Item], axes: usize, first: u32, ranks: u32, owners: &mut [u32]) {
    if ranks == 1 || items.is_empty() {
        items
            .iter()
            .for_each(|item| owners[item.block as usize] = first);
        return;
    }
    let axis = longest_side(items, axes);
    let (left, right) = (ranks / 2, ranks - ranks / 2);
    let at = cut(items, axis, left, right);
    let (lower, upper) = items.split_at_mut(at);
    bisect(lower, axes, first, left, owners);
    bisect(upper, axes, first + left, right, owners);
}

/// The axis along which the centres reach farthest, the first of equals.
fn longest_side(items: &[Item], axes: usize) -> usize {
    let (mut low, mut high) = ([u32::MAX; 3], [0; 3]);
    for item in items {
        for axis in 0..3 {
            low[axis] = low[axis].min(item.centre[axis]);
            high[axis] = high[axis].max(item.centre[axis]);
        }
    }
    (1..axes).fold(0, |best, axis| {
        match high[axis] - low[axis] > high[best] - low[best] {
            true => axis,
            false => best,
        }
    })
}

/// Where the blocks, which are reordered, are cut for `left` and `right` ranks.
fn cut(items: &mut [Item], axis: usize, left: u32, right: u32) -> usize {
    let mut total: f64 = items.iter().map(|item| item.cost).sum();
    // Blocks that cost nothing at all are shared out by number.
    let by_number = total <= 0.0;
    let weight = |item: &Item| if by_number { 1.0 } else { item.cost };
    if by_number {
        total = items.len() as f64;
    }
    let target = total / f64::from(left + right) * f64::from(left);

    let (mut from, mut to, mut before) = (0, items.len(), 0.0);
    while to - from > 16 {
        let pivot = median_key(&items[from..to], axis);
        let (mut middle, mut below) = (from, 0.0);
        for place in from..to {
            let item = items[place];
            if item.key(axis) < pivot {
                below += weight(&item);
                items.swap(place, middle);
                middle += 1;
            }
        }
        match before + below > target {
            true => to = middle,
            false => (from, before) = (middle, before + below),
        }
    }
    items[from..to].sort_unstable_by_key(|item| item.key(axis));
    let mut at = from;
    while at < to && before + weight(&items[at]) <= target {
        before += weight(&items[at]);
        at += 1;
    }
    let larger = |lower: f64| (lower / f64::from(left)).max((total - lower) / f64::from(right));
    if at < to && larger(before + weight(&items[at])) < larger(before) {
        at += 1;
    }
    within_counts(items, axis, left, right, at)
}

/// Moves a cut so that no rank stays without a block while another could spare one.
fn within_counts(items: &mut [Item], axis: usize, left: u32, right: u32, at: usize) -> usize {
    let (n, left, right) = (items.len(), left as usize, right as usize);
    let (least, most) = match n >= left + right {
        true => (left, n - right),
        false => (n.saturating_sub(right), left.min(n)),
    };
    let allowed = at.clamp(least, most);
    if allowed != at && allowed < n {
        items.select_nth_unstable_by_key(allowed, |item| item.key(axis));
    }
    allowed
}

/// The median of three keys: never the smallest of all.
fn median_key(items: &[Item], axis: usize) -> u64 {
    let key = |place: usize| items[place].key(axis);
    let (a, b, c) = (key(0), key(items.len() / 2), key(items.len() - 1));
    a.max(b).min(a.max(c)).min(b.max(c))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::certificate::{certify, loads};
    use crate::generate::{Distribution, Refined, octree};

    #[test]
    fn equal_blocks_of_a_grid_become_bricks() {
        let mesh = octree(0, 3, 3, 3, 0);
        let ones = vec![1.0; 512];
        let problem = Problem::new(&ones, 8).and_then(|p| p.with_mesh(mesh.as_mesh()));
        let problem = problem.unwrap();
        let owners = place(&problem);
        for (octant, owner) in mesh.octants.iter().zip(&owners) {
            let octants_rank = octant.x >> 20 << 2 | octant.y >> 20 << 1 | octant.z >> 20;
            assert_eq!(*owner, octants_rank);
        }
        assert_eq!(loads(&problem, &owners), [64.0; 8]);
    }

    #[test]
    fn cuts_keep_more_messages_on_the_rank_than_dealing_round() {
        for ranks in [7, 64, 100] {
            let case = Refined::new(octree(3, 3, 2, 6, 2000), Distribution::Exponential, 1);
            let problem = case.problem(ranks);
            let dealt: Vec<u32> = (0..case.costs.len() as u32).map(|b| b % ranks).collect();
            let local =
                |owners: &[u32]| certify(&problem, owners).unwrap().locality.same_rank.bytes;
            assert!(local(&place(&problem)) > 2 * local(&dealt), "{ranks} ranks");
        }
    }

    #[test]
    fn no_load_is_farther_above_the_mean_than_one_block_for_each_cut() {
        for ranks in [2, 3, 5, 17, 64] {
            let case = Refined::new(octree(4, 2, 2, 7, 3000), Distribution::PowerLaw, 2);
            let problem = case.without_graph(ranks);
            let certificate = certify(&problem, &place(&problem)).unwrap();
            let cuts = f64::from(ranks).log2().ceil();
            assert!(
                certificate.makespan <= certificate.mean + 100.0 * cuts,
                "{certificate:?}"
            );
        }
    }

    #[test]
    fn every_rank_has_a_block_if_there_are_enough() {
        let mesh = octree(5, 3, 1, 5, 300);
        let mut costs = vec![1.0; mesh.octants.len()];
        costs[17] = 1e9;
        for ranks in [2, 60, mesh.octants.len() as u32] {
            let problem = Problem::new(&costs, ranks).and_then(|p| p.with_mesh(mesh.as_mesh()));
            let owners = place(&problem.unwrap());
            let used: std::collections::BTreeSet<u32> = owners.into_iter().collect();
            assert_eq!(used.len(), ranks as usize);
        }
    }
}
