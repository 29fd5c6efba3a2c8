//! The functions that the application sees. Three moves each, no logic.

mod completing;
mod lifetime;
mod meeting;
mod passing;

use std::ffi::{c_char, c_int, c_void};

use colltune_core::collective::Collective;

#[cfg(not(mpi = "openmpi"))]
use crate::abi::{Aint, Count};
use crate::abi::{Comm, Datatype as Type, Op as Operation};
use crate::arguments::lists::{List, Listed, typed};
use crate::arguments::{Arguments, Counted, Side};
use crate::arguments::{UnevenSide::Each, UnevenSide::One, blocks, reduction, uneven};
use crate::fence::fence;
use crate::forms;
use crate::library::collectives::{Collectives, Number};
use crate::library::next;
use crate::names::with_buffers;

/// `MPI_Init` as the application sees it.
///
/// # Safety
/// The caller keeps MPI's own contract for this function.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn MPI_Init(argc: *mut c_int, argv: *mut *mut *mut c_char) -> c_int {
    let before = crate::start::before();
    // SAFETY: the arguments are forwarded unchanged, so they are exactly as valid as the caller promised.
    let code = unsafe { (next().init)(argc, argv) };
    crate::start::start_up(code, before);
    code
}

/// `MPI_Init_thread` as the application sees it.
///
/// # Safety
/// The caller keeps MPI's own contract for this function.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn MPI_Init_thread(
    argc: *mut c_int,
    argv: *mut *mut *mut c_char,
    required: c_int,
    provided: *mut c_int,
) -> c_int {
    let before = crate::start::before();
    // SAFETY: the arguments are forwarded unchanged, so they are exactly as valid as the caller promised.
    let code = unsafe { (next().init_thread)(argc, argv, required, provided) };
    crate::start::start_up(code, before);
    code
}

/// `MPI_Finalize` as the application sees it.
///
/// # Safety
/// The caller keeps MPI's own contract for this function.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn MPI_Finalize() -> c_int {
    // SAFETY: there are no arguments.
    crate::start::finalize(|| unsafe { (next().finalize)() })
}

/// `MPI_Barrier` as the application sees it.
///
/// # Safety
/// The caller keeps MPI's own contract for this function.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn MPI_Barrier(comm: Comm) -> c_int {
    // SAFETY: the argument is forwarded unchanged.
    let default = move || unsafe { (next().barrier)(comm) };
    let tuned = |tuner| forms::run_barrier(tuner, comm, default);
    let failed = |tuner, code| forms::failed(tuner, forms::BARRIER, comm, code);
    fence(default, tuned, failed)
}

/// The library has no such function, though the program calls it: it cannot have been linked.
const ABSENT: c_int = 15;

/// The next definition of a function of this name, looked up once; `None` where there is none.
macro_rules! next_function {
    ($name:ident($($kind:ty),*)) => {{
        type Function = unsafe extern "C-unwind" fn($($kind),*) -> std::ffi::c_int;
        static NEXT: std::sync::OnceLock<Option<Function>> = std::sync::OnceLock::new();
        *NEXT.get_or_init(|| {
            let name = const { concat!(stringify!($name), "\0") };
            let address = crate::library::find(std::ffi::CStr::from_bytes_with_nul(name.as_bytes()).ok()?);
            if address.is_null() {
                return None;
            }
            // SAFETY: the symbol is the MPI function of this name, whose C signature this is.
            Some(unsafe { std::mem::transmute::<*mut std::ffi::c_void, Function>(address) })
        })
    }};
}
use next_function;

/// Defines a collective under its name and, with counts of type `MPI_Count`, under its large-count
/// name. `Elements` and `Places` stand for the types of counts and of displacements; the communicator
/// is the last argument.
macro_rules! tuned {
    ($collective:ident { blocking $field:ident: $name:ident $large:ident, $plain:ident $f08:ident; $($passing:tt)* }
     $arguments:tt $of:expr) => {
        const _: () = {
            type Elements = c_int;
            #[allow(dead_code, reason = "few collectives have several counts")]
            type Counts = *const c_int;
            #[allow(dead_code, reason = "regular collectives have no displacements")]
            type Places = *const c_int;
            tuned!(@one $name => $field $arguments $collective: $of, {
                let Some(next) = <c_int as Number>::next() else { unreachable!() };
                next
            });
        };
        // MPI 4 has them, and newer programs and mpi4py call them.
        #[cfg(not(mpi = "openmpi"))]
        const _: () = {
            type Elements = Count;
            #[allow(dead_code, reason = "few collectives have several counts")]
            type Counts = *const Count;
            #[allow(dead_code, reason = "regular collectives have no displacements")]
            type Places = *const Aint;
            tuned!(@one $large => $field $arguments $collective: $of, {
                let Some(next) = <Count as Number>::next() else { return ABSENT };
                next
            });
        };
    };
    (@one $name:ident => $field:ident ($($argument:ident: $kind:ty),*) $collective:ident: $of:expr, $next:block) => {
        #[doc = concat!("`", stringify!($name), "` as the application sees it.\n\n# Safety\n\
                         The caller keeps MPI's own contract for this function.")]
        #[unsafe(no_mangle)]
        #[allow(clippy::too_many_arguments, reason = "they are MPI's")]
        pub unsafe extern "C-unwind" fn $name($($argument: $kind,)* comm: Comm) -> c_int {
            let next = $next;
            // SAFETY: the arguments are forwarded unchanged, so they are exactly as valid as the
            // caller promised.
            let default = move || unsafe { (next.$field)($($argument,)* comm) };
            // SAFETY: the caller promises these arguments for a communicator with the same members in the same order.
            let native = move |library: &Collectives<Elements>, comm| unsafe {
                (library.$field)($($argument,)* comm)
            };
            let call = move || (Collective::$collective, $of);
            let tuned = |tuner| forms::run(tuner, call(), comm, default, native);
            let failed = |tuner, code| forms::failed(tuner, call(), comm, code);
            fence(default, tuned, failed)
        }
    };
    // Nothing of it is tuned.
    ($collective:ident { $($passing:tt)* } $arguments:tt $of:expr) => {};
}

type In = *const c_void;
type Out = *mut c_void;
type Root = c_int;
/// The addresses of datatypes, one for each rank.
type Types = *const c_void;

with_buffers!(tuned);
