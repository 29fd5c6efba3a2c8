//! Recursive doubling allgather: in each round ranks at twice the distance exchange all they have.
//!
//! Cost: log2 n rounds; n - 1 blocks sent per rank. Needs: a power-of-two number of ranks. Blocks
//! may differ in length.
//! Source: Thakur, Rabenseifner & Gropp, IJHPCA 19(1), 2005.

use super::own_block;
use crate::algorithm::schedule::{Buffer, Case, Part, Schedule, Step};

/// One chunk per block.
pub fn schedule(case: Case) -> Schedule {
    let rank = case.rank;
    assert!(case.n_ranks.is_power_of_two());
    let rounds = (0..case.n_ranks.ilog2()).flat_map(move |round| {
        let len = 1 << round;
        let group = |rank: usize| Part::range(Buffer::Output, rank & !(len - 1), len);
        [
            Step::send(rank ^ len, group(rank)),
            Step::receive(rank ^ len, group(rank ^ len)),
        ]
    });
    Schedule::new(1, std::iter::once(own_block(case)).chain(rounds))
}

#[cfg(test)]
mod tests {
    use crate::algorithm::proof::{Case, Pattern, cost, log_ceil, proved};

    #[test]
    fn every_rank_ends_with_every_block() {
        let row = proved(Pattern::Allgather, "recursive_doubling");
        for n in [1, 2, 4, 8, 16, 32, 64] {
            let cost = cost(row, Case::new(0, n), 10);
            assert_eq!(cost.rounds, log_ceil(n, 2));
            assert_eq!(cost.elements, 10 * (n as u64 - 1));
        }
    }
}
