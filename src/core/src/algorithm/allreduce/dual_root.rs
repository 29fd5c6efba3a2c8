//! Dual-root allreduce: the lower and the upper half of the ranks each form an in-order binary
//! tree; segments go up both, the two roots exchange them, and they come down while later ones
//! still go up.
//!
//! Cost: at most 3 (the message) sent per rank; at most 4 (log2 n + 1) + 4 segments rounds of one
//! segment each. Keeps the operand order.
//! Source: Traeff, arXiv 2109.12626; the in-order trees instead of its postorder ones are ours.

use crate::algorithm::reduce::{self, Sides};
use crate::algorithm::schedule::{Buffer, Case, Order, Part, Schedule, Step};
use crate::algorithm::tree::{self, InOrder};

/// The message is `segments` chunks.
pub fn schedule(case: Case) -> Schedule {
    let half = Half::of(case.rank, case.n_ranks);
    let node = half.node(case.rank);
    let children: Vec<usize> = node.below.into_iter().chain(node.above).collect();
    // A segment is back once it has climbed to the root, crossed, and come down again.
    let lag = 2 * half.level(case.rank) + 1;
    let (segments, parent) = (case.segments, node.parent);
    let sides = Sides::from(node);
    let own_temporaries = sides.temporaries();
    // The lower root's sum is the first operand, so the upper root's comes in where the result is to be.
    let crosses_up = parent.is_none() && half.other_root().is_some_and(|other| other > case.rank);
    let (held, crossing) = match crosses_up {
        true => (Buffer::Temporary(0), Buffer::Output),
        false => (Buffer::Output, Buffer::Temporary(own_temporaries as u8 + 1)),
    };
    let steps = (0..segments + lag).flat_map(move |turn| {
        let mut steps = Vec::new();
        if turn < segments {
            steps.extend(reduce::segment_up(turn, &sides, held));
        }
        if let Some(segment) = turn.checked_sub(lag) {
            let [chunk, own, others] =
                [Buffer::Output, held, crossing].map(|buffer| Part::range(buffer, segment, 1));
            match (parent, half.other_root()) {
                (Some(parent), _) => steps.push(Step::receive(parent, chunk)),
                (None, Some(other)) => steps.extend(cross(other, own, others, crosses_up)),
                (None, None) => {}
            }
            steps.extend(children.iter().map(|&child| Step::send(child, chunk)));
        }
        steps
    });
    reduce::with_temporaries(Schedule::new(segments, steps), own_temporaries + 1)
}

/// The two roots exchange and combine a segment, both with the lower root's as the first operand.
fn cross(other: usize, own: Part, others: Part, crosses_up: bool) -> [Step; 3] {
    let (first, second) = if crosses_up {
        (own, others)
    } else {
        (others, own)
    };
    [
        Step::send(other, own),
        Step::receive(other, others),
        Step::reduce(first, second, Order::SourceFirst),
    ]
}

/// The ranks `first .. end` of one tree, of `n`.
#[derive(Clone, Copy)]
struct Half {
    first: usize,
    end: usize,
    n: usize,
}

impl Half {
    fn of(rank: usize, n: usize) -> Half {
        let middle = n.div_ceil(2);
        let (first, end) = if rank < middle {
            (0, middle)
        } else {
            (middle, n)
        };
        Half { first, end, n }
    }

    fn root(&self) -> usize {
        self.first + (self.end - self.first) / 2
    }

    /// The other half's root, where there is another half.
    fn other_root(&self) -> Option<usize> {
        let other = if self.first == 0 { self.end } else { 0 };
        (other < self.n).then(|| Half::of(other, self.n).root())
    }

    fn node(&self, rank: usize) -> InOrder {
        let node = tree::in_order(
            rank - self.first,
            self.end - self.first,
            self.root() - self.first,
        );
        let absolute = |number: Option<usize>| number.map(|number| number + self.first);
        InOrder {
            parent: absolute(node.parent),
            below: absolute(node.below),
            above: absolute(node.above),
        }
    }

    /// How far below the root the rank is.
    fn level(&self, rank: usize) -> usize {
        std::iter::successors(Some(rank), |&at| self.node(at).parent).count() - 1
    }
}

#[cfg(test)]
mod tests {
    use crate::algorithm::proof::{Case, Pattern, cost, proved};

    #[test]
    fn every_rank_ends_with_every_contribution_in_order() {
        let row = proved(Pattern::Allreduce, "dual_root");
        for n in 2..=33usize {
            for segments in [1, 4, 20] {
                let cost = cost(row, Case::new(0, n).segments(segments), 100);
                let most = 4 * (n.ilog2() as usize + 1) + 4 * segments;
                assert!(
                    cost.rounds <= most,
                    "n = {n}, {segments}: {} > {most}",
                    cost.rounds
                );
                assert!(cost.elements <= 300, "n = {n}");
            }
        }
    }
}
