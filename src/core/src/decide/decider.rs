//! One communicator's decisions.

mod blocks;
mod cells;
mod counting;
mod label;
mod samples;

use std::collections::TryReserveError;

use crate::account::Cause;
use crate::collective::Collective;
use crate::race::Sample;
use crate::record::CallClass;

use super::DEFAULT;
use super::agreed::{Agreed, Membership, Origin, Possible};
use super::call::{SharedCall, SharedDetails};
use super::cell::CellState;
use super::decision::{Chosen, Decision, Measured, UnderWay};
use super::epochs::Epochs;
use super::hopeless::Hopeless;
use super::impasse::{Impasse, Reason};
use super::rules::{Rules, SETUP_BYTES, Telling};
use super::times::{FRESH_MAX, Words};
use cells::Called;

/// What decides on one communicator; one on each of its ranks.
#[derive(Clone, Debug)]
pub struct Decider {
    standing: Standing,
    origin: Origin,
    /// Calls so far, the present one included.
    calls: u64,
    /// Calls from this number on fall into cells: that of the call at which the set-up was due.
    tuned_from: u64,
    /// What the calls before that moved, as the set-up counts it.
    young_bytes: u64,
    /// It was put off until this call.
    put_off_until: u64,
    /// Calls before this number run `default` unless they move much; none before the first one was looked at.
    waits_until: u64,
    epochs: Epochs,
    agreed: Agreed,
    /// The same as it was in the set-up: a rank may make a cell before a review and the others behind it.
    set_up_with: Agreed,
    /// What the members knew then to be hopeless.
    hopeless: Hopeless,
    membership: Option<Membership>,
    /// By collective; made at its first call behind the set-up, and each cell at its own.
    cells: Called,
    /// Cells of which something was sampled: they share the budget.
    cells_in_use: u64,
    /// Calls that were sampled.
    samples: u64,
    /// The sampled call that is under way; or that was left, by an exception or a longjmp, and not observed.
    under_way: Option<UnderWay>,
    /// Room for those of a review.
    words: Words,
    /// And for its samples.
    window: Vec<Sample>,
}

/// How far a communicator has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    /// Not set up: calls run `default`.
    Young,
    Ready,
    /// Runs `default` for good from so many calls on, and had drawn from so many on; all members see that alike.
    Aside(Cause, u64, u64),
}

/// What the samples of any review take.
const WINDOW_BYTES: usize = size_of::<Sample>() * FRESH_MAX;

/// After so many times as many calls a set-up that was put off is due again.
const PUT_OFF: u64 = 4;

impl Decider {
    /// That of a communicator that may be tuned.
    pub fn new(origin: Origin) -> Decider {
        Decider {
            standing: Standing::Young,
            origin,
            calls: 0,
            tuned_from: u64::MAX,
            young_bytes: 0,
            put_off_until: 0,
            waits_until: 0,
            epochs: Epochs::NEVER,
            agreed: Agreed::NOTHING,
            set_up_with: Agreed::NOTHING,
            hopeless: Hopeless::NOTHING,
            membership: None,
            cells: Default::default(),
            cells_in_use: 0,
            samples: 0,
            under_way: None,
            words: Words::default(),
            window: Vec::new(),
        }
    }

    /// What one that is set up holds before its first cell.
    pub const READY_BYTES: u64 = (size_of::<Decider>() + Words::BYTES + WINDOW_BYTES) as u64;

    /// What it holds, about.
    pub fn bytes(&self) -> u64 {
        Decider::READY_BYTES + self.cells.bytes()
    }

    /// Begins anew, for another communicator. Where the last one was never set up that is quicker than a new decider,
    /// most of which is room for cells.
    pub fn renew(&mut self, origin: Origin) {
        if self.membership.is_some() {
            *self = Decider::new(origin);
            return;
        }
        self.origin = origin;
        debug_assert!(self.cells.is_empty());
        self.standing = Standing::Young;
        self.calls = 0;
        self.tuned_from = u64::MAX;
        self.young_bytes = 0;
        self.put_off_until = 0;
        self.waits_until = 0;
        self.epochs = Epochs::NEVER;
        self.agreed = Agreed::NOTHING;
        self.set_up_with = Agreed::NOTHING;
        self.cells_in_use = 0;
        self.samples = 0;
        self.under_way = None;
    }

    /// That of a communicator that is gone, or that all members see to be none of ours.
    pub fn aside() -> Decider {
        Decider {
            standing: Standing::Aside(Cause::Agreement, 0, u64::MAX),
            ..Decider::new(Origin::Program)
        }
    }

    /// Runs `default` from the present call on: the job was switched off, or the members could not agree. The library
    /// reports an error in that, as where one of them is gone, and the communicator is of no use to any of them.
    #[cold]
    pub fn stand_aside(&mut self, cause: Cause) {
        self.end_sample();
        self.standing = Standing::Aside(cause, self.calls.saturating_sub(1), self.tuned_from);
        self.tuned_from = u64::MAX;
    }

    /// Whether the communicator runs `default` for good.
    pub fn is_aside(&self) -> bool {
        matches!(self.standing, Standing::Aside(..))
    }

    /// Tuned calls so far, the present one included.
    pub fn calls(&self) -> u64 {
        self.calls
    }

    /// What was agreed in the set-up.
    pub fn agreed(&self) -> Agreed {
        self.agreed
    }

    /// The members, once they were set up.
    pub fn membership(&self) -> Option<Membership> {
        self.membership
    }

    /// The place in the model of a cell of this communicator.
    pub fn model_cell(&self, collective: Collective, place: usize) -> Option<u32> {
        Some(self.cells.of(collective)?.state(place)?.model_cell)
    }

    /// Counts a call and decides what it runs. Comes first in every call of a tuned function, before anything is
    /// asked that this rank alone knows; `details` are asked for where a variant has to be judged.
    #[inline(always)]
    pub fn decide(
        &mut self,
        rules: &Rules,
        call: SharedCall,
        details: &dyn Fn() -> SharedDetails,
    ) -> Decision {
        if self.waits(call) {
            return Decision::Default;
        }
        if self.calls < self.tuned_from {
            return self.decide_young(rules, call, details);
        }
        if self.calls >= self.epochs.next {
            return Decision::NextEpoch;
        }
        self.calls += 1;
        self.decide_in_cell(rules, call, details)
    }

    /// Counts a call that comes before the set-up is due, and so runs `default`: most calls on communicators that live
    /// for a few. Elsewhere nothing is counted, and [`Decider::decide`] is to be asked.
    #[inline(always)]
    pub fn waits(&mut self, call: SharedCall) -> bool {
        let bytes = self.young_bytes + Rules::setup_bytes(call);
        let waits = self.calls + 1 < self.waits_until && bytes < SETUP_BYTES;
        if waits {
            self.calls += 1;
            self.young_bytes = bytes;
        }
        waits
    }

    /// The calls up to the one at which the set-up is due, and those behind one that was left.
    #[cold]
    fn decide_young(
        &mut self,
        rules: &Rules,
        call: SharedCall,
        details: &dyn Fn() -> SharedDetails,
    ) -> Decision {
        if let Some(left) = self.under_way {
            return Decision::Unobserved(left);
        }
        if self.calls == 0 && rules.telling == Telling::Needed {
            self.waits_until = rules.setup_after(self.origin);
        }
        self.calls += 1;
        self.young_bytes += Rules::setup_bytes(call);
        let due = self.calls >= self.put_off_until && self.is_due(rules);
        match self.standing {
            Standing::Young if due || rules.telling == Telling::All => Decision::SetUp,
            Standing::Ready if due => self.decide_due(rules, call, details),
            Standing::Young | Standing::Ready | Standing::Aside(..) => Decision::Default,
        }
    }

    fn is_due(&self, rules: &Rules) -> bool {
        rules.setup_is_due(self.origin, self.calls, self.young_bytes)
    }

    /// Takes what the members agreed on, and decides on the call that asked for it; or why they see that the
    /// communicator is not to be tuned. Where a member cannot pay for what that needs they ask again, ever more seldom.
    #[cold]
    pub fn set_up(
        &mut self,
        rules: &Rules,
        agreed: Result<(Agreed, Membership, Hopeless), Cause>,
        call: SharedCall,
        details: &dyn Fn() -> SharedDetails,
    ) -> Decision {
        let (agreed, membership, hopeless) = match agreed {
            Ok(agreed) => agreed,
            Err(cause) => {
                self.stand_aside(cause);
                return Decision::Default;
            }
        };
        if agreed.pays != Possible::Yes && rules.puts_off() {
            self.put_off_until = self.calls.saturating_mul(PUT_OFF);
            return Decision::Default;
        }
        self.agreed = agreed;
        self.set_up_with = agreed;
        self.hopeless = hopeless;
        self.membership = Some(membership);
        self.standing = Standing::Ready;
        if self.is_due(rules) {
            self.decide_due(rules, call, details)
        } else {
            Decision::Default
        }
    }

    /// The first call that falls into a cell.
    fn decide_due(
        &mut self,
        rules: &Rules,
        call: SharedCall,
        details: &dyn Fn() -> SharedDetails,
    ) -> Decision {
        self.tuned_from = self.calls - 1;
        self.epochs = self.epochs(rules);
        self.decide_in_cell(rules, call, details)
    }

    #[inline(always)]
    fn decide_in_cell(
        &mut self,
        rules: &Rules,
        call: SharedCall,
        details: &dyn Fn() -> SharedDetails,
    ) -> Decision {
        let Some(cells) = self.cells.of_mut(call.collective) else {
            return Decision::Prepare;
        };
        let is_sized = !call.collective.agrees_on_size() || call.bytes > 0;
        let place = cells.by_size.position(call.bytes).filter(|_| is_sized);
        let at = match place {
            // A model may leave sizes out; of nothing, and before a size is agreed on, `default` runs.
            None => None,
            Some(place) => {
                let Some(cell) = cells.state_mut(place) else {
                    return Decision::Prepare;
                };
                let index = cell.calls;
                cell.calls = index + 1;
                Some((place, index))
            }
        };
        if call.collective.agrees_on_size() && cells.sizes.count(self.calls) {
            return Decision::Measure(Measured {
                collective: call.collective,
                at,
            });
        }
        match at {
            Some(at) => self.decide_at(rules, call, details, at),
            None => Decision::Default,
        }
    }

    /// Decides on a call that its cell has counted as number `index`.
    #[inline(always)]
    fn decide_at(
        &mut self,
        rules: &Rules,
        call: SharedCall,
        details: &dyn Fn() -> SharedDetails,
        (place, index): (usize, u64),
    ) -> Decision {
        let cell = self.cells.cell(call.collective, place);
        if index < cell.quiet_until && cell.best == DEFAULT && rules.telling == Telling::Needed {
            return Decision::Default;
        }
        self.choose(rules, call, details, (place, index))
    }

    /// Makes a call's cell, and decides.
    #[cold]
    pub fn prepare(
        &mut self,
        rules: &Rules,
        call: SharedCall,
        details: &dyn Fn() -> SharedDetails,
    ) -> Decision {
        if self.make_cell(rules, call).is_err() {
            return Decision::NoMemory;
        }
        self.decide_in_cell(rules, call, details)
    }

    fn make_cell(&mut self, rules: &Rules, call: SharedCall) -> Result<(), TryReserveError> {
        let Some(membership) = self.membership else {
            unreachable!("calls fall into cells only behind the set-up");
        };
        self.words.reserve()?;
        self.window.clear();
        self.window.try_reserve(FRESH_MAX)?;
        let cells = self.cells.make(rules, call.collective, membership)?;
        let (agreed, hopeless) = (self.set_up_with, &self.hopeless);
        match cells.by_size.position(call.bytes) {
            Some(place) => cells.make(place, |cell| {
                CellState::new(rules, cell, membership, (agreed, hopeless))
            }),
            None => Ok(()),
        }
    }

    /// What a call that is more than `default` runs. All collectives share it.
    fn choose(
        &mut self,
        rules: &Rules,
        call: SharedCall,
        details: &dyn Fn() -> SharedDetails,
        (place, index): (usize, u64),
    ) -> Decision {
        let cell = self.cells.cell(call.collective, place);
        let mut wish = cell.wish(index);
        let default_arm = cell.default_arm();
        let is_plain = wish.arm.is_none() && !wish.sampled;
        if self.epochs.runs_default && is_plain && !rules.is_forced(call.collective) {
            self.epochs.has_replaced |= wish.variant != DEFAULT;
            if rules.telling == Telling::Needed {
                return Decision::Default;
            }
            wish.variant = DEFAULT;
        }
        let mut chosen = Chosen {
            place,
            index,
            wish: wish.variant,
            variant: wish.variant,
            refused: None,
            sampled: wish.sampled,
            probability: None,
            class: 0,
            arm: wish.arm,
        };
        if !wish.sampled && wish.variant == DEFAULT {
            return Decision::Chosen(chosen);
        }
        let details = details();
        if wish.sampled {
            chosen.class = CallClass::of(call, &details).flags();
            chosen.probability = rules.known_here(cell.probability(wish.arm));
        }
        if wish.variant != DEFAULT {
            let facts = self.facts(rules, call, &details);
            let variant = rules.variant(call.collective, wish.variant);
            if let Some(cause) = rules.refusal(variant, &details, &facts, self.agreed) {
                chosen.refused = Some(cause).filter(|cause| !cell.left_out.has(*cause));
                chosen.variant = DEFAULT;
                chosen.probability = None;
                chosen.arm = default_arm;
            }
        }
        Decision::Chosen(chosen)
    }

    /// The call runs `default` after all, on all ranks: they have agreed that one of them lacks what its variant
    /// needs.
    pub fn fall_back(&self, collective: Collective, chosen: Chosen) -> Chosen {
        Chosen {
            variant: DEFAULT,
            probability: None,
            arm: self.cells.cell(collective, chosen.place).default_arm(),
            ..chosen
        }
    }

    /// The sentence that ends the job where this rank cannot go on with the others.
    #[cold]
    pub fn impasse(&self, collective: Collective, reason: Reason) -> Impasse {
        Impasse {
            collective,
            call: self.calls,
            comm: self.agreed.id,
            reason,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_renewed_decider_is_like_a_new_one_whatever_became_of_the_last_communicator() {
        let new = format!("{:?}", Decider::new(Origin::World));
        let mut young = Decider::new(Origin::Program);
        (young.calls, young.young_bytes) = (7, 4096);
        let mut aside = young.clone();
        aside.stand_aside(Cause::Switch);
        let mut ready = young.clone();
        (ready.standing, ready.tuned_from) = (Standing::Ready, 3);
        ready.membership = Some(Membership::of([0, 0].into_iter()));
        ready.agreed.id = 5;
        for mut decider in [young, aside, ready] {
            decider.renew(Origin::World);
            assert_eq!(format!("{decider:?}"), new);
        }
    }
}
