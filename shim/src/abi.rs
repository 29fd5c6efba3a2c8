//! Types and constants of the MPI library that this build serves.
//!
//! Handles are pointers in Open MPI and 32-bit numbers in MPICH (kept in 64 bits here). The constants come out of the
//! library's own `mpi.h` when the shim is built (`build.rs`).

use std::ffi::{CStr, c_int, c_void};

#[cfg(mpi = "openmpi")]
mod handles {
    use std::ffi::c_void;
    pub type Handle = *mut c_void;

    pub fn from_number(number: i64) -> Handle {
        number as isize as Handle
    }

    pub fn from_address(address: *mut c_void) -> Handle {
        address
    }

    pub fn bits(handle: Handle) -> u64 {
        handle as usize as u64
    }
}

#[cfg(mpi = "mpich")]
mod handles {
    use std::ffi::c_void;
    /// MPICH's handles are the low 32 bits. The wrappers pass whole registers on, so that a program
    /// on another library, whose handles are pointers, survives this build: it stands aside there.
    pub type Handle = u64;

    pub fn from_number(number: i64) -> Handle {
        u64::from(number as u32)
    }

    /// Never called: MPICH's handles are numbers.
    pub fn from_address(_: *mut c_void) -> Handle {
        0
    }

    pub fn bits(handle: Handle) -> u64 {
        handle & 0xffff_ffff
    }
}

pub use handles::{Handle, bits};

pub type Comm = Handle;
pub type Datatype = Handle;
pub type Op = Handle;
pub type Info = Handle;
pub type Group = Handle;
pub type Errhandler = Handle;
/// `MPI_Count` is 64 bits wide in every library that has the large-count functions.
#[cfg(mpi = "mpich")]
pub type Count = i64;

/// The ABI that this build serves, by its name in [`colltune_core::library::Abi`].
pub const ABI: colltune_core::library::Abi = if cfg!(mpi = "openmpi") {
    colltune_core::library::Abi::OpenMpi
} else {
    colltune_core::library::Abi::Mpich
};

/// MPI_THREAD_MULTIPLE, the highest of the four thread levels that the standard orders.
pub const THREAD_MULTIPLE: c_int = 3;

/// One constant of `mpi.h`.
#[allow(dead_code, reason = "each library uses the forms that its header has")]
pub enum Constant {
    Number(i64),
    /// The address of the variable of this name.
    Symbol(&'static CStr),
    Missing,
}

const fn number(constant: &Constant) -> isize {
    match constant {
        Constant::Number(number) => *number as isize,
        _ => 0,
    }
}

impl Constant {
    /// The handle, where the loaded library has it. `find` looks a symbol up.
    pub fn handle(&self, find: impl Fn(&CStr) -> *mut c_void) -> Option<Handle> {
        match self {
            Constant::Number(number) => Some(handles::from_number(*number)),
            Constant::Symbol(name) => {
                let address = find(name);
                (!address.is_null()).then(|| handles::from_address(address))
            }
            Constant::Missing => None,
        }
    }
}

mod constants {
    use super::{Constant, number};
    include!(concat!(env!("OUT_DIR"), "/constants.rs"));
}
pub use constants::*;

pub const SUCCESS: c_int = MPI_SUCCESS as c_int;

/// Whether a buffer argument is MPI_IN_PLACE.
pub fn is_in_place(buffer: *const c_void) -> bool {
    buffer as isize == MPI_IN_PLACE
}
