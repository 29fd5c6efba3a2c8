//! K-nomial tree reduce; with radix 2 the binomial tree.
//!
//! Cost, n = radix^i: i (radix - 1) rounds (any n, radix 2: ceil(log2 n)), or i where the messages
//! of one rank overlap; n - 1 messages in all, each of them the whole message. Needs: a
//! commutative op, since the tree begins at the root.
//! Source: Thakur, Rabenseifner & Gropp, IJHPCA 19(1), 2005; Wilkins et al., CLUSTER 2023.

use super::{Sides, along};
use crate::algorithm::schedule::{Case, Schedule};
use crate::algorithm::tree;

/// The message is `segments` chunks.
pub fn schedule(case: Case) -> Schedule {
    let node = tree::knomial(case.relative(), case.n_ranks, case.radix);
    along(case, Sides::from(node).absolute(case))
}

#[cfg(test)]
mod tests {
    use crate::algorithm::proof::{Pattern, assert_knomial_rounds, proved};

    #[test]
    fn the_root_ends_with_every_contribution_exactly_once() {
        for name in ["binomial", "knomial"] {
            proved(Pattern::Reduce, name);
        }
    }

    #[test]
    fn rounds_are_those_promised() {
        assert_knomial_rounds(Pattern::Reduce);
    }
}
