//! Rabenseifner's allreduce for any number of ranks: reduce-scatter by recursive halving of the
//! message over doubling distances, then allgather by the same exchanges backwards.
//!
//! Cost, n = 2^q: 2q rounds; 2(n-1)/n of the message sent per rank, (n-1)/n of it combined.
//! Otherwise the ranks above the largest power of two fold onto their neighbours first (see
//! [`Fold`]): 2 rounds and up to 1 message more. Keeps the operand order.
//! Source: Thakur, Rabenseifner & Gropp, IJHPCA 19(1), 2005. n = 2, contributions per chunk:
//! {0}{0} | {1}{1} -> {01}- | -{01} -> {01}{01} x 2

use crate::algorithm::fold::Fold;
use crate::algorithm::schedule::{Buffer, Case, Order, Part, Schedule, Step, Temporary};

/// The chunks that a core still has to combine after `round` halvings, as (first, number): its
/// bits, from the lowest up, choose the upper half where they are 1.
pub fn halved(core: usize, n_cores: usize, round: u32) -> (usize, usize) {
    // Bit i stands for n_cores / 2^(i+1) chunks: the bits in reverse.
    let bits = (core & ((1 << round) - 1)).reverse_bits();
    let first = bits.checked_shr(usize::BITS - n_cores.ilog2()).unwrap_or(0);
    (first, n_cores >> round)
}

/// Reduce-scatter among leaders, in place in `held`: after it a core holds the chunk
/// `halved(core, n_cores, rounds)` complete.
pub fn reduce_scatter(
    fold: Fold,
    rank: usize,
    held: Buffer,
    received: Buffer,
) -> impl Iterator<Item = Step> {
    let core = fold.core(rank);
    (0..fold.rounds_of(rank)).flat_map(move |round| {
        let other = core ^ (1 << round);
        let peer = fold.leader(other);
        let (kept, len) = halved(core, fold.n_cores, round + 1);
        let (given, _) = halved(other, fold.n_cores, round + 1);
        [
            Step::send(peer, Part::range(held, given, len)),
            Step::receive(peer, Part::range(received, kept, len)),
            Step::reduce(
                Part::range(received, kept, len),
                Part::range(held, kept, len),
                Order::of_peer(peer, rank),
            ),
        ]
    })
}

/// The message is as many chunks as there are leaders.
pub fn schedule(case: Case) -> Schedule {
    let rank = case.rank;
    let fold = Fold::new(case.n_ranks, 2);
    let core = fold.core(rank);
    let chunks = fold.n_cores;
    let [input, held, received] = [Buffer::Input, Buffer::Output, Buffer::Temporary(0)]
        .map(|buffer| Part::range(buffer, 0, chunks));
    let allgather = (0..fold.rounds_of(rank)).rev().flat_map(move |round| {
        let other = core ^ (1 << round);
        let (own, len) = halved(core, chunks, round + 1);
        let (theirs, _) = halved(other, chunks, round + 1);
        [
            Step::send(fold.leader(other), Part::range(Buffer::Output, own, len)),
            Step::receive(fold.leader(other), Part::range(Buffer::Output, theirs, len)),
        ]
    });
    let steps = fold
        .combine(rank, input, held, received)
        .chain(reduce_scatter(
            fold,
            rank,
            Buffer::Output,
            Buffer::Temporary(0),
        ))
        .chain(allgather)
        .chain(fold.hand_back(rank, held));
    Schedule::new(chunks, steps).temporary(Temporary::whole(chunks))
}

#[cfg(test)]
mod tests {
    use crate::algorithm::proof::{Case, Pattern, cost, proved};

    #[test]
    fn every_rank_ends_with_every_contribution_in_order() {
        let row = proved(Pattern::Allreduce, "rabenseifner");
        for n in 1..=33usize {
            let q = n.ilog2() as usize;
            let share = 10;
            let cost = cost(row, Case::new(0, n), share << q);
            let folded = if n.is_power_of_two() { 0 } else { 2 };
            assert_eq!(cost.rounds, 2 * q + folded, "n = {n}");
            if folded == 0 {
                assert_eq!(cost.elements, 2 * (n as u64 - 1) * share, "n = {n}");
                assert_eq!(cost.reduced, (n as u64 - 1) * share, "n = {n}");
            } else {
                assert_eq!(cost.messages, 2 * q + 1, "n = {n}");
            }
        }
    }
}
