//! Calls that this rank cannot make as the others do: the library refuses them, or a variant cannot take them.

use std::ffi::c_int;
use std::time::Duration;

use colltune_core::decide::call::SharedCall;
use colltune_core::decide::impasse::{Impasse, Reason};
use colltune_core::decide::{DEFAULT, Decision, Timing};

use super::{Tuner, Ways};
use crate::abi::{self, Comm};
use crate::clock::{self, monotonic_ns};
use crate::communicator::{Found, State};

/// What a library says of arguments that it has looked at before anything was sent.
const REFUSALS: [isize; 7] = [
    abi::MPI_ERR_BUFFER,
    abi::MPI_ERR_COUNT,
    abi::MPI_ERR_TYPE,
    abi::MPI_ERR_COMM,
    abi::MPI_ERR_ROOT,
    abi::MPI_ERR_OP,
    abi::MPI_ERR_ARG,
];

impl Tuner {
    /// A call that the library refuses on this rank without the others, before anything is sent. Its error handler
    /// finds the state of before the call, since the handler may leave the call or make others.
    #[cold]
    pub(super) fn run_refused(
        &self,
        mut found: Found,
        call: SharedCall,
        decision: &Decision,
        ways: &Ways,
    ) -> c_int {
        let is_counted = !matches!(decision, Decision::Unobserved(_));
        let state = found.state();
        let (known, comm) = (state.known(), state.comm);
        if is_counted {
            state.decider.take_back(call);
        }
        // Whatever it turns out to be, the others may wait elsewhere than this rank.
        self.gap.forget();
        self.leave();
        let start_ns = self.clock.at_ns(clock::ticks());
        let code = (ways.default)();
        if !is_counted || self.is_refusal(code) {
            return code;
        }
        // It has not refused it, so the call has taken place; the others may be elsewhere.
        // SAFETY: the call on this communicator, which has been found, is still the only one.
        let Some(mut found) = (unsafe { self.registry.find_still(known) }) else {
            return code;
        };
        let state = found.state();
        let details = ways.details(self, call.collective, state.n_ranks);
        let decision = match state.decider.decide(&self.rules, call, &details) {
            Decision::Prepare => self.prepare(state, call, &details),
            Decision::NextEpoch => self.next_epoch(state, call, &details),
            decision => decision,
        };
        let chosen = match decision {
            Decision::Default => return code,
            Decision::Chosen(chosen) if chosen.variant == DEFAULT => chosen,
            // All ranks alike, or this one alone.
            decision if self.all_come(comm) => match decision {
                Decision::Chosen(chosen) => state.decider.fall_back(call.collective, chosen),
                _ => return code,
            },
            _ => {
                let variant = "something else".to_owned();
                let reason = Reason::Arguments { variant };
                self.end(&state.decider.impasse(call.collective, reason))
            }
        };
        if chosen.sampled {
            let timing = Timing {
                start_ns,
                end_ns: self.clock.at_ns(clock::ticks()),
                record: None,
            };
            let _ = self.take(state, call.collective, &chosen, timing);
        }
        code
    }

    /// Takes back the counting of a call that the library refused on this rank: it has not taken place, and the
    /// right one is still to come, which the other ranks may have made already. Says whether that was so.
    #[cold]
    pub fn take_back_if_refused(&self, state: &mut State, call: SharedCall, code: c_int) -> bool {
        let is_refused = self.is_refusal(code);
        if is_refused {
            state.decider.take_back(call);
        }
        is_refused
    }

    /// Whether a library says by a code that it has refused a call.
    #[cold]
    pub(super) fn is_refusal(&self, code: c_int) -> bool {
        let mut class = 0;
        // SAFETY: the library gave the code; one number is written.
        unsafe { (self.pmpi.error_class)(code, &mut class) };
        REFUSALS.contains(&(class as isize))
    }

    /// Runs `default` where a variant cannot take this rank's arguments, if it is so on all ranks. They find out
    /// together; a rank alone ends the job, because the others wait for it in the variant.
    #[cold]
    pub(super) fn run_together(
        &self,
        comm: Comm,
        default: impl Fn() -> c_int,
        impasse: impl FnOnce() -> Impasse,
    ) -> c_int {
        if self.all_come(comm) {
            default()
        } else {
            self.end(&impasse())
        }
    }

    /// Whether all members of a communicator come here before long.
    pub(super) fn all_come(&self, comm: Comm) -> bool {
        let _agreement = self.spending.agreement();
        let mut request = self.handles.request_null;
        let status = abi::MPI_STATUS_IGNORE as *mut std::ffi::c_void;
        // SAFETY: the communicator is valid, and nothing else is under way on it.
        if unsafe { (self.pmpi.ibarrier)(comm, &mut request) } != abi::SUCCESS {
            return false;
        }
        let begun = monotonic_ns();
        let longest = self.rules.terms.settings.mismatch_timeout;
        loop {
            let mut done = 0;
            // SAFETY: the request is ours; one number is written.
            let code = unsafe { (self.pmpi.test)(&mut request, &mut done, status) };
            if code != abi::SUCCESS {
                return false;
            }
            if done != 0 {
                return true;
            }
            if Duration::from_nanos(monotonic_ns() - begun) > longest {
                return false;
            }
        }
    }
}
