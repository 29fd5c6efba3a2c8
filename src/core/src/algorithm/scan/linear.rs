//! Linear scan: each rank combines what the rank below hands it and hands it on, segment by
//! segment.
//!
//! Cost: n - 2 + segments rounds of one segment each; the whole message sent and combined at most
//! once per rank. Keeps the operand order.
//! Source: the definition of scan in the MPI standard.

use crate::algorithm::schedule::{Buffer, Case, Order, Part, Schedule, Step, Temporary};

/// Segments that may be on their way or waiting.
const PLACES: usize = 4;

/// The message is `segments` chunks.
pub fn inclusive(case: Case) -> Schedule {
    let below = case.rank.checked_sub(1);
    let above = Some(case.rank + 1).filter(|&above| above < case.n_ranks);
    let steps = (0..case.segments).flat_map(move |segment| {
        let [input, held, received] = [Buffer::Input, Buffer::Output, Buffer::Temporary(0)]
            .map(|buffer| Part::range(buffer, segment, 1));
        let receive = below.map(|below| Step::receive(below, received));
        let combine = below.map(|_| Step::reduce(received, held, Order::SourceFirst));
        let send = above.map(|above| Step::send(above, held));
        let copy = [Step::copy(input, held)];
        copy.into_iter().chain(receive).chain(combine).chain(send)
    });
    Schedule::new(case.segments, steps).temporary(Temporary::ring(PLACES.min(case.segments)))
}

/// The message is `segments` chunks.
pub fn exclusive(case: Case) -> Schedule {
    let below = case.rank.checked_sub(1);
    let above = Some(case.rank + 1).filter(|&above| above < case.n_ranks);
    let steps = (0..case.segments).flat_map(move |segment| {
        let [input, kept, handed_on] = [Buffer::Input, Buffer::Output, Buffer::Temporary(0)]
            .map(|buffer| Part::range(buffer, segment, 1));
        let receive = below.map(|below| Step::receive(below, kept));
        let copy = above.map(|_| Step::copy(input, handed_on));
        let combine = below.and(above);
        let combine = combine.map(|_| Step::reduce(kept, handed_on, Order::SourceFirst));
        let send = above.map(|above| Step::send(above, handed_on));
        copy.into_iter().chain(receive).chain(combine).chain(send)
    });
    Schedule::new(case.segments, steps).temporary(Temporary::ring(PLACES.min(case.segments)))
}

#[cfg(test)]
mod tests {
    use crate::algorithm::proof::{Case, Pattern, cost, proved};

    #[test]
    fn every_rank_ends_with_the_contributions_up_to_its_own_in_order() {
        for pattern in [Pattern::Scan, Pattern::Exscan] {
            let row = proved(pattern, "linear");
            for n in 2..=33 {
                for segments in [1, 2, 7] {
                    let cost = cost(row, Case::new(0, n).segments(segments), 70);
                    assert_eq!(cost.rounds, n - 2 + segments, "n = {n}");
                    assert_eq!(cost.elements, 70);
                    assert!(cost.reduced <= 70);
                }
            }
        }
    }
}
