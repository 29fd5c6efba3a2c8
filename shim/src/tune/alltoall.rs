//! Alltoalls as bytes.

use std::cell::RefCell;
use std::ffi::{c_int, c_void};

use super::Tuner;
use crate::abi::{self, Comm, is_in_place};
use crate::forms::Blocks;

impl Tuner {
    /// Runs an alltoall whose sides have different types as one of bytes, where the library needs
    /// that: `modified_bruck` of Open MPI 4.1 and 5.0 reads what is sent as if it had the type of what is
    /// received, so a transposition by types comes out wrong. `None` where the call is right as it is.
    ///
    /// The bytes of each message stay the same, so ranks need not do so alike.
    ///
    /// # Safety
    /// The arguments are those of a valid MPI_Alltoall on a communicator with the members of `comm`.
    #[inline]
    pub unsafe fn alltoall_as_bytes(&self, of: &Blocks<c_int>, comm: Comm) -> Option<c_int> {
        let same = abi::bits(of.send_type) == abi::bits(of.recv_type);
        let plain = |datatype| self.types.get(datatype).is_some();
        // What is no type is the library's to report, once.
        let null = abi::bits(self.handles.datatype_null);
        if !cfg!(mpi = "openmpi")
            || same
            || [of.send_type, of.recv_type].map(abi::bits).contains(&null)
            || is_in_place(of.send)
            || (plain(of.send_type) && plain(of.recv_type))
        {
            return None;
        }
        // SAFETY: the caller's promise is passed on.
        unsafe { self.alltoall_packed(of, comm) }
    }

    #[cold]
    unsafe fn alltoall_packed(&self, of: &Blocks<c_int>, comm: Comm) -> Option<c_int> {
        thread_local!(static SCRATCH: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) });
        let (mut sent, mut received, mut n) = (0, 0, 0);
        // SAFETY: types and communicator are valid by the caller's promise.
        unsafe {
            (self.pmpi.type_size)(of.send_type, &mut sent);
            (self.pmpi.type_size)(of.recv_type, &mut received);
            (self.pmpi.comm_size)(comm, &mut n);
        }
        // Messages that ints cannot count are the library's to run as they are.
        let (sent, received) = (
            sent.checked_mul(of.send_count)?,
            received.checked_mul(of.recv_count)?,
        );
        let (all_sent, all_received) = (sent.checked_mul(n)?, received.checked_mul(n)?);
        let (n_sent, n_received) = (of.send_count.checked_mul(n)?, of.recv_count.checked_mul(n)?);
        SCRATCH.with(|scratch| {
            // In use where an error handler of the program's, called from in here, calls an alltoall.
            let scratch = &mut *scratch.try_borrow_mut().ok()?;
            // Never empty: an empty vector's pointer is 1, which is Open MPI's MPI_IN_PLACE.
            let most = usize::try_from(all_sent).ok()? + usize::try_from(all_received).ok()? + 1;
            // Without memory the call runs as it came: the other ranks' messages are the same bytes.
            scratch
                .try_reserve(most.saturating_sub(scratch.len()))
                .ok()?;
            scratch.resize(scratch.len().max(most), 0);
            let out = scratch.as_mut_ptr();
            let (back, byte) = (out.wrapping_add(all_sent as usize), self.handles.byte);
            let (out, back): (*mut c_void, *mut c_void) = (out.cast(), back.cast());
            let (mut position, pmpi) = (0, self.pmpi);
            // Every rank finds a type that may not be received before it waits for another: packing
            // nothing tells.
            // SAFETY: the scratch holds what both sides pack into; the buffers are the application's.
            Some(unsafe {
                let mut code = (pmpi.pack)(back, 0, of.recv_type, back, 0, &mut position, comm);
                if code == abi::SUCCESS {
                    let (count, datatype) = (n_sent, of.send_type);
                    code =
                        (pmpi.pack)(of.send, count, datatype, out, all_sent, &mut position, comm);
                }
                if code == abi::SUCCESS {
                    let function = pmpi.collectives.alltoall;
                    code = function(out, sent, byte, back, received, byte, comm);
                }
                if code == abi::SUCCESS {
                    let (count, datatype) = (n_received, of.recv_type);
                    position = 0;
                    let (bytes, place) = (all_received, &mut position);
                    code = (pmpi.unpack)(back, bytes, place, of.recv, count, datatype, comm);
                }
                code
            })
        })
    }
}
