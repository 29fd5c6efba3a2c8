//! Tree barrier: word goes up a k-nomial tree to rank 0 and down again.
//!
//! Cost, n = radix^i: 2 i (radix - 1) rounds, or 2 i where the messages of one rank overlap;
//! 2(n - 1) messages in all.
//! Source: Mellor-Crummey & Scott, ACM TOCS 9(1), 1991.

use crate::algorithm::schedule::{Case, Parts, Schedule, Step};
use crate::algorithm::tree;

pub fn schedule(case: Case) -> Schedule {
    let node = tree::knomial(case.rank, case.n_ranks, case.radix);
    let children = node.children.clone().into_iter().rev();
    let gather = children.map(|child| Step::receive(child, Parts::None));
    let parent = node.parent.into_iter();
    let word = parent.flat_map(|parent| {
        [
            Step::send(parent, Parts::None),
            Step::receive(parent, Parts::None),
        ]
    });
    let release = node
        .children
        .into_iter()
        .map(|child| Step::send(child, Parts::None));
    Schedule::new(1, gather.chain(word).chain(release)).window(2 * case.radix)
}

#[cfg(test)]
mod tests {
    use crate::algorithm::proof::{Case, Pattern, cost, proved};

    #[test]
    fn no_rank_ends_before_every_rank_has_begun() {
        let row = proved(Pattern::Barrier, "tree");
        for (n, radix, i) in [(8, 2, 3), (9, 3, 2), (64, 4, 3), (64, 8, 2)] {
            let cost = cost(row, Case::new(0, n).radix(radix), 0);
            assert_eq!(cost.rounds, 2 * (radix - 1) * i, "n = {n}");
            assert_eq!(cost.all_messages, 2 * (n - 1));
        }
    }
}
