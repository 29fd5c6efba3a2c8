//! `MPI_Intercomm_merge`, which may put ranks of several worlds into one intracommunicator; see [`crate::members`].

use std::ffi::c_int;

use super::{ABSENT, next_function};
use crate::abi::Comm;
use crate::members;

/// `MPI_Intercomm_merge` as the application sees it.
///
/// # Safety
/// The caller keeps MPI's own contract for this function.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn MPI_Intercomm_merge(
    between: Comm,
    high: c_int,
    merged: *mut Comm,
) -> c_int {
    let Some(next) = next_function!(MPI_Intercomm_merge(Comm, c_int, *mut Comm)) else {
        return ABSENT;
    };
    members::may_meet_others();
    // SAFETY: the arguments are forwarded unchanged, so they are exactly as valid as the caller promised.
    unsafe { next(between, high, merged) }
}
