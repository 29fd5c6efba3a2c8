//! Collectives of Fortran programs that pass through: nonblocking, persistent and on neighbours.

use std::ffi::c_int;

use colltune_core::collective::Collective;
use colltune_core::record::Manner;

use super::{Integer, comm_of, request_of};
use crate::arguments::Arguments;
use crate::names::{in_manner, without_buffers};
use crate::tune::WatchedCall;
use crate::watch;

type Request = *mut c_int;

/// Defines the functions of one collective.
macro_rules! passes {
    ($collective:ident { $($manner:ident $($field:ident)?: $($name:ident)+, $plain:ident $f08:ident;)* } $arguments:tt
     $of:expr) => {
        $(in_manner!(passes $manner $plain, $f08, $collective, $arguments $of);)*
    };
    (@returning $manner:ident, $($rest:tt)*) => {
        passes!(@defined $manner, blocking [comm: Integer] comm [] $($rest)*);
    };
    (@requesting $manner:ident, $($rest:tt)*) => {
        passes!(@defined $manner, requesting [comm: Integer, request: Request] comm [request] $($rest)*);
    };
    (@prepared $manner:ident, $($rest:tt)*) => {
        passes!(@defined $manner, requesting [comm: Integer, info: Integer, request: Request] comm [request]
                $($rest)*);
    };
    (@defined $manner:ident, $way:ident [$($more:ident: $more_kind:ty),*] $comm:ident [$($request:ident)?]
     $plain:ident, $f08:ident, $collective:ident, ($($argument:ident: $kind:ident),*) $of:expr) => {
        entry!("A collective": $plain, $f08, ($($argument: $kind,)* $($more: $more_kind),*), default => {
            let called = || WatchedCall {
                manner: Manner::$manner,
                collective: Collective::$collective,
                arguments: passes!(@in_c ($($argument: $kind),*) $of),
            };
            // SAFETY: every argument is passed by reference; the call has written the request.
            unsafe { watch::$way(called, || comm_of($comm), default $(, || request_of($request))?) }
        });
    };
    (@in_c () $of:expr) => { $of };
    (@in_c ($($argument:ident: $kind:ident),+) $of:expr) => {
        Conversion::find().map_or(Arguments::Nothing, |by| {
            #[allow(unused_variables, unused_unsafe, reason = "not every argument says something of the call, or is read")]
            // SAFETY: every argument is passed by reference, and is only read behind a call that succeeded.
            let ($($argument,)+) = unsafe { ($(in_c!(by, $kind $argument),)+) };
            $of
        })
    };
}

without_buffers!(passes);

/// The collectives with buffers, which on MPICH come by as C.
#[cfg(mpi = "openmpi")]
mod with_buffers {
    use super::*;
    use crate::arguments::lists::{List, Listed};
    use crate::arguments::{Counted, Side};
    use crate::arguments::{UnevenSide::Each, UnevenSide::One, blocks, reduction, uneven};
    use crate::fortran::conversion::{Conversion, in_c, typed};
    use crate::fortran::parameter::{
        Counts, Elements, In, Operation, Out, Places, Root, Type, Types,
    };
    use crate::names::with_buffers;

    with_buffers!(passes);
}
