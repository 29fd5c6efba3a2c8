//! Policies on ranks of unequal speed: a rank's time is the sum of its costs over its speed.
//!
//! Where all ranks are alike the policies of the same names are quicker and do more; these do what those promise:
//! the contiguous ones keep the order of the curve, the optimal one is exact, and an exchange never makes a
//! placement worse.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use super::placement::Placement;
use crate::bound::lower_bound_of;
use crate::certificate::{self, ROUNDING};
use crate::problem::Problem;
use crate::sort::descending_order;

/// Numbers of blocks in proportion to the speeds, in curve order.
pub(super) fn contiguous(problem: &Problem) -> Vec<u32> {
    let n = problem.n_blocks();
    let mut owners = Vec::with_capacity(n);
    let mut speed = 0.0;
    for rank in 0..problem.ranks() {
        speed += problem.speed(rank);
        let share = speed / problem.total_speed() * n as f64;
        owners.resize(owners.len().max(share.round() as usize).min(n), rank);
    }
    owners.resize(n, problem.ranks() - 1);
    owners
}

/// The contiguous placement of least makespan with at most `most` blocks on a rank; ranks stand in their order.
///
/// Filling each rank as far as a ceiling allows is optimal for that order. Each pass also tells the next higher ceiling
/// that could change anything and the next lower one that it kept to, so the search ends at the exact optimum.
pub(super) fn contiguous_optimal(problem: &Problem, most: u32) -> Vec<u32> {
    // Where memory lets no contiguous placement fit, the rest is for others to put elsewhere.
    let mut best = fill(problem, f64::INFINITY, most).owners;
    if best.len() < problem.n_blocks() {
        best.resize(problem.n_blocks(), problem.ranks() - 1);
        return best;
    }
    let mut high = certificate::makespan(problem, &best);
    let margin = 1.0 - 4.0 * f64::EPSILON * (problem.n_blocks() as f64 + 1.0);
    let mut low = problem.total() / problem.total_speed() * margin;
    while low < high {
        let ceiling = low + (high - low) / 2.0;
        // Two neighbouring numbers have no middle: the lower one is tried itself.
        let ceiling = if ceiling < high { ceiling } else { low };
        let filled = fill(problem, ceiling, most);
        match filled.fits {
            true => (high, best) = (filled.highest.min(ceiling), filled.owners),
            false => low = filled.refused,
        }
    }
    best
}

struct Filled {
    owners: Vec<u32>,
    fits: bool,
    /// The longest time of a rank.
    highest: f64,
    /// The shortest time that would have exceeded the ceiling.
    refused: f64,
}

fn fill(problem: &Problem, ceiling: f64, most: u32) -> Filled {
    let costs = problem.costs();
    let mut filled = Filled {
        owners: Vec::with_capacity(costs.len()),
        fits: false,
        highest: 0.0,
        refused: f64::INFINITY,
    };
    for rank in 0..problem.ranks() {
        let (speed, mut load, mut blocks) = (problem.speed(rank), 0.0, 0);
        let mut room = problem.memory_of_rank(rank).unwrap_or(u64::MAX);
        while let Some(cost) = costs.get(filled.owners.len()) {
            let need = problem.memory_of_block(filled.owners.len());
            let time = (load + cost) / speed;
            if time > ceiling {
                filled.refused = filled.refused.min(time);
                break;
            }
            if blocks == most || need > room {
                break;
            }
            (load, blocks, room) = (load + cost, blocks + 1, room - need);
            filled.highest = filled.highest.max(time);
            filled.owners.push(rank);
        }
    }
    filled.fits = filled.owners.len() == costs.len();
    filled
}

/// The largest block first, each on the rank that would finish it first; of equals the fastest.
pub(super) fn lpt(problem: &Problem) -> Vec<u32> {
    let ranks: Vec<u32> = (0..problem.ranks()).collect();
    let mut owners = vec![0; problem.n_blocks()];
    share(
        problem,
        &descending_order(problem.costs()),
        &ranks,
        &mut owners,
    );
    owners
}

/// Gives `blocks`, the largest first, to some ranks.
fn share(problem: &Problem, blocks: &[u32], ranks: &[u32], owners: &mut [u32]) {
    // Ranks of one speed wait in a queue of their own. Beyond some hundred speeds, those within a percent share one.
    const SPEEDS_MAX: usize = 512;
    let mut queues: BTreeMap<Reverse<u64>, BinaryHeap<_>> = BTreeMap::new();
    let different = |key: &dyn Fn(f64) -> u64| -> usize {
        let mut keys: Vec<u64> = ranks.iter().map(|&r| key(problem.speed(r))).collect();
        keys.sort_unstable();
        keys.dedup();
        keys.len()
    };
    let exactly = |speed: f64| speed.to_bits();
    let nearly = |speed: f64| (1e6 + 100.0 * speed.ln()).round() as u64;
    let key: &dyn Fn(f64) -> u64 = match different(&exactly) <= SPEEDS_MAX {
        true => &exactly,
        false => &nearly,
    };
    for (turn, &rank) in (0u64..).zip(ranks) {
        let queue = queues.entry(Reverse(key(problem.speed(rank)))).or_default();
        // Times are not negative, so their bits order like they do.
        queue.push(Reverse((0.0f64.to_bits(), turn, rank)));
    }
    let mut queues: Vec<_> = queues.into_values().collect();
    let mut loads = vec![0.0; problem.ranks() as usize];
    for (&block, turn) in blocks.iter().zip(ranks.len() as u64..) {
        let cost = problem.costs()[block as usize];
        let finish = |queue: &BinaryHeap<Reverse<(u64, u64, u32)>>| {
            let rank = queue.peek().expect("a queue keeps its ranks").0.2;
            (loads[rank as usize] + cost) / problem.speed(rank)
        };
        let first = (0..queues.len())
            .min_by(|&a, &b| finish(&queues[a]).total_cmp(&finish(&queues[b])))
            .expect("there is at least one rank");
        let mut due = queues[first].peek_mut().expect("as above");
        let Reverse((_, _, rank)) = *due;
        owners[block as usize] = rank;
        loads[rank as usize] += cost;
        let time: f64 = loads[rank as usize] / problem.speed(rank);
        *due = Reverse((time.to_bits(), turn, rank));
    }
}

/// LPT, then moves and swaps from the rank that takes longest, as long as they shorten it.
pub(super) fn lpt_swap(problem: &Problem) -> Placement {
    let before = lpt(problem);
    let mut owners = before.clone();
    exchange(problem, &mut owners);
    // Loads were tracked by adding and subtracting; the certificate's sums have the last word.
    let makespan = |owners: &[u32]| certificate::makespan(problem, owners);
    match makespan(&owners) <= makespan(&before) {
        true => owners.into(),
        false => before.into(),
    }
}

fn exchange(problem: &Problem, owners: &mut [u32]) {
    const PARTNERS: usize = 32;
    let costs = problem.costs();
    let n = problem.ranks() as usize;
    let mut loads = certificate::loads(problem, owners);
    let mut blocks: Vec<Vec<u32>> = vec![Vec::new(); n];
    for (block, &owner) in (0u32..).zip(owners.iter()) {
        blocks[owner as usize].push(block);
    }
    let goal = lower_bound_of(problem, certificate::makespan(problem, owners));
    let time = |rank: usize, load: f64| load / problem.speed(rank as u32);
    for _ in 0..10_000.min(40_000_000 / n) {
        let mut order: Vec<usize> = (0..n).collect();
        let heavy = (0..n)
            .max_by(|&a, &b| time(a, loads[a]).total_cmp(&time(b, loads[b])))
            .expect("there is at least one rank");
        let longest = time(heavy, loads[heavy]);
        if longest <= goal {
            return;
        }
        let partners = PARTNERS.min(n - 1);
        if partners < n - 1 {
            order.select_nth_unstable_by(partners, |&a, &b| {
                time(a, loads[a])
                    .total_cmp(&time(b, loads[b]))
                    .then(a.cmp(&b))
            });
            order.truncate(partners);
            order.sort_unstable();
        }
        // What is given, what is taken for it, and the longer time of the two ranks.
        let mut best: Option<(usize, u32, Option<u32>, f64)> = None;
        let least = longest * (1.0 - 1e-9);
        for light in order.into_iter().filter(|&rank| rank != heavy) {
            for &give in &blocks[heavy] {
                let taken = blocks[light].iter().map(|&take| Some(take)).chain([None]);
                for take in taken {
                    let shift =
                        costs[give as usize] - take.map_or(0.0, |take| costs[take as usize]);
                    let both =
                        time(heavy, loads[heavy] - shift).max(time(light, loads[light] + shift));
                    if both < best.as_ref().map_or(least, |best| best.3) {
                        best = Some((light, give, take, both));
                    }
                }
            }
        }
        let Some((light, give, take, _)) = best else {
            return;
        };
        let mut go = |block: u32, from: usize, to: usize| {
            blocks[from].retain(|&other| other != block);
            blocks[to].push(block);
            owners[block as usize] = to as u32;
        };
        go(give, heavy, light);
        if let Some(take) = take {
            go(take, light, heavy);
        }
        for rank in [heavy, light] {
            loads[rank] = blocks[rank]
                .iter()
                .map(|&block| costs[block as usize])
                .sum();
        }
    }
}

/// The contiguous optimum with LPT among at most `percent` of the ranks, those that take longest and shortest; the best
/// of all shares up to that one.
pub(super) fn cplx(problem: &Problem, percent: u8) -> Vec<u32> {
    let most = problem.limits().blocks_per_rank.unwrap_or(u32::MAX);
    let start = contiguous_optimal(problem, most);
    let times = certificate::times(problem, &start);
    let order = descending_order(&times);
    let descending = descending_order(problem.costs());
    let n = order.len();
    let mut best = (certificate::makespan(problem, &start), start.clone());
    for x in (1..=percent).filter(|x| x % 5 == 0 || *x == percent) {
        let pooled = n * usize::from(x) / 100;
        let (upper, lower) = (pooled.div_ceil(2), pooled / 2);
        let left_alone = order.get(upper).filter(|_| pooled < n);
        let at_best = left_alone.map_or(0.0, |&rank| times[rank as usize]);
        if pooled == 0 || at_best >= best.0 * (1.0 - ROUNDING) {
            continue;
        }
        let mut members: Vec<u32> = [&order[..upper], &order[n - lower..]].concat();
        members.sort_unstable();
        let is_member = |block: &u32| members.binary_search(&start[*block as usize]).is_ok();
        let blocks: Vec<u32> = descending.iter().copied().filter(is_member).collect();
        let mut owners = start.clone();
        share(problem, &blocks, &members, &mut owners);
        let makespan = certificate::makespan(problem, &owners);
        if makespan < best.0 {
            best = (makespan, owners);
        }
    }
    best.1
}

#[cfg(test)]
mod tests;
