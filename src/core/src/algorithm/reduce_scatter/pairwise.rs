//! Pairwise reduce-scatter: every pair of ranks exchanges its blocks, which are combined as they
//! come.
//!
//! Cost: n - 1 rounds; n - 1 blocks sent and combined per rank. Needs: a commutative op. Blocks
//! may differ in length.
//! Source: Thakur, Rabenseifner & Gropp, IJHPCA 19(1), 2005.

use crate::algorithm::schedule::{Buffer, Case, Order, Part, Schedule, Step, Temporary};

/// Blocks that may be on their way to the rank or waiting.
const PLACES: usize = 4;

/// One chunk per block.
pub fn schedule(case: Case) -> Schedule {
    let (rank, n) = (case.rank, case.n_ranks);
    let own = Part::range(Buffer::Input, rank, 1);
    let result = Part::range(Buffer::Output, 0, 1);
    let rounds = (1..n).flat_map(move |round| {
        let (to, from) = (case.above(round), case.below(round));
        // The first block arrives where the result is built, and takes the own one in there.
        let received = match round {
            1 => result,
            _ => Part::range(Buffer::Temporary((round % PLACES) as u8), rank, 1),
        };
        let source = if round == 1 { own } else { received };
        [
            Step::send(to, Part::range(Buffer::Input, to, 1)),
            Step::receive(from, received),
            Step::reduce(source, result, Order::SourceFirst),
        ]
    });
    let alone = (n == 1).then(|| Step::copy(own, result));
    let schedule = Schedule::new(1, alone.into_iter().chain(rounds)).window(PLACES);
    (0..PLACES).fold(schedule, |schedule, _| {
        schedule.temporary(Temporary::ring(1))
    })
}

#[cfg(test)]
mod tests {
    use crate::algorithm::proof::{Case, Pattern, cost, proved};

    #[test]
    fn every_rank_ends_with_its_block_of_every_contribution() {
        let row = proved(Pattern::ReduceScatter, "pairwise");
        for n in 1..=33 {
            let cost = cost(row, Case::new(0, n), 10);
            assert_eq!(cost.rounds, n - 1);
            assert_eq!(cost.elements, 10 * (n as u64 - 1));
            assert_eq!(cost.reduced, 10 * (n as u64 - 1));
        }
    }
}
