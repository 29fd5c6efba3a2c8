//! Linear gather: every rank sends to the root, which has `window` receives posted at a time.
//!
//! Cost: n - 1 rounds, each one block long. Blocks may differ in length.
//! Source: the definition of gather in the MPI standard.

use crate::algorithm::schedule::{Buffer, Case, Part, Schedule, Step};

/// One chunk per block.
pub fn schedule(case: Case) -> Schedule {
    let own = Part::range(Buffer::Input, 0, 1);
    let block = |rank| Part::range(Buffer::Output, rank, 1);
    if case.rank != case.root {
        return Schedule::new(1, std::iter::once(Step::send(case.root, own)));
    }
    let receive = (1..case.n_ranks).map(move |distance| {
        let from = case.above(distance);
        Step::receive(from, block(from))
    });
    let steps = receive.chain([Step::copy(own, block(case.rank))]);
    Schedule::new(1, steps).window(case.window)
}

#[cfg(test)]
mod tests {
    use crate::algorithm::proof::{Case, Pattern, cost, proved};

    #[test]
    fn the_root_ends_with_every_block() {
        let row = proved(Pattern::Gather, "linear");
        for n in 1..=33 {
            let cost = cost(row, Case::new(0, n).window(4), 10);
            assert_eq!(cost.rounds, n - 1);
            assert_eq!(cost.all_elements, 10 * (n as u64 - 1));
        }
    }
}
