//! Circulant allreduce: reduce-scatter on a circulant graph, then allgather on it backwards.
//!
//! Cost: 2 ceil(log2 n) rounds for any n; 2(n-1)/n of the message sent per rank, (n-1)/n of it
//! combined. Needs: a commutative op.
//! Source: Traeff, arXiv 2410.14234. n = 3, ranks whose contributions rank 0 holds per block, in
//! the reduce-scatter: {0}{0}{0} -> {0,1}{0}- -> {0,1,2}--

use crate::algorithm::circulant;
use crate::algorithm::schedule::{Buffer, Case, Schedule, Temporary};

/// The message is one chunk per rank.
pub fn schedule(case: Case) -> Schedule {
    let steps = circulant::reduce_scatter(case, Buffer::Output, Buffer::Temporary(0))
        .chain(circulant::allgather(case));
    Schedule::new(case.n_ranks, steps).temporary(Temporary::whole(case.n_ranks))
}

#[cfg(test)]
mod tests {
    use crate::algorithm::proof::{Case, Pattern, cost, log_ceil, proved};

    #[test]
    fn every_rank_ends_with_every_contribution_exactly_once() {
        let row = proved(Pattern::Allreduce, "circulant");
        for n in 1..=64 {
            let cost = cost(row, Case::new(0, n), 10 * n as u64);
            assert_eq!(cost.rounds, 2 * log_ceil(n, 2), "n = {n}");
            assert_eq!(cost.messages, 2 * log_ceil(n, 2), "n = {n}");
            assert_eq!(cost.elements, 20 * (n as u64 - 1), "n = {n}");
            assert_eq!(cost.reduced, 10 * (n as u64 - 1), "n = {n}");
        }
    }
}
