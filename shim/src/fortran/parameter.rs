//! Fortran's arguments, which are all passed by reference.

use std::ffi::c_int;

/// A Fortran INTEGER argument, or a handle, which holds one.
pub(super) type Integer = *const c_int;
/// The error argument; null where the caller left it out.
pub(super) type Error = *mut c_int;
#[cfg(mpi = "openmpi")]
pub(super) type Buffer = *mut std::ffi::c_void;

/// What the arguments of collectives are, by the names that `crate::names` gives their kinds.
#[cfg(mpi = "openmpi")]
mod kinds {
    use super::{Buffer, Integer};

    pub type In = Buffer;
    pub type Out = Buffer;
    pub type Elements = Integer;
    pub type Counts = Integer;
    /// Or of a wider kind; then they are not read.
    pub type Places = Integer;
    pub type Type = Integer;
    pub type Types = Integer;
    pub type Operation = Integer;
    pub type Root = Integer;
}
#[cfg(mpi = "openmpi")]
pub(super) use kinds::*;
