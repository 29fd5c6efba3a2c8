//! Ring allreduce: reduce-scatter round the ring, then allgather round the ring; with segments,
//! each of the n blocks travels in several messages that follow each other.
//!
//! Cost: 2(n-1) messages per segment; about 2(n-1)/n of the message sent per rank, (n-1)/n of it
//! combined. Needs: a commutative op. Nothing is copied and no buffer is needed beside the
//! user's: what arrives is combined with the caller's own chunk where it lies.
//! Source: Patarasuk & Yuan, JPDC 69(2), 2009. n = 3, contributions held per chunk by rank 0:
//! {0}{0}{0} -> {0}{0}{0,2} -> {0}{0,1,2}{0,2} -> {0,1,2}{0,1,2}{0,2} -> {0,1,2} x 3

use crate::algorithm::schedule::{Buffer, Case, Order, Part, Schedule, Step};

/// Sends run so many messages ahead of receives where the segments allow it.
const AHEAD: usize = 3;

/// Chunk `b * segments + s` is segment `s` of block `b`.
pub fn schedule(case: Case) -> Schedule {
    let (rank, n, segments) = (case.rank, case.n_ranks, case.segments);
    let (next, prev) = (case.above(1), case.below(1));
    // Message `t` in a rank's sequence is segment `t % segments` of the block of round
    // `t / segments`; it can leave once message `t - segments` was received and combined.
    let messages = 2 * (n - 1) * segments;
    let ahead = AHEAD.min(segments - 1);
    let chunk = move |buffer, round: usize, t: usize| {
        let block = (rank + 2 * n - round) % n;
        Part::range(buffer, block * segments + t % segments, 1)
    };
    let send = move |t: usize| {
        let buffer = if t < segments {
            Buffer::Input
        } else {
            Buffer::Output
        };
        Step::send(next, chunk(buffer, t / segments, t))
    };
    let receive = move |t: usize| {
        let round = t / segments;
        let received = chunk(Buffer::Output, round + 1, t);
        let own = chunk(Buffer::Input, round + 1, t);
        let combine = (round < n - 1).then(|| Step::reduce(own, received, Order::SourceFirst));
        [Some(Step::receive(prev, received)), combine]
            .into_iter()
            .flatten()
    };
    let steps = (0..messages + ahead).flat_map(move |t| {
        let sent = (t < messages).then(|| send(t));
        let received = (t >= ahead && messages > 0).then(|| receive(t - ahead));
        sent.into_iter().chain(received.into_iter().flatten())
    });
    let alone = (n == 1).then(|| {
        let whole = |buffer| Part::range(buffer, 0, segments);
        Step::copy(whole(Buffer::Input), whole(Buffer::Output))
    });
    Schedule::new(n * segments, alone.into_iter().chain(steps))
}

#[cfg(test)]
mod tests {
    use crate::algorithm::proof::{Case, Pattern, cost, find, proved};

    #[test]
    fn every_rank_ends_with_every_contribution_exactly_once() {
        for name in ["ring", "segmented_ring"] {
            proved(Pattern::Allreduce, name);
        }
    }

    #[test]
    fn rounds_and_bytes_are_those_promised() {
        let row = find(Pattern::Allreduce, "segmented_ring");
        for n in 1..=33 {
            for segments in [1, 2, 4] {
                let case = Case::new(0, n).segments(segments);
                let share = 10 * segments as u64;
                let cost = cost(row, case, share * n as u64);
                assert_eq!(cost.messages, 2 * (n - 1) * segments);
                assert_eq!(cost.rounds, 2 * (n - 1) * segments);
                assert_eq!(cost.elements, 2 * (n as u64 - 1) * share);
                assert_eq!(cost.reduced, (n as u64 - 1) * share);
            }
        }
    }
}
