//! Bruck's allgather with any radix: in each round the blocks from the own one upwards grow by
//! the factor `radix`, each of `radix - 1` ranks sending as many as were there before.
//!
//! Cost: n - 1 blocks sent per rank in at most ceil(log_radix n) (radix - 1) messages; with radix
//! 2 in ceil(log2 n) rounds. Blocks lie at their places all the time, so that nothing is rotated;
//! a range that goes round the end is one message of two parts. Blocks may differ in length.
//! Source: Bruck et al., IEEE TPDS 8(11), 1997.

use super::own_block;
use crate::algorithm::schedule::{Buffer, Case, Parts, Schedule, Step};

/// One chunk per block.
pub fn schedule(case: Case) -> Schedule {
    let (rank, n, radix) = (case.rank, case.n_ranks, case.radix);
    let reaches = std::iter::successors(Some(1), move |reach| Some(reach * radix));
    let rounds = reaches
        .take_while(move |&reach| reach < n)
        .flat_map(move |reach| {
            let distances = (1..radix)
                .map(move |d| d * reach)
                .take_while(move |&d| d < n);
            distances.flat_map(move |distance| {
                let len = reach.min(n - distance);
                let blocks = |first| Parts::around(Buffer::Output, first, len, n);
                [
                    Step::send(case.below(distance), blocks(rank)),
                    Step::receive(case.above(distance), blocks(rank + distance)),
                ]
            })
        });
    Schedule::new(1, std::iter::once(own_block(case)).chain(rounds))
}

#[cfg(test)]
mod tests {
    use crate::algorithm::proof::{Case, Pattern, cost, log_ceil, proved};

    #[test]
    fn every_rank_ends_with_every_block() {
        let row = proved(Pattern::Allgather, "bruck");
        for n in 1..=64 {
            for radix in [2, 3, 4, 8] {
                let cost = cost(row, Case::new(0, n).radix(radix), 10);
                assert_eq!(cost.elements, 10 * (n as u64 - 1));
                assert!(cost.messages <= log_ceil(n, radix) * (radix - 1));
                if radix == 2 {
                    assert_eq!(cost.rounds, log_ceil(n, 2), "n = {n}");
                }
            }
        }
    }
}
