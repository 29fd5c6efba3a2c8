//! Bine allgather: exchanges over Bine distances, the farthest first, so that the large messages
//! of the last rounds travel to the nearest ranks.
//!
//! Cost, n = 2^q: q rounds; n - 1 blocks sent per rank. Needs: a power-of-two number of ranks.
//! Blocks may differ in length.
//! Source: De Sensi et al., Bine trees, SC 2025, arXiv 2508.17311.

use super::own_block;
use crate::algorithm::allreduce::swing;
use crate::algorithm::schedule::{Case, Schedule};

/// One chunk per block.
pub fn schedule(case: Case) -> Schedule {
    Schedule::new(
        1,
        std::iter::once(own_block(case)).chain(swing::allgather(case)),
    )
}

#[cfg(test)]
mod tests {
    use crate::algorithm::proof::{Case, Pattern, cost, proved};

    #[test]
    fn every_rank_ends_with_every_block() {
        let row = proved(Pattern::Allgather, "bine");
        for q in 1..=6 {
            let n = 1 << q;
            let cost = cost(row, Case::new(0, n), 10);
            assert_eq!(cost.rounds, q);
            assert_eq!(cost.elements, 10 * (n as u64 - 1));
        }
    }
}
