//! The order in which `reproducible = "fixed"` has operands combined: one tree of operations for each number of ranks,
//! whatever the library, the nodes and the variant.
//!
//! Of an allreduce, a reduce and a block of a reduce_scatter it is the tree of recursive doubling (see [`Fold`]): the
//! ranks above the largest power of two are dealt out to their neighbours, then neighbours combine what they have, and
//! neighbours of those. Where each node has the same power of two of ranks, one behind another, each node combines its own
//! part of the tree, and the nodes combine theirs in the tree of as many ranks. Of a scan it is from the first rank up.

use super::fold::Fold;

/// A step of one who has the operands of all ranks. Slots hold results; a lower slot has those of higher ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FoldStep {
    /// The operand of a rank is what the slot holds from now on.
    Take { rank: usize, slot: usize },
    /// The operand of a rank, and behind it what the slot holds.
    Before { rank: usize, slot: usize },
    /// What the next slot holds, and behind it what this one holds.
    Merge { slot: usize },
}

/// Slots that the tree of so many ranks needs.
pub const fn slots(n_ranks: usize) -> usize {
    match n_ranks.checked_ilog2() {
        Some(rounds) => rounds as usize + 1,
        None => 1,
    }
}

/// Hands over the steps that combine the operands of `n_ranks` ranks, from the last one down; the result is in slot 0.
///
/// Errors: the first of `step`.
#[inline(always)]
pub fn combine<E>(
    n_ranks: usize,
    mut step: impl FnMut(FoldStep) -> Result<(), E>,
) -> Result<(), E> {
    let fold = Fold::new(n_ranks, 2);
    // Slots that hold something.
    let mut held = 0;
    for core in (0..fold.n_cores).rev() {
        let (first, last) = (fold.first(core), fold.leader(core));
        // So many times a result is the lower one of two neighbours.
        let mut merges = core.trailing_zeros().min(fold.rounds);
        if first == last && merges > 0 {
            step(FoldStep::Before {
                rank: last,
                slot: held - 1,
            })?;
            merges -= 1;
        } else {
            step(FoldStep::Take {
                rank: last,
                slot: held,
            })?;
            if first < last {
                step(FoldStep::Before {
                    rank: first,
                    slot: held,
                })?;
            }
            held += 1;
        }
        for _ in 0..merges {
            held -= 1;
            step(FoldStep::Merge { slot: held - 1 })?;
        }
    }
    Ok(())
}

#[cfg(test)]
pub mod tests {
    use std::convert::Infallible;

    use super::*;
    use crate::algorithm::schedule::Order;
    use crate::algorithm::symbolic::Sum;

    /// The operations, with the first operand as the source.
    pub fn in_order<L: Clone>(sum: &Sum<L>) -> Sum<L> {
        let Sum::Both(both) = sum else {
            return sum.clone();
        };
        let (source, target) = (in_order(&both.source), in_order(&both.target));
        match both.order {
            Order::SourceFirst => Sum::both(source, target, Order::SourceFirst),
            Order::SourceLast => Sum::both(target, source, Order::SourceFirst),
        }
    }

    /// The tree over the operands of so many ranks.
    pub fn tree<L: Clone>(n_ranks: usize, operand: impl Fn(usize) -> L) -> Sum<L> {
        let both = |lower, higher| Sum::both(lower, higher, Order::SourceFirst);
        let mut held: Vec<Sum<L>> = Vec::new();
        let Ok(()) = combine(n_ranks, |step| {
            match step {
                FoldStep::Take { rank, slot } => {
                    assert_eq!(slot, held.len());
                    held.push(Sum::Of(operand(rank)));
                }
                FoldStep::Before { rank, slot } => {
                    assert_eq!(slot + 1, held.len());
                    held[slot] = both(Sum::Of(operand(rank)), held[slot].clone());
                }
                FoldStep::Merge { slot } => {
                    let lower = held.pop().expect("two are held");
                    assert_eq!(slot + 1, held.len());
                    held[slot] = both(lower, held[slot].clone());
                }
            }
            assert!(held.len() <= slots(n_ranks));
            Ok::<(), Infallible>(())
        });
        assert_eq!(held.len(), 1);
        held.remove(0)
    }

    /// The prefix of a scan over so many ranks.
    pub fn prefix<L: Clone>(n_ranks: usize, operand: impl Fn(usize) -> L) -> Sum<L> {
        let operands = (0..n_ranks).map(|rank| Sum::Of(operand(rank)));
        let sum = operands.reduce(|sum, next| Sum::both(sum, next, Order::SourceFirst));
        sum.expect("there are ranks")
    }

    #[test]
    fn every_operand_is_there_once_and_in_the_order_of_ranks() {
        for n in 1..200 {
            let all: Vec<usize> = (0..n).collect();
            assert_eq!(tree(n, |rank| rank).operands(), all, "{n} ranks");
        }
    }

    #[test]
    fn nodes_of_a_power_of_two_of_ranks_each_combine_their_own_part() {
        for ppn in [1, 2, 4, 8] {
            for nodes in 1..20 {
                let whole = tree(nodes * ppn, |rank| rank);
                let of_nodes = tree(nodes, |node| node);
                let nested = of_nodes.replaced(&mut |&node| {
                    Ok::<_, Infallible>(tree(ppn, |rank| node * ppn + rank))
                });
                assert_eq!(nested, Ok(whole), "{nodes} nodes of {ppn} ranks");
            }
        }
    }

    #[test]
    fn it_is_the_tree_that_it_always_was() {
        let text = |n: usize| format!("{:?}", Shown(tree(n, |rank| rank)));
        assert_eq!(text(1), "0");
        assert_eq!(text(3), "((0+1)+2)");
        assert_eq!(text(4), "((0+1)+(2+3))");
        assert_eq!(text(5), "(((0+1)+2)+(3+4))");
        assert_eq!(text(7), "(((0+1)+(2+3))+((4+5)+6))");
    }

    struct Shown(Sum<usize>);

    impl std::fmt::Debug for Shown {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            match &self.0 {
                Sum::Of(rank) => write!(f, "{rank}"),
                Sum::Both(both) => {
                    let (lower, higher) = (both.source.clone(), both.target.clone());
                    write!(f, "({:?}+{:?})", Shown(lower), Shown(higher))
                }
            }
        }
    }
}
