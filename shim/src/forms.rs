//! A tuned call of whatever language and width of counts: decided, and carried out or left to the library.
//!
//! The C function, its large-count form and Fortran's entry point of a collective make the same
//! [`Arguments`] of theirs, so that they share one path.

mod message;
mod native;

use std::ffi::c_int;

use colltune_core::collective::Collective;
use colltune_core::decide::Decision;
use colltune_core::decide::rules::Telling;

pub use message::MessageArguments;

use crate::abi::Comm;
use crate::arguments::{Arguments, Counted};
use crate::library::collectives::Number;
use crate::node::AllreduceArguments;
use crate::tune::{Tuner, Ways};

/// Tunes a call whose counts have the width of `N`; `None` when it simply runs `default`, and then [`failed`] follows
/// if it fails.
#[inline(always)]
pub fn run<N: Number>(
    tuner: &'static Tuner,
    (collective, arguments): (Collective, Arguments),
    comm: Comm,
    default: impl Fn() -> c_int,
) -> Option<c_int> {
    if let Some(code) = repeat(tuner, collective, &arguments, comm) {
        return Some(code);
    }
    let library = N::library(tuner.pmpi)?;
    // SAFETY: the application passed a communicator that it may use for this collective now.
    let state = unsafe { tuner.registry.find(comm) }?;
    let n_ranks = state.n_ranks;
    let call = arguments.shared(tuner, collective, n_ranks);
    let details = move || arguments.details(tuner, collective, n_ranks);
    let decision = state.decider.decide(&tuner.rules, call, &details);
    let is_default = matches!(decision, Decision::Default);
    if is_default && tuner.is_plain {
        return None;
    }
    let span = tuner
        .account
        .as_ref()
        .and_then(|account| account.count(call));
    if is_default && span.is_none() && tuner.rules.telling == Telling::Needed {
        return None;
    }
    // Arguments go along by value, so that they need not lie in memory before.
    let native = move |comm| {
        // SAFETY: only the communicator differs from what the caller promised to be valid, and it has
        // the same members in the same order.
        unsafe { native::run(tuner, library, (collective, &arguments), comm) }
    };
    let ways = Ways {
        arguments,
        default: &default,
        native: &native,
        span,
    };
    Some(tuner.carry_out(state, call, &decision, &ways))
}

/// Runs an allreduce that is like the communicator's last one, where that has a short way; `None` where it is not.
#[inline(always)]
fn repeat(
    tuner: &Tuner,
    collective: Collective,
    arguments: &Arguments,
    comm: Comm,
) -> Option<c_int> {
    let (Collective::Allreduce, Arguments::Reduction(reduction)) = (collective, arguments) else {
        return None;
    };
    let Counted::All(count) = reduction.count else {
        return None;
    };
    let arguments = AllreduceArguments {
        send: reduction.send,
        recv: reduction.recv,
        count,
        datatype: reduction.datatype,
        op: reduction.op,
    };
    // SAFETY: the application passed these arguments to a collective on this communicator.
    unsafe { tuner.repeat_allreduce(arguments, comm) }
}

/// The library's own choice, as which [`run`] left a call, returned an error on this rank; or an exception has left it.
#[cold]
pub fn failed(
    tuner: &'static Tuner,
    (collective, arguments): (Collective, Arguments),
    comm: Comm,
    code: Option<c_int>,
) {
    // SAFETY: `run` has just found this communicator's state, and the call on it is still the only one.
    let Some(state) = (unsafe { tuner.registry.find_again(comm) }) else {
        return;
    };
    let call = arguments.shared(tuner, collective, state.n_ranks);
    match code {
        Some(code) => _ = tuner.take_back_if_refused(state, call, code),
        None if arguments.is_refused(tuner, collective, comm, state.n_ranks) => {
            state.decider.take_back(call);
        }
        None => {}
    }
}
