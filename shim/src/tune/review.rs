//! Review: now and then the ranks compare what they saw of a cell, and conclude alike.

use std::sync::atomic::Ordering;

use colltune_core::account::Cause;
use colltune_core::collective::Collective;
use colltune_core::decide::agreed::Possible;
use colltune_core::decide::call::{SharedCall, SharedDetails};
use colltune_core::decide::{
    AfterSample, Choice, Chosen, Decision, Measured, OwnState, Timing, UnderWay,
};
use colltune_core::record::CallTimes;

use super::Tuner;
use crate::clock;
use crate::communicator::State;
use crate::floating;
use crate::switch;

impl Tuner {
    /// Takes the time of a sampled call, and reviews its cell where that is due. Says whether that, or a write of
    /// records, delays what this rank does next.
    #[inline]
    pub(super) fn take(
        &self,
        state: &mut State,
        collective: Collective,
        chosen: &Chosen,
        timing: Timing,
    ) -> bool {
        if let Some(account) = &self.account {
            account.sample();
        }
        let after = state
            .decider
            .observe(&self.rules, collective, chosen, timing);
        let is_reviewed = after == AfterSample::Review;
        if is_reviewed {
            self.review(state, collective, chosen);
        }
        let recorder = self.recorder.as_ref();
        let recorder = recorder.filter(|recorder| is_reviewed || recorder.is_due(timing.end_ns));
        if let Some(recorder) = recorder {
            let _agreement = self.spending.agreement();
            recorder.keep(|| self.clock.at_ns(clock::ticks()));
        }
        is_reviewed || recorder.is_some()
    }

    /// The same of one that did not return to us: an exception or a longjmp left it.
    #[cold]
    pub(super) fn take_left(&self, state: &mut State, left: UnderWay) {
        let timing = Timing {
            start_ns: left.start_ns,
            end_ns: self.clock.at_ns(clock::ticks()),
            record: None,
        };
        let _ = self.take(state, left.collective, &left.chosen, timing);
    }

    /// Combines what the ranks saw of a cell; all conclude the same. A collective of the library on the program's own
    /// communicator, at a call of all its ranks. While they wait for each other the library may combine numbers of the
    /// program's nonblocking calls, so that is under the program's own floating-point environment.
    #[cold]
    fn review(&self, state: &mut State, collective: Collective, chosen: &Chosen) {
        let _agreement = self.spending.agreement();
        // A runtime for devices may have been loaded since.
        let own_families = self.own_families();
        let decider = &mut state.decider;
        let tell = || {
            let own = OwnState {
                now_ns: self.clock.at_ns(clock::ticks()),
                spent_ppm: self.spending.share_ppm(&self.clock),
                own_families,
                switch: switch::switch(),
            };
            decider.review(collective, chosen, own, &self.hopeless)
        };
        let mut words = floating::by_default(tell);
        let (known, comm) = (state.known(), state.comm);
        if !self.largest(comm, &mut words.largest) || !self.sum(comm, &mut words.sums) {
            // SAFETY: the call on this communicator, which has been found, is still the only one.
            if let Some(mut found) = unsafe { self.registry.find_still(known) } {
                found.state().decider.stand_aside(Cause::Agreement);
            }
            return;
        }
        let correct = |record, times: CallTimes| {
            let recorder = self.recorder.as_ref();
            let bytes = recorder.map(|recorder| recorder.agree(record, times));
            // Where ranks share processors, much of the work is done before the last one arrives.
            let bytes = bytes.filter(|_| !self.shares_processors);
            if let Some((account, bytes)) = self.account.as_ref().zip(bytes) {
                account.compared(collective, bytes, times.time_ns, times.work_ns);
            }
        };
        let (rules, decider) = (&self.rules, &mut state.decider);
        let hopeless = &self.hopeless;
        let conclude = || decider.conclude(rules, collective, chosen, words, hopeless, correct);
        let choice = floating::by_default(conclude);
        match choice {
            Choice::Stays => {}
            Choice::Demoted => {
                self.demoted.fetch_add(1, Ordering::Relaxed);
            }
            Choice::SwitchedOff => {
                // Other communicators hear it from this rank.
                switch::hear();
                state.repeat = None;
            }
        }
        if state.decider.agreed().own_families != Possible::Yes {
            state.repeat = None;
        }
    }

    /// The members tell each other how long the blocks of the calls before were, of which each knows its own.
    #[cold]
    pub(super) fn measure(
        &self,
        state: &mut State,
        measured: Measured,
        of_call: (SharedCall, &dyn Fn() -> SharedDetails),
    ) -> Decision {
        let _agreement = self.spending.agreement();
        let mut words = state.decider.block_words(measured);
        if !self.largest(state.comm, &mut words) {
            state.decider.stand_aside(Cause::Agreement);
            state.repeat = None;
            return Decision::Default;
        }
        state.decider.measure(&self.rules, measured, words, of_call)
    }
}
