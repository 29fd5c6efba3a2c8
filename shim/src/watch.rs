//! Watching calls that pass through: the library runs them, all are counted, and sampled ones recorded.

use std::ffi::c_int;

use crate::abi::{self, Comm};
use crate::clock;
use crate::fence;
use crate::pending;
use crate::tune::{PassingCall, Tuner, WatchedCall};

/// Runs a call that returns when it is complete.
///
/// # Safety
/// The communicator and the arguments are those of `call`.
#[inline(always)]
pub unsafe fn blocking(
    called: impl Fn() -> WatchedCall,
    comm: impl FnOnce() -> Option<Comm>,
    call: impl FnOnce() -> c_int,
) -> c_int {
    let keep = |tuner: &Tuner, passing: PassingCall, begun, ended| {
        tuner.record_passing(&passing, 0, begun, ended);
    };
    // SAFETY: the communicator and the arguments are those of `call`, as the caller promises.
    unsafe { watch(called, comm, call, keep) }
}

/// Runs a call that returns a request which `request` then gives: a started one, or one to be started.
///
/// # Safety
/// The communicator and the arguments are those of `call`, which writes the request that `request` gives.
#[inline(always)]
pub unsafe fn requesting(
    called: impl Fn() -> WatchedCall,
    comm: impl FnOnce() -> Option<Comm>,
    call: impl FnOnce() -> c_int,
    request: impl Fn() -> u64,
) -> c_int {
    let call = || {
        let code = call();
        if code == abi::SUCCESS {
            pending::renew(request());
        }
        code
    };
    let keep = |tuner: &Tuner, passing: PassingCall, begun, ended| {
        let handle = request();
        if passing.is_persistent() {
            pending::prepare(handle, passing);
        } else if tuner.handles.is_complete(handle) {
            tuner.record_passing(&passing, 0, begun, ended);
        } else {
            pending::begin(handle, passing, begun);
        }
    };
    // SAFETY: the communicator and the arguments are those of `call`, which writes the request, as the caller promises.
    unsafe { watch(called, comm, call, keep) }
}

/// # Safety
/// The communicator and the arguments are those of `call`.
#[inline(always)]
unsafe fn watch(
    called: impl Fn() -> WatchedCall,
    comm: impl FnOnce() -> Option<Comm>,
    call: impl FnOnce() -> c_int,
    keep: impl FnOnce(&Tuner, PassingCall, u64, u64),
) -> c_int {
    let Some(tuner) = fence::armed() else {
        return call();
    };
    if let Some(account) = &tuner.account {
        account.pass();
    }
    let records = tuner.records_passing();
    let now = || if records { clock::ticks() } else { 0 };
    let begun = now();
    let code = call();
    let ended = now();
    if code == abi::SUCCESS {
        let passing = comm().and_then(|comm| {
            // SAFETY: the call succeeded.
            unsafe { tuner.passing(comm, called) }
        });
        if let Some(passing) = passing {
            keep(tuner, passing, begun, ended);
        }
    }
    code
}
