//! Ring allgather: each rank hands on to the next what it received last.
//!
//! Cost: n - 1 rounds; n - 1 blocks sent per rank. Blocks may differ in length.
//! Source: Thakur, Rabenseifner & Gropp, IJHPCA 19(1), 2005.

use super::own_block;
use crate::algorithm::schedule::{Buffer, Case, Part, Schedule, Step};

/// One chunk per block.
pub fn schedule(case: Case) -> Schedule {
    let block = move |below| Part::range(Buffer::Output, case.below(below), 1);
    let rounds = (1..case.n_ranks).flat_map(move |round| {
        [
            Step::send(case.above(1), block(round - 1)),
            Step::receive(case.below(1), block(round)),
        ]
    });
    Schedule::new(1, std::iter::once(own_block(case)).chain(rounds))
}

#[cfg(test)]
mod tests {
    use crate::algorithm::proof::{Case, Pattern, cost, proved};

    #[test]
    fn every_rank_ends_with_every_block() {
        let row = proved(Pattern::Allgather, "ring");
        for n in 1..=64 {
            let cost = cost(row, Case::new(0, n), 10);
            assert_eq!(cost.rounds, n - 1);
            assert_eq!(cost.elements, 10 * (n as u64 - 1));
        }
    }
}
