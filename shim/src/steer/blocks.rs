//! Alltoalls and allgathers as bytes.

use std::ffi::{c_int, c_void};

use colltune_core::collective::Collective;

use crate::abi::{self, Aint, Comm, Datatype, bits, is_in_place};
use crate::arguments::Side;
use crate::private;
use crate::scratch::{self, User};
use crate::world::World;

/// Runs an alltoall or allgather as one of bytes, where the library needs that. `modified_bruck` of Open MPI 4.1 and
/// 5.0 reads the input as if it had the output's type, so a transposition by types comes out wrong. Both it and
/// `bruck` of allgather write outside of their memory where the extent is negative. `brucks` of MPICH 4.0.2 takes
/// blocks of pair types above 8 KiB for too long. `None` where the call is right as it is.
///
/// The bytes of each message stay the same, so ranks need not do so alike.
///
/// # Safety
/// The arguments are those of a valid MPI_Alltoall or MPI_Allgather on a communicator with the members of `comm`.
#[inline]
pub unsafe fn blocks_as_bytes(
    world: &World,
    collective: Collective,
    (send, recv): (Side, Side),
    comm: Comm,
) -> Option<c_int> {
    let exchanged = match collective {
        Collective::Alltoall => true,
        Collective::Allgather if cfg!(mpi = "openmpi") => false,
        _ => return None,
    };
    let in_place = is_in_place(send.start);
    let types = [if in_place { recv } else { send }.datatype, recv.datatype];
    // The library reports an invalid type, once.
    let null = bits(world.handles.datatype_null);
    if types.map(bits).contains(&null) || exchanged && in_place {
        return None;
    }
    let plain = |datatype: &Datatype| world.types.get(*datatype).is_some();
    let is_right = if cfg!(mpi = "openmpi") {
        let forward =
            |datatype: &Datatype| world.stride(*datatype).is_none_or(|stride| stride >= 0);
        let alike = !exchanged || bits(types[0]) == bits(types[1]);
        types.iter().all(plain) || alike && types.iter().all(forward)
    } else {
        // MPICH 4.0 does not pack from MPI_BOTTOM, on which no pair type lies.
        types
            .iter()
            .all(|datatype| world.pairs.get(*datatype).is_none())
    };
    if is_right {
        return None;
    }
    // SAFETY: the caller promises the arguments of a valid call on a communicator with these members.
    unsafe { packed(world, exchanged, (send, recv), comm) }
}

#[cold]
unsafe fn packed(
    world: &World,
    exchanged: bool,
    (send, recv): (Side, Side),
    comm: Comm,
) -> Option<c_int> {
    let pmpi = world.pmpi;
    let (mut rank, mut n) = (0, 0);
    // SAFETY: the communicator is valid by the caller's promise.
    unsafe {
        (pmpi.comm_rank)(comm, &mut rank);
        (pmpi.comm_size)(comm, &mut n);
    }
    // In place an allgather gives the own block of what it gets.
    let send = match is_in_place(send.start) {
        true => {
            let stride = world.stride(recv.datatype)?;
            let skip = stride.checked_mul(Aint::try_from(rank).ok()? * recv.count as Aint)?;
            Side {
                start: recv.start.wrapping_byte_offset(skip),
                ..recv
            }
        }
        false => send,
    };
    let (send_count, recv_count) = (send.count as c_int, recv.count as c_int);
    let (send_type, recv_type) = (send.datatype, recv.datatype);
    let (mut sent, mut received) = (0, 0);
    // SAFETY: the types are valid by the caller's promise.
    unsafe {
        (pmpi.type_size)(send_type, &mut sent);
        (pmpi.type_size)(recv_type, &mut received);
    }
    let n_to = if exchanged { n } else { 1 };
    // Messages that ints cannot count are the library's to run as they are.
    let (sent, received): (c_int, c_int) = (
        sent.checked_mul(send_count)?,
        received.checked_mul(recv_count)?,
    );
    let (all_sent, all_received) = (sent.checked_mul(n_to)?, received.checked_mul(n)?);
    let (n_sent, n_received) = (send_count.checked_mul(n_to)?, recv_count.checked_mul(n)?);
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
                let function = match exchanged {
                    true => pmpi.collectives.alltoall,
                    false => pmpi.collectives.allgather,
                };
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
