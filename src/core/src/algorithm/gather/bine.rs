//! Bine tree gather: the binomial tree over Bine numbers, whose edges are shorter.
//!
//! Cost, n = 2^q: q rounds; n - 1 messages in all. Blocks are equally long. Needs: a power-of-two
//! number of ranks.
//! Source: De Sensi et al., Bine trees, SC 2025, arXiv 2508.17311.

use crate::algorithm::bine;
use crate::algorithm::schedule::{Buffer, Case, Part, Schedule, Step, Temporary};
use crate::algorithm::tree;

/// One chunk per block. Ranks other than the root collect in a temporary with a place per rank.
pub fn schedule(case: Case) -> Schedule {
    let n = case.n_ranks;
    assert!(n.is_power_of_two());
    let number = bine::number(case.relative(), n);
    let node = tree::knomial(number, n, 2);
    let rank_at = move |number| case.absolute(bine::relative(number, n));
    let own = Part::range(Buffer::Input, 0, 1);
    if let (Some(parent), true) = (node.parent, node.children.is_empty()) {
        return Schedule::new(1, std::iter::once(Step::send(rank_at(parent), own)));
    }
    let collected = match node.parent {
        None => Buffer::Output,
        Some(_) => Buffer::Temporary(0),
    };
    let blocks = move |number| bine::subtree(collected, case, number);
    let children = node.children.into_iter().rev();
    let receive = children.map(move |child| Step::receive(rank_at(child), blocks(child)));
    let send = node
        .parent
        .map(|parent| Step::send(rank_at(parent), blocks(number)));
    let start = Step::copy(own, Part::range(collected, case.rank, 1));
    let steps = std::iter::once(start).chain(receive).chain(send);
    Schedule::new(1, steps).temporary(Temporary::whole(n))
}

#[cfg(test)]
mod tests {
    use crate::algorithm::proof::{Pattern, assert_tree_of_least_rounds, proved};

    #[test]
    fn the_root_ends_with_every_block() {
        assert_tree_of_least_rounds(proved(Pattern::Gather, "bine"));
    }
}
