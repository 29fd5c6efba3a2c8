//! Broadcasts as bytes.

use std::ffi::{c_int, c_void};

use crate::abi::{self, Comm, Datatype};
use crate::arguments::Side;
use crate::private;
use crate::scratch::{self, User};
use crate::world::World;

/// Broadcasts as bytes. Open MPI cuts messages and chooses fallbacks by its own rank's count and
/// type size, which need not be alike (open-mpi/ompi issue 199); the number of bytes is.
///
/// # Safety
/// The arguments are those of a valid MPI_Bcast of at most 2^31-1 bytes on a communicator with
/// the members of `comm`.
pub unsafe fn bcast_as_bytes(world: &World, all: Side, root: c_int, comm: Comm) -> c_int {
    let (buffer, count, datatype) = (all.start, all.count as c_int, all.datatype);
    if let Some(facts) = world.types.get(datatype) {
        let bytes = count.wrapping_mul(facts.size as c_int);
        // SAFETY: a predefined type of this table has no holes, so these are the same bytes.
        return unsafe { (world.pmpi.bcast)(buffer, bytes, world.handles.byte, root, comm) };
    }
    // SAFETY: the caller promises the arguments of a valid MPI_Bcast, of no more bytes than an int counts.
    unsafe { bcast_packed(world, (buffer, count, datatype), root, comm) }
}

#[cold]
unsafe fn bcast_packed(
    world: &World,
    (buffer, count, datatype): (*mut c_void, c_int, Datatype),
    root: c_int,
    comm: Comm,
) -> c_int {
    let pmpi = world.pmpi;
    // SAFETY: the caller promises valid arguments of an MPI_Bcast on `comm`.
    let as_it_came = || unsafe { (pmpi.bcast)(buffer, count, datatype, root, comm) };
    if buffer.is_null() && !cfg!(mpi = "openmpi") {
        // MPI_BOTTOM, which MPICH 4.0 does not pack from; it cuts messages by their bytes itself.
        return as_it_came();
    }
    let (mut size, mut own, mut position) = (0, 0, 0);
    // SAFETY: type and communicator are valid by the caller's promise.
    unsafe {
        (pmpi.type_size)(datatype, &mut size);
        (pmpi.comm_rank)(comm, &mut own);
    }
    let bytes = count.wrapping_mul(size);
    scratch::with(User::Schedule, |scratch| {
        // Never empty, so that there is an address. The other ranks' messages may be cut otherwise than the library would
        // cut this one, so the call does not run as it came.
        if !scratch.block.provide(bytes.max(1) as usize) {
            return private::report(world, comm, abi::MPI_ERR_NO_MEM as c_int);
        }
        let packed = scratch.block.start().cast::<c_void>();
        // Every rank finds a type that may not be sent before it waits for another: packing nothing
        // tells.
        // SAFETY: no element is read, and no byte written.
        let code = unsafe { (pmpi.pack)(packed, 0, datatype, packed, 0, &mut position, comm) };
        if code != abi::SUCCESS {
            return code;
        }
        // SAFETY: the scratch holds `bytes` bytes, which is what `count` elements pack into.
        unsafe {
            if own == root {
                let place = &mut position;
                let code = (pmpi.pack)(buffer, count, datatype, packed, bytes, place, comm);
                if code != abi::SUCCESS {
                    return code;
                }
            }
            let code = (pmpi.bcast)(packed, bytes, world.handles.byte, root, comm);
            if code != abi::SUCCESS || own == root {
                return code;
            }
            (pmpi.unpack)(packed, bytes, &mut position, buffer, count, datatype, comm)
        }
    })
}
