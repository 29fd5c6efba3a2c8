//! Bine tree scatter: the binomial tree over Bine numbers, whose edges are shorter.
//!
//! Cost, n = 2^q: q rounds; n - 1 messages in all. Blocks are equally long. Needs: a power-of-two
//! number of ranks.
//! Source: De Sensi et al., Bine trees, SC 2025, arXiv 2508.17311.

use crate::algorithm::bine;
use crate::algorithm::schedule::{Buffer, Case, Part, Schedule, Step, Temporary};
use crate::algorithm::tree;

/// One chunk per block. Ranks other than the root receive in a temporary with a place per rank.
pub fn schedule(case: Case) -> Schedule {
    let n = case.n_ranks;
    assert!(n.is_power_of_two());
    let number = bine::number(case.relative(), n);
    let node = tree::knomial(number, n, 2);
    let rank_at = move |number| case.absolute(bine::relative(number, n));
    let own = Part::range(Buffer::Output, 0, 1);
    if let (Some(parent), true) = (node.parent, node.children.is_empty()) {
        return Schedule::new(1, std::iter::once(Step::receive(rank_at(parent), own)));
    }
    let handed_on = match node.parent {
        None => Buffer::Input,
        Some(_) => Buffer::Temporary(0),
    };
    let blocks = move |number| bine::subtree(handed_on, case, number);
    let receive = node
        .parent
        .map(|parent| Step::receive(rank_at(parent), blocks(number)));
    let children = node.children.into_iter();
    let send = children.map(move |child| Step::send(rank_at(child), blocks(child)));
    let end = Step::copy(Part::range(handed_on, case.rank, 1), own);
    let steps = receive.into_iter().chain(send).chain([end]);
    Schedule::new(1, steps).temporary(Temporary::whole(n))
}

#[cfg(test)]
mod tests {
    use crate::algorithm::proof::{Pattern, assert_tree_of_least_rounds, proved};

    #[test]
    fn every_rank_ends_with_its_block() {
        assert_tree_of_least_rounds(proved(Pattern::Scatter, "bine"));
    }
}
