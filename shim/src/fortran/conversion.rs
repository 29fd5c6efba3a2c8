//! From Fortran's arguments to C's, on Open MPI.

use std::ffi::{CStr, c_void};
use std::sync::OnceLock;

use super::parameter::{Buffer, Integer};
use crate::abi::{self, Handle, NO_HANDLE};
use crate::arguments::lists::{FromFortran, Listed, Types};
use crate::library::{addresses_in, find};

/// What turns Fortran's arguments into C's.
pub struct Conversion {
    pub comm: FromFortran,
    pub datatype: FromFortran,
    pub op: FromFortran,
    pub request: FromFortran,
    in_place: Vec<usize>,
    bottom: Vec<usize>,
}

impl Conversion {
    pub fn find() -> Option<&'static Conversion> {
        static FOUND: OnceLock<Option<Conversion>> = OnceLock::new();
        let function = |name: &CStr| {
            let address = find(name);
            // SAFETY: these symbols are MPI's functions from a Fortran handle to a C handle.
            (!address.is_null())
                .then(|| unsafe { std::mem::transmute::<*mut c_void, FromFortran>(address) })
        };
        let resolve = || {
            Some(Conversion {
                comm: function(c"PMPI_Comm_f2c")?,
                datatype: function(c"PMPI_Type_f2c")?,
                op: function(c"PMPI_Op_f2c")?,
                request: function(c"PMPI_Request_f2c")?,
                in_place: common_blocks(c"mpi_fortran_in_place_"),
                bottom: common_blocks(c"mpi_fortran_bottom_"),
            })
        };
        FOUND.get_or_init(resolve).as_ref()
    }

    /// The C handle; `None` for what the library itself should refuse.
    ///
    /// # Safety
    /// The caller's arguments are valid, as MPI demands.
    pub unsafe fn handle(convert: FromFortran, handle: Integer) -> Option<Handle> {
        // SAFETY: a Fortran handle is an integer that is passed by reference.
        let handle = unsafe { convert((*handle).into()) };
        (!handle.is_null()).then_some(handle)
    }

    /// A buffer's address, with C's constants for Fortran's, which are addresses of common blocks.
    pub fn buffer(&self, buffer: Buffer) -> Buffer {
        match buffer as usize {
            address if self.in_place.contains(&address) => abi::MPI_IN_PLACE as Buffer,
            address if self.bottom.contains(&address) => std::ptr::null_mut(),
            _ => buffer,
        }
    }
}

/// The addresses of a common block: as the program itself sees it, or where nothing of the program does, as objects see
/// it that are loaded into scopes of their own, each of which may have it for itself.
fn common_blocks(name: &CStr) -> Vec<usize> {
    // SAFETY: dlsym takes a NUL-terminated name.
    let address = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    if !address.is_null() {
        return vec![address as usize];
    }
    let private = addresses_in(&[""], name).into_iter();
    private.map(|address| address as usize).collect()
}

/// The blocks of an alltoallw, whose types are Fortran's handles.
pub(super) fn typed<N, P>(
    start: *const c_void,
    counts: *const N,
    places: *const P,
    types: *const c_void,
) -> Listed {
    let types = match Conversion::find() {
        Some(conversion) => Types::EachOfFortran(types.cast(), conversion.datatype),
        None => Types::Each(std::ptr::null()),
    };
    Listed {
        types,
        ..Listed::new(start, counts, places, NO_HANDLE)
    }
}

/// One argument as C has it. An invalid type or operation becomes null, which is refused where it is looked at.
/// Counts and places have a meaning at a root alone, and are nowhere read elsewhere.
macro_rules! in_c {
    ($by:ident, In $argument:ident) => {
        $by.buffer($argument).cast_const()
    };
    ($by:ident, Out $argument:ident) => {
        $by.buffer($argument)
    };
    ($by:ident, Elements $argument:ident) => {
        *$argument
    };
    ($by:ident, Root $argument:ident) => {
        *$argument
    };
    ($by:ident, Counts $argument:ident) => {
        $argument
    };
    ($by:ident, Places $argument:ident) => {
        $argument
    };
    ($by:ident, Type $argument:ident) => {
        ($by.datatype)((*$argument).into())
    };
    ($by:ident, Operation $argument:ident) => {
        ($by.op)((*$argument).into())
    };
    // Turned one by one, where they are wanted.
    ($by:ident, Types $argument:ident) => {
        $argument.cast::<std::ffi::c_void>()
    };
}
pub(super) use in_c;
