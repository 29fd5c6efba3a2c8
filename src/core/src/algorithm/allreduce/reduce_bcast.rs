//! Reduce, then bcast, on one k-nomial tree whose root is rank 0.
//!
//! Cost, n = radix^i: 2 i (radix - 1) rounds, or 2 i where the messages of one rank overlap;
//! 2(n - 1) messages in all, each of them the whole message. Keeps the operand order.
//! Source: Wilkins et al., Generalized collective algorithms, CLUSTER 2023.

use crate::algorithm::schedule::{Buffer, Case, Schedule};
use crate::algorithm::{bcast, reduce, tree};

/// The message is `segments` chunks.
pub fn schedule(case: Case) -> Schedule {
    let node = tree::knomial(case.rank, case.n_ranks, case.radix);
    let down = bcast::down(case.segments, node.clone(), |relative| relative);
    let sides = reduce::Sides::from(node);
    let n_temporaries = sides.temporaries();
    let up = reduce::up(case.segments, sides, Buffer::Output);
    let schedule = Schedule::new(case.segments, up.chain(down));
    reduce::with_temporaries(schedule, n_temporaries)
}

#[cfg(test)]
mod tests {
    use crate::algorithm::proof::{Case, Pattern, cost, proved};

    #[test]
    fn every_rank_ends_with_every_contribution_in_order() {
        let row = proved(Pattern::Allreduce, "reduce_bcast");
        for (n, radix, i) in [(8, 2, 3), (9, 3, 2), (27, 3, 3), (64, 4, 3), (64, 8, 2)] {
            let case = Case::new(0, n).radix(radix);
            let cost = cost(row, case, 100);
            assert_eq!(cost.rounds, 2 * (radix - 1) * i, "n = {n}");
            assert_eq!(cost.all_messages, 2 * (n - 1));
            assert_eq!(cost.all_elements, 200 * (n as u64 - 1));
        }
    }
}
