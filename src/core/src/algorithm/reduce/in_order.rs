//! Pipelined in-order binary tree reduce: every rank has the ranks just below it in one subtree
//! and those just above it in the other, so that operands combine in the order of ranks.
//!
//! Cost: at most 2 (floor(log2 n) + segments) rounds of one segment each; the whole message sent
//! once, and combined at most twice, per rank. Keeps the operand order at every root.
//! Source: Pjesivac-Grbovic et al., Cluster Computing 10(2), 2007; the tree that begins at any
//! root is ours.

use super::{Sides, along};
use crate::algorithm::schedule::{Case, Schedule};
use crate::algorithm::tree;

/// The message is `segments` chunks.
pub fn schedule(case: Case) -> Schedule {
    let node = tree::in_order(case.rank, case.n_ranks, case.root);
    let sides = Sides {
        parent: node.parent,
        above: node.above.into_iter().collect(),
        below: node.below.into_iter().collect(),
    };
    along(case, sides)
}

#[cfg(test)]
mod tests {
    use crate::algorithm::proof::{Case, Pattern, cost, proved};

    #[test]
    fn the_root_ends_with_every_contribution_in_order() {
        let row = proved(Pattern::Reduce, "in_order");
        for n in 2..=33usize {
            for root in 0..n {
                let segments = 1 + root % 5;
                let case = Case::new(0, n).segments(segments);
                let cost = cost(row, Case { root, ..case }, 100);
                let most = 2 * (n.ilog2() as usize + segments);
                assert!(
                    cost.rounds <= most,
                    "n = {n}, root = {root}: {} > {most}",
                    cost.rounds
                );
                assert_eq!(cost.elements, 100);
                assert!(cost.reduced <= 200);
            }
        }
    }
}
