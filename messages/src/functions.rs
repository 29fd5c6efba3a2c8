//! The functions that programs call, in C and Fortran; [`crate::calls`] has the table.
//!
//! On Open MPI `mpif.h` and `use mpi` call `mpi_send_`, `use mpi_f08` calls `mpi_send_f08_`, and both go past the C
//! functions. On MPICH functions with buffers call C's, and so do all of `mpif.h`; only functions of `mpi_f08` without
//! buffers do not. In Fortran all arguments are references, and an error's place may be missing.

mod arguments;

use std::ffi::{c_int, c_void};

use crate::calls::{Kind, functions};
use crate::recording::{counted, finish, forget_comm, forget_request, start, timed};
use arguments::{Place, Plain};

/// A buffer, or what the library writes.
type Pointer = *mut c_void;

/// The next definition of a function of this name, looked up once; `None` where there is none.
macro_rules! next {
    ($name:ident: $function:ty) => {{
        static NEXT: std::sync::OnceLock<Option<$function>> = std::sync::OnceLock::new();
        *NEXT.get_or_init(|| {
            let name = const { concat!(stringify!($name), "\0") };
            let address = crate::library::find(std::ffi::CStr::from_bytes_with_nul(name.as_bytes()).ok()?);
            // SAFETY: null is `None`, and otherwise the symbol is MPI's function of this name and signature.
            unsafe { std::mem::transmute::<*mut c_void, Option<$function>>(address) }
        })
    }};
}

/// The library has no such function, though the program calls it: it cannot have been linked.
const ABSENT: c_int = 15;

/// Defines functions as C programs see them.
macro_rules! in_c {
    ($($buffers:ident [$($kind:ident: $name:ident $($large:ident)?, $plain:ident $f08:ident;)*] $arguments:tt
     $call:ident => $body:expr;)*) => {
        $($(
            in_c!(@one [$kind] $name c_int, $arguments $call => $body);
            $(#[cfg(not(feature = "openmpi"))] in_c!(@one [$kind] $large i64, $arguments $call => $body);)?
        )*)*
    };
    (@one [$($kind:ident)?] $name:ident $count:ty, ($($argument:ident: $type:ident),*) $call:ident => $body:expr) => {
        const _: () = {
            #[allow(unused_imports, reason = "few functions have all of them")]
            use arguments::c::*;
            #[allow(dead_code, reason = "functions without buffers have none")]
            type Count = $count;
            $(
                #[allow(dead_code, reason = "some are only forwarded")]
                const KIND: Kind = Kind::$kind;
            )?

            #[doc = concat!("`", stringify!($name), "`.\n\n# Safety\nThe caller keeps MPI's own contract for this function.")]
            #[unsafe(no_mangle)]
            #[allow(clippy::too_many_arguments, reason = "they are MPI's")]
            pub unsafe extern "C-unwind" fn $name($($argument: $type),*) -> c_int {
                let Some(next) = next!($name: unsafe extern "C-unwind" fn($($type),*) -> c_int) else {
                    return ABSENT;
                };
                // SAFETY: the arguments are forwarded unchanged.
                let $call = || unsafe { next($($argument),*) };
                $body
            }
        };
    };
}
functions!(in_c);
in_c!(@one [] MPI_Init c_int, (argc: Pointer, argv: Pointer) call => start(call()));
in_c!(@one [] MPI_Init_thread c_int, (argc: Pointer, argv: Pointer, required: Int, provided: Pointer) call => start(call()));

/// Defines functions as Fortran programs see them, where these do not call C's.
#[cfg(not(feature = "mpi_abi"))]
macro_rules! in_fortran {
    ($($buffers:ident [$($kind:ident: $name:ident $($large:ident)?, $plain:ident $f08:ident;)*] $arguments:tt
     $call:ident => $body:expr;)*) => {
        $($(
            #[cfg(feature = "openmpi")]
            in_fortran!(@one [$kind] $plain, $arguments $call => $body);
            in_fortran!(@$buffers [$kind] $f08, $arguments $call => $body);
        )*)*
    };
    (@buffers $($rest:tt)*) => {
        #[cfg(feature = "openmpi")]
        in_fortran!(@one $($rest)*);
    };
    (@alone $($rest:tt)*) => { in_fortran!(@one $($rest)*); };
    (@one [$($kind:ident)?] $name:ident, ($($argument:ident: $type:ident),*) $call:ident => $body:expr) => {
        const _: () = {
            #[allow(unused_imports, reason = "few functions have all of them")]
            use arguments::fortran::*;
            $(
                #[allow(dead_code, reason = "some are only forwarded")]
                const KIND: Kind = Kind::$kind;
            )?

            #[doc = concat!("`", stringify!($name), "`.\n\n# Safety\nThe caller keeps MPI's own contract for this function.")]
            #[unsafe(no_mangle)]
            #[allow(clippy::too_many_arguments, reason = "they are MPI's")]
            pub unsafe extern "C-unwind" fn $name($($argument: $type,)* error: *mut c_int) {
                let Some(next) = next!($name: unsafe extern "C-unwind" fn($($type,)* *mut c_int)) else {
                    return;
                };
                // An INTEGER has four bytes or eight.
                let mut own = i64::from(crate::library::SUCCESS);
                let place = if error.is_null() { (&raw mut own).cast() } else { error };
                // SAFETY: the arguments are forwarded unchanged, and the error's place has room for either INTEGER.
                let $call = || unsafe {
                    next($($argument,)* place);
                    *place
                };
                $body;
            }
        };
    };
}
#[cfg(not(feature = "mpi_abi"))]
functions!(in_fortran);
#[cfg(feature = "openmpi")]
in_fortran!(@one [] mpi_init_, () call => start(call()));
#[cfg(feature = "openmpi")]
in_fortran!(@one [] mpi_init_thread_, (required: Int, provided: Pointer) call => start(call()));
#[cfg(not(feature = "mpi_abi"))]
in_fortran!(@one [] mpi_init_f08_, () call => start(call()));
#[cfg(not(feature = "mpi_abi"))]
in_fortran!(@one [] mpi_init_thread_f08_, (required: Int, provided: Pointer) call => start(call()));
