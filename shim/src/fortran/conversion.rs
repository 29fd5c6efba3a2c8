//! From Fortran's arguments to C's, on Open MPI.

use std::ffi::{CStr, c_int, c_void};
use std::sync::OnceLock;

use super::parameter::{Buffer, Integer};
use crate::abi::{self, Handle, is_in_place};
use crate::arguments::{Arguments, Counted, Side, reduction};
use crate::library::find;

type FromFortran = unsafe extern "C-unwind" fn(c_int) -> Handle;

/// What turns Fortran's arguments into C's.
pub struct Conversion {
    pub comm: FromFortran,
    pub datatype: FromFortran,
    pub op: FromFortran,
    pub request: FromFortran,
    in_place: usize,
    bottom: usize,
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
                in_place: common_block(c"mpi_fortran_in_place_"),
                bottom: common_block(c"mpi_fortran_bottom_"),
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
        let handle = unsafe { convert(*handle) };
        (!handle.is_null()).then_some(handle)
    }

    /// A buffer's address, with C's constants for Fortran's, which are addresses of common blocks.
    pub fn buffer(&self, buffer: Buffer) -> Buffer {
        match buffer as usize {
            address if address == self.in_place => abi::MPI_IN_PLACE as Buffer,
            address if address == self.bottom => std::ptr::null_mut(),
            _ => buffer,
        }
    }
}

/// The address of a common block as the program itself sees it, or one that no buffer has.
fn common_block(name: &CStr) -> usize {
    // SAFETY: dlsym takes a NUL-terminated name.
    let address = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    if address.is_null() {
        usize::MAX
    } else {
        address as usize
    }
}

impl Conversion {
    /// # Safety
    /// The caller's arguments are valid, as MPI demands.
    pub unsafe fn reduction(
        &self,
        [send, recv]: [Buffer; 2],
        count: Counted,
        datatype: Integer,
        op: Integer,
        root: c_int,
    ) -> Option<Arguments> {
        // SAFETY: every argument is passed by reference.
        unsafe {
            let datatype = Conversion::handle(self.datatype, datatype)?;
            let op = Conversion::handle(self.op, op)?;
            let buffers = (self.buffer(send).cast_const(), self.buffer(recv));
            Some(reduction(buffers, count, datatype, op, root))
        }
    }

    /// One side of a call that moves blocks. What has no meaning on this rank need not be a type: it becomes null,
    /// which is refused where it is looked at.
    ///
    /// # Safety
    /// The caller's arguments are valid, as MPI demands; in place, count and type need not be.
    unsafe fn side(&self, (buffer, count, datatype): FortranSide) -> Side {
        let buffer = self.buffer(buffer);
        if is_in_place(buffer) {
            return Side::new(buffer, 0, std::ptr::null_mut());
        }
        // SAFETY: every argument is passed by reference.
        unsafe { Side::new(buffer, *count, (self.datatype)(*datatype)) }
    }

    /// Both sides. In place there is no type, and the library wants one.
    ///
    /// # Safety
    /// The caller's arguments are valid, as MPI demands; in place, count and type need not be.
    pub unsafe fn sides(&self, send: FortranSide, recv: FortranSide) -> [Side; 2] {
        // SAFETY: the caller promises that both sides' arguments point to what MPI asks for.
        let (mut send, mut recv) = unsafe { (self.side(send), self.side(recv)) };
        if is_in_place(send.start) {
            send.datatype = recv.datatype;
        }
        if is_in_place(recv.start) {
            recv.datatype = send.datatype;
        }
        [send, recv]
    }

    /// # Safety
    /// The caller's arguments are valid, as MPI demands; in place, count and type need not be.
    pub unsafe fn blocks(
        &self,
        send: FortranSide,
        recv: FortranSide,
        root: c_int,
    ) -> Option<Arguments> {
        // SAFETY: the caller promises that both sides' arguments point to what MPI asks for.
        let [send, recv] = unsafe { self.sides(send, recv) };
        Some(Arguments::Blocks { send, recv, root })
    }
}

/// Buffer, count and type of one side.
pub type FortranSide = (Buffer, Integer, Integer);
