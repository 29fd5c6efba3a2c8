//! Collectives of Fortran programs that pass through: nonblocking, persistent and on neighbours.

use std::ffi::c_int;

use colltune_core::collective::Collective;
use colltune_core::record::Manner;

use super::{Integer, comm_of, request_of};
use crate::forms::MessageArguments;
use crate::passing_names::passing_barrier;
use crate::watch::{self, Called};

type Request = *mut c_int;

/// Defines the functions of one collective.
macro_rules! passes {
    ($collective:ident { $($manner:ident: $($name:ident)+, $plain:ident $f08:ident;)* } $arguments:tt
     $message:ident $of:tt) => {
        $(passes!(@$manner $plain, $f08, $collective, $arguments $message $of);)*
    };
    (@nonblocking $($rest:tt)*) => {
        passes!(@defined Nonblocking, requesting [comm: Integer, request: Request] comm [request] $($rest)*);
    };
    (@neighborhood_nonblocking $($rest:tt)*) => {
        passes!(@defined NeighborhoodNonblocking, requesting [comm: Integer, request: Request] comm [request]
                $($rest)*);
    };
    (@neighborhood $($rest:tt)*) => {
        passes!(@defined Neighborhood, blocking [comm: Integer] comm [] $($rest)*);
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
        passes!(@defined $manner, requesting [comm: Integer, info: Integer, request: Request] comm [request]
                $($rest)*);
    };
    (@defined $manner:ident, $way:ident [$($more:ident: $more_kind:ty),*] $comm:ident [$($request:ident)?]
     $plain:ident, $f08:ident, $collective:ident, ($($argument:ident: $kind:ty),*) $message:ident $of:tt) => {
        entry!("A collective": $plain, $f08, ($($argument: $kind,)* $($more: $more_kind),*), default => {
            #[allow(unused_unsafe, reason = "not every message is read from arguments")]
            // SAFETY: every argument is passed by reference, and is only read behind a call that succeeded.
            let called = || unsafe {
                Called {
                    manner: Manner::$manner,
                    collective: Collective::$collective,
                    message: $message $of,
                }
            };
            // SAFETY: every argument is passed by reference; the call has written the request.
            unsafe { watch::$way(called, || comm_of($comm), default $(, || request_of($request))?) }
        });
    };
}

passing_barrier!(passes);

fn sizeless() -> MessageArguments<c_int> {
    MessageArguments::Sizeless
}

/// The collectives with buffers, which on MPICH come by as C.
#[cfg(mpi = "openmpi")]
mod with_buffers {
    use super::*;
    use crate::abi::{Datatype, is_in_place};
    use crate::fortran::conversion::Conversion;
    use crate::fortran::{Buffer as In, Buffer as Out};
    use crate::passing_names::passing_with_buffers;

    type Elements = Integer;
    type Counts = Integer;
    type Type = Integer;
    type Types = Integer;
    type Operation = Integer;
    type Root = Integer;
    /// Integers of either width, which nobody reads.
    type Places = *const std::ffi::c_void;

    passing_with_buffers!(passes);

    /// The type in C's terms.
    ///
    /// # Safety
    /// Arguments of Fortran's are passed by reference.
    unsafe fn type_of(datatype: Integer) -> Datatype {
        // SAFETY: the type is passed by reference, as all of Fortran's arguments are.
        let handle = Conversion::find()
            .and_then(|conversion| unsafe { Conversion::handle(conversion.datatype, datatype) });
        handle.unwrap_or(std::ptr::null_mut())
    }

    /// # Safety
    /// Arguments of Fortran's are passed by reference.
    unsafe fn elements(count: Integer, datatype: Integer) -> MessageArguments<c_int> {
        // SAFETY: count and type are passed by reference, as all of Fortran's arguments are.
        unsafe { MessageArguments::Elements(*count, type_of(datatype)) }
    }

    /// # Safety
    /// Arguments of Fortran's are passed by reference.
    unsafe fn each_rank(count: Integer, datatype: Integer) -> MessageArguments<c_int> {
        // SAFETY: count and type are passed by reference, as all of Fortran's arguments are.
        unsafe { MessageArguments::EachRank(*count, type_of(datatype)) }
    }

    /// # Safety
    /// The list is passed by reference, and so is its type.
    unsafe fn sum(counts: Counts, datatype: Type) -> MessageArguments<c_int> {
        // SAFETY: the caller promises a type that is passed by reference.
        MessageArguments::Sum(counts, unsafe { type_of(datatype) })
    }

    /// # Safety
    /// The list is passed by reference, and so is its type.
    unsafe fn mean(counts: Counts, datatype: Type) -> MessageArguments<c_int> {
        // SAFETY: the caller promises a type that is passed by reference.
        MessageArguments::Mean(counts, unsafe { type_of(datatype) })
    }

    /// # Safety
    /// As for `elements`; what is not looked at need not be valid.
    unsafe fn of_sides(
        buffer: In,
        sure: (Integer, Integer),
        otherwise: (Integer, Integer),
    ) -> MessageArguments<c_int> {
        let in_place =
            Conversion::find().is_some_and(|conversion| is_in_place(conversion.buffer(buffer)));
        let (count, datatype) = if in_place { otherwise } else { sure };
        // SAFETY: count and type of the side that is looked at are passed by reference.
        unsafe { elements(count, datatype) }
    }
}
