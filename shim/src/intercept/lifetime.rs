//! Functions that copy and free communicators or agree on them, beside which the shim has something of its own; see
//! [`crate::communicator`] and [`crate::private`].

use std::ffi::{c_int, c_void};

use super::{ABSENT, next_function};
use crate::abi::{Comm, Info, Request, handle_at};
use crate::fence;
use crate::private;

/// Where a communicator's handle stands.
type Place = *mut c_void;

/// Defines a function that frees the communicator whose handle stands in its argument.
macro_rules! freeing {
    ($($name:ident)*) => {
        $(
            #[doc = concat!("`", stringify!($name), "` as the application sees it.\n\n# Safety\n\
                             The caller keeps MPI's own contract for this function.")]
            #[unsafe(no_mangle)]
            pub unsafe extern "C-unwind" fn $name(comm: Place) -> c_int {
                let Some(next) = next_function!($name(Place)) else {
                    return ABSENT;
                };
                // SAFETY: the argument is forwarded unchanged.
                let call = move || unsafe { next(comm) };
                // SAFETY: the library reads the handle itself where there is one.
                let handle = (!comm.is_null()).then(|| unsafe { handle_at(comm) });
                fence::freed(handle, call)
            }
        )*
    };
}

freeing! { MPI_Comm_free MPI_Comm_disconnect }

/// `MPI_Comm_idup` as the application sees it.
///
/// # Safety
/// The caller keeps MPI's own contract for this function.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn MPI_Comm_idup(
    comm: Comm,
    copy: Place,
    request: *mut Request,
) -> c_int {
    let Some(next) = next_function!(MPI_Comm_idup(Comm, Place, *mut Request)) else {
        return ABSENT;
    };
    private::copied();
    // SAFETY: the arguments are forwarded unchanged, so they are exactly as valid as the caller promised.
    unsafe { next(comm, copy, request) }
}

/// `MPI_Comm_idup_with_info` as the application sees it.
///
/// # Safety
/// The caller keeps MPI's own contract for this function.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn MPI_Comm_idup_with_info(
    comm: Comm,
    info: Info,
    copy: Place,
    request: *mut Request,
) -> c_int {
    let Some(next) = next_function!(MPI_Comm_idup_with_info(Comm, Info, Place, *mut Request))
    else {
        return ABSENT;
    };
    private::copied();
    // SAFETY: the arguments are forwarded unchanged, so they are exactly as valid as the caller promised.
    unsafe { next(comm, info, copy, request) }
}

/// `MPIX_Comm_iagree` as the application sees it.
///
/// # Safety
/// The caller keeps the library's own contract for this function.
#[cfg(mpi = "openmpi")]
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn MPIX_Comm_iagree(
    comm: Comm,
    flag: *mut c_int,
    request: *mut Request,
) -> c_int {
    let Some(next) = next_function!(MPIX_Comm_iagree(Comm, *mut c_int, *mut Request)) else {
        return ABSENT;
    };
    fence::begun(comm);
    // SAFETY: the arguments are forwarded unchanged, so they are exactly as valid as the caller promised.
    unsafe { next(comm, flag, request) }
}
