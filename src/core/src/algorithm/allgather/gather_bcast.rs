//! Gather, then bcast of all blocks, on one k-nomial tree whose root is rank 0.
//!
//! Cost: 2(n - 1) messages in all; (n - 1) n blocks on the way down, and on the way up each block once per level.
//! For n = radix^i 2 i (radix - 1) rounds, or 2 i where the messages of one rank overlap. Blocks may differ in
//! length.
//! Source: Wilkins et al., Generalized collective algorithms, CLUSTER 2023.

use super::own_block;
use crate::algorithm::schedule::{Buffer, Case, Part, Schedule, Step};
use crate::algorithm::tree;

/// One chunk per block.
pub fn schedule(case: Case) -> Schedule {
    let Case {
        rank,
        n_ranks,
        radix,
        ..
    } = case;
    let node = tree::knomial(rank, n_ranks, radix);
    let (parent, children) = (node.parent, node.children);
    let subtree = move |v| {
        let span = tree::knomial_span(v, n_ranks, radix);
        Part::range(Buffer::Output, v, span)
    };
    let all = Part::range(Buffer::Output, 0, n_ranks);
    let up = children.clone().into_iter().rev();
    let up = up.map(move |child| Step::receive(child, subtree(child)));
    let hand_on = parent.map(|parent| Step::send(parent, subtree(rank)));
    let get = parent.map(|parent| Step::receive(parent, all));
    let down = children
        .into_iter()
        .map(move |child| Step::send(child, all));
    let steps = std::iter::once(own_block(case))
        .chain(up)
        .chain(hand_on)
        .chain(get)
        .chain(down);
    Schedule::new(1, steps)
}

#[cfg(test)]
mod tests {
    use crate::algorithm::proof::{Case, Pattern, cost, proved};

    #[test]
    fn every_rank_ends_with_every_block() {
        let row = proved(Pattern::Allgather, "gather_bcast");
        for (n, radix, i) in [(8, 2, 3), (9, 3, 2), (64, 4, 3), (64, 8, 2)] {
            let case = Case::new(0, n).radix(radix);
            let cost = cost(row, case, 10);
            assert_eq!(cost.rounds, 2 * (radix - 1) * i, "n = {n}");
            assert_eq!(cost.all_messages, 2 * (n - 1));
            // On the way up each block goes as many levels as its rank has digits other than zero.
            let up = n * i * (radix - 1) / radix;
            assert_eq!(cost.all_elements, 10 * (up + (n - 1) * n) as u64);
        }
    }
}
