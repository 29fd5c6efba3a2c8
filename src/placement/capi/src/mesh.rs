//! The neighbour graph of a mesh, and when it is due to place blocks anew.

use std::ffi::{c_char, c_int};

use crate::convert::{slice, slice_mut, text, versioned};
use crate::fence::{Failure, fence};
use crate::layout::{Contact, Situation};
use placement::curve::{ContactBytes, neighbours};
use placement::{Mesh, Octant, Prospect, Trigger};

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
        let mesh = Mesh {
            dimensions,
            root_level: 0,
            octants,
        };
        // The mesh of a problem is held to the same rules.
        placement::Problem::new(&vec![0.0; n], 1)?.with_mesh(mesh)?;
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

/// Whether blocks are to be placed anew; see the header.
///
/// # Safety
/// Each pointer is null or points to what the header asks for.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn colltune_placement_is_due(
    trigger: *const c_char,
    situation: *const Situation,
    due: *mut c_int,
) -> c_int {
    fence(|| {
        // SAFETY: the caller promises that non-null pointers are valid; null is refused inside.
        let (trigger, given) = unsafe {
            (
                text(trigger, "the trigger")?,
                versioned(situation, size_of::<Situation>(), "the situation")?,
            )
        };
        let trigger: Trigger = trigger.parse()?;
        let is_due = trigger.is_due(&placement::Situation {
            steps_since_placed: given.steps_since_placed,
            mesh_changed: given.mesh_changed != 0,
            makespan: given.makespan,
            mean: given.mean,
            prospect: (given.has_prospect != 0).then_some(Prospect {
                makespan: given.prospect_makespan,
                steps_left: given.steps_left,
                placing: given.placing,
                migrating: given.migrating,
            }),
        });
        // SAFETY: the caller promises room for one number.
        unsafe { slice_mut(due, 1, "the answer")?[0] = c_int::from(is_due) };
        Ok(())
    })
}
