//! Recursive multiplying allreduce: recursive doubling with groups of `radix` ranks, which in
//! each round exchange all they have with every other of the group at once.
//!
//! Cost, n = radix^i: i rounds of radix - 1 messages each way; (radix - 1) i times the message
//! sent and combined per rank. Otherwise the other ranks fold onto the largest power of the radix
//! first (see [`Fold`]). Keeps the operand order.
//! Source: Ruefenacht, Bull & Booth, Parallel Computing 69, 2017.

use crate::algorithm::fold::Fold;
use crate::algorithm::schedule::{Buffer, Case, Order, Part, Schedule, Step, Temporary};

/// The message is one chunk.
pub fn schedule(case: Case) -> Schedule {
    let (rank, radix) = (case.rank, case.radix);
    let fold = Fold::new(case.n_ranks, radix);
    let core = fold.core(rank);
    let whole = |buffer| Part::range(buffer, 0, 1);
    let (input, held) = (whole(Buffer::Input), whole(Buffer::Output));
    let received = move |index: usize| whole(Buffer::Temporary(index as u8));
    let exchange = (0..fold.rounds_of(rank)).flat_map(move |round| {
        let unit = radix.pow(round);
        let digit = core / unit % radix;
        let peer = move |d: usize| fold.leader(core - digit * unit + d * unit);
        let index = move |d: usize| if d < digit { digit - 1 - d } else { d - 1 };
        // Everybody's k-th partner has this rank for its own k-th, or is a ring's next.
        let partner = move |k: usize| match radix.is_power_of_two() {
            true => digit ^ k,
            false => (digit + k) % radix,
        };
        let posts = (1..radix).map(partner).flat_map(move |d| {
            let receive = Step::receive(peer(d), received(index(d)));
            [receive, Step::send(peer(d), held)]
        });
        // The nearest operands combine first: below the own digit downwards, then above upwards.
        let others = (0..digit).rev().chain(digit + 1..radix);
        let combine =
            others.map(move |d| Step::reduce(received(index(d)), held, Order::of_peer(d, digit)));
        posts.chain(combine)
    });
    let steps = fold
        .combine(rank, input, held, received(0))
        .chain(exchange)
        .chain(fold.hand_back(rank, held));
    let schedule = Schedule::new(1, steps).window(2 * radix);
    (0..radix - 1).fold(schedule, |schedule, _| {
        schedule.temporary(Temporary::whole(1))
    })
}

#[cfg(test)]
mod tests {
    use crate::algorithm::proof::{Case, Pattern, cost, proved};

    #[test]
    fn every_rank_ends_with_every_contribution_in_order() {
        let row = proved(Pattern::Allreduce, "recursive_multiplying");
        for (n, radix, i) in [
            (3, 3, 1),
            (9, 3, 2),
            (27, 3, 3),
            (4, 4, 1),
            (64, 4, 3),
            (64, 8, 2),
        ] {
            let case = Case::new(0, n).radix(radix);
            let cost = cost(row, case, 100);
            assert_eq!(cost.messages, (radix - 1) * i, "n = {n}");
            assert_eq!(cost.elements, 100 * ((radix - 1) * i) as u64, "n = {n}");
            assert_eq!(cost.reduced, 100 * ((radix - 1) * i) as u64, "n = {n}");
            assert!(
                cost.rounds >= (radix - 1) * i,
                "n = {n}: one message each way at a time"
            );
        }
    }
}
