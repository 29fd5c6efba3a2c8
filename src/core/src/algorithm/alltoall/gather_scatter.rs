//! Gather of all blocks to rank 0, then scatter, on one k-nomial tree: fewest messages for short blocks.
//!
//! Cost: 2(n - 1) messages in all, each of a subtree's n blocks per rank, so that rank 0 gets n^2 blocks. For
//! n = radix^i 2 i (radix - 1) rounds, or 2 i where the messages of one rank overlap. Blocks are equally long.
//! Source: Wilkins et al., Generalized collective algorithms, CLUSTER 2023.

use crate::algorithm::schedule::{Buffer, Case, Part, Schedule, Step, Temporary};
use crate::algorithm::tree;

/// What a subtree has for all ranks, by sender; and on ranks but the root what all have for it, by receiver.
const COLLECTED: Buffer = Buffer::Temporary(0);
/// The same on the root, which turns one into the other.
const TURNED: Buffer = Buffer::Temporary(1);

/// One chunk per block.
pub fn schedule(case: Case) -> Schedule {
    let Case {
        rank,
        n_ranks: n,
        radix,
        ..
    } = case;
    let (input, output) = (
        Part::range(Buffer::Input, 0, n),
        Part::range(Buffer::Output, 0, n),
    );
    let node = tree::knomial(rank, n, radix);
    let (parent, children) = (node.parent, node.children);
    if let Some(parent) = parent.filter(|_| children.is_empty()) {
        let steps = [Step::send(parent, input), Step::receive(parent, output)];
        return Schedule::new(1, steps.into_iter());
    }
    let subtree = move |buffer, v: usize| {
        let span = tree::knomial_span(v, n, radix);
        Part::range(buffer, (v - rank) * n, span * n)
    };
    let given = if parent.is_some() { COLLECTED } else { TURNED };
    let up = children.clone().into_iter().rev();
    let up = up.map(move |child| Step::receive(child, subtree(COLLECTED, child)));
    let hand_on = parent.map(|parent| Step::send(parent, subtree(COLLECTED, rank)));
    let get = parent.map(|parent| Step::receive(parent, subtree(given, rank)));
    let receivers = if parent.is_some() { 0 } else { n };
    let turn = (0..receivers).map(move |receiver| {
        let from_all = Part::strided(COLLECTED, receiver, 1, n, n);
        Step::copy(from_all, Part::range(TURNED, receiver * n, n))
    });
    let down = children
        .into_iter()
        .map(move |child| Step::send(child, subtree(given, child)));
    let steps = std::iter::once(Step::copy(input, Part::range(COLLECTED, 0, n)))
        .chain(up)
        .chain(hand_on)
        .chain(get)
        .chain(turn)
        .chain(down)
        .chain([Step::copy(Part::range(given, 0, n), output)]);
    let room = tree::knomial_span(rank, n, radix) * n;
    let schedule = Schedule::new(1, steps).temporary(Temporary::whole(room));
    match parent {
        Some(_) => schedule,
        None => schedule.temporary(Temporary::whole(room)),
    }
}

#[cfg(test)]
mod tests {
    use crate::algorithm::proof::{Case, Pattern, cost, proved};

    #[test]
    fn every_rank_ends_with_the_block_that_each_rank_has_for_it() {
        let row = proved(Pattern::Alltoall, "gather_scatter");
        assert!(row.fits(256) && !row.fits(257));
        for (n, radix, i) in [(8, 2, 3), (9, 3, 2), (64, 4, 3), (64, 8, 2)] {
            let case = Case::new(0, n).radix(radix);
            let cost = cost(row, case, 10);
            assert_eq!(cost.rounds, 2 * (radix - 1) * i, "n = {n}");
            assert_eq!(cost.all_messages, 2 * (n - 1));
            // Either way the blocks of a rank go as many levels as it has digits other than zero.
            let levels = n * i * (radix - 1) / radix;
            assert_eq!(cost.all_elements, 10 * (2 * n * levels) as u64);
        }
    }
}
