//! Bruck's alltoall with any radix: a block for the rank at distance `d` travels by the digits of
//! `d` to the base `radix`; all blocks with the same digit go together.
//!
//! Cost, n = radix^w: w (radix - 1) messages per rank of n/radix blocks each; with radix 2
//! ceil(log2 n) rounds for any n. Blocks are gathered before and spread after each message, and
//! turned by the rank before and after all. Blocks are equally long.
//! Source: Bruck et al., IEEE TPDS 8(11), 1997.

use crate::algorithm::schedule::{Buffer, Case, Part, Schedule, Step, Temporary};

/// Chunk `d` is the block that is still to travel, or has travelled, the distance `d`.
const TURNED: Buffer = Buffer::Temporary(0);
const SENT: Buffer = Buffer::Temporary(1);
const RECEIVED: Buffer = Buffer::Temporary(2);

/// One chunk per block.
pub fn schedule(case: Case) -> Schedule {
    let (rank, n, radix) = (case.rank, case.n_ranks, case.radix);
    let turn = [
        Step::copy(
            Part::range(Buffer::Input, rank, n - rank),
            Part::range(TURNED, 0, n - rank),
        ),
        Step::copy(
            Part::range(Buffer::Input, 0, rank),
            Part::range(TURNED, n - rank, rank),
        ),
    ];
    let units = std::iter::successors(Some(1), move |unit| Some(unit * radix));
    let rounds = units
        .take_while(move |&unit| unit < n)
        .flat_map(move |unit| {
            let digits = (1..radix).take_while(move |&digit| digit * unit < n);
            // The messages of one round lie one after another in the buffers that they share.
            let placed = digits.scan(0, move |place, digit| {
                let first = *place;
                *place += with_digit(n, unit, radix, digit)
                    .iter()
                    .map(Part::count)
                    .sum::<usize>();
                Some((digit, first..*place))
            });
            placed.flat_map(move |(digit, place)| exchange(case, unit, digit, place))
        });
    let back = (0..n).map(move |distance| {
        Step::copy(
            Part::range(TURNED, distance, 1),
            Part::range(Buffer::Output, case.below(distance), 1),
        )
    });
    Schedule::new(1, turn.into_iter().chain(rounds).chain(back))
        .temporary(Temporary::whole(n))
        .temporary(Temporary::whole(n))
        .temporary(Temporary::whole(n))
}

/// The distances below `n` whose digit at `unit` is `digit`, as runs, the last of which may be
/// shorter.
fn with_digit(n: usize, unit: usize, radix: usize, digit: usize) -> Vec<Part> {
    let (first, stride) = (digit * unit, radix * unit);
    let whole = (n + stride).saturating_sub(first + unit) / stride;
    let rest = n.saturating_sub(first + whole * stride);
    let runs = Part::strided(TURNED, first, unit, whole, stride);
    let tail = Part::range(TURNED, first + whole * stride, rest);
    [runs, tail]
        .into_iter()
        .filter(|part| part.count() > 0)
        .collect()
}

fn exchange(case: Case, unit: usize, digit: usize, place: std::ops::Range<usize>) -> Vec<Step> {
    let turned = with_digit(case.n_ranks, unit, case.radix, digit);
    let packed = |buffer| {
        turned
            .clone()
            .into_iter()
            .scan(place.start, move |next, part| {
                let first = *next;
                *next += part.count();
                Some((part, Part::range(buffer, first, part.count())))
            })
    };
    let whole = |buffer| Part::range(buffer, place.start, place.len());
    let mut steps: Vec<Step> = packed(SENT)
        .map(|(turned, packed)| Step::copy(turned, packed))
        .collect();
    steps.push(Step::send(case.above(digit * unit), whole(SENT)));
    steps.push(Step::receive(case.below(digit * unit), whole(RECEIVED)));
    steps.extend(packed(RECEIVED).map(|(turned, packed)| Step::copy(packed, turned)));
    steps
}

#[cfg(test)]
mod tests {
    use crate::algorithm::proof::{Case, Pattern, cost, log_ceil, proved};

    #[test]
    fn every_rank_ends_with_the_block_that_each_rank_has_for_it() {
        let row = proved(Pattern::Alltoall, "bruck");
        for n in 1..=64 {
            let cost = cost(row, Case::new(0, n), 10);
            assert_eq!(cost.rounds, log_ceil(n, 2), "n = {n}");
        }
        for (n, radix, w) in [(8, 2, 3), (27, 3, 3), (64, 4, 3), (64, 8, 2)] {
            let cost = cost(row, Case::new(0, n).radix(radix), 10);
            assert_eq!(cost.messages, w * (radix - 1));
            assert_eq!(cost.elements, (10 * w * (radix - 1) * n / radix) as u64);
        }
    }
}
