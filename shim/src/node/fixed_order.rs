//! Combining the operands of a node's ranks in the fixed order: part by part, with partial results on the stack.

use std::ffi::c_int;
use std::mem::MaybeUninit;

use colltune_core::algorithm::fixed_order::{self, FoldStep, slots};
use colltune_core::catalogue::FOLDED_MOST;

use super::elements::Elements;

/// Partial results of the most ranks, the final one included.
pub const SLOTS: usize = slots(FOLDED_MOST as usize);
/// Bytes of a part: what is combined stays in the nearest cache.
const PART: usize = 2 << 10;

/// Room for a part, aligned for any type.
#[repr(C, align(64))]
struct Part([u8; PART]);

/// Combines units of all ranks, which `operand` says where they lie, into `into`.
///
/// # Safety
/// The units have no holes, lie at all these places, and have room at `into`, which is none of them.
#[cold]
#[inline(never)]
pub unsafe fn combine(
    elements: &Elements,
    n_ranks: usize,
    operand: &dyn Fn(usize) -> *const u8,
    units: u64,
    into: *mut u8,
) -> Result<(), c_int> {
    let mut room = [const { MaybeUninit::<Part>::uninit() }; SLOTS - 1];
    let unit_bytes = elements.unit_bytes.max(1);
    let per_part = match n_ranks {
        // There is nothing but the result.
        0..=2 => units,
        _ => PART as u64 / unit_bytes,
    };
    let mut done = 0;
    while done < units {
        let (skip, part) = (elements.bytes(done), per_part.min(units - done));
        let result = into.wrapping_add(skip);
        let mut place = |slot: usize| match slot {
            0 => result,
            _ => room[slot - 1].as_mut_ptr().cast(),
        };
        let given = |rank| operand(rank).wrapping_add(skip).cast_mut();
        fixed_order::combine(n_ranks, |step| {
            // SAFETY: the caller promises the operands and the result; a slot has room for a part. No two are one.
            unsafe {
                match step {
                    FoldStep::Take { rank, slot } => {
                        let bytes = elements.bytes(part);
                        std::ptr::copy_nonoverlapping(given(rank), place(slot), bytes);
                        Ok(())
                    }
                    FoldStep::Before { rank, slot } => {
                        elements.combine_own(given(rank), part, place(slot))
                    }
                    FoldStep::Merge { slot } => {
                        elements.combine_own(place(slot + 1), part, place(slot))
                    }
                }
            }
        })?;
        done += part;
    }
    Ok(())
}
