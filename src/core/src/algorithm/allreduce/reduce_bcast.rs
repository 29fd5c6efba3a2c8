//! Reduce, then bcast, on k-nomial trees with one root.
//!
//! The reduce goes up a tree over the leaders of a [`Fold`], whose root is the first of them. A rank combines what its
//! children have in pairs of neighbours, then these, so that the tree of operations is one for all powers of two as the
//! radix ([`fixed_order`](crate::algorithm::fixed_order)). Whom a leaf of that tree leads sends to the leaf's parent itself,
//! so that folding takes no round.
//!
//! Cost, n = radix^i: 2 i (radix - 1) rounds, or 2 i where the messages of one rank overlap;
//! 2(n - 1) messages in all, each of them the whole message. Keeps the operand order.
//! Source: Wilkins et al., Generalized collective algorithms, CLUSTER 2023.

use crate::algorithm::fold::Fold;
use crate::algorithm::schedule::{Buffer, Case, Order, Part, Schedule, Step};
use crate::algorithm::{bcast, reduce, tree};

/// The message is one chunk.
pub fn schedule(case: Case) -> Schedule {
    let fold = Fold::new(case.n_ranks, 2);
    let case = Case {
        root: fold.leader(0),
        ..case
    };
    let node = tree::knomial(case.relative(), case.n_ranks, case.radix);
    let up = up(case, fold);
    let is_receive = |step: &&Step| matches!(step, Step::Receive { .. });
    let n_temporaries = up.iter().filter(is_receive).count();
    let down = bcast::down(1, node, move |relative| case.absolute(relative));
    let schedule = Schedule::new(1, up.into_iter().chain(down));
    reduce::with_temporaries(schedule, n_temporaries)
}

fn up(case: Case, fold: Fold) -> Vec<Step> {
    let (rank, radix) = (case.rank, case.radix);
    let core = fold.core(rank);
    let whole = |buffer| Part::range(buffer, 0, 1);
    let (input, held) = (whole(Buffer::Input), whole(Buffer::Output));
    let digit = core % radix;
    if digit > 0 || !fold.leads(rank) {
        return vec![Step::send(fold.leader(core - digit), input)];
    }
    let mut steps = vec![Step::copy(input, held)];
    let mut temporaries = 1..;
    let mut unit = 1;
    while unit < fold.n_cores && (core / unit).is_multiple_of(radix) {
        let (mut places, mut folded) = (Vec::new(), Vec::new());
        let mut receive = |from| {
            let place = temporaries.next().map(Buffer::Temporary).map(whole);
            let place = place.expect("a rank has few children");
            steps.push(Step::receive(from, place));
            place
        };
        for member in (core..fold.n_cores).step_by(unit).take(radix) {
            let (first, leader) = (fold.first(member), fold.leader(member));
            let place = if member == core {
                held
            } else {
                receive(leader)
            };
            if unit == 1 && first < leader {
                folded.push(Step::reduce(receive(first), place, Order::SourceFirst));
            }
            places.push(place);
        }
        steps.append(&mut folded);
        let mut half = 1;
        while half < places.len() {
            let (lower, higher) = (places.iter(), places.iter().skip(half));
            let pairs = lower.step_by(2 * half).zip(higher.step_by(2 * half));
            steps.extend(pairs.map(|(&a, &b)| Step::reduce(b, a, Order::SourceLast)));
            half *= 2;
        }
        unit *= radix;
    }
    if core > 0 {
        let parent = core - core / unit % radix * unit;
        steps.push(Step::send(fold.leader(parent), held));
    }
    steps
}

#[cfg(test)]
mod tests {
    use crate::algorithm::proof::{Case, Pattern, cost, proved};

    #[test]
    fn every_rank_ends_with_every_contribution_in_order() {
        let row = proved(Pattern::Allreduce, "reduce_bcast");
        for (n, radix, i) in [(8, 2, 3), (16, 4, 2), (64, 4, 3), (8, 8, 1), (64, 8, 2)] {
            let case = Case::new(0, n).radix(radix);
            let cost = cost(row, case, 100);
            assert_eq!(cost.rounds, 2 * (radix - 1) * i, "n = {n}");
            assert_eq!(cost.all_messages, 2 * (n - 1));
            assert_eq!(cost.all_elements, 200 * (n as u64 - 1));
        }
    }
}
