//! Broadcasts as bytes.

use std::cell::RefCell;
use std::ffi::{c_int, c_void};

use super::Tuner;
use crate::abi::{self, Comm, Datatype};

impl Tuner {
    /// Broadcasts as bytes. Open MPI cuts messages and chooses fallbacks by its own rank's count and
    /// type size, which need not be alike (open-mpi/ompi issue 199); the number of bytes is.
    ///
    /// # Safety
    /// The arguments are those of a valid MPI_Bcast of at most 2^31-1 bytes on a communicator with
    /// the members of `comm`.
    pub unsafe fn bcast_as_bytes(
        &self,
        buffer: *mut c_void,
        count: c_int,
        datatype: Datatype,
        root: c_int,
        comm: Comm,
    ) -> c_int {
        if let Some(facts) = self.types.get(datatype) {
            let bytes = count.wrapping_mul(facts.size as c_int);
            // SAFETY: a predefined type of this table has no holes, so these are the same bytes.
            return unsafe { (self.pmpi.bcast)(buffer, bytes, self.handles.byte, root, comm) };
        }
        // SAFETY: the caller's promise is passed on.
        unsafe { self.bcast_packed(buffer, count, datatype, root, comm) }
    }

    #[cold]
    unsafe fn bcast_packed(
        &self,
        buffer: *mut c_void,
        count: c_int,
        datatype: Datatype,
        root: c_int,
        comm: Comm,
    ) -> c_int {
        if buffer.is_null() && !cfg!(mpi = "openmpi") {
            // MPI_BOTTOM, which MPICH 4.0 does not pack from; it cuts messages by their bytes itself.
            // SAFETY: the caller's promise is passed on.
            return unsafe { (self.pmpi.bcast)(buffer, count, datatype, root, comm) };
        }
        thread_local!(static SCRATCH: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) });
        let (mut size, mut own, mut position) = (0, 0, 0);
        // SAFETY: type and communicator are valid by the caller's promise.
        unsafe {
            (self.pmpi.type_size)(datatype, &mut size);
            (self.pmpi.comm_rank)(comm, &mut own);
        }
        let bytes = count.wrapping_mul(size);
        SCRATCH.with_borrow_mut(|scratch| {
            // Never empty: an empty vector's pointer is 1, which is Open MPI's MPI_IN_PLACE.
            scratch.resize(scratch.len().max(bytes as usize).max(1), 0);
            let packed = scratch.as_mut_ptr().cast::<c_void>();
            // Every rank finds a type that may not be sent before it waits for another: packing nothing
            // tells.
            // SAFETY: no element is read, and no byte written.
            let code =
                unsafe { (self.pmpi.pack)(packed, 0, datatype, packed, 0, &mut position, comm) };
            if code != abi::SUCCESS {
                return code;
            }
            // SAFETY: the scratch holds `bytes` bytes, which is what `count` elements pack into.
            unsafe {
                if own == root {
                    let code = (self.pmpi.pack)(
                        buffer,
                        count,
                        datatype,
                        packed,
                        bytes,
                        &mut position,
                        comm,
                    );
                    if code != abi::SUCCESS {
                        return code;
                    }
                }
                let code = (self.pmpi.bcast)(packed, bytes, self.handles.byte, root, comm);
                if code != abi::SUCCESS || own == root {
                    return code;
                }
                (self.pmpi.unpack)(packed, bytes, &mut position, buffer, count, datatype, comm)
            }
        })
    }
}
