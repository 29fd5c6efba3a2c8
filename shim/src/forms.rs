//! A tuned call of whatever language and width of counts: decided, and carried out or left to the library.
//!
//! The C function, its large-count form and Fortran's entry point of a collective make the same
//! [`Arguments`] of theirs, so that they share one path.

mod native;

use std::ffi::c_int;

use colltune_core::collective::Collective;
use colltune_core::decide::Decision;
use colltune_core::decide::rules::Telling;

use crate::abi::Comm;
use crate::arguments::Arguments;
use crate::fixed_order;
use crate::library::collectives::{Collectives, Number};
use crate::tune::{Tuner, Ways};

/// The call that has no arguments.
pub const BARRIER: (Collective, Arguments) = (Collective::Barrier, Arguments::Nothing);

/// Tunes a barrier, as [`run`] any other call.
#[inline(always)]
pub fn run_barrier(
    tuner: &'static Tuner,
    comm: Comm,
    default: impl Fn() -> c_int + Copy,
) -> Option<c_int> {
    // SAFETY: the communicator has the members of the one that the program passed, in the same order.
    let native = move |_: &Collectives<c_int>, comm| unsafe { (tuner.pmpi.barrier)(comm) };
    run(tuner, BARRIER, comm, default, native)
}

/// Tunes a call whose counts have the width of `N`; `None` when it simply runs `default`, and then [`failed`] follows
/// if it fails. `native` runs the library's own function on a communicator, with the program's arguments.
#[inline(always)]
pub fn run<N: Number>(
    tuner: &'static Tuner,
    (collective, arguments): (Collective, Arguments),
    comm: Comm,
    default: impl Fn() -> c_int + Copy,
    native: impl Fn(&Collectives<N>, Comm) -> c_int,
) -> Option<c_int> {
    let has_fixed_order = tuner.fixed_order && collective.is_reduction();
    let default = move || match has_fixed_order {
        // SAFETY: the application passed these arguments to a collective on this communicator.
        true => unsafe { fixed_order::run(tuner, (collective, &arguments), comm, &default) },
        false => default(),
    };
    // SAFETY: the application passed a communicator that it may use for this collective now.
    let Some(mut found) = (unsafe { tuner.registry.find(comm) }) else {
        return has_fixed_order.then(default);
    };
    let state = found.state();
    if let (Collective::Allreduce, Arguments::Reduction(reduction)) = (collective, &arguments) {
        // SAFETY: the application passed these arguments to a collective on this communicator.
        let code = unsafe { tuner.repeat_allreduce(state, reduction) };
        if code.is_some() {
            return code;
        }
    }
    let Some(library) = N::library(tuner.pmpi) else {
        return has_fixed_order.then(default);
    };
    let n_ranks = state.n_ranks;
    let call = state
        .decider
        .sized(arguments.shared(tuner, collective, n_ranks));
    let decision = if state.decider.waits(call) {
        Decision::Default
    } else {
        let details = move || arguments.details(tuner, collective, n_ranks);
        match state.decider.decide(&tuner.rules, call, &details) {
            Decision::NextEpoch => tuner.next_epoch(state, call, &details),
            decision => decision,
        }
    };
    // What is going to be refused is taken back before it runs: the program's error handler may leave it, or call other
    // collectives here.
    let is_default = matches!(decision, Decision::Default)
        && (state.decider.is_aside() || !arguments.is_refused(tuner, collective, comm, n_ranks));
    if is_default && tuner.is_plain && !has_fixed_order {
        tuner.see_blocks(state, collective, &arguments);
        return None;
    }
    let span = tuner
        .account
        .as_ref()
        .and_then(|account| account.count(call));
    let is_told = has_fixed_order || tuner.rules.telling == Telling::All;
    if is_default && span.is_none() && !is_told {
        tuner.see_blocks(state, collective, &arguments);
        return None;
    }
    // All go along by value, so that they need not lie in memory before.
    let default = move || default();
    let native = move |comm| {
        let as_it_came = || native(library, comm);
        // SAFETY: only the communicator differs from what the caller promised to be valid, and it has
        // the same members in the same order.
        unsafe { native::run(tuner, library, (collective, &arguments), comm, as_it_came) }
    };
    let ways = Ways {
        arguments,
        default: &default,
        native: &native,
        span,
    };
    Some(tuner.carry_out(found, call, &decision, &ways))
}

/// The library's own choice, as which [`run`] left a call, returned an error on this rank.
#[cold]
pub fn failed(
    tuner: &'static Tuner,
    (collective, arguments): (Collective, Arguments),
    comm: Comm,
    code: c_int,
) {
    // SAFETY: `run` has just found this communicator's state, and the call on it is still the only one.
    let Some(mut found) = (unsafe { tuner.registry.find_again(comm) }) else {
        return;
    };
    let state = found.state();
    let call = arguments.shared(tuner, collective, state.n_ranks);
    tuner.take_back_if_refused(state, call, code);
}
