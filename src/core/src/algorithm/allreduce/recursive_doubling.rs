//! Recursive doubling allreduce: in each round ranks at twice the distance exchange all they have.
//!
//! Cost, n = 2^q: q rounds, in which each rank sends and combines the whole message. Otherwise
//! the ranks above the largest power of two fold onto their neighbours first (see
//! [`Fold`]): 2 rounds more. Keeps the operand order.
//! Source: Thakur, Rabenseifner & Gropp, IJHPCA 19(1), 2005. n = 4, contributions per rank:
//! {0}{1}{2}{3} -> {01}{01}{23}{23} -> {0123} x 4

use crate::algorithm::fold::Fold;
use crate::algorithm::schedule::{Buffer, Case, Order, Part, Schedule, Step, Temporary};

/// The message is one chunk.
pub fn schedule(case: Case) -> Schedule {
    let rank = case.rank;
    let [input, held, received] = [Buffer::Input, Buffer::Output, Buffer::Temporary(0)]
        .map(|buffer| Part::range(buffer, 0, 1));
    let fold = Fold::new(case.n_ranks, 2);
    let core = fold.core(rank);
    let exchange = (0..fold.rounds_of(rank)).flat_map(move |round| {
        let peer = fold.leader(core ^ (1 << round));
        [
            Step::send(peer, held),
            Step::receive(peer, received),
            Step::reduce(received, held, Order::of_peer(peer, rank)),
        ]
    });
    let steps = fold
        .combine(rank, input, held, received)
        .chain(exchange)
        .chain(fold.hand_back(rank, held));
    Schedule::new(1, steps).temporary(Temporary::whole(1))
}

#[cfg(test)]
mod tests {
    use crate::algorithm::proof::{Case, Pattern, cost, proved};

    #[test]
    fn every_rank_ends_with_every_contribution_in_order() {
        let row = proved(Pattern::Allreduce, "recursive_doubling");
        for n in 1..=33usize {
            let cost = cost(row, Case::new(0, n), 100);
            let q = n.ilog2() as usize;
            let folded = if n.is_power_of_two() { 0 } else { 2 };
            assert_eq!(cost.rounds, q + folded, "n = {n}");
            if folded == 0 {
                assert_eq!(cost.elements, 100 * q as u64, "n = {n}");
                assert_eq!(cost.reduced, 100 * q as u64, "n = {n}");
            }
        }
    }
}
