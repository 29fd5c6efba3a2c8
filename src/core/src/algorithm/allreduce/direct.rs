//! Direct reductions, pipelined: each rank has its share of every segment from all others at once, combines it, and sends
//! it to whoever gets the result.
//!
//! Cost of an allreduce: 2 (n - 1) messages per segment each way, of a share each, so 2(n-1)/n of the message as in a
//! ring, in segments + 1 steps; (n-1)/n of it combined. Of a reduce all ranks but the root have shares, so each rank sends
//! and receives one message's length. Needs: few ranks, since each has room for a piece of every other. Operands are
//! combined in the fixed order ([`fixed_order`](crate::algorithm::fixed_order)).
//! Source: Pjesivac-Grbovic et al., Cluster Computing 10(2), 2007 (linear reduce-scatter and allgather); the pipeline is
//! ours.

use std::convert::Infallible;

use crate::algorithm::fixed_order::{self, FoldStep};
use crate::algorithm::schedule::{Buffer, Case, Order, Part, Schedule, Step, Temporary};

/// Segments of one rank's that may be on their way or waiting.
const PLACES: usize = 2;
/// Messages that may be under way in each direction, at the least.
const WINDOW_LEAST: usize = 8;

/// The message is a share for each rank, of `segments` chunks each.
pub fn allreduce(case: Case) -> Schedule {
    direct(case, None)
}

/// The message is a share for each rank but the root, of `segments` chunks each.
pub fn reduce(case: Case) -> Schedule {
    direct(case, Some(case.root))
}

/// The result goes to one rank, or to all.
fn direct(case: Case, root: Option<usize>) -> Schedule {
    let (n, segments) = (case.n_ranks, case.segments);
    let shares = n - usize::from(root.is_some() && n > 1);
    let parts_per_block = shares * segments;
    let alone = (n == 1).then(|| {
        let whole = |buffer| Part::range(buffer, 0, parts_per_block);
        Step::copy(whole(Buffer::Input), whole(Buffer::Output))
    });
    let pipeline = match n {
        1 => 0..=0,
        _ => 0..=segments,
    };
    let steps = pipeline.flat_map(move |step| {
        let mut steps = Vec::new();
        if n > 1 && step < segments {
            combine(case, root, step, &mut steps);
        }
        if step > 0 {
            hand_out(case, root, step - 1, &mut steps);
        }
        steps
    });
    let places = Temporary::ring(PLACES.min(segments));
    let steps = alone.into_iter().chain(steps);
    let schedule = Schedule::new(parts_per_block, steps).window((2 * n).max(WINDOW_LEAST));
    (0..n).fold(schedule, |schedule, _| schedule.temporary(places))
}

/// A segment of a rank's share; `None` of a reduce's root, which has none.
fn chunk(
    case: Case,
    root: Option<usize>,
    buffer: Buffer,
    (rank, segment): (usize, usize),
) -> Option<Part> {
    let share = rank - usize::from(root.is_some_and(|root| rank > root));
    (root != Some(rank)).then(|| Part::range(buffer, share * case.segments + segment, 1))
}

/// Where this rank's share of a segment is combined: the operand of the last rank comes there.
fn sum(case: Case, root: Option<usize>, segment: usize) -> Option<Part> {
    let buffer = match root {
        None => Buffer::Output,
        Some(_) => Buffer::Temporary((case.n_ranks - 1) as u8),
    };
    chunk(case, root, buffer, (case.rank, segment))
}

/// All shares of a segment are sent to their ranks, and the own one is combined.
fn combine(case: Case, root: Option<usize>, segment: usize, steps: &mut Vec<Step>) {
    let (own, n) = (case.rank, case.n_ranks);
    let input = |rank| chunk(case, root, Buffer::Input, (rank, segment));
    // Where the operand of a rank lies, as something that may be written.
    let place = |rank: usize| match rank + 1 == n {
        true => sum(case, root, segment),
        false => chunk(case, root, Buffer::Temporary(rank as u8), (own, segment)),
    };
    for distance in 1..n {
        let (to, from) = (case.above(distance), case.below(distance));
        steps.extend(place(from).map(|place| Step::receive(from, place)));
        steps.extend(input(to).map(|share| Step::send(to, share)));
    }
    let Some(mine) = input(own) else {
        return;
    };
    let mut slots = vec![mine; fixed_order::slots(n)];
    let Ok(()) = fixed_order::combine(n, |step| {
        let operand = |rank| place(rank).unwrap_or(mine);
        let (source, target) = match step {
            FoldStep::Take { rank, slot } => {
                slots[slot] = operand(rank);
                if rank == own {
                    steps.push(Step::copy(mine, operand(own)));
                }
                return Ok::<_, Infallible>(());
            }
            FoldStep::Before { rank, slot } if rank == own => (mine, slots[slot]),
            FoldStep::Before { rank, slot } => (operand(rank), slots[slot]),
            FoldStep::Merge { slot } => (slots[slot + 1], slots[slot]),
        };
        steps.push(Step::reduce(source, target, Order::SourceFirst));
        Ok(())
    });
}

/// The own share of a segment is sent to who gets the result, who receives those of the others.
fn hand_out(case: Case, root: Option<usize>, segment: usize, steps: &mut Vec<Step>) {
    let gets_all = |rank| root.is_none_or(|root| root == rank);
    for distance in 1..case.n_ranks {
        let (to, from) = (case.above(distance), case.below(distance));
        if gets_all(case.rank) {
            let theirs = chunk(case, root, Buffer::Output, (from, segment));
            steps.extend(theirs.map(|share| Step::receive(from, share)));
        }
        if gets_all(to) {
            steps.extend(sum(case, root, segment).map(|share| Step::send(to, share)));
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::algorithm::proof::{Case, Pattern, cost, proved};

    #[test]
    fn every_rank_ends_with_every_contribution_in_order() {
        let row = proved(Pattern::Allreduce, "direct");
        for n in 1..=33usize {
            for segments in [1, 2, 4] {
                let (case, share) = (Case::new(0, n).segments(segments), 10 * segments as u64);
                let cost = cost(row, case, share * n as u64);
                assert_eq!(cost.messages, 2 * (n - 1) * segments, "n = {n}");
                assert_eq!(cost.elements, 2 * (n as u64 - 1) * share);
                assert_eq!(cost.reduced, (n as u64 - 1) * share);
            }
        }
    }

    #[test]
    fn the_root_ends_with_every_contribution_in_order() {
        let row = proved(Pattern::Reduce, "direct");
        for n in 2..=33usize {
            let length = 20 * (n as u64 - 1);
            let cost = cost(row, Case::new(0, n).segments(2), length);
            assert_eq!(cost.all_messages, 2 * (n - 1) * n, "n = {n}");
            assert_eq!((cost.elements, cost.reduced), (length, length));
            assert_eq!(cost.all_elements, n as u64 * length);
        }
    }
}
