//! Longest processing time first: the largest block first, each on the least loaded rank.
//!
//! All ranks start equal (no load is seeded to break ties): the first blocks go one to a rank, and
//! equal loads wait their turn. The makespan is at most 4/3 - 1/(3 ranks) of the optimum.
//! Source: Graham, "Bounds on Multiprocessing Timing Anomalies", SIAM J. Appl. Math. 17(2), 1969.
//!
//! The ranks wait in a queue ordered by load. Blocks shrink as loads grow, so the ranks that have
//! been served mostly belong behind all the others: they are collected, sorted at once and merged
//! back when the first of them is due. Where that pays too little, a heap takes over.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::problem::Problem;
use crate::sort::{ascending_order, descending_order};

/// The owners of the blocks of `problem`.
pub fn place(problem: &Problem) -> Vec<u32> {
    let costs = problem.costs();
    let order = descending_order(costs);
    let mut owners = vec![0; costs.len()];
    assign(costs, &order, problem.ranks(), |block, rank| {
        owners[block as usize] = rank
    });
    owners
}

/// A rank in the queue.
#[derive(Debug, Clone, Copy)]
struct Waiting {
    load: f64,
    rank: u32,
}

/// Gives each block of `order`, which is descending by cost, to one of `ranks` ranks.
///
/// Of two ranks with equal loads the one that has waited longer is served first; in the beginning
/// that is the lower one. Returns the makespan: loads are added in the order of assignment.
pub(super) fn assign(
    costs: &[f64],
    order: &[u32],
    ranks: u32,
    mut give: impl FnMut(u32, u32),
) -> f64 {
    let alone = order.len().min(ranks as usize);
    let (first, rest) = order.split_at(alone);
    let mut queue: Vec<Waiting> = Vec::with_capacity(ranks as usize);
    for (&block, rank) in first.iter().zip(0u32..) {
        give(block, rank);
        queue.push(Waiting {
            load: costs[block as usize],
            rank,
        });
    }
    if rest.is_empty() {
        return queue.first().map_or(0.0, |waiting| waiting.load);
    }
    // The queue's end is its head. The loads descend already; among equals the lowest rank is due.
    queue
        .chunk_by_mut(|a, b| a.load == b.load)
        .for_each(<[_]>::reverse);
    serve(costs, rest, queue, give)
}

/// Serves the blocks of `rest` from a queue whose last entry is the rank that is due.
fn serve(
    costs: &[f64],
    mut rest: &[u32],
    mut queue: Vec<Waiting>,
    mut give: impl FnMut(u32, u32),
) -> f64 {
    let mut highest: f64 = queue[0].load;
    let mut served: Vec<Waiting> = Vec::new();
    let mut wasted = 0;
    while !rest.is_empty() {
        let mut due_again = f64::INFINITY;
        served.clear();
        while let (Some(&Waiting { load, rank }), Some((&block, later))) =
            (queue.last(), rest.split_first())
        {
            if load > due_again {
                break;
            }
            queue.pop();
            rest = later;
            give(block, rank);
            let load = load + costs[block as usize];
            due_again = due_again.min(load);
            highest = highest.max(load);
            served.push(Waiting { load, rank });
        }
        let touched = merge(&mut queue, &served);
        // A merge that touches many ranks to serve few blocks costs more than a heap would.
        wasted += touched.saturating_sub(16 * served.len());
        if wasted > 4 * queue.len() {
            return highest.max(serve_by_heap(costs, rest, &queue, give));
        }
    }
    highest
}

/// Sorts the ranks that were served into the queue, behind equals; the number of entries moved.
fn merge(queue: &mut Vec<Waiting>, served: &[Waiting]) -> usize {
    let loads: Vec<f64> = served.iter().map(|waiting| waiting.load).collect();
    let ascending = ascending_order(&loads);
    let Some(&last) = ascending.last() else {
        return 0;
    };
    let highest = loads[last as usize];
    let from = queue.partition_point(|waiting| waiting.load > highest);
    let waiting = queue.split_off(from);
    let mut older = waiting.iter().peekable();
    for &index in ascending.iter().rev() {
        let newer = served[index as usize];
        while let Some(&&before) = older.peek()
            && before.load > newer.load
        {
            queue.push(before);
            older.next();
        }
        queue.push(newer);
    }
    queue.extend(older);
    waiting.len() + served.len()
}

fn serve_by_heap(
    costs: &[f64],
    rest: &[u32],
    queue: &[Waiting],
    mut give: impl FnMut(u32, u32),
) -> f64 {
    // Loads are not negative, so their bits order like they do.
    let mut heap: BinaryHeap<Reverse<(u64, u64, u32)>> = (0u64..)
        .zip(queue.iter().rev())
        .map(|(turn, waiting)| Reverse((waiting.load.to_bits(), turn, waiting.rank)))
        .collect();
    let mut highest: f64 = 0.0;
    for (&block, turn) in rest.iter().zip(queue.len() as u64..) {
        let mut due = heap.peek_mut().expect("there is at least one rank");
        let Reverse((load, _, rank)) = *due;
        give(block, rank);
        let load = f64::from_bits(load) + costs[block as usize];
        highest = highest.max(load);
        *due = Reverse((load.to_bits(), turn, rank));
    }
    highest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::{Distribution, Random, costs};

    /// The definition, word for word.
    fn by_definition(costs: &[f64], ranks: u32) -> Vec<u32> {
        let mut order: Vec<usize> = (0..costs.len()).collect();
        order.sort_by(|&a, &b| costs[b].total_cmp(&costs[a]).then(a.cmp(&b)));
        let mut state: Vec<(f64, i64)> = (0..i64::from(ranks)).map(|rank| (-1.0, rank)).collect();
        let mut owners = vec![0; costs.len()];
        for (turn, block) in order.into_iter().enumerate() {
            let due = (0..state.len())
                .min_by(|&a, &b| state[a].partial_cmp(&state[b]).unwrap())
                .unwrap();
            owners[block] = due as u32;
            // Served blocks of no cost count as load too: an idle rank comes first.
            state[due] = (
                state[due].0.max(0.0) + costs[block],
                i64::from(ranks) + turn as i64,
            );
        }
        owners
    }

    #[test]
    fn queue_and_heap_give_what_the_definition_says() {
        let mut random = Random::new(1);
        for case in 0..2_000 {
            let (n, ranks) = (random.below(120), 1 + random.below(30) as u32);
            let draw: Vec<f64> = match case % 4 {
                0 => costs(Distribution::Exponential, case, n),
                1 => (0..n).map(|_| random.unit()).collect(),
                2 => (0..n).map(|_| random.below(4) as f64).collect(),
                _ => (0..n).map(|_| 10f64.powf(6.0 * random.unit())).collect(),
            };
            let problem = Problem::new(&draw, ranks).unwrap();
            assert_eq!(
                place(&problem),
                by_definition(&draw, ranks),
                "case {case}: {draw:?} on {ranks}"
            );
        }
    }

    #[test]
    fn heavy_tails_reach_the_heap_and_agree_with_the_definition() {
        let mut random = Random::new(2);
        let draw: Vec<f64> = (0..4_000)
            .map(|_| 10f64.powf(12.0 * random.unit()))
            .collect();
        let problem = Problem::new(&draw, 700).unwrap();
        assert_eq!(place(&problem), by_definition(&draw, 700));
    }

    #[test]
    fn no_rank_is_favoured() {
        let problem = Problem::new(&[1e-9; 3000], 1000).unwrap();
        let owners = place(&problem);
        for rank in 0..1000 {
            assert_eq!(owners.iter().filter(|&&owner| owner == rank).count(), 3);
        }
    }
}
