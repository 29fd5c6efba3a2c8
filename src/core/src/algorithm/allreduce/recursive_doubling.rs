//! Recursive doubling allreduce: in each round ranks at twice the distance exchange all they have.
//!
//! Cost, n = 2^q: q rounds, in which each rank sends and combines the whole message. Otherwise
//! the ranks above the largest power of two fold onto their neighbours first (see
//! [`Fold`](crate::algorithm::fold::Fold)): 2 rounds more. Keeps the operand order.
//! Source: Thakur, Rabenseifner & Gropp, IJHPCA 19(1), 2005. n = 4, contributions per rank:
//! {0}{1}{2}{3} -> {01}{01}{23}{23} -> {0123} x 4

use super::recursive_multiplying;
use crate::algorithm::schedule::{Case, Schedule};

/// The message is one chunk. The groups of a round are pairs.
pub fn schedule(case: Case) -> Schedule {
    recursive_multiplying::schedule(Case { radix: 2, ..case })
}

#[cfg(test)]
mod tests {
    use crate::algorithm::proof::{Case, Pattern, cost, proved};

    #[test]
    fn every_rank_ends_with_every_contribution_in_order() {
        let row = proved(Pattern::Allreduce, "recursive_doubling");
        for n in 1..=33usize {
            let cost = cost(row, Case::new(0, n), 100);
            let q = n.ilog2() as usize;
            let folded = if n.is_power_of_two() { 0 } else { 2 };
            assert_eq!(cost.rounds, q + folded, "n = {n}");
            if folded == 0 {
                assert_eq!(cost.elements, 100 * q as u64, "n = {n}");
                assert_eq!(cost.reduced, 100 * q as u64, "n = {n}");
            }
        }
    }
}
