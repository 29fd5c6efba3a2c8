//! Bine tree bcast: the binomial tree over Bine numbers, whose edges are shorter.
//!
//! Cost, n = 2^q: q rounds; n - 1 messages in all, each of them the whole message. Needs: a
//! power-of-two number of ranks.
//! Source: De Sensi et al., Bine trees, SC 2025, arXiv 2508.17311.

use super::down;
use crate::algorithm::bine;
use crate::algorithm::schedule::{Case, Schedule};
use crate::algorithm::tree;

/// The message is `segments` chunks.
pub fn schedule(case: Case) -> Schedule {
    let n = case.n_ranks;
    assert!(n.is_power_of_two());
    let node = tree::knomial(bine::number(case.relative(), n), n, 2);
    let rank_at = move |number| case.absolute(bine::relative(number, n));
    Schedule::new(case.segments, down(case.segments, node, rank_at))
}

#[cfg(test)]
mod tests {
    use crate::algorithm::proof::{Pattern, assert_tree_of_least_rounds, proved};

    #[test]
    fn every_rank_ends_with_the_message() {
        assert_tree_of_least_rounds(proved(Pattern::Bcast, "bine"));
    }
}
