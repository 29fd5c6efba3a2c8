//! What the ranks tell each other at the start, by collectives over the world.

use std::ffi::{c_int, c_void};

use bincode::{Decode, Encode};
use colltune_core::processors::{Allowed, Quota};

use crate::abi;
use crate::clock::Conversion;
use crate::handout::Handout;
use crate::library::{Handles, Pmpi};

/// What each rank tells all others once. Every rank holds those of all for a moment, so each is short.
#[derive(Encode, Decode)]
pub struct Card {
    pub host: u64,
    pub clock: Conversion,
    pub processors: Allowed,
    pub quota: Quota,
}

/// Every rank's card, by rank. Collective over the world.
pub fn exchange(pmpi: &Pmpi, handles: &Handles, n_ranks: u32, own: &Card) -> Option<Vec<Card>> {
    let config = bincode::config::standard().with_fixed_int_encoding();
    let own = bincode::encode_to_vec(own, config).ok()?;
    let mut all = vec![0u8; own.len() * n_ranks as usize];
    let length = own.len() as c_int;
    // SAFETY: each rank sends `length` bytes and receives that many from each.
    let code = unsafe {
        (pmpi.allgather)(
            own.as_ptr().cast(),
            length,
            handles.byte,
            all.as_mut_ptr().cast(),
            length,
            handles.byte,
            handles.comm_world,
        )
    };
    let cards = all.chunks_exact(own.len()).map(|card| {
        bincode::decode_from_slice(card, config)
            .ok()
            .map(|(card, _)| card)
    });
    if code == abi::SUCCESS {
        cards.collect()
    } else {
        None
    }
}

/// Rank 0 reads, everybody receives. Collective over the world.
pub fn hand_out(
    pmpi: &Pmpi,
    handles: &Handles,
    rank: u32,
    read: impl FnOnce() -> Option<Handout>,
) -> Option<Handout> {
    let config = bincode::config::standard();
    let own = match rank {
        0 => read(),
        _ => None,
    };
    let encoded = own.as_ref().map(|own| bincode::encode_to_vec(own, config));
    let mut bytes = encoded.and_then(Result::ok).unwrap_or_default();
    let mut length = [bytes.len() as u64];
    let bcast = |buffer: *mut u8, count: usize| {
        let Ok(count) = c_int::try_from(count) else {
            return false;
        };
        // SAFETY: the buffer holds `count` bytes on every rank.
        unsafe {
            (pmpi.bcast)(buffer.cast(), count, handles.byte, 0, handles.comm_world) == abi::SUCCESS
        }
    };
    if !bcast(length.as_mut_ptr().cast(), 8) || length[0] == 0 {
        return None;
    }
    bytes.resize(length[0] as usize, 0);
    if !bcast(bytes.as_mut_ptr(), bytes.len()) {
        return None;
    }
    if own.is_some() {
        return own;
    }
    bincode::decode_from_slice(&bytes, config)
        .ok()
        .map(|(handout, _)| handout)
}

/// Replaces each number by the largest that a rank has. Collective over the world.
pub fn largest(pmpi: &Pmpi, handles: &Handles, numbers: &mut [u64]) {
    // SAFETY: the buffer holds as many 64-bit numbers as are announced.
    unsafe {
        (pmpi.allreduce)(
            abi::MPI_IN_PLACE as *const c_void,
            numbers.as_mut_ptr().cast(),
            numbers.len() as c_int,
            handles.uint64,
            handles.max,
            handles.comm_world,
        )
    };
}
