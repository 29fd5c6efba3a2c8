//! Pipelined chain reduce: each rank combines every segment with its own and hands it on.
//!
//! Cost: n - 2 + segments rounds of one segment each; the whole message sent and combined once
//! per rank. Needs: a commutative op, since the chain ends at the root.
//! Source: Pjesivac-Grbovic et al., Cluster Computing 10(2), 2007.

use super::{Sides, along};
use crate::algorithm::schedule::{Case, Schedule};
use crate::algorithm::tree;

/// The message is `segments` chunks.
pub fn schedule(case: Case) -> Schedule {
    let node = tree::chain(case.relative(), case.n_ranks);
    along(case, Sides::from(node).absolute(case))
}

/// As many chains as the radix says, which all end at the root: what Open MPI calls a chain.
pub fn several(case: Case) -> Schedule {
    let node = tree::chains(case.relative(), case.n_ranks, case.radix);
    along(case, Sides::from(node).absolute(case))
}

#[cfg(test)]
mod tests {
    use crate::algorithm::proof::{Case, Pattern, cost, proved};

    #[test]
    fn the_root_ends_with_every_contribution_exactly_once() {
        let row = proved(Pattern::Reduce, "chain");
        for n in 2..=33 {
            for segments in [1, 2, 7, 20] {
                let cost = cost(row, Case::new(0, n).segments(segments), 100);
                assert_eq!(cost.rounds, n - 2 + segments, "n = {n}");
                assert_eq!(cost.elements, 100);
                assert_eq!(cost.reduced, 100);
            }
        }
    }
}
