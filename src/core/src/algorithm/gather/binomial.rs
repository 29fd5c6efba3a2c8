//! Binomial tree gather: each rank collects the blocks of its subtree and hands them on at once.
//!
//! Cost: ceil(log2 n) rounds; n - 1 messages in all. Blocks are equally long.
//! Source: Thakur, Rabenseifner & Gropp, IJHPCA 19(1), 2005.

use crate::algorithm::schedule::{Buffer, Case, Part, Parts, Schedule, Step, Temporary, narrow};
use crate::algorithm::tree;

/// One chunk per block. Ranks other than the root collect in a temporary that begins with their
/// own block.
pub fn schedule(case: Case) -> Schedule {
    let n = case.n_ranks;
    let relative = case.relative();
    let node = tree::knomial(relative, n, 2);
    let span = tree::knomial_span(relative, n, 2);
    let own = Part::range(Buffer::Input, 0, 1);
    if span == 1 {
        let send = node
            .parent
            .map(|parent| Step::send(case.absolute(parent), own));
        let alone = (n == 1).then(|| Step::copy(own, Part::range(Buffer::Output, 0, 1)));
        return Schedule::new(1, send.into_iter().chain(alone));
    }
    let is_root = relative == 0;
    let blocks = move |distance: usize, len: usize| match is_root {
        true => Parts::around(Buffer::Output, case.rank + distance, len, n),
        false => Parts::One(Part::range(Buffer::Temporary(0), distance, len)),
    };
    let place = if is_root {
        Part::range(Buffer::Output, case.rank, 1)
    } else {
        Part::range(Buffer::Temporary(0), 0, 1)
    };
    let children = node.children.into_iter().rev();
    let receive = children.map(move |child| {
        let into = blocks(child - relative, tree::knomial_span(child, n, 2));
        Step::receive(case.absolute(child), into)
    });
    let send = node
        .parent
        .map(|parent| Step::send(case.absolute(parent), blocks(0, span)));
    let steps = std::iter::once(Step::copy(own, place))
        .chain(receive)
        .chain(send);
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
    fn the_root_ends_with_every_block() {
        assert_tree_of_least_rounds(proved(Pattern::Gather, "binomial"));
    }
}
