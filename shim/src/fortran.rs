//! What Fortran programs see that does not come by as C.
//!
//! On Open MPI `mpif.h` and `use mpi` call `mpi_allreduce_`, `use mpi_f08` calls `mpi_allreduce_f08_`. Both
//! go to the library's `PMPI_Allreduce`, past the C wrappers. On MPICH the first calls the C function, and so
//! do the functions of `mpi_f08` that have buffers; those without, such as `mpi_init_f08_`, go to `PMPI_Init`.
//!
//! `default` is the next function of the same name with the arguments untouched. Only a steered call
//! needs C's handles and addresses. The two names take the same arguments, all by reference; with
//! `mpi_f08` the error argument may be absent, which arrives as a null pointer.
//!
//! An INTEGER has eight bytes where the library was built with `-fdefault-integer-8`. The shim then stands aside
//! (`start/served.rs`), and what is here writes nothing of its own and reads scalars alone, by their lower half.

use std::ffi::{CStr, c_int, c_void};

use crate::abi::Handle;
use crate::fence::fence;
use crate::forms;
use crate::library::find;
use parameter::{Error, Integer};

/// The next function of a name. It exists, since a program that calls it was linked against one.
fn next(name: &CStr) -> *mut c_void {
    let address = find(name);
    if address.is_null() {
        crate::warn::say("a Fortran MPI function was called, but no MPI library is loaded");
        std::process::abort();
    }
    address
}

/// Hands a code to the caller, if it asked for it.
///
/// Four bytes are enough: where an INTEGER has eight, the library alone has run the call, and has written them all.
///
/// # Safety
/// `error` is null or points to an INTEGER.
unsafe fn give(error: Error, code: c_int) {
    if !error.is_null() {
        // SAFETY: `error` is not null, so the caller promises an INTEGER there.
        unsafe { *error = code };
    }
}

/// Defines a function under both names, or under the second alone where the first calls C. The code, or
/// a function's body, gets the call of the next function, which returns the code.
macro_rules! entry {
    ($mpi:literal: $plain:ident, $f08:ident, $arguments:tt, $default:ident => $code:expr) => {
        #[cfg(mpi = "openmpi")]
        entry!(@one $mpi, $plain, $arguments, $default => $code);
        entry!(@one $mpi, $f08, $arguments, $default => $code);
    };
    ($mpi:literal: $plain:ident, $f08:ident, ($($argument:ident: $kind:ty),*) => $body:path) => {
        // SAFETY: the arguments are exactly as valid as the caller promised.
        entry!($mpi: $plain, $f08, ($($argument: $kind),*), default => unsafe { $body(&default, $($argument),*) });
    };
    (@one $mpi:literal, $name:ident, ($($argument:ident: $kind:ty),*), $default:ident => $code:expr) => {
        #[doc = concat!("`", $mpi, "` as Fortran sees it under this name.\n\n# Safety\n\
                         The caller keeps MPI's own contract for this function.")]
        #[unsafe(no_mangle)]
        #[allow(clippy::too_many_arguments, reason = "they are MPI's")]
        pub unsafe extern "C-unwind" fn $name($($argument: $kind,)* error: $crate::fortran::Error) {
            type Function = unsafe extern "C-unwind" fn($($kind,)* $crate::fortran::Error);
            static NEXT: std::sync::OnceLock<Function> = std::sync::OnceLock::new();
            // SAFETY: the next definition of this name has the same signature.
            let next = *NEXT.get_or_init(|| unsafe {
                let name = concat!(stringify!($name), "\0");
                let name = std::ffi::CStr::from_bytes_with_nul_unchecked(name.as_bytes());
                std::mem::transmute::<*mut std::ffi::c_void, Function>($crate::fortran::next(name))
            });
            let $default = move || {
                // An INTEGER has four bytes or eight: the library writes what its own builder said.
                let mut own = i64::from($crate::abi::SUCCESS);
                let place = if error.is_null() { (&raw mut own).cast() } else { error };
                // SAFETY: the arguments are forwarded unchanged, or the error's place has room for either INTEGER. The
                // library writes there, and the first four bytes are the code in both.
                unsafe {
                    next($($argument,)* place);
                    *place
                }
            };
            let code = $code;
            // SAFETY: the caller may leave the error's place out, and otherwise owns it.
            unsafe { $crate::fortran::give(error, code) };
        }
    };
}

#[cfg(mpi = "openmpi")]
mod blocking;
mod completing;
#[cfg(mpi = "openmpi")]
mod conversion;
mod parameter;
mod passing;

entry!("MPI_Init": mpi_init_, mpi_init_f08_, () => init);
entry!("MPI_Init_thread": mpi_init_thread_, mpi_init_thread_f08_, (required: Integer, provided: *mut c_int) => init_thread);
entry!("MPI_Finalize": mpi_finalize_, mpi_finalize_f08_, () => finalize);
entry!("MPI_Barrier": mpi_barrier_, mpi_barrier_f08_, (comm: Integer) => barrier);
entry!("MPI_Intercomm_merge": mpi_intercomm_merge_, mpi_intercomm_merge_f08_,
(between: Integer, high: Integer, merged: *mut c_int), call => {
    crate::members::may_meet_others();
    call()
});

entry!("MPI_Comm_free": mpi_comm_free_, mpi_comm_free_f08_, (comm: *mut c_int) => free);
entry!("MPI_Comm_disconnect": mpi_comm_disconnect_, mpi_comm_disconnect_f08_, (comm: *mut c_int) => free);
entry!("MPI_Comm_idup": mpi_comm_idup_, mpi_comm_idup_f08_,
(comm: Integer, copy: *mut c_int, request: *mut c_int), call => {
    crate::private::copied();
    call()
});
entry!("MPI_Comm_idup_with_info": mpi_comm_idup_with_info_, mpi_comm_idup_with_info_f08_,
(comm: Integer, info: Integer, copy: *mut c_int, request: *mut c_int), call => {
    crate::private::copied();
    call()
});

// Open MPI 5.0 has it.
#[cfg(mpi = "openmpi")]
entry!("MPIX_Comm_iagree": mpix_comm_iagree_, mpix_comm_iagree_f08_,
(comm: Integer, flag: *mut c_int, request: *mut c_int), call => {
    // SAFETY: every argument of Fortran's is passed by reference.
    if let Some(comm) = unsafe { comm_of(comm) } {
        crate::fence::begun(comm);
    }
    call()
});

unsafe fn free(default: Default, comm: *mut c_int) -> c_int {
    // SAFETY: every argument of Fortran's is passed by reference.
    crate::fence::freed(unsafe { comm_of(comm) }, default)
}

unsafe fn init(default: &dyn Fn() -> c_int) -> c_int {
    let before = crate::start::before();
    let code = default();
    crate::start::start_up(code, before);
    code
}

unsafe fn init_thread(default: &dyn Fn() -> c_int, _: Integer, _: *mut c_int) -> c_int {
    // SAFETY: `init` asks for nothing; the arguments are the library's business.
    unsafe { init(default) }
}

unsafe fn finalize(default: &dyn Fn() -> c_int) -> c_int {
    crate::start::finalize(default)
}

/// A request of Fortran's in C's terms.
///
/// # Safety
/// `request` points to one.
unsafe fn request_of(request: Integer) -> u64 {
    #[cfg(mpi = "openmpi")]
    {
        // SAFETY: `request` points to a request, as the caller promises.
        let handle = conversion::Conversion::find().and_then(|conversion| unsafe {
            conversion::Conversion::handle(conversion.request, request)
        });
        handle.map_or(0, crate::abi::request_bits)
    }
    #[cfg(mpi = "mpich")]
    {
        // SAFETY: the caller promises a request there; Fortran's and C's are the same number.
        crate::abi::request_bits(unsafe { *request })
    }
}

/// The communicator in C's terms; `None` for what the library itself should refuse.
///
/// # Safety
/// The caller's arguments are valid, as MPI demands.
#[cfg(mpi = "openmpi")]
unsafe fn comm_of(comm: Integer) -> Option<Handle> {
    let conversion = conversion::Conversion::find()?;
    // SAFETY: the caller's arguments are valid, so `comm` points to a handle.
    unsafe { conversion::Conversion::handle(conversion.comm, comm) }
}

/// The same: MPICH's handles are the numbers that Fortran has.
///
/// # Safety
/// The caller's arguments are valid, as MPI demands.
#[cfg(mpi = "mpich")]
unsafe fn comm_of(comm: Integer) -> Option<Handle> {
    // SAFETY: a handle is an integer that is passed by reference.
    Some(u64::from(unsafe { *comm } as u32))
}

type Default<'a> = &'a dyn Fn() -> c_int;

unsafe fn barrier(default: Default, comm: Integer) -> c_int {
    let tuned = |tuner| {
        // SAFETY: every argument of Fortran's is passed by reference.
        let comm = unsafe { comm_of(comm) }?;
        forms::run_barrier(tuner, comm, default)
    };
    let failed = |tuner, code| {
        // SAFETY: every argument of Fortran's is passed by reference.
        if let Some(comm) = unsafe { comm_of(comm) } {
            forms::failed(tuner, forms::BARRIER, comm, code);
        }
    };
    fence(default, tuned, failed)
}
