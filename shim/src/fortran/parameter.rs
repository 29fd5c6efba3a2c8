//! Fortran's arguments, which are all passed by reference.

use std::ffi::c_int;

/// A Fortran INTEGER argument, or a handle, which holds one.
pub(super) type Integer = *const c_int;
/// The error argument; null where the caller left it out.
pub(super) type Error = *mut c_int;
#[cfg(mpi = "openmpi")]
pub(super) type Buffer = *mut std::ffi::c_void;
