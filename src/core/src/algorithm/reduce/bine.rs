//! Bine tree reduce: the binomial tree over Bine numbers, whose edges are shorter.
//!
//! Cost, n = 2^q: q rounds; n - 1 messages in all, each of them the whole message. Needs: a
//! commutative op, a power-of-two number of ranks.
//! Source: De Sensi et al., Bine trees, SC 2025, arXiv 2508.17311.

use super::{Sides, along};
use crate::algorithm::bine;
use crate::algorithm::schedule::{Case, Schedule};
use crate::algorithm::tree::{self, Node};

/// The message is `segments` chunks.
pub fn schedule(case: Case) -> Schedule {
    let n = case.n_ranks;
    assert!(n.is_power_of_two());
    let node = tree::knomial(bine::number(case.relative(), n), n, 2);
    let relative = |number| bine::relative(number, n);
    let node = Node {
        parent: node.parent.map(relative),
        children: node.children.into_iter().map(relative).collect(),
    };
    along(case, Sides::from(node).absolute(case))
}

#[cfg(test)]
mod tests {
    use crate::algorithm::proof::{Pattern, assert_tree_of_least_rounds, proved};

    #[test]
    fn the_root_ends_with_every_contribution_exactly_once() {
        assert_tree_of_least_rounds(proved(Pattern::Reduce, "bine"));
    }
}
