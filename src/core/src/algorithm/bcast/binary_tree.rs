//! Pipelined binary tree bcast: each rank hands every segment on to its two children.
//!
//! Cost: at most 2 (floor(log2 n) + segments - 1) rounds of one segment each; at most twice the
//! message sent per rank.
//! Source: Pjesivac-Grbovic et al., Cluster Computing 10(2), 2007.

use super::down;
use crate::algorithm::schedule::{Case, Schedule};
use crate::algorithm::tree;

/// The message is `segments` chunks.
pub fn schedule(case: Case) -> Schedule {
    let node = tree::binary(case.relative(), case.n_ranks);
    let steps = down(case.segments, node, move |relative| case.absolute(relative));
    Schedule::new(case.segments, steps)
}

#[cfg(test)]
mod tests {
    use crate::algorithm::proof::{Case, Pattern, cost, proved};

    #[test]
    fn every_rank_ends_with_the_message() {
        let row = proved(Pattern::Bcast, "binary_tree");
        for n in 2..=33usize {
            for segments in [1, 2, 7, 20] {
                let cost = cost(row, Case::new(0, n).segments(segments), 100);
                let most = 2 * (n.ilog2() as usize + segments - 1);
                assert!(cost.rounds <= most, "n = {n}: {} > {most}", cost.rounds);
                assert!(cost.elements <= 200);
            }
        }
    }
}
