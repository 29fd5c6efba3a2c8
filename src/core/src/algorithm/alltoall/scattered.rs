//! Direct alltoall: every pair of ranks exchanges its blocks, each rank beginning with its
//! neighbour; `window` messages each way are under way at a time. With a window of 1 it is the
//! pairwise exchange.
//!
//! Cost: n - 1 rounds; n - 1 blocks sent per rank. Blocks may differ in length.
//! Source: Thakur, Rabenseifner & Gropp, IJHPCA 19(1), 2005.

use crate::algorithm::schedule::{Buffer, Case, Part, Schedule, Step};

/// One chunk per block.
pub fn schedule(case: Case) -> Schedule {
    let rounds = (1..case.n_ranks).flat_map(move |round| {
        let (to, from) = (case.above(round), case.below(round));
        [
            Step::receive(from, Part::range(Buffer::Output, from, 1)),
            Step::send(to, Part::range(Buffer::Input, to, 1)),
        ]
    });
    // The own block is copied while the first messages travel.
    let own = Step::copy(
        Part::range(Buffer::Input, case.rank, 1),
        Part::range(Buffer::Output, case.rank, 1),
    );
    Schedule::new(1, rounds.chain([own])).window(case.window)
}

/// A window of 1.
pub fn pairwise(case: Case) -> Schedule {
    schedule(Case { window: 1, ..case })
}

#[cfg(test)]
mod tests {
    use crate::algorithm::proof::{Case, Pattern, cost, proved};

    #[test]
    fn every_rank_ends_with_the_block_that_each_rank_has_for_it() {
        for name in ["scattered", "pairwise"] {
            let row = proved(Pattern::Alltoall, name);
            for n in 1..=33 {
                let cost = cost(row, Case::new(0, n).window(4), 10);
                assert_eq!(cost.rounds, n - 1);
                assert_eq!(cost.elements, 10 * (n as u64 - 1));
            }
        }
    }
}
