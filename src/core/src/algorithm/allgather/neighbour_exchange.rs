//! Neighbour exchange allgather: neighbours exchange one block, then pairs of blocks, with the
//! neighbour on this side and on that side in turn.
//!
//! Cost: n/2 rounds; n - 1 blocks sent per rank, to two ranks only. Needs: an even number of
//! ranks. Blocks may differ in length.
//! Source: Chen, Zhang & Wang, HPC Asia 2005. n = 4, blocks of rank 0: 0 -> 0,1 -> 0,1,2,3

use super::own_block;
use crate::algorithm::schedule::{Buffer, Case, Part, Schedule, Step};

/// The pair of blocks that a rank receives in round `round`; in round 0 it becomes its own.
///
/// Even ranks exchange downwards in odd rounds, odd ranks upwards, so the pairs come from ever
/// further away, in turn below and above.
fn pair_received(rank: usize, n: usize, round: usize) -> usize {
    let (pairs, own, distance) = (n / 2, rank / 2, round.div_ceil(2));
    let from_below = rank.is_multiple_of(2) != round.is_multiple_of(2);
    if from_below {
        (own + pairs - distance) % pairs
    } else {
        (own + distance) % pairs
    }
}

/// One chunk per block.
pub fn schedule(case: Case) -> Schedule {
    let (rank, n) = (case.rank, case.n_ranks);
    assert!(n.is_multiple_of(2));
    let partner = move |round: usize| match (rank + round) % 2 {
        0 => case.above(1),
        _ => case.below(1),
    };
    let block = |rank| Part::range(Buffer::Output, rank, 1);
    let first = [
        own_block(case),
        Step::send(partner(0), block(rank)),
        Step::receive(partner(0), block(rank ^ 1)),
    ];
    let rounds = (1..n / 2).flat_map(move |round| {
        let pair = |round| Part::range(Buffer::Output, 2 * pair_received(rank, n, round), 2);
        [
            Step::send(partner(round), pair(round - 1)),
            Step::receive(partner(round), pair(round)),
        ]
    });
    Schedule::new(1, first.into_iter().chain(rounds))
}

#[cfg(test)]
mod tests {
    use crate::algorithm::proof::{Case, Pattern, cost, proved};

    #[test]
    fn every_rank_ends_with_every_block() {
        let row = proved(Pattern::Allgather, "neighbour_exchange");
        for n in (2..=64).step_by(2) {
            let cost = cost(row, Case::new(0, n), 10);
            assert_eq!(cost.rounds, n / 2);
            assert_eq!(cost.elements, 10 * (n as u64 - 1));
        }
    }
}
