//! Bine reduce-scatter: exchanges over Bine distances, the nearest first, so that the large
//! messages of the first rounds travel to the nearest ranks.
//!
//! Cost, n = 2^q: q rounds; n - 1 blocks sent and combined per rank. Needs: a commutative op, a
//! power-of-two number of ranks. Blocks may differ in length.
//! Source: De Sensi et al., Bine trees, SC 2025, arXiv 2508.17311.

use crate::algorithm::allreduce::swing;
use crate::algorithm::schedule::{Buffer, Case, Part, Schedule, Step, Temporary};

/// One chunk per block.
pub fn schedule(case: Case) -> Schedule {
    let n = case.n_ranks;
    let [held, received] = [0, 1].map(Buffer::Temporary);
    let start = Step::copy(Part::range(Buffer::Input, 0, n), Part::range(held, 0, n));
    let result = Step::copy(
        Part::range(held, case.rank, 1),
        Part::range(Buffer::Output, 0, 1),
    );
    let exchanges = swing::reduce_scatter(case, held, received);
    let steps = std::iter::once(start).chain(exchanges).chain([result]);
    Schedule::new(1, steps)
        .temporary(Temporary::whole(n))
        .temporary(Temporary::whole(n))
}

#[cfg(test)]
mod tests {
    use crate::algorithm::proof::{Case, Pattern, cost, proved};

    #[test]
    fn every_rank_ends_with_its_block_of_every_contribution() {
        let row = proved(Pattern::ReduceScatter, "bine");
        for q in 1..=6 {
            let n = 1 << q;
            let cost = cost(row, Case::new(0, n), 10);
            assert_eq!(cost.rounds, q);
            assert_eq!(cost.elements, 10 * (n as u64 - 1));
            assert_eq!(cost.reduced, 10 * (n as u64 - 1));
        }
    }
}
