//! Calls that pass through: nonblocking, persistent and neighbourhood collectives. They run what the
//! library would run; which of them are recorded is decided as for tuned calls, beside those.
//!
//! Nothing is agreed for them: a nonblocking call may not wait for other ranks. A communicator that
//! has an agreed number lends it to them, the others count as number 0.

use colltune_core::classify::Layout;
use colltune_core::collective::Collective;
use colltune_core::decide::DEFAULT;
use colltune_core::decide::call::SharedCall;
use colltune_core::record::{CallClass, Manner, Record};
use colltune_core::select::key;

use super::Tuner;
use crate::abi::Comm;
use crate::arguments::Arguments;
use crate::communicator::State;
use crate::fixed_order::{self, Unheld};

/// A call that passes through, with the arguments by which it is known.
pub struct WatchedCall {
    pub manner: Manner,
    pub collective: Collective,
    pub arguments: Arguments,
}

/// A call that is recorded when it is complete.
#[derive(Clone, Copy)]
pub struct PassingCall {
    comm: u64,
    call: u64,
    bytes: u64,
    layout: Layout,
    collective: Collective,
    manner: Manner,
    /// Of the random numbers that choose what is sampled; the same on all ranks.
    pub key: u64,
}

impl Tuner {
    /// Whether this rank records calls that pass through.
    #[inline(always)]
    pub fn records_passing(&self) -> bool {
        self.recorder.is_some() && self.rules.terms.mode.records()
    }

    /// Counts a call, on every rank; what to record of it if it is sampled. Every start of a persistent request is
    /// counted by itself, see `pending`.
    ///
    /// # Safety
    /// A call with these arguments has just succeeded on `comm`.
    #[inline]
    pub unsafe fn passing(
        &self,
        comm: Comm,
        called: impl Fn() -> WatchedCall,
    ) -> Option<PassingCall> {
        if self.fixed_order
            && let Arguments::Reduction(of) = called().arguments
            && !of.is_exact(self)
        {
            fixed_order::does_not_hold(self, Unheld::Passing);
        }
        // SAFETY: the communicator is one, as the call succeeded; MPI allows no other collective call
        // on it at the same time.
        let mut found = unsafe { self.registry.find(comm) }?;
        let state = found.state();
        if state.decider.is_aside() {
            return None;
        }
        state.passing.calls += 1;
        // Short-lived communicators cost nothing more.
        if !self.records_passing()
            || state.passing.calls < u64::from(self.rules.terms.settings.setup_after)
        {
            return None;
        }
        let layout = self.layout_of_passing(state)?;
        let WatchedCall {
            manner,
            collective,
            arguments,
        } = called();
        // It is no intercommunicator, so there are as many counts as ranks.
        let SharedCall { bytes, .. } = arguments.shared(self, collective, state.n_ranks);
        if bytes == u64::MAX {
            // Of a type of unknown size.
            return None;
        }
        let class = u64::from(u64::BITS - bytes.leading_zeros());
        let code = 1 << 32 | (manner as u64) << 16 | (collective as u64) << 8 | class;
        let key = key(self.rules.terms.seed, state.decider.agreed().id, code);
        let call = if is_persistent(manner) {
            state.passing.requests += 1;
            state.passing.requests << 32
        } else if state
            .passing
            .is_sampled(code, key, self.rules.terms.settings.samples_per_cell)
        {
            state.passing.calls
        } else {
            return None;
        };
        Some(PassingCall {
            comm: state.decider.agreed().id,
            call,
            bytes,
            layout,
            collective,
            manner,
            key,
        })
    }

    fn layout_of_passing(&self, state: &mut State) -> Option<Layout> {
        if let Some(membership) = state.decider.membership() {
            return Some(membership.layout);
        }
        let comm = state.comm;
        *state
            .passing
            .layout
            .get_or_insert_with(|| self.layout_alone(comm))
    }

    /// Records a call, or the `start`-th start of a persistent request, between two ticks.
    pub fn record_passing(&self, passing: &PassingCall, start: u64, begun: u64, ended: u64) {
        let Some(recorder) = &self.recorder else {
            return;
        };
        recorder.write_aside(|| Record {
            comm: passing.comm,
            call: passing.call + start,
            message_bytes: passing.bytes,
            start_ns: self.clock.at_ns(begun),
            duration_ns: self.clock.span_ns(ended.wrapping_sub(begun)),
            shift_ns: None,
            after_ns: None,
            agreed: None,
            nodes: passing.layout.nodes,
            ppn: passing.layout.ppn,
            n_ranks: passing.layout.n_ranks,
            variant: self.listed(passing.collective, DEFAULT),
            collective: passing.collective,
            drawn: false,
            probability: None,
            manner: passing.manner,
            class: CallClass::default(),
        });
    }
}

impl PassingCall {
    pub fn is_persistent(&self) -> bool {
        is_persistent(self.manner)
    }
}

fn is_persistent(manner: Manner) -> bool {
    matches!(manner, Manner::Persistent | Manner::NeighborhoodPersistent)
}
