//! Binomial tree reduce along the tree of [`bcast::doubling`](crate::algorithm::bcast::doubling): the
//! farthest child first.
//!
//! Cost: ceil(log2 n) rounds; n - 1 messages in all, each of them the whole message. Needs: a
//! commutative op, since subtrees are no ranges of ranks.
//! Source: De Sensi et al., Bine trees, SC 2025, which tells both binomial trees apart.

use super::{Sides, along};
use crate::algorithm::schedule::{Case, Schedule};
use crate::algorithm::tree;

/// The message is one chunk.
pub fn schedule(case: Case) -> Schedule {
    let node = tree::doubling(case.relative(), case.n_ranks);
    along(case, Sides::from(node).absolute(case))
}

#[cfg(test)]
mod tests {
    use crate::algorithm::proof::{Pattern, assert_tree_of_least_rounds, proved};

    #[test]
    fn the_root_ends_with_every_contribution_in_the_rounds_promised() {
        assert_tree_of_least_rounds(proved(Pattern::Reduce, "binomial_doubling"));
    }
}
