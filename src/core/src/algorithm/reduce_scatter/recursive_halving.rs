//! Recursive halving reduce-scatter in the order of ranks: neighbours exchange half of the blocks, then ranks at twice the
//! distance half of what is left. A rank goes on with the blocks of every second rank, then of every fourth, which lie apart.
//!
//! Cost, n = 2^q: q rounds; n - 1 blocks sent and combined per rank. Otherwise the ranks above the largest power of two
//! fold onto their neighbours first (see [`Fold`]): 2 rounds and 1 message more. Blocks may differ in length. Operands are
//! combined in the fixed order ([`fixed_order`](crate::algorithm::fixed_order)).
//! Source: Thakur, Rabenseifner & Gropp, IJHPCA 19(1), 2005 (reduce-scatter with operations that do not commute).

use crate::algorithm::fold::Fold;
use crate::algorithm::schedule::{Buffer, Case, Order, Part, Parts, Schedule, Step, Temporary};

const HELD: Buffer = Buffer::Temporary(0);
const RECEIVED: Buffer = Buffer::Temporary(1);

/// The blocks of every `stride`-th core from `first` on: the cores of two ranks come before those of one.
fn blocks(fold: Fold, buffer: Buffer, first: usize, stride: usize) -> Parts {
    let (longer, cores) = (fold.n_ranks % fold.n_cores, fold.n_cores / stride);
    let pairs = longer.saturating_sub(first).div_ceil(stride);
    let two = || Part::strided(buffer, 2 * first, 2, pairs, 2 * stride);
    let one = || {
        let single = fold.first(first + pairs * stride);
        Part::strided(buffer, single, 1, cores - pairs, stride)
    };
    match pairs {
        0 => Parts::One(one()),
        all if all == cores => Parts::One(two()),
        _ => Parts::Two([two(), one()]),
    }
}

/// One chunk per block.
pub fn schedule(case: Case) -> Schedule {
    let (rank, n) = (case.rank, case.n_ranks);
    let fold = Fold::new(n, 2);
    let core = fold.core(rank);
    let whole = |buffer| Part::range(buffer, 0, n);
    let halve = (0..fold.rounds_of(rank)).flat_map(move |round| {
        let (other, stride) = (core ^ (1 << round), 2 << round);
        let peer = fold.leader(other);
        let [given, held, received] = [(HELD, other), (HELD, core), (RECEIVED, core)]
            .map(|(buffer, core)| blocks(fold, buffer, core % stride, stride));
        let exchange = [
            Step::send(peer, given),
            Step::receive(peer, received.clone()),
        ];
        let pairs = received.as_slice().iter().zip(held.as_slice());
        let combine =
            pairs.map(|(&from, &into)| Step::reduce(from, into, Order::of_peer(peer, rank)));
        exchange.into_iter().chain(combine.collect::<Vec<_>>())
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
    fn every_rank_ends_with_its_block_of_every_contribution_in_order() {
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
