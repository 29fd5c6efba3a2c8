//! Reduce_scatters in place, with their operands apart.

use std::ffi::{c_int, c_void};

use crate::abi::{self, Comm};
use crate::arguments::lists::List;
use crate::arguments::{Reduction, Typed, Unit};
use crate::members;
use crate::p2p::endpoint::Endpoint;
use crate::scratch::{self, User};
use crate::world::World;

/// Runs a reduce_scatter in place with a copy of the operands, which `run` gets. Each rank may be in place or not as it
/// likes (MPI 3.1, 5.10.2), so ranks cannot agree to run something else then; but the library's algorithms differ in
/// what they leave behind a result in place, and none of them touches that where the operands are elsewhere.
///
/// # Safety
/// The arguments are those of a valid MPI_Reduce_scatter in place.
#[cold]
pub unsafe fn reduce_scatter_apart(
    world: &World,
    of: Reduction,
    (counts, comm): (List, Comm),
    run: impl Fn(*const c_void) -> c_int,
) -> c_int {
    // As it came it is as right, and the other ranks need not know.
    let in_place = || run(abi::MPI_IN_PLACE as *const c_void);
    let n_ranks = members::size(world, comm);
    // SAFETY: MPI asks for a count for each rank.
    let units = unsafe { counts.sum(n_ranks) };
    // What cannot be one is the library's to refuse.
    let memory = units.and_then(|units| {
        let count = i64::try_from(units).ok()?;
        world.memory(of.recv, count, of.datatype)
    });
    let Some((memory, unit)) = memory.zip(world.element(of.datatype, of.op)) else {
        return in_place();
    };
    let units = memory.count;
    scratch::with(User::Schedule, |scratch| {
        if !scratch.block.reserve(unit.bytes(units).max(1)) {
            return in_place();
        }
        let operands = unit.first(scratch.block.start(), units);
        // SAFETY: the caller promises so many elements in place, and the scratch has room for them.
        match unsafe { copy(world, &unit, (memory.start, operands), units) } {
            Ok(()) => run(operands.cast_const().cast()),
            Err(_) => in_place(),
        }
    })
}

/// # Safety
/// The elements lie at the first place, and there is room for them at the second.
unsafe fn copy(
    world: &World,
    unit: &Unit,
    (from, to): (*mut u8, *mut u8),
    units: u64,
) -> Result<(), c_int> {
    if unit.plain {
        // SAFETY: elements without holes are their bytes; the scratch is nobody else's.
        unsafe { std::ptr::copy_nonoverlapping(from, to, unit.bytes(units)) };
        return Ok(());
    }
    let elements = |start| Typed {
        start,
        count: units,
        datatype: unit.datatype,
    };
    let endpoint = Endpoint::new(world, 0)?;
    // SAFETY: as the caller promises.
    unsafe { endpoint.message_to_self(elements(from), elements(to)) }
}
