//! The neighbour graph of a mesh.

use std::ffi::c_int;

use crate::convert::{check_mesh, slice, slice_mut};
use crate::fence::{Failure, fence};
use crate::layout::Contact;
use placement::Octant;
use placement::curve::{ContactBytes, neighbours};

/// Builds the neighbour graph; see the header.
///
/// # Safety
/// Each pointer is null or points to as many valid entries as the header asks for.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn colltune_placement_neighbours(
    dimensions: u8,
    octants: *const Octant,
    n: usize,
    contact: *const Contact,
    offsets: *mut u64,
    ids: *mut u32,
    bytes: *mut u64,
    room: usize,
    edges: *mut usize,
) -> c_int {
    fence(|| {
        // SAFETY: the caller promises that non-null pointers are valid; null is refused inside.
        let (octants, contact) = unsafe {
            (
                slice(octants, n, "the octants")?,
                slice(contact, 1, "the bytes of a contact")?[0],
            )
        };
        let mesh = check_mesh(dimensions, octants)?;
        let Contact { face, edge, corner } = contact;
        let found = neighbours(mesh, ContactBytes { face, edge, corner });
        let only_count = ids.is_null() && bytes.is_null() && room == 0;
        let needed = found.neighbours.len();
        // SAFETY: the caller promises room for one number.
        unsafe { slice_mut(edges, 1, "the number of edges")?[0] = needed };
        if only_count {
            return Ok(());
        }
        if needed > room {
            return Err(Failure::value(format!(
                "store the neighbours: there is room for {room} of {needed}"
            )));
        }
        // SAFETY: the caller promises room for n + 1 offsets and `room` of the others; the inputs are no longer used.
        unsafe {
            slice_mut(offsets, n + 1, "the graph's offsets")?.copy_from_slice(&found.offsets);
            slice_mut(ids, needed, "the graph's neighbours")?.copy_from_slice(&found.neighbours);
            slice_mut(bytes, needed, "the graph's bytes")?.copy_from_slice(&found.bytes);
        }
        Ok(())
    })
}
