//! Pipelined chain bcast: each rank hands every segment on to the next.
//!
//! Cost: n - 2 + segments rounds of one segment each; the whole message sent once per rank.
//! Source: Pjesivac-Grbovic et al., Cluster Computing 10(2), 2007.

use super::down;
use crate::algorithm::schedule::{Case, Schedule};
use crate::algorithm::tree;

/// The message is `segments` chunks.
pub fn schedule(case: Case) -> Schedule {
    let node = tree::chain(case.relative(), case.n_ranks);
    let steps = down(case.segments, node, move |relative| case.absolute(relative));
    Schedule::new(case.segments, steps)
}

/// As many chains as the radix says, which all begin at the root: what Open MPI calls a chain.
pub fn several(case: Case) -> Schedule {
    let node = tree::chains(case.relative(), case.n_ranks, case.radix);
    let steps = down(case.segments, node, move |relative| case.absolute(relative));
    Schedule::new(case.segments, steps)
}

#[cfg(test)]
mod tests {
    use crate::algorithm::proof::{Case, Pattern, cost, proved};

    #[test]
    fn every_rank_ends_with_the_message() {
        let row = proved(Pattern::Bcast, "chain");
        for n in 2..=33 {
            for segments in [1, 2, 7, 20] {
                let cost = cost(row, Case::new(0, n).segments(segments), 100);
                assert_eq!(cost.rounds, n - 2 + segments, "n = {n}");
                assert_eq!(cost.elements, 100);
            }
        }
    }
}
