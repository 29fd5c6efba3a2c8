//! Types and constants of the MPI library that this build serves.
//!
//! Handles are pointers in Open MPI and in the standard binary interface, which has small numbers in them, and
//! 32-bit numbers in MPICH (kept in 64 bits here). The constants come out of the
//! library's own `mpi.h` when the shim is built (`build.rs`).

use std::ffi::{CStr, c_int, c_void};

use colltune_core::datatype::Combines;

#[cfg(not(mpi = "mpich"))]
mod handles {
    use std::ffi::c_void;
    pub type Handle = *mut c_void;
    pub type Request = *mut c_void;

    pub fn request(handle: Handle) -> Request {
        handle
    }

    pub fn request_bits(request: Request) -> u64 {
        request as usize as u64
    }

    /// No library's handle.
    pub const NO_HANDLE: Handle = std::ptr::null_mut();

    pub fn from_number(number: i64) -> Handle {
        number as isize as Handle
    }

    pub fn from_address(address: *mut c_void) -> Handle {
        address
    }

    pub fn bits(handle: Handle) -> u64 {
        handle as usize as u64
    }

    /// Whether a handle is one of an operation, as far as its bits tell.
    pub fn may_be_operation(_: Handle) -> bool {
        true
    }

    /// What a handle takes in memory.
    pub const HANDLE_BYTES: usize = size_of::<Handle>();

    /// The handle that stands in memory.
    ///
    /// # Safety
    /// A handle of the library's stands there.
    pub unsafe fn handle_at(place: *const c_void) -> Handle {
        // SAFETY: as the caller promises; handles are pointers.
        unsafe { *place.cast::<Handle>() }
    }
}

#[cfg(mpi = "mpich")]
mod handles {
    use std::ffi::c_void;
    /// MPICH's handles are the low 32 bits. The wrappers pass whole registers on, so that a program
    /// on another library, whose handles are pointers, survives this build: it stands aside there.
    pub type Handle = u64;
    /// Requests stand in arrays, so they have their true size.
    pub type Request = std::ffi::c_int;

    pub fn request(handle: Handle) -> Request {
        handle as u32 as Request
    }

    pub fn request_bits(request: Request) -> u64 {
        u64::from(request as u32)
    }

    /// No library's handle.
    pub const NO_HANDLE: Handle = 0;

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

    /// Whether a handle is one of an operation, as far as its bits tell: how it is stored, and what of.
    pub fn may_be_operation(handle: Handle) -> bool {
        const OPERATION: u64 = 6;
        bits(handle) >> 30 != 0 && bits(handle) >> 26 & 0xf == OPERATION
    }

    /// What a handle takes in memory.
    pub const HANDLE_BYTES: usize = size_of::<u32>();

    /// The handle that stands in memory.
    ///
    /// # Safety
    /// A handle of the library's stands there.
    pub unsafe fn handle_at(place: *const c_void) -> Handle {
        // SAFETY: as the caller promises; handles are 32-bit numbers.
        u64::from(unsafe { *place.cast::<u32>() })
    }
}

pub use handles::{
    HANDLE_BYTES, Handle, NO_HANDLE, Request, bits, handle_at, may_be_operation, request,
    request_bits,
};

pub type Comm = Handle;
pub type Datatype = Handle;
pub type Op = Handle;
pub type Info = Handle;
pub type Group = Handle;
pub type Errhandler = Handle;
/// An address, or a distance between two.
pub type Aint = isize;
/// `MPI_Count` is 64 bits wide in every library that has the large-count functions.
#[cfg(not(mpi = "openmpi"))]
pub type Count = i64;

/// The ABI that this build serves, by its name in [`colltune_core::library::Abi`].
pub const ABI: colltune_core::library::Abi = if cfg!(mpi = "openmpi") {
    colltune_core::library::Abi::OpenMpi
} else if cfg!(mpi = "mpich") {
    colltune_core::library::Abi::Mpich
} else {
    colltune_core::library::Abi::Standard
};

/// MPI_THREAD_MULTIPLE, the highest of the thread levels that the standard orders.
/// Open MPI's header leaves its number to the compiler: the last of four, from 0 on.
pub const THREAD_MULTIPLE: c_int = match MPI_THREAD_MULTIPLE {
    0 => 3,
    number => number as c_int,
};

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

/// For each of [`OPS`].
pub const COMBINES: [Combines; OPS.len()] = {
    use Combines::{Arithmetic, Bitwise, Extreme, Located, Logical};
    [
        Extreme, Extreme, Arithmetic, Arithmetic, Logical, Bitwise, Logical, Bitwise, Logical,
        Bitwise, Located, Located,
    ]
};

mod constants {
    use super::{Constant, number};
    include!(concat!(env!("OUT_DIR"), "/constants.rs"));
}
pub use constants::*;

pub const SUCCESS: c_int = MPI_SUCCESS as c_int;

/// Spreads what handles differ by over the upper bits.
#[inline(always)]
pub fn spread(handle: u64) -> u64 {
    handle.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Whether a buffer argument is MPI_IN_PLACE.
pub fn is_in_place(buffer: *const c_void) -> bool {
    buffer as isize == MPI_IN_PLACE
}
