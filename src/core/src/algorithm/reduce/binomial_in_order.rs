//! Binomial tree reduce in the order of ranks, to any root: neighbours combine what they have, then neighbours of those,
//! and the root receives wherever it takes part.
//!
//! Cost, n = 2^q: q rounds of the whole message; n - 1 messages in all, each of them the whole message. Otherwise the
//! ranks above the largest power of two fold onto their neighbours first (see [`Fold`]): 1 round more. Keeps the operand
//! order, and the tree of operations is one for all roots ([`fixed_order`](crate::algorithm::fixed_order)).
//! Source: Thakur, Rabenseifner & Gropp, IJHPCA 19(1), 2005, whose tree begins at the root; that any rank of a range may
//! hold what the range has is ours.

use super::with_temporaries;
use crate::algorithm::fold::Fold;
use crate::algorithm::schedule::{Buffer, Case, Order, Part, Schedule, Step};

/// The message is `segments` chunks.
pub fn schedule(case: Case) -> Schedule {
    let Place { received, parent } = Place::of(case);
    let children = received.len();
    let held = super::held(case);
    let steps = (0..case.segments).flat_map(move |segment| {
        let chunk = |buffer| Part::range(buffer, segment, 1);
        let (input, held) = (chunk(Buffer::Input), chunk(held));
        let is_leaf = received.is_empty() && parent.is_some();
        let own = (!is_leaf).then(|| Step::copy(input, held));
        let combine = (1..).zip(&received).flat_map(|(number, &from)| {
            let part = chunk(Buffer::Temporary(number));
            let order = Order::of_peer(from, case.rank);
            [Step::receive(from, part), Step::reduce(part, held, order)]
        });
        let send = parent.map(|parent| Step::send(parent, if is_leaf { input } else { held }));
        let steps: Vec<Step> = own.into_iter().chain(combine).chain(send).collect();
        steps
    });
    with_temporaries(Schedule::new(case.segments, steps), children)
}

/// From whom a rank receives, in this order, and to whom it sends what it has then; the root sends nothing.
struct Place {
    received: Vec<usize>,
    parent: Option<usize>,
}

impl Place {
    fn of(case: Case) -> Place {
        let fold = Fold::new(case.n_ranks, 2);
        // Who holds what the ranks of some cores have: the root, or the last of them.
        let holder = |first: usize, cores: usize| {
            let (least, most) = (fold.first(first), fold.leader(first + cores - 1));
            match (least..=most).contains(&case.root) {
                true => case.root,
                false => most,
            }
        };
        let core = fold.core(case.rank);
        let mut received = Vec::new();
        let (first, own) = (fold.first(core), holder(core, 1));
        if own != case.rank {
            return Place {
                received,
                parent: Some(own),
            };
        }
        received.extend((first..=fold.leader(core)).filter(|&rank| rank != own));
        for round in 0..fold.rounds {
            let half = 1 << round;
            let both = holder(core & !(2 * half - 1), 2 * half);
            if both != case.rank {
                return Place {
                    received,
                    parent: Some(both),
                };
            }
            received.push(holder((core ^ half) & !(half - 1), half));
        }
        Place {
            received,
            parent: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::algorithm::proof::{Case, Pattern, cost, log_ceil, proved};

    #[test]
    fn the_root_ends_with_every_contribution_in_the_rounds_promised() {
        let row = proved(Pattern::Reduce, "binomial_in_order");
        for n in 2..=33 {
            for root in [0, n / 2, n - 1] {
                let case = Case {
                    root,
                    ..Case::new(0, n)
                };
                let cost = cost(row, case, 100);
                assert!(cost.rounds <= log_ceil(n, 2) + 1, "n = {n}, root = {root}");
                assert!(!n.is_power_of_two() || cost.rounds == log_ceil(n, 2));
                assert_eq!(cost.all_messages, n - 1);
                assert_eq!(cost.all_elements, 100 * (n as u64 - 1));
            }
        }
    }
}
