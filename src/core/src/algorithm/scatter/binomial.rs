//! Binomial tree scatter: each rank receives the blocks of its subtree and hands on its
//! children's.
//!
//! Cost: ceil(log2 n) rounds; n - 1 messages in all. Blocks are equally long.
//! Source: Thakur, Rabenseifner & Gropp, IJHPCA 19(1), 2005.

use crate::algorithm::schedule::{Buffer, Case, Part, Parts, Schedule, Step, Temporary, narrow};
use crate::algorithm::tree;

/// One chunk per block. Ranks other than the root receive in a temporary that begins with their
/// own block.
pub fn schedule(case: Case) -> Schedule {
    let n = case.n_ranks;
    let relative = case.relative();
    let node = tree::knomial(relative, n, 2);
    let span = tree::knomial_span(relative, n, 2);
    let own = Part::range(Buffer::Output, 0, 1);
    if relative != 0 && span == 1 {
        let receive = node
            .parent
            .map(|parent| Step::receive(case.absolute(parent), own));
        return Schedule::new(1, receive.into_iter());
    }
    let is_root = relative == 0;
    let blocks = move |distance: usize, len: usize| match is_root {
        true => Parts::around(Buffer::Input, case.rank + distance, len, n),
        false => Parts::One(Part::range(Buffer::Temporary(0), distance, len)),
    };
    let place = if is_root {
        Part::range(Buffer::Input, case.rank, 1)
    } else {
        Part::range(Buffer::Temporary(0), 0, 1)
    };
    let receive = node
        .parent
        .map(|parent| Step::receive(case.absolute(parent), blocks(0, span)));
    let send = node.children.into_iter().map(move |child| {
        let what = blocks(child - relative, tree::knomial_span(child, n, 2));
        Step::send(case.absolute(child), what)
    });
    let steps = receive
        .into_iter()
        .chain(send)
        .chain([Step::copy(place, own)]);
    let schedule = Schedule::new(1, steps);
    match is_root {
        true => schedule,
        false => schedule.temporary(Temporary::Like {
            first: narrow(case.rank),
            chunks: narrow(span),
        }),
    }
}

#[cfg(test)]
mod tests {
    use crate::algorithm::proof::{Pattern, assert_tree_of_least_rounds, proved};

    #[test]
    fn every_rank_ends_with_its_block() {
        assert_tree_of_least_rounds(proved(Pattern::Scatter, "binomial"));
    }
}
