//! Recursive multiplying allreduce: recursive doubling with groups of `radix` ranks, which in
//! each round exchange all they have with every other of the group at once.
//!
//! Every rank of a group combines the group's contributions from the lowest up, so that all compute one
//! tree of operations and have the same bits. What was combined is always the first operand of the next
//! operation, which is stored where the second one came in; so the result changes its buffer from round to round.
//!
//! Cost, n = radix^i: i rounds of radix - 1 messages each way; (radix - 1) i times the message
//! sent and combined per rank. Otherwise the other ranks fold onto the largest power of the radix
//! first (see [`Fold`]). Keeps the operand order. In place about half of the ranks copy the message once.
//! Source: Ruefenacht, Bull & Booth, Parallel Computing 69, 2017.

use crate::algorithm::fold::Fold;
use crate::algorithm::schedule::{Buffer, Case, Order, Part, Schedule, Step, Temporary};

/// The message is one chunk.
pub fn schedule(case: Case) -> Schedule {
    let (rank, radix) = (case.rank, case.radix);
    let fold = Fold::new(case.n_ranks, radix);
    let whole = |buffer| Part::range(buffer, 0, 1);
    // The result of a round lies where the last of the group came in, so the buffers are taken in turn.
    let mut held = whole(Buffer::Output);
    let mut other = whole(Buffer::Temporary(0));
    let rounds: Vec<u32> = (0..fold.rounds_of(rank)).collect();
    let groups = rounds
        .into_iter()
        .map(|round| Group::of(fold, rank, radix, round));
    let groups: Vec<Group> = groups.collect();
    let moves = groups.iter().filter(|group| !group.is_last()).count();
    if moves % 2 == 1 {
        std::mem::swap(&mut held, &mut other);
    }
    let start: Vec<Step> = fold
        .combine(rank, whole(Buffer::Input), held, other)
        .collect();
    let mut exchange = Vec::new();
    for group in groups {
        exchange.extend(group.steps(held, other));
        if !group.is_last() {
            std::mem::swap(&mut held, &mut other);
        }
    }
    let steps = start
        .into_iter()
        .chain(exchange)
        .chain(fold.hand_back(rank, whole(Buffer::Output)));
    let schedule = Schedule::new(1, steps).window(2 * radix);
    (0..radix - 1).fold(schedule, |schedule, _| {
        schedule.temporary(Temporary::whole(1))
    })
}

/// The ranks that exchange with each other in one round, as the one with this digit sees them.
#[derive(Clone, Copy)]
struct Group {
    fold: Fold,
    radix: usize,
    /// Distance of neighbours, in cores.
    unit: usize,
    core: usize,
    digit: usize,
}

impl Group {
    fn of(fold: Fold, rank: usize, radix: usize, round: u32) -> Group {
        let (core, unit) = (fold.core(rank), radix.pow(round));
        Group {
            fold,
            radix,
            unit,
            core,
            digit: core / unit % radix,
        }
    }

    /// Whether this rank's contribution is the last operand, and the result where that was.
    fn is_last(&self) -> bool {
        self.digit == self.radix - 1
    }

    fn peer(&self, digit: usize) -> usize {
        self.fold
            .leader(self.core - self.digit * self.unit + digit * self.unit)
    }

    /// Where the contribution of a digit lies: the own one in `held`, and in `other` the last of the others.
    fn place(&self, digit: usize, held: Part, other: Part) -> Part {
        let last_of_others = self.radix - 1 - usize::from(self.is_last());
        let buffer = match digit {
            own if own == self.digit => return held,
            last if last == last_of_others => return other,
            below if below < self.digit => below + 1,
            above => above,
        };
        Part {
            buffer: Buffer::Temporary(buffer as u8),
            ..held
        }
    }

    fn steps(self, held: Part, other: Part) -> impl Iterator<Item = Step> {
        let (digit, radix) = (self.digit, self.radix);
        // Everybody's k-th partner has this rank for its own k-th, or is a ring's next.
        let partner = move |k: usize| match radix.is_power_of_two() {
            true => digit ^ k,
            false => (digit + k) % radix,
        };
        let posts = (1..radix).map(partner).flat_map(move |d| {
            let receive = Step::receive(self.peer(d), self.place(d, held, other));
            [receive, Step::send(self.peer(d), held)]
        });
        let combine = (1..radix).map(move |d| {
            let [so_far, next] = [d - 1, d].map(|d| self.place(d, held, other));
            Step::reduce(so_far, next, Order::SourceFirst)
        });
        posts.chain(combine)
    }
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
