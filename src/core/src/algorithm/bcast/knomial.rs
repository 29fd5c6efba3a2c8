//! K-nomial tree bcast; with radix 2 the binomial tree.
//!
//! Cost, n = radix^i: i (radix - 1) rounds (any n, radix 2: ceil(log2 n)), or i where the messages
//! of one rank overlap; n - 1 messages in all, each of them the whole message.
//! Source: Thakur, Rabenseifner & Gropp, IJHPCA 19(1), 2005; Wilkins et al., CLUSTER 2023.

use super::down;
use crate::algorithm::schedule::{Case, Schedule};
use crate::algorithm::tree;

/// The message is `segments` chunks.
pub fn schedule(case: Case) -> Schedule {
    let node = tree::knomial(case.relative(), case.n_ranks, case.radix);
    let steps = down(case.segments, node, move |relative| case.absolute(relative));
    Schedule::new(case.segments, steps)
}

#[cfg(test)]
mod tests {
    use crate::algorithm::proof::{Pattern, assert_knomial_rounds, proved};

    #[test]
    fn every_rank_ends_with_the_message() {
        for name in ["binomial", "knomial"] {
            proved(Pattern::Bcast, name);
        }
    }

    #[test]
    fn rounds_are_those_promised() {
        assert_knomial_rounds(Pattern::Bcast);
    }
}
