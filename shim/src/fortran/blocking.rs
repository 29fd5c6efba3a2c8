//! Blocking collectives of Fortran programs on Open MPI.

use std::ffi::c_int;

use colltune_core::collective::Collective;

use super::conversion::{Conversion, in_c, typed};
use super::parameter::{Counts, Elements, In, Operation, Out, Places, Root, Type, Types};
use super::{Default, Integer};
use crate::abi::Comm;
use crate::arguments::lists::{List, Listed};
use crate::arguments::{Arguments, Counted, Side};
use crate::arguments::{UnevenSide::Each, UnevenSide::One, blocks, reduction, uneven};
use crate::fence::fence;
use crate::forms;
use crate::library::collectives::Collectives;
use crate::names::with_buffers;

/// Tunes a call whose arguments `convert` turns into C's, of which `of` and `native` make what those of a C call make;
/// without a communicator that is one the library runs it.
fn tuned<A: Copy>(
    default: Default,
    (collective, comm): (Collective, Integer),
    convert: impl Fn(&Conversion) -> A,
    of: impl Fn(A) -> Arguments,
    native: impl Fn(A, &Collectives<c_int>, Comm) -> c_int,
) -> c_int {
    let converted = || {
        let conversion = Conversion::find()?;
        // SAFETY: every argument of Fortran's is passed by reference.
        let comm = unsafe { Conversion::handle(conversion.comm, comm) }?;
        Some((convert(conversion), comm))
    };
    let tuned = |tuner| {
        let (arguments, comm) = converted()?;
        let native = |library: &_, comm| native(arguments, library, comm);
        forms::run(tuner, (collective, of(arguments)), comm, default, native)
    };
    let failed = |tuner, code| {
        if let Some((arguments, comm)) = converted() {
            forms::failed(tuner, (collective, of(arguments)), comm, code);
        }
    };
    fence(default, tuned, failed)
}

/// Defines a collective.
macro_rules! tuned {
    ($collective:ident { blocking $field:ident: $name:ident $large:ident, $plain:ident $f08:ident; $($passing:tt)* }
     ($($argument:ident: $kind:ident),*) $of:expr) => {
        entry!("A collective": $plain, $f08, ($($argument: $kind,)* comm: Integer), default => {
            #[allow(unused_variables, unused_unsafe, reason = "not every argument says something of the call, or is read")]
            let code = tuned(
                &default,
                (Collective::$collective, comm),
                // SAFETY: every argument is passed by reference.
                |by| unsafe { ($(in_c!(by, $kind $argument),)*) },
                |($($argument,)*)| $of,
                // SAFETY: the caller promises these arguments for a communicator with the same members in their order.
                |($($argument,)*), library, comm| unsafe { (library.$field)($($argument,)* comm) },
            );
            code
        });
    };
    // Nothing of it is tuned.
    ($collective:ident { $($passing:tt)* } $arguments:tt $of:expr) => {};
}

with_buffers!(tuned);
