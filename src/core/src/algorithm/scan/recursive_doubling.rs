//! Scan over doubling distances: each rank hands what it has combined to the rank twice as far
//! above as the last one.
//!
//! Cost: ceil(log2 n) rounds for any n; the whole message sent per rank and round, and combined
//! once (exscan: at most twice). Keeps the operand order.
//! Source: Hillis & Steele, CACM 29(12), 1986. n = 4, contributions per rank:
//! {0}{1}{2}{3} -> {0}{01}{12}{23} -> {0}{01}{012}{0123}

use crate::algorithm::schedule::{Buffer, Case, Order, Part, Schedule, Step, Temporary};

/// The distances, and for each the rank above and the rank below, where there are such ranks.
fn rounds(case: Case) -> impl Iterator<Item = (Option<usize>, Option<usize>)> {
    let n = case.n_ranks;
    (0..n.next_power_of_two().ilog2()).map(move |round| {
        let distance = 1 << round;
        let above = case.rank + distance;
        (
            (above < n).then_some(above),
            case.rank.checked_sub(distance),
        )
    })
}

/// The message is one chunk.
pub fn inclusive(case: Case) -> Schedule {
    let [input, held, received] = [Buffer::Input, Buffer::Output, Buffer::Temporary(0)]
        .map(|buffer| Part::range(buffer, 0, 1));
    let exchange = rounds(case).flat_map(move |(above, below)| {
        let send = above.map(|above| Step::send(above, held));
        let receive = below.map(|below| Step::receive(below, received));
        let combine = below.map(|_| Step::reduce(received, held, Order::SourceFirst));
        send.into_iter().chain(receive).chain(combine)
    });
    let steps = std::iter::once(Step::copy(input, held)).chain(exchange);
    Schedule::new(1, steps).temporary(Temporary::whole(1))
}

/// The message is one chunk. The rank's own contribution is in what it hands on, not in what it
/// keeps.
pub fn exclusive(case: Case) -> Schedule {
    let [input, kept, received, handed_on] = [
        Buffer::Input,
        Buffer::Output,
        Buffer::Temporary(0),
        Buffer::Temporary(1),
    ]
    .map(|buffer| Part::range(buffer, 0, 1));
    let exchange = rounds(case)
        .enumerate()
        .flat_map(move |(round, (above, below))| {
            let send = above.map(|above| Step::send(above, handed_on));
            // The first to come is what is kept; it takes nothing in.
            let place = if round == 0 { kept } else { received };
            let receive = below.map(|below| Step::receive(below, place));
            let keep = below.filter(|_| round > 0);
            let keep = keep.map(|_| Step::reduce(received, kept, Order::SourceFirst));
            // Whoever hands on later must first take in what came.
            let later = above.is_some_and(|above| above + (1 << round) < case.n_ranks);
            let hand_on = below.filter(|_| later);
            let hand_on = hand_on.map(|_| Step::reduce(place, handed_on, Order::SourceFirst));
            send.into_iter().chain(receive).chain(keep).chain(hand_on)
        });
    let steps = std::iter::once(Step::copy(input, handed_on)).chain(exchange);
    Schedule::new(1, steps)
        .temporary(Temporary::whole(1))
        .temporary(Temporary::whole(1))
}

#[cfg(test)]
mod tests {
    use crate::algorithm::proof::{Case, Pattern, cost, log_ceil, proved};

    #[test]
    fn every_rank_ends_with_the_contributions_up_to_its_own_in_order() {
        for (pattern, times) in [(Pattern::Scan, 1), (Pattern::Exscan, 2)] {
            let row = proved(pattern, "recursive_doubling");
            for n in 1..=64 {
                let cost = cost(row, Case::new(0, n), 10);
                assert_eq!(cost.rounds, log_ceil(n, 2), "n = {n}");
                assert!(cost.elements <= 10 * log_ceil(n, 2) as u64);
                assert!(cost.reduced <= times * 10 * log_ceil(n, 2) as u64);
            }
        }
    }
}
