//! Reduce_scatters in place, with their operands apart.

use std::ffi::{c_int, c_void};

use crate::abi::{self, Comm};
use crate::arguments::Reduction;
use crate::arguments::lists::List;
use crate::members;
use crate::p2p::endpoint::Endpoint;
use crate::scratch::{self, User};
use crate::world::World;

/// Runs a reduce_scatter in place with a copy of the operands, which `run` gets. Each rank may be in place or not as it
/// likes (MPI 3.1, 5.10.2), so ranks cannot agree to run something else then. But the library's algorithms differ in
/// what they leave behind a result in place. None of them touches that where the operands are elsewhere.
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
        let copied = Endpoint::new(world, 0).and_then(|endpoint| {
            // SAFETY: the caller promises so many elements in place, and the scratch has room for them.
            unsafe { endpoint.copy(&unit, memory.start, operands, units) }
        });
        match copied {
            Ok(()) => run(operands.cast_const().cast()),
            Err(_) => in_place(),
        }
    })
}
