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
    use crate::algorithm::proof::{Case, Pattern, cost, proved};

    #[test]
    fn the_root_ends_with_every_contribution_exactly_once() {
        let row = proved(Pattern::Reduce, "bine");
        for q in 1..=6 {
            let cost = cost(row, Case::new(0, 1 << q), 100);
            assert_eq!(cost.rounds, q);
            assert_eq!(cost.all_messages, (1 << q) - 1);
        }
    }
}
