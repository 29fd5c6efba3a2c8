//! Binomial tree bcast with distances that double from round to round: the nearest child first.
//!
//! Cost: ceil(log2 n) rounds; n - 1 messages in all, each of them the whole message. Where ranks of a
//! node follow one another, the first rounds stay inside the nodes and the last cross them all at once,
//! which is the other way round in [`knomial`](super::knomial).
//! Source: De Sensi et al., Bine trees, SC 2025, which tells both binomial trees apart.

use super::down;
use crate::algorithm::schedule::{Case, Schedule};
use crate::algorithm::tree;

/// The message is one chunk.
pub fn schedule(case: Case) -> Schedule {
    let node = tree::doubling(case.relative(), case.n_ranks);
    let steps = down(case.segments, node, move |relative| case.absolute(relative));
    Schedule::new(case.segments, steps)
}

#[cfg(test)]
mod tests {
    use crate::algorithm::proof::{Pattern, assert_tree_of_least_rounds, proved};

    #[test]
    fn every_rank_ends_with_the_message_in_the_rounds_promised() {
        assert_tree_of_least_rounds(proved(Pattern::Bcast, "binomial_doubling"));
    }
}
