//! Calls that this rank cannot make as the others do: the library refuses them, or a variant cannot take them.

use std::ffi::c_int;
use std::time::Duration;

use colltune_core::decide::call::SharedCall;
use colltune_core::decide::impasse::Impasse;

use super::Tuner;
use crate::abi::{self, Comm};
use crate::clock::monotonic_ns;
use crate::communicator::State;

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
        let mut request = self.handles.request_null;
        let status = abi::MPI_STATUS_IGNORE as *mut std::ffi::c_void;
        // SAFETY: the communicator is valid, and nothing else is under way on it.
        if unsafe { (self.pmpi.ibarrier)(comm, &mut request) } != abi::SUCCESS {
            return false;
        }
        let begun = monotonic_ns();
        let longest = self.rules.terms.settings.alone_after;
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
