//! `MPI_Session_init`, behind which threads may call at will; see [`crate::threads`].

use std::ffi::{c_int, c_void};

use super::{ABSENT, next_function};
use crate::abi::{Errhandler, Info};
use crate::threads;

/// `MPI_Session_init` as the application sees it.
///
/// # Safety
/// The caller keeps MPI's own contract for this function.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn MPI_Session_init(
    info: Info,
    errors: Errhandler,
    session: *mut c_void,
) -> c_int {
    let Some(next) = next_function!(MPI_Session_init(Info, Errhandler, *mut c_void)) else {
        return ABSENT;
    };
    threads::become_multiple();
    // SAFETY: the arguments are forwarded unchanged, so they are exactly as valid as the caller promised.
    unsafe { next(info, errors, session) }
}
