//! Collectives that pass through, as the application sees them: nonblocking, persistent and on the
//! neighbours of a topology. Three moves each, no logic.

use std::ffi::{c_int, c_void};

use colltune_core::collective::Collective;
use colltune_core::record::Manner;

use super::{ABSENT, In, Out, Root, Types, next_function};
#[cfg(not(mpi = "openmpi"))]
use crate::abi::Count;
use crate::abi::{Comm, Datatype as Type, Info, Op as Operation, Request, request_bits};
use crate::forms::MessageArguments;
use crate::passing_names::{passing_barrier, passing_with_buffers};
use crate::watch::{self, Called};

/// Where blocks begin, in numbers of the width of the counts or in bytes.
type Places = *const c_void;

/// Defines the functions of one collective. `Elements` stands for the type of counts.
macro_rules! passes {
    ($collective:ident { $($manner:ident: $($name:ident)+, $plain:ident $f08:ident;)* } $arguments:tt
     $message:ident $of:tt) => {
        $(passes!(@widths $manner [$($name)+] $collective, $arguments $message $of);)*
    };
    (@widths $manner:ident [$name:ident $($large:ident)?] $collective:ident, $arguments:tt $message:ident $of:tt) => {
        const _: () = {
            #[allow(dead_code, reason = "a barrier has no counts, a library not all manners")]
            type Elements = c_int;
            #[allow(dead_code, reason = "few functions have several counts")]
            type Counts = *const Elements;
            passes!(@$manner $name, $collective, $arguments $message $of);
        };
        $(
            #[cfg(not(mpi = "openmpi"))]
            const _: () = {
                type Elements = Count;
                #[allow(dead_code, reason = "few functions have several counts")]
                type Counts = *const Elements;
                passes!(@$manner $large, $collective, $arguments $message $of);
            };
        )?
    };
    (@nonblocking $($rest:tt)*) => {
        passes!(@defined Nonblocking, requesting [request: *mut Request] [request] $($rest)*);
    };
    (@neighborhood $($rest:tt)*) => {
        passes!(@defined Neighborhood, blocking [] [] $($rest)*);
    };
    (@neighborhood_nonblocking $($rest:tt)*) => {
        passes!(@defined NeighborhoodNonblocking, requesting [request: *mut Request] [request] $($rest)*);
    };
    (@persistent $($rest:tt)*) => {
        #[cfg(persistent = "standard")]
        passes!(@prepared Persistent $($rest)*);
    };
    (@extension $($rest:tt)*) => {
        #[cfg(persistent = "extension")]
        passes!(@prepared Persistent $($rest)*);
    };
    (@neighborhood_persistent $($rest:tt)*) => {
        #[cfg(persistent = "standard")]
        passes!(@prepared NeighborhoodPersistent $($rest)*);
    };
    (@neighborhood_extension $($rest:tt)*) => {
        #[cfg(persistent = "extension")]
        passes!(@prepared NeighborhoodPersistent $($rest)*);
    };
    (@prepared $manner:ident $($rest:tt)*) => {
        passes!(@defined $manner, requesting [info: Info, request: *mut Request] [request] $($rest)*);
    };
    (@defined $manner:ident, $way:ident [$($more:ident: $more_kind:ty),*] [$($request:ident)?] $name:ident,
     $collective:ident, ($($argument:ident: $kind:ty),*) $message:ident $of:tt) => {
        #[doc = concat!("`", stringify!($name), "` as the application sees it.\n\n# Safety\n\
                         The caller keeps MPI's own contract for this function.")]
        #[unsafe(no_mangle)]
        #[allow(clippy::too_many_arguments, reason = "they are MPI's")]
        pub unsafe extern "C-unwind" fn $name(
            $($argument: $kind,)* comm: Comm $(, $more: $more_kind)*
        ) -> c_int {
            let Some(next) = next_function!($name($($kind,)* Comm $(, $more_kind)*)) else {
                return ABSENT;
            };
            let called = || Called {
                manner: Manner::$manner,
                collective: Collective::$collective,
                message: passes!(@message $message $of),
            };
            // SAFETY: the arguments are forwarded unchanged, so they are exactly as valid as the
            // caller promised.
            let call = move || unsafe { next($($argument,)* comm $(, $more)*) };
            // SAFETY: what is watched is this call; where it succeeds, it has written the request.
            unsafe { watch::$way(called, || Some(comm), call $(, || request_bits(*$request))?) }
        }
    };
    (@message sizeless ()) => { MessageArguments::<Elements>::Sizeless };
    (@message elements $of:tt) => { MessageArguments::<Elements>::Elements $of };
    (@message each_rank $of:tt) => { MessageArguments::<Elements>::EachRank $of };
    (@message sum $of:tt) => { MessageArguments::<Elements>::Sum $of };
    (@message mean $of:tt) => { MessageArguments::<Elements>::Mean $of };
    (@message of_sides $of:tt) => { MessageArguments::<Elements>::of_sides $of };
}

passing_barrier!(passes);
passing_with_buffers!(passes);
