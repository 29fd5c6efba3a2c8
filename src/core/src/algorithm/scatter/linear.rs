//! Linear scatter: the root sends to every rank, `window` messages at a time.
//!
//! Cost: n - 1 rounds, each one block long. Blocks may differ in length.
//! Source: the definition of scatter in the MPI standard.

use crate::algorithm::schedule::{Buffer, Case, Part, Schedule, Step};

/// One chunk per block.
pub fn schedule(case: Case) -> Schedule {
    let own = Part::range(Buffer::Output, 0, 1);
    let block = |rank| Part::range(Buffer::Input, rank, 1);
    if case.rank != case.root {
        return Schedule::new(1, std::iter::once(Step::receive(case.root, own)));
    }
    let send = (1..case.n_ranks).map(move |distance| {
        let to = case.above(distance);
        Step::send(to, block(to))
    });
    let steps = send.chain([Step::copy(block(case.rank), own)]);
    Schedule::new(1, steps).window(case.window)
}

#[cfg(test)]
mod tests {
    use crate::algorithm::proof::{Case, Pattern, cost, proved};

    #[test]
    fn every_rank_ends_with_its_block() {
        let row = proved(Pattern::Scatter, "linear");
        for n in 1..=33 {
            let cost = cost(row, Case::new(0, n).window(4), 10);
            assert_eq!(cost.rounds, n - 1);
            assert_eq!(cost.all_elements, 10 * (n as u64 - 1));
        }
    }
}
