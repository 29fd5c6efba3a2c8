//! Alltoalls as bytes.

use std::ffi::{c_int, c_void};

use crate::abi::{self, Comm, Datatype, bits, is_in_place};
use crate::arguments::Side;
use crate::private;
use crate::scratch::{self, User};
use crate::world::World;

/// Runs an alltoall as one of bytes, where the library needs that. `modified_bruck` of Open MPI 4.1 and 5.0 reads
/// what is sent as if it had the type of what is received, so a transposition by types comes out wrong; `brucks` of
/// MPICH 4.0.2 takes blocks of pair types above 8 KiB for too long. `None` where the call is right as it is.
///
/// The bytes of each message stay the same, so ranks need not do so alike.
///
/// # Safety
/// The arguments are those of a valid MPI_Alltoall on a communicator with the members of `comm`.
#[inline]
pub unsafe fn alltoall_as_bytes(
    world: &World,
    send: Side,
    recv: Side,
    comm: Comm,
) -> Option<c_int> {
    let types = [send.datatype, recv.datatype];
    let plain = |datatype: &Datatype| world.types.get(*datatype).is_some();
    let is_right = if cfg!(mpi = "openmpi") {
        bits(send.datatype) == bits(recv.datatype) || types.iter().all(plain)
    } else {
        // MPICH 4.0 does not pack from MPI_BOTTOM, on which no pair type lies.
        types
            .iter()
            .all(|datatype| world.pairs.get(*datatype).is_none())
    };
    // What is no type is the library's to report, once.
    let null = bits(world.handles.datatype_null);
    if is_right || types.map(bits).contains(&null) || is_in_place(send.start) {
        return None;
    }
    // SAFETY: the caller promises the arguments of a valid MPI_Alltoall on a communicator with these members.
    unsafe { alltoall_packed(world, send, recv, comm) }
}

#[cold]
unsafe fn alltoall_packed(world: &World, send: Side, recv: Side, comm: Comm) -> Option<c_int> {
    let (send_count, recv_count) = (send.count as c_int, recv.count as c_int);
    let (send_type, recv_type) = (send.datatype, recv.datatype);
    let pmpi = world.pmpi;
    let (mut sent, mut received, mut n) = (0, 0, 0);
    // SAFETY: types and communicator are valid by the caller's promise.
    unsafe {
        (pmpi.type_size)(send_type, &mut sent);
        (pmpi.type_size)(recv_type, &mut received);
        (pmpi.comm_size)(comm, &mut n);
    }
    // Messages that ints cannot count are the library's to run as they are.
    let (sent, received): (c_int, c_int) = (
        sent.checked_mul(send_count)?,
        received.checked_mul(recv_count)?,
    );
    let (all_sent, all_received) = (sent.checked_mul(n)?, received.checked_mul(n)?);
    let (n_sent, n_received) = (send_count.checked_mul(n)?, recv_count.checked_mul(n)?);
    // Never empty, so that there is an address.
    let most = usize::try_from(all_sent).ok()? + usize::try_from(all_received).ok()? + 1;
    scratch::with(User::Schedule, |scratch| {
        // As it came it would come out wrong.
        if !scratch.block.provide(most) {
            let no_memory = abi::MPI_ERR_NO_MEM as c_int;
            return Some(private::report(world, comm, no_memory));
        }
        let out = scratch.block.start();
        let (back, byte) = (out.wrapping_add(all_sent as usize), world.handles.byte);
        let (out, back): (*mut c_void, *mut c_void) = (out.cast(), back.cast());
        let mut position = 0;
        // Every rank finds a type that may not be received before it waits for another: packing
        // nothing tells.
        // SAFETY: the scratch holds what both sides pack into; the buffers are the application's.
        Some(unsafe {
            let mut code = (pmpi.pack)(back, 0, recv_type, back, 0, &mut position, comm);
            if code == abi::SUCCESS {
                let place = &mut position;
                code = (pmpi.pack)(send.start, n_sent, send_type, out, all_sent, place, comm);
            }
            if code == abi::SUCCESS {
                let function = pmpi.collectives.alltoall;
                code = function(out, sent, byte, back, received, byte, comm);
            }
            if code == abi::SUCCESS {
                position = 0;
                let (bytes, place) = (all_received, &mut position);
                code = (pmpi.unpack)(back, bytes, place, recv.start, n_received, recv_type, comm);
            }
            code
        })
    })
}
