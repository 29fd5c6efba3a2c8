//! Calls that are counted without more, or again; and the epochs that go by their number.

use crate::account::{Cause, PairOfEpochs};
use crate::collective::Collective;
use crate::decide::call::SharedCall;
use crate::decide::epochs::Epochs;
use crate::decide::rules::Rules;
use crate::select::key;

use super::{Decider, Standing};

impl Decider {
    /// The communicator's epochs from here on. Rank 0 of the world tells what they say, so there are none where it is not
    /// the first rank, whose world rank is the upper half of the communicator's number.
    pub(super) fn epochs(&self, rules: &Rules) -> Epochs {
        let is_told = self.agreed.id >> 32 == 0;
        let membership = self.membership.filter(|_| is_told);
        match membership.and_then(|membership| rules.epochs_gap(membership)) {
            Some(gap) => {
                let key = key(rules.terms.seed, self.agreed.id, u64::MAX);
                Epochs::new(self.agreed.id, key, gap, self.calls)
            }
            None => Epochs::NEVER,
        }
    }

    /// Begins or ends an epoch with the present call; the pair that has ended with it.
    #[cold]
    pub fn next_epoch(&mut self, now_ns: u64) -> Option<PairOfEpochs> {
        self.epochs.advance(self.calls, now_ns)
    }

    /// Tells, when the communicator or the job ends, for how many calls what was left out and why: of all collectives
    /// together where the communicator is the cause.
    #[cold]
    pub fn tell_left_out(&mut self, mut tell: impl FnMut(Cause, Option<Collective>, u64)) {
        self.end_sample();
        let mut outside = std::mem::take(&mut self.calls);
        if outside == 0 {
            return;
        }
        let mut tuned_from = self.tuned_from;
        if let Standing::Aside(cause, from, was_tuned_from) = self.standing {
            tell(cause, None, outside.saturating_sub(from));
            outside = outside.min(from);
            tuned_from = was_tuned_from;
        }
        for (collective, cell) in self.cells.states() {
            outside = outside.saturating_sub(cell.calls);
            for cause in cell.left_out.iter() {
                tell(cause, Some(collective), cell.calls);
            }
        }
        let early = outside.min(tuned_from);
        let cause = match self.put_off_until {
            0 => Cause::FewCalls,
            _ => Cause::Unpaid,
        };
        tell(cause, None, early);
        tell(Cause::Size, None, outside - early);
    }

    /// Undoes the counting of the last call, which the library has refused on this rank, at once and without a
    /// message: it has not taken place. Whoever makes it right finds what the other ranks found.
    #[cold]
    pub fn take_back(&mut self, call: SharedCall) {
        debug_assert!(self.calls > 0, "a call is counted before it is taken back");
        self.end_sample();
        self.calls = self.calls.saturating_sub(1);
        if self.calls >= self.tuned_from {
            let of_all = self.calls + 1;
            if call.collective.agrees_on_size()
                && let Some(cells) = self.cells.of_mut(call.collective)
            {
                cells.sizes.take_back(of_all);
            }
            let call = self.sized(call);
            let cells = self.cells.of_mut(call.collective);
            let cell = cells.and_then(|cells| {
                let is_sized = !call.collective.agrees_on_size() || call.bytes > 0;
                let place = cells.by_size.position(call.bytes).filter(|_| is_sized)?;
                cells.state_mut(place)
            });
            if let Some(cell) = cell {
                cell.calls = cell.calls.saturating_sub(1);
            }
        }
        if self.calls <= self.tuned_from {
            // It has not made the set-up due either.
            self.tuned_from = u64::MAX;
            let bytes = Rules::setup_bytes(call);
            self.young_bytes = self.young_bytes.saturating_sub(bytes);
        }
    }

    /// Counts a call that the edge knows to be like one that ran `variant` in this cell, and gives its number there.
    /// `None`, and nothing is counted, where it does not simply run that again.
    #[inline(always)]
    pub fn repeat(&mut self, collective: Collective, place: usize, variant: u16) -> Option<u64> {
        if self.calls >= self.epochs.tuned_until {
            return None;
        }
        let cell = self.cells.of_mut(collective)?.state_mut(place)?;
        let index = cell.calls;
        if index >= cell.quiet_until || cell.best != variant {
            return None;
        }
        cell.calls = index + 1;
        self.calls += 1;
        Some(index)
    }
}
