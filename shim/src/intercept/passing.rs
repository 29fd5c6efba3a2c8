//! Collectives that pass through, as the application sees them: nonblocking, persistent and on the
//! neighbours of a topology. Three moves each, no logic.

use std::ffi::c_int;

use colltune_core::collective::Collective;
use colltune_core::record::Manner;

use super::{ABSENT, In, Out, Root, Types, next_function};
#[cfg(not(mpi = "openmpi"))]
use crate::abi::Count;
use crate::abi::{Comm, Datatype as Type, Info, Op as Operation, Request, request_bits};
use crate::arguments::lists::{List, Listed, typed};
use crate::arguments::{Arguments, Counted, Side};
use crate::arguments::{UnevenSide::Each, UnevenSide::One, blocks, reduction, uneven};
use crate::names::{in_manner, with_buffers, without_buffers};
use crate::tune::WatchedCall;
use crate::watch;

/// Defines the functions of one collective. `Elements` stands for the type of counts. Places are of the counts'
/// width, or distances in bytes, which are not read here.
macro_rules! passes {
    ($collective:ident { $($manner:ident $($field:ident)?: $($name:ident)+, $plain:ident $f08:ident;)* } $arguments:tt
     $of:expr) => {
        $(passes!(@widths $manner [$($name)+] $collective, $arguments $of);)*
    };
    (@widths $manner:ident [$name:ident $($large:ident)?] $collective:ident, $arguments:tt $of:expr) => {
        const _: () = {
            #[allow(dead_code, reason = "a barrier has no counts, a library not all manners")]
            type Elements = c_int;
            #[allow(dead_code, reason = "few functions have several counts")]
            type Counts = *const Elements;
            #[allow(dead_code, reason = "few functions have displacements")]
            type Places = *const Elements;
            in_manner!(passes $manner $name, $collective, $arguments $of);
        };
        $(
            #[cfg(not(mpi = "openmpi"))]
            const _: () = {
                #[allow(dead_code, reason = "a library has not all manners")]
                type Elements = Count;
                #[allow(dead_code, reason = "few functions have several counts")]
                type Counts = *const Elements;
                #[allow(dead_code, reason = "few functions have displacements")]
                type Places = *const Elements;
                in_manner!(passes $manner $large, $collective, $arguments $of);
            };
        )?
    };
    (@returning $manner:ident, $($rest:tt)*) => {
        passes!(@defined $manner, blocking [] [] $($rest)*);
    };
    (@requesting $manner:ident, $($rest:tt)*) => {
        passes!(@defined $manner, requesting [request: *mut Request] [request] $($rest)*);
    };
    (@prepared $manner:ident, $($rest:tt)*) => {
        passes!(@defined $manner, requesting [info: Info, request: *mut Request] [request] $($rest)*);
    };
    (@defined $manner:ident, $way:ident [$($more:ident: $more_kind:ty),*] [$($request:ident)?] $name:ident,
     $collective:ident, ($($argument:ident: $kind:ty),*) $of:expr) => {
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
            let called = || WatchedCall {
                manner: Manner::$manner,
                collective: Collective::$collective,
                arguments: $of,
            };
            // SAFETY: the arguments are forwarded unchanged, so they are exactly as valid as the
            // caller promised.
            let call = move || unsafe { next($($argument,)* comm $(, $more)*) };
            // SAFETY: what is watched is this call; where it succeeds, it has written the request.
            unsafe { watch::$way(called, || Some(comm), call $(, || request_bits(*$request))?) }
        }
    };
}

without_buffers!(passes);
with_buffers!(passes);
