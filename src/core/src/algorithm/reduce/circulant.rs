//! Circulant n-block reduce: the circulant bcast backwards, combining instead of copying.
//!
//! Cost: segments - 1 + ceil(log2 n) rounds of one segment each, which is the least possible, for
//! any n; the whole message sent once per rank. Needs: a commutative op.
//! Source: Traeff, arXiv 2407.18004.

use super::held;
use crate::algorithm::bcast::circulant::{Transfer, Transfers};
use crate::algorithm::schedule::{Buffer, Case, Order, Part, Schedule, Step, Temporary};

/// Segments that may be on their way to the rank or waiting.
const PLACES: usize = 4;

/// The message is `segments` chunks.
pub fn schedule(case: Case) -> Schedule {
    let segments = case.segments;
    // Which segments are being combined where the result is built; the others are only input.
    let begun = vec![false; segments];
    let backwards = Transfers::new(case).into_iter().rev();
    let rounds = backwards.scan(begun, move |begun, transfer| {
        Some(round(case, transfer, begun))
    });
    let alone = (case.n_ranks == 1).then(|| {
        let whole = |buffer| Part::range(buffer, 0, segments);
        Step::copy(whole(Buffer::Input), whole(Buffer::Output))
    });
    let schedule = Schedule::new(segments, alone.into_iter().chain(rounds.flatten()))
        .temporary(Temporary::whole(segments));
    (0..PLACES).fold(schedule, |schedule, _| {
        schedule.temporary(Temporary::ring(1))
    })
}

fn round(case: Case, transfer: Transfer, begun: &mut [bool]) -> Vec<Step> {
    let chunk = |buffer, segment| Part::range(buffer, segment, 1);
    let mut steps = Vec::new();
    if let Some((peer, segment)) = transfer.from {
        let buffer = if begun[segment] {
            held(case)
        } else {
            Buffer::Input
        };
        steps.push(Step::send(peer, chunk(buffer, segment)));
    }
    if let Some((peer, segment)) = transfer.to {
        let target = chunk(held(case), segment);
        let first = !std::mem::replace(&mut begun[segment], true);
        let received = match first {
            true => target,
            false => chunk(Buffer::Temporary((1 + segment % PLACES) as u8), segment),
        };
        let source = if first {
            chunk(Buffer::Input, segment)
        } else {
            received
        };
        steps.push(Step::receive(peer, received));
        steps.push(Step::reduce(source, target, Order::SourceFirst));
    }
    steps
}

#[cfg(test)]
mod tests {
    use crate::algorithm::proof::{Case, Pattern, cost, log_ceil, proved};

    #[test]
    fn the_root_ends_with_every_contribution_exactly_once() {
        let row = proved(Pattern::Reduce, "circulant");
        for n in 2..=64 {
            for segments in [1, 2, 3, 10] {
                let cost = cost(row, Case::new(0, n).segments(segments), 100);
                // In step, as the bcast's test shows; when every rank goes on as soon as it can,
                // a message may come in before one of an earlier round.
                assert!(
                    cost.rounds < 2 * (segments + log_ceil(n, 2)),
                    "n = {n}, {segments}"
                );
                assert_eq!(cost.elements, 100);
            }
        }
    }
}
