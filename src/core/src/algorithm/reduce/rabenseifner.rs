//! Rabenseifner's reduce for any number of ranks: reduce-scatter by recursive halving, then a
//! binomial gather to the root.
//!
//! Cost, n = 2^q: 2q rounds; at most 2(n-1)/n of the message sent per rank, (n-1)/n of it
//! combined. Otherwise the ranks above the largest power of two fold first (see [`Fold`]): 1
//! round more. Needs: a commutative op.
//! Source: Thakur, Rabenseifner & Gropp, IJHPCA 19(1), 2005.

use crate::algorithm::allreduce::rabenseifner::{halved, reduce_scatter};
use crate::algorithm::fold::Fold;
use crate::algorithm::schedule::{Buffer, Case, Part, Schedule, Step, Temporary};

/// The message is as many chunks as there are leaders. Ranks are numbered from the root
/// downwards, so that the root is the last of them and leads the last core.
pub fn schedule(case: Case) -> Schedule {
    let n = case.n_ranks;
    let number = n - 1 - case.relative();
    let fold = Fold::new(n, 2);
    let chunks = fold.n_cores;
    let is_root = case.rank == case.root;
    let held = if is_root {
        Buffer::Output
    } else {
        Buffer::Temporary(1)
    };
    let received = Buffer::Temporary(0);
    let whole = |buffer| Part::range(buffer, 0, chunks);
    let steps = fold
        .combine(number, whole(Buffer::Input), whole(held), whole(received))
        .chain(reduce_scatter(fold, number, held, received))
        .chain(gather(fold, number, held))
        .map(move |step| step.renumbered(|number| case.absolute(n - 1 - number)));
    let schedule = Schedule::new(chunks, steps).temporary(Temporary::whole(chunks));
    if is_root {
        schedule
    } else {
        schedule.temporary(Temporary::whole(chunks))
    }
}

/// The exchanges of the reduce-scatter backwards, towards the last core.
fn gather(fold: Fold, number: usize, held: Buffer) -> impl Iterator<Item = Step> {
    let core = fold.core(number);
    // A core hands on in the round of its highest bit that is 0, and is done then.
    let last = fold.n_cores - 1;
    let done = (core ^ last).checked_ilog2().unwrap_or(0);
    (done..fold.rounds_of(number)).rev().map(move |round| {
        let other = core ^ (1 << round);
        let range = |core| {
            let (first, len) = halved(core, fold.n_cores, round + 1);
            Part::range(held, first, len)
        };
        if core >> round & 1 == 0 {
            Step::send(fold.leader(other), range(core))
        } else {
            Step::receive(fold.leader(other), range(other))
        }
    })
}

#[cfg(test)]
mod tests {
    use crate::algorithm::proof::{Case, Pattern, cost, proved};

    #[test]
    fn the_root_ends_with_every_contribution_exactly_once() {
        let row = proved(Pattern::Reduce, "rabenseifner");
        for n in 1..=33usize {
            let q = n.ilog2() as usize;
            let share = 10;
            let cost = cost(row, Case::new(0, n), share << q);
            let folded = if n.is_power_of_two() { 0 } else { 1 };
            assert_eq!(cost.rounds, 2 * q + folded, "n = {n}");
            if folded == 0 {
                assert!(cost.elements <= 2 * (n as u64 - 1) * share, "n = {n}");
                assert_eq!(cost.reduced, (n as u64 - 1) * share, "n = {n}");
            }
        }
    }
}
