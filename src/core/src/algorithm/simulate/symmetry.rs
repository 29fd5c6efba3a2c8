//! Ranks that do the same at the same time: of a symmetric schedule on a regular machine the ranks
//! of one node, or of two, stand for all.
//!
//! Where a move of all ranks by whole nodes maps a schedule onto itself, every rank runs as the rank
//! of the first nodes that it is moved onto. That rank's messages go to the representative of their
//! receiver instead, in the name of the sender that the representative knows. Where ranks share a
//! port, messages that come at once are served alike on all nodes; of the whole machine they are
//! served in some order, so that nodes fall out of step and may take up to a third longer.

/// Which moves of all ranks map an algorithm's schedules onto each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Symmetry {
    /// None that serves.
    None,
    /// Adding a multiple of this number, round the end.
    Rotation(usize),
    /// Exclusive or with any multiple of this power of two, where the ranks are one too.
    Exchange(usize),
}

/// The ranks that stand for all, and the move from any rank to its representative.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fold {
    n_ranks: usize,
    /// Ranks `0 .. period` are simulated.
    pub period: usize,
    exchange: bool,
}

impl Fold {
    /// Every rank stands for itself.
    pub fn none(n_ranks: usize) -> Fold {
        Fold {
            n_ranks,
            period: n_ranks,
            exchange: false,
        }
    }

    /// The smallest set of ranks that stand for all. `node_of[rank]` is the node of each rank.
    pub fn new(symmetry: Symmetry, node_of: &[u32]) -> Fold {
        let n_ranks = node_of.len();
        let Some(ppn) = ranks_per_node(node_of) else {
            return Fold::none(n_ranks);
        };
        match symmetry {
            Symmetry::Rotation(step) if n_ranks.is_multiple_of(lcm(ppn, step)) => Fold {
                n_ranks,
                period: lcm(ppn, step),
                exchange: false,
            },
            Symmetry::Exchange(step) if n_ranks.is_power_of_two() && ppn.is_power_of_two() => {
                Fold {
                    n_ranks,
                    period: lcm(ppn, step).min(n_ranks),
                    exchange: true,
                }
            }
            _ => Fold::none(n_ranks),
        }
    }

    /// A message from a representative to any rank, as (representative of the receiver, sender as
    /// that one knows it).
    pub fn message(&self, from: usize, to: usize) -> (usize, usize) {
        if to < self.period {
            return (to, from);
        }
        let receiver = to % self.period;
        let sender = if self.exchange {
            from ^ to ^ receiver
        } else {
            (from + self.n_ranks + receiver - to) % self.n_ranks
        };
        (receiver, sender)
    }
}

/// The ranks of every node, where all have as many and hold them one after another.
fn ranks_per_node(node_of: &[u32]) -> Option<usize> {
    let ppn = node_of.iter().take_while(|&&node| node == 0).count();
    let regular = |(rank, &node): (usize, &u32)| rank / ppn == node as usize;
    (ppn > 0 && node_of.len().is_multiple_of(ppn) && node_of.iter().enumerate().all(regular))
        .then_some(ppn)
}

fn lcm(a: usize, b: usize) -> usize {
    let (mut x, mut y) = (a, b);
    while y > 0 {
        (x, y) = (y, x % y);
    }
    a / x * b
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::registry::ROWS;
    use crate::algorithm::schedule::Step;

    /// What a rank does, as far as time can tell: peers as the mover sees them, and numbers of chunks.
    /// What is combined or copied in several pieces, where it goes round the end, counts as one.
    fn shape(steps: impl Iterator<Item = Step>, moved: impl Fn(usize) -> usize) -> Vec<[usize; 3]> {
        let of = |step: Step| match step {
            Step::Send { to, what } => [0, moved(to as usize), what.count()],
            Step::Receive { from, into } => [1, moved(from as usize), into.count()],
            Step::Reduce { target, .. } => [2, 0, target.count()],
            Step::Copy { target, .. } => [3, 0, target.count()],
        };
        let mut shape: Vec<[usize; 3]> = Vec::new();
        for [kind, peer, count] in steps
            .map(of)
            .filter(|&[kind, _, count]| kind < 2 || count > 0)
        {
            match shape.last_mut() {
                Some([last, _, total]) if *last == kind && kind >= 2 => *total += count,
                _ => shape.push([kind, peer, count]),
            }
        }
        shape
    }

    #[test]
    fn every_row_is_as_symmetric_as_it_says() {
        let mut symmetric = 0;
        for row in ROWS {
            for n in (2..=33).filter(|&n| row.fits(n)) {
                for values in row.values().into_iter().take(3) {
                    let steps = |rank| (row.schedule)(row.case(rank, n, 0, values, 1 << 20)).steps;
                    let same = |rank: usize, moved: usize, back: &dyn Fn(usize) -> usize| {
                        let (own, other) = (shape(steps(rank), |r| r), shape(steps(moved), back));
                        assert_eq!(own, other, "{} on {n}", row.variant(values));
                    };
                    match row.symmetry {
                        Symmetry::Rotation(step) if n % step == 0 => (0..n - step).for_each(|r| {
                            same(r, r + step, &|peer| (peer + n - step) % n);
                            symmetric += 1;
                        }),
                        Symmetry::Exchange(step) if n.is_power_of_two() => {
                            (step..n).step_by(step).for_each(|r| {
                                (0..step).for_each(|own| same(own, own ^ r, &|peer| peer ^ r));
                                symmetric += 1;
                            });
                        }
                        _ => {}
                    }
                }
            }
        }
        assert!(symmetric > 1000);
    }

    #[test]
    fn irregular_nodes_stand_for_themselves() {
        for node_of in [&[0, 0, 1][..], &[0, 1, 0, 1], &[1, 0], &[]] {
            let fold = Fold::new(Symmetry::Rotation(1), node_of);
            assert_eq!(fold, Fold::none(node_of.len()));
        }
        assert_eq!(Fold::new(Symmetry::Rotation(2), &[0, 1, 2, 3]).period, 2);
        assert_eq!(Fold::new(Symmetry::Exchange(1), &[0, 0, 1, 1]).period, 2);
        assert_eq!(Fold::new(Symmetry::Exchange(1), &[0, 0, 0]).period, 3);
    }
}
