//! The circulant graph that serves any number of ranks in ceil(log2 n) rounds: distances that
//! are halved, rounding up, from n to 1.
//!
//! Source: Traeff, arXiv 2410.14234.

use super::schedule::{Buffer, Case, Order, Part, Parts, Step};

/// Halvings of `n`, rounding up, as (before, after): 7 gives (7, 4), (4, 2), (2, 1).
pub fn halvings(n: usize) -> impl DoubleEndedIterator<Item = (usize, usize)> {
    // The k-th halving of n, rounding up each time, is n / 2^k rounded up once.
    let rounds = n.next_power_of_two().ilog2();
    (0..rounds).map(move |k| (n.div_ceil(1 << k), n.div_ceil(1 << (k + 1))))
}

/// Allgather in `Output`, whose block `rank` is complete: in each round the blocks from the own
/// one upwards are doubled.
pub fn allgather(case: Case) -> impl Iterator<Item = Step> {
    let (rank, n) = (case.rank, case.n_ranks);
    halvings(n).rev().flat_map(move |(after, before)| {
        let gained = after - before;
        let blocks = |first| Parts::around(Buffer::Output, first, gained, n);
        [
            Step::send(case.below(before), blocks(rank)),
            Step::receive(case.above(before), blocks(rank + before)),
        ]
    })
}

/// Reduce-scatter of `Input`; the rank's own block ends in `held`, complete. `held` and `received`
/// have a chunk per rank. Needs a commutative operation.
///
/// In the first round what arrives is combined with the input where it lies, so that nothing has
/// to be copied but, where a number of blocks is odd, one block that had no partner.
pub fn reduce_scatter(case: Case, held: Buffer, received: Buffer) -> impl Iterator<Item = Step> {
    let (rank, n) = (case.rank, case.n_ranks);
    let alone =
        (n == 1).then(|| Step::copy(Part::range(Buffer::Input, 0, 1), Part::range(held, 0, 1)));
    let rounds = halvings(n).flat_map(move |(before, after)| {
        let given = before - after;
        let first_round = before == n;
        let around = move |buffer, first, len| Parts::around(buffer, first, len, n);
        let (sent_from, into) = if first_round {
            (Buffer::Input, held)
        } else {
            (held, received)
        };
        let unpaired = (first_round && given < after).then(|| (rank + after - 1) % n);
        let copy = unpaired.map(|block| {
            Step::copy(
                Part::range(Buffer::Input, block, 1),
                Part::range(held, block, 1),
            )
        });
        let target = around(held, rank, given);
        let parts = target.as_slice();
        let combine = [parts.first().copied(), parts.get(1).copied()]
            .into_iter()
            .flatten();
        let combine = combine.map(move |target| {
            let buffer = if first_round { Buffer::Input } else { received };
            Step::reduce(Part { buffer, ..target }, target, Order::SourceFirst)
        });
        let exchange = [
            Step::send(case.above(after), around(sent_from, rank + after, given)),
            Step::receive(case.below(after), around(into, rank, given)),
        ];
        copy.into_iter().chain(exchange).chain(combine)
    });
    alone.into_iter().chain(rounds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halving_rounds_up_and_ends_at_one() {
        for n in 1..300 {
            let mut at = n;
            for (before, after) in halvings(n) {
                assert_eq!(before, at);
                assert_eq!(after, at.div_ceil(2));
                at = after;
            }
            assert_eq!(at, 1);
        }
    }
}
