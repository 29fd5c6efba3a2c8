//! Sparbit: every block goes down a binomial tree of its own, over distances that halve; the
//! blocks of all trees that pass between two ranks in a round are one message.
//!
//! Cost: ceil(log2 n) rounds for any n; n - 1 blocks sent per rank, most of them to near ranks.
//! Blocks may differ in length.
//! Source: Loch & Koslovski, Sparbit, arXiv 2109.08751.

use super::own_block;
use crate::algorithm::schedule::{Buffer, Case, Part, Parts, Schedule, Step};

/// One chunk per block.
pub fn schedule(case: Case) -> Schedule {
    let n = case.n_ranks;
    let rounds = n.next_power_of_two().ilog2();
    let exchanges = (0..rounds).rev().flat_map(move |round| {
        let distance = 1 << round;
        // Seen from the owner of its block, a rank passes on at every even multiple of the
        // distance, as long as there is a rank to pass it on to.
        let passed = (n - distance).div_ceil(2 * distance);
        let blocks = move |nearest: usize| every(case.below(nearest), 2 * distance, passed, n);
        [
            Step::send(case.above(distance), blocks(0)),
            Step::receive(case.below(distance), blocks(distance)),
        ]
    });
    Schedule::new(1, std::iter::once(own_block(case)).chain(exchanges))
}

/// `count` blocks from `first` downwards, `stride` apart, going on at the top below 0.
fn every(first: usize, stride: usize, count: usize, n: usize) -> Parts {
    let to_bottom = (first / stride + 1).min(count);
    let upwards = |last: usize, runs: usize| {
        Part::strided(Buffer::Output, last - (runs - 1) * stride, 1, runs, stride)
    };
    let low = upwards(first, to_bottom);
    match count - to_bottom {
        0 => Parts::One(low),
        rest => Parts::Two([low, upwards(first + n - to_bottom * stride, rest)]),
    }
}

#[cfg(test)]
mod tests {
    use crate::algorithm::proof::{Case, Pattern, cost, log_ceil, proved};

    #[test]
    fn every_rank_ends_with_every_block() {
        let row = proved(Pattern::Allgather, "sparbit");
        for n in 1..=64 {
            let cost = cost(row, Case::new(0, n), 10);
            assert_eq!(cost.rounds, log_ceil(n, 2), "n = {n}");
            assert_eq!(cost.elements, 10 * (n as u64 - 1), "n = {n}");
        }
    }
}
