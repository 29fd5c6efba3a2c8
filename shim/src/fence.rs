//! The border between the application and the tuner.
//!
//! It alone knows whether the tuner is armed, catches panics, and stops re-entry: a tool behind us
//! that calls a collective inside its own wrapper must not be tuned inside a tuned call.

use std::ffi::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

use crate::tune::Tuner;

static ARMED: AtomicPtr<Tuner> = AtomicPtr::new(null_mut());

/// Runs `tuned` when the tuner is armed and takes the call; otherwise `default`.
#[inline(always)]
pub fn fence(
    name: &'static str,
    default: impl Fn() -> c_int,
    tuned: impl FnOnce(&'static Tuner) -> Option<c_int>,
) -> c_int {
    let tuner = ARMED.load(Ordering::Acquire);
    if tuner.is_null() {
        return default();
    }
    // SAFETY: a tuner is leaked when it is armed and never freed, so the reference stays valid.
    let tuner = unsafe { &*tuner };
    if !tuner.enter() {
        return default();
    }
    let result = catch_unwind(AssertUnwindSafe(|| tuned(tuner)));
    tuner.leave();
    match result {
        Ok(Some(code)) => code,
        Ok(None) => default(),
        Err(_) => give_up(tuner, name),
    }
}

/// The tuner, if it is armed and no call of its own is under way on this thread.
#[inline(always)]
pub fn armed() -> Option<&'static Tuner> {
    tuner().filter(|tuner| !tuner.is_entered())
}

/// The tuner between MPI_Init and MPI_Finalize.
#[inline(always)]
pub fn tuner() -> Option<&'static Tuner> {
    // SAFETY: as in `fence`: the tuner is leaked.
    unsafe { ARMED.load(Ordering::Acquire).as_ref() }
}

/// Ends the job after a panic: other ranks may have sent messages that this one will never answer.
#[cold]
fn give_up(tuner: &Tuner, name: &str) -> ! {
    crate::warn::say(&format!(
        "rank {} panicked in {name}; this is a bug, and the job cannot go on",
        tuner.rank()
    ));
    tuner.abort()
}

/// Lets calls through to the tuner from here on.
pub fn arm(tuner: Tuner) {
    ARMED.store(Box::into_raw(Box::new(tuner)), Ordering::Release);
}

/// Ends tuning; returns the tuner once.
pub fn disarm() -> Option<&'static Tuner> {
    let tuner = ARMED.swap(null_mut(), Ordering::AcqRel);
    // SAFETY: as in `fence`: the tuner is leaked.
    (!tuner.is_null()).then(|| unsafe { &*tuner })
}
