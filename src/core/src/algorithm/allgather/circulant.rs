//! Circulant allgather: the blocks from the own one upwards are doubled in each round, over the
//! distances of the circulant graph.
//!
//! Cost: ceil(log2 n) rounds for any n; n - 1 blocks sent per rank. Blocks may differ in length.
//! Source: Traeff, arXiv 2410.14234.

use super::own_block;
use crate::algorithm::circulant;
use crate::algorithm::schedule::{Case, Schedule};

/// One chunk per block.
pub fn schedule(case: Case) -> Schedule {
    Schedule::new(
        1,
        std::iter::once(own_block(case)).chain(circulant::allgather(case)),
    )
}

#[cfg(test)]
mod tests {
    use crate::algorithm::proof::{Case, Pattern, cost, log_ceil, proved};

    #[test]
    fn every_rank_ends_with_every_block() {
        let row = proved(Pattern::Allgather, "circulant");
        for n in 1..=64 {
            let cost = cost(row, Case::new(0, n), 10);
            assert_eq!(cost.rounds, log_ceil(n, 2), "n = {n}");
            assert_eq!(cost.elements, 10 * (n as u64 - 1), "n = {n}");
        }
    }
}
