//! Recursive halving reduce-scatter: in each round ranks at half the distance exchange half of
//! the blocks that are still to be combined.
//!
//! Cost, n = 2^q: q rounds; n - 1 blocks sent and combined per rank. Otherwise the ranks above
//! the largest power of two fold onto their neighbours first (see [`Fold`]): 2 rounds and 1
//! message more. Needs: a commutative op. Blocks may differ in length.
//! Source: Thakur, Rabenseifner & Gropp, IJHPCA 19(1), 2005.

use crate::algorithm::fold::Fold;
use crate::algorithm::schedule::{Buffer, Case, Order, Part, Schedule, Step, Temporary};

const HELD: Buffer = Buffer::Temporary(0);
const RECEIVED: Buffer = Buffer::Temporary(1);

/// One chunk per block.
pub fn schedule(case: Case) -> Schedule {
    let (rank, n) = (case.rank, case.n_ranks);
    let fold = Fold::new(n, 2);
    let core = fold.core(rank);
    let whole = |buffer| Part::range(buffer, 0, n);
    let blocks = move |buffer, cores: std::ops::Range<usize>| {
        let first = fold.first(cores.start);
        Part::range(buffer, first, fold.first(cores.end) - first)
    };
    let halve = (0..fold.rounds_of(rank)).rev().flat_map(move |round| {
        let half = 1 << round;
        let peer = core ^ half;
        let side = |core: usize| (core & !(half - 1))..(core & !(half - 1)) + half;
        [
            Step::send(fold.leader(peer), blocks(HELD, side(peer))),
            Step::receive(fold.leader(peer), blocks(RECEIVED, side(core))),
            Step::reduce(
                blocks(RECEIVED, side(core)),
                blocks(HELD, side(core)),
                Order::SourceFirst,
            ),
        ]
    });
    let block = |rank| Part::range(HELD, rank, 1);
    let result = Part::range(Buffer::Output, 0, 1);
    let hand_back = fold
        .led_by(rank)
        .map(move |other| Step::send(other, block(other)));
    let end = match fold.leads(rank) {
        true => Step::copy(block(rank), result),
        false => Step::receive(fold.leader(core), result),
    };
    let steps = fold
        .combine(rank, whole(Buffer::Input), whole(HELD), whole(RECEIVED))
        .chain(halve)
        .chain(hand_back)
        .chain([end]);
    Schedule::new(1, steps)
        .temporary(Temporary::whole(n))
        .temporary(Temporary::whole(n))
}

#[cfg(test)]
mod tests {
    use crate::algorithm::proof::{Case, Pattern, cost, proved};

    #[test]
    fn every_rank_ends_with_its_block_of_every_contribution() {
        let row = proved(Pattern::ReduceScatter, "recursive_halving");
        for n in 1..=64usize {
            let q = n.ilog2() as usize;
            let cost = cost(row, Case::new(0, n), 10);
            if n.is_power_of_two() {
                assert_eq!(cost.rounds, q);
                assert_eq!(cost.elements, 10 * (n as u64 - 1));
                assert_eq!(cost.reduced, 10 * (n as u64 - 1));
            } else {
                assert_eq!(cost.rounds, q + 2, "n = {n}");
                assert_eq!(cost.messages, q + 1, "n = {n}");
            }
        }
    }
}
