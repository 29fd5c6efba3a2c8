//! Circulant reduce-scatter: the blocks still to be combined are halved in each round, over the
//! distances of the circulant graph.
//!
//! Cost: ceil(log2 n) rounds for any n; n - 1 blocks sent and combined per rank. Needs: a
//! commutative op. Blocks may differ in length.
//! Source: Traeff, arXiv 2410.14234.

use crate::algorithm::circulant;
use crate::algorithm::schedule::{Buffer, Case, Part, Schedule, Step, Temporary};

/// One chunk per block.
pub fn schedule(case: Case) -> Schedule {
    let [held, received] = [0, 1].map(Buffer::Temporary);
    let result = Step::copy(
        Part::range(held, case.rank, 1),
        Part::range(Buffer::Output, 0, 1),
    );
    let steps = circulant::reduce_scatter(case, held, received).chain([result]);
    Schedule::new(1, steps)
        .temporary(Temporary::whole(case.n_ranks))
        .temporary(Temporary::whole(case.n_ranks))
}

#[cfg(test)]
mod tests {
    use crate::algorithm::proof::{Case, Pattern, cost, log_ceil, proved};

    #[test]
    fn every_rank_ends_with_its_block_of_every_contribution() {
        let row = proved(Pattern::ReduceScatter, "circulant");
        for n in 1..=64 {
            let cost = cost(row, Case::new(0, n), 10);
            assert_eq!(cost.rounds, log_ceil(n, 2), "n = {n}");
            assert_eq!(cost.elements, 10 * (n as u64 - 1), "n = {n}");
            assert_eq!(cost.reduced, 10 * (n as u64 - 1), "n = {n}");
        }
    }
}
