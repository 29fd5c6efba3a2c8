//! The border between the application and the tuner.
//!
//! It alone knows whether the tuner is armed, and stops re-entry: a tool behind us that calls a
//! collective inside its own wrapper must not be tuned inside a tuned call.
//!
//! **Unwinding.** An error handler or an operation of the program's may leave a call of ours by an exception or by
//! longjmp. All functions between the program and the library are `"C-unwind"`, so that exceptions pass. Nothing of
//! ours catches them: Rust ends the process where `catch_unwind` meets another language's exception ("Rust cannot
//! catch foreign exceptions", 1.95). A longjmp drops nothing. So what a call leaves noted while it runs is either
//! found to be stale by the next one ([`Tuner::enter`]) or counted before anything of the program's can run.
//!
//! **Panics** are bugs that one rank cannot survive alone. They end the job where they begin, in the hook and
//! not by unwinding, wherever that is: in a collective, in MPI_Init, in an attribute's callback. Nothing is paid for
//! it before: which function the program called is read off the stack.

use std::ffi::c_int;
use std::panic::PanicHookInfo;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

use crate::abi::{self, Comm};
use crate::frames;
use crate::tune::Tuner;
use crate::world::rank_in_environment;

static ARMED: AtomicPtr<Tuner> = AtomicPtr::new(null_mut());
/// Where checkers for leaks find the tuner when it is disarmed: it stays, on purpose.
#[used]
static KEPT: AtomicPtr<Tuner> = AtomicPtr::new(null_mut());

/// Runs `tuned` when the tuner is armed and takes the call; otherwise `default`, of whose error `failed` hears where
/// the tuner was asked.
#[inline(always)]
pub fn fence(
    default: impl Fn() -> c_int,
    tuned: impl FnOnce(&'static Tuner) -> Option<c_int>,
    failed: impl FnOnce(&'static Tuner, c_int),
) -> c_int {
    let Some(tuner) = tuner() else {
        return default();
    };
    let here = 0u8;
    if !tuner.enter((&raw const here).addr()) {
        return default();
    }
    let entered = Entered(tuner);
    let result = tuned(tuner);
    drop(entered);
    let code = result.unwrap_or_else(|| {
        let code = default();
        if code != abi::SUCCESS {
            failed(tuner, code);
        }
        code
    });
    tuner.ends();
    code
}

/// A tuned call that is under way. An exception that passes through ends it, too.
struct Entered(&'static Tuner);

impl Drop for Entered {
    #[inline(always)]
    fn drop(&mut self) {
        self.0.leave();
    }
}

/// The tuner, if it is armed and no call of its own is under way on this thread.
#[inline(always)]
pub fn armed() -> Option<&'static Tuner> {
    let here = 0u8;
    tuner().filter(|tuner| !tuner.is_entered((&raw const here).addr()))
}

/// Runs what frees a communicator; one that is none of the program's own the library refuses to free.
pub fn freed(comm: Option<Comm>, free: impl Fn() -> c_int) -> c_int {
    let found = tuner().zip(comm).filter(|(tuner, comm)| {
        let handles = &tuner.handles;
        let kept = [handles.comm_world, handles.comm_self, handles.comm_null];
        !kept.map(abi::bits).contains(&abi::bits(*comm))
    });
    match found {
        Some((tuner, comm)) => tuner.registry.while_freed(comm, &free),
        None => free(),
    }
}

/// Notes that a nonblocking collective begins that is recorded nowhere, before one of our communicators is made.
#[cfg(mpi = "openmpi")]
pub fn begun(comm: Comm) {
    // SAFETY: the application passed a communicator for a collective, so no other is under way on it.
    let found = armed().and_then(|tuner| unsafe { tuner.registry.find(comm) });
    if let Some(mut found) = found {
        found.state().passing.calls += 1;
    }
}

/// The tuner between MPI_Init and MPI_Finalize.
#[inline(always)]
pub fn tuner() -> Option<&'static Tuner> {
    // SAFETY: a tuner is leaked when it is armed and never freed, so the reference stays valid.
    unsafe { ARMED.load(Ordering::Acquire).as_ref() }
}

/// Panics of ours end the job from here on. The program's own are another copy of the standard library's.
pub fn end_the_job_in_a_panic() {
    std::panic::set_hook(Box::new(give_up));
}

/// Ends the job: other ranks may have sent messages that this one will never answer.
#[cold]
fn give_up(panic: &PanicHookInfo) {
    let text = panic.payload();
    let literal = text.downcast_ref::<&str>().copied();
    let text = literal.or_else(|| text.downcast_ref::<String>().map(String::as_str));
    let at = panic.location().map(ToString::to_string);
    let call = frames::name_of_call();
    crate::warn::say(&format!(
        "rank {} panicked in {}: {} ({}); this is a bug, and the job cannot go on",
        tuner().map_or_else(rank_in_environment, Tuner::rank),
        call.as_deref().unwrap_or("a callback of the library's"),
        text.unwrap_or("no message"),
        at.as_deref().unwrap_or("nobody knows where"),
    ));
    match tuner() {
        Some(tuner) => tuner.abort(),
        None => std::process::abort(),
    }
}

/// Lets calls through to the tuner from here on.
pub fn arm(tuner: Tuner) {
    let tuner = Box::into_raw(Box::new(tuner));
    KEPT.store(tuner, Ordering::Relaxed);
    ARMED.store(tuner, Ordering::Release);
}

/// Ends tuning; returns the tuner once.
pub fn disarm() -> Option<&'static Tuner> {
    let tuner = ARMED.swap(null_mut(), Ordering::AcqRel);
    // SAFETY: a tuner is leaked when it is armed and never freed, so the reference stays valid.
    unsafe { tuner.as_ref() }
}
