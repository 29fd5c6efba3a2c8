//! Swing allreduce: reduce-scatter, then allgather, by exchanges with ranks now above, now below,
//! over distances that about double: 1, 1, 3, 5, 11, ...
//!
//! Cost, n = 2^q: 2q rounds; 2(n-1)/n of the message sent per rank, (n-1)/n of it combined; most
//! bytes travel to the nearest ranks. Needs: a commutative op, a power-of-two number of ranks.
//! Source: De Sensi et al., Swing, NSDI 2024, arXiv 2401.09356.

use crate::algorithm::bine::{parts, peer};
use crate::algorithm::schedule::{Buffer, Case, Order, Part, Schedule, Step, Temporary};

/// Reduce-scatter by exchanges of ascending order, in place in `held`: after it block `rank` is
/// complete. Both buffers have a chunk per rank.
pub fn reduce_scatter(case: Case, held: Buffer, received: Buffer) -> impl Iterator<Item = Step> {
    let (rank, n) = (case.rank, case.n_ranks);
    assert!(n.is_power_of_two());
    (0..n.ilog2()).flat_map(move |k| {
        let other = peer(rank, k, n);
        let kept = parts(held, case, rank, k);
        let combine: Vec<Step> = kept
            .as_slice()
            .iter()
            .map(|&target| {
                let source = Part {
                    buffer: received,
                    ..target
                };
                Step::reduce(source, target, Order::SourceFirst)
            })
            .collect();
        let exchange = [
            Step::send(other, parts(held, case, other, k)),
            Step::receive(other, parts(received, case, rank, k)),
        ];
        exchange.into_iter().chain(combine)
    })
}

/// Allgather by the same exchanges backwards, in `Output`.
pub fn allgather(case: Case) -> impl Iterator<Item = Step> {
    let (rank, n) = (case.rank, case.n_ranks);
    assert!(n.is_power_of_two());
    (0..n.ilog2()).rev().flat_map(move |k| {
        let other = peer(rank, k, n);
        [
            Step::send(other, parts(Buffer::Output, case, rank, k)),
            Step::receive(other, parts(Buffer::Output, case, other, k)),
        ]
    })
}

/// The message is one chunk per rank.
pub fn schedule(case: Case) -> Schedule {
    let whole = |buffer| Part::range(buffer, 0, case.n_ranks);
    let start = Step::copy(whole(Buffer::Input), whole(Buffer::Output));
    let steps = std::iter::once(start)
        .chain(reduce_scatter(case, Buffer::Output, Buffer::Temporary(0)))
        .chain(allgather(case));
    Schedule::new(case.n_ranks, steps).temporary(Temporary::whole(case.n_ranks))
}

#[cfg(test)]
mod tests {
    use crate::algorithm::proof::{Case, Pattern, cost, proved};

    #[test]
    fn every_rank_ends_with_every_contribution_exactly_once() {
        let row = proved(Pattern::Allreduce, "swing");
        for q in 1..=6 {
            let n = 1 << q;
            let cost = cost(row, Case::new(0, n), 10 * n as u64);
            assert_eq!(cost.rounds, 2 * q);
            assert_eq!(cost.elements, 20 * (n as u64 - 1));
            assert_eq!(cost.reduced, 10 * (n as u64 - 1));
        }
    }
}
