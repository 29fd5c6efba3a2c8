//! A collective's arguments in C's terms: what they say of its cell, and how the library runs them.
//!
//! The C function, its large-count form and Fortran's entry point of a collective fill the same form,
//! so that they share one path. Forms read shared facts alone; where MPI says that an argument has no
//! meaning on a rank, the form does not look at it.

mod listed;
mod message;
mod moving;
mod reducing;

use std::ffi::{c_int, c_void};

use colltune_core::decide::Decision;
use colltune_core::decide::call::{SharedCall, SharedDetails};
use colltune_core::decide::rules::Telling;

pub use listed::{Exchanged, ExchangedByType, Gathered, ListedSide, Scattered};
pub use message::MessageArguments;
pub use moving::{Barrier, Bcast, EqualBlocks};
pub use reducing::{ReduceScatter, Reduction};

use crate::abi::{self, Comm, Datatype, bits, is_in_place};
use crate::arguments::{Arguments, Side};
use crate::library::collectives::{Collectives, Number};
use crate::tune::{Tuner, Ways};
use crate::world::World;

/// The arguments of one call, without the communicator.
pub trait Form: Copy {
    type Number: Number;

    /// The call as all ranks of a communicator of so many see it, whatever this rank's arguments are.
    fn shared(&self, world: &World, n_ranks: u32) -> SharedCall;

    /// What else all ranks know of it.
    fn details(&self, world: &World, n_ranks: u32) -> SharedDetails;

    /// Whether every library refuses these arguments on this rank, at once and without a message. Some that it
    /// refuses, too, are found out by its answer alone.
    fn is_refused(&self, world: &World, comm: Comm, n_ranks: u32) -> bool;

    /// Runs a call that is like the communicator's last one, where that has a short way; `None` where it
    /// is not.
    #[inline(always)]
    fn repeat(&self, _: &Tuner, _: Comm) -> Option<c_int> {
        None
    }

    /// What our own algorithms need.
    fn arguments(&self) -> Arguments;

    /// Runs the library's own function.
    ///
    /// # Safety
    /// The arguments are valid for this collective on `comm`.
    unsafe fn native(
        &self,
        tuner: &Tuner,
        library: &Collectives<Self::Number>,
        comm: Comm,
    ) -> c_int;
}

/// Tunes a call; `None` when it simply runs `default`, and then [`failed`] follows if it fails.
#[inline(always)]
pub fn run(
    tuner: &'static Tuner,
    form: impl Form,
    comm: Comm,
    default: impl Fn() -> c_int,
) -> Option<c_int> {
    if let Some(code) = form.repeat(tuner, comm) {
        return Some(code);
    }
    let library = Number::library(tuner.pmpi)?;
    // SAFETY: the application passed a communicator that it may use for this collective now.
    let state = unsafe { tuner.registry.find(comm) }?;
    let n_ranks = state.n_ranks;
    let call = form.shared(tuner, n_ranks);
    let details = move || form.details(tuner, n_ranks);
    let decision = state.decider.decide(&tuner.rules, call, details);
    let is_default = matches!(decision, Decision::Default);
    if is_default && tuner.is_plain {
        return None;
    }
    let span = tuner
        .account
        .as_ref()
        .and_then(|account| account.count(call));
    if is_default && span.is_none() && tuner.rules.telling == Telling::Needed {
        return None;
    }
    // The form goes along by value, so that it need not lie in memory before.
    let native = move |comm| {
        // SAFETY: only the communicator differs from what the caller promised to be valid, and it has
        // the same members in the same order.
        unsafe { form.native(tuner, library, comm) }
    };
    let ways = Ways {
        is_refused: move || form.is_refused(tuner, comm, n_ranks),
        details,
        arguments: move || form.arguments(),
        default,
        native,
    };
    Some(tuner.carry_out(state, call, decision, &ways))
}

/// The library's own choice, as which [`run`] left a call, returned an error on this rank.
#[cold]
pub fn failed(tuner: &'static Tuner, form: impl Form, comm: Comm, code: c_int) {
    // SAFETY: `run` has just found this communicator's state, and the call on it is still the only one.
    let Some(state) = (unsafe { tuner.registry.find_again(comm) }) else {
        return;
    };
    let call = form.shared(tuner, state.n_ranks);
    tuner.take_back_if_refused(state, call, code);
}

/// The numbers of a list with one for each rank; `None` where one is wrong, for the library to say so.
///
/// # Safety
/// `list` is null or holds as many numbers as there are ranks.
#[inline]
unsafe fn numbers<'a, N: Number>(list: *const N, n_ranks: u32) -> Option<&'a [N]> {
    if list.is_null() {
        return None;
    }
    // SAFETY: a list that is not null holds a number for each rank, as the caller promises; nobody writes it
    // meanwhile.
    let list = unsafe { std::slice::from_raw_parts(list, n_ranks as usize) };
    list.iter()
        .all(|&number| number.into() >= 0)
        .then_some(list)
}

/// The sum of a list that [`numbers`] gave.
#[inline]
fn sum<N: Number>(list: &[N]) -> u64 {
    list.iter().fold(0u64, |sum, &number| {
        sum.saturating_add(number.into().unsigned_abs())
    })
}

/// A count that none is.
const WRONG: i64 = -1;

/// Whether so many elements of a type are refused.
#[inline]
fn is_wrong<N: Number>(world: &World, count: N, datatype: Datatype) -> bool {
    count.into() < 0 || world.is_no_type(datatype)
}

/// Whether a result is to lie in place, which no library takes but MPICH where there is none.
#[inline]
fn is_into_place(recv: *const c_void, count: impl Into<i64>) -> bool {
    is_in_place(recv) && (cfg!(mpi = "openmpi") || count.into() != 0)
}

/// Whether a root is none of the communicator's ranks.
#[inline]
fn is_beyond(root: c_int, n_ranks: u32) -> bool {
    u32::try_from(root).map_or(true, |root| root >= n_ranks)
}

/// This rank in a communicator, where it is the root of the call.
#[cold]
fn own_rank_at_root(world: &World, comm: Comm, root: c_int) -> Option<usize> {
    let mut own = -1;
    // SAFETY: the communicator was found to have a state, so it is valid; one number is written.
    let code = unsafe { (world.pmpi.comm_rank)(comm, &mut own) };
    let is_root = code == abi::SUCCESS && own == root;
    is_root.then(|| usize::try_from(own).ok())?
}

/// Whether this rank is the root, and its own block lies where it goes to: MPICH refuses that where both sides have
/// one type and count. `own` gives the count of a rank's block among all, and how many elements lie before it.
#[inline]
fn is_own_block(
    world: &World,
    (comm, root): (Comm, c_int),
    block: Side,
    all: Side,
    own: impl FnOnce(usize) -> Option<(i64, i64)>,
) -> bool {
    let is_one_type = bits(block.datatype) == bits(all.datatype);
    let is_nowhere = block.start.is_null() || is_in_place(block.start);
    if cfg!(mpi = "openmpi") || !is_one_type || block.count == 0 || is_nowhere {
        return false;
    }
    let found = own_rank_at_root(world, comm, root).and_then(own);
    found
        .zip(world.type_bytes(all.datatype))
        .is_some_and(|((count, before), bytes)| {
            let skip = (before as usize).wrapping_mul(bytes as usize);
            block.count == count && block.start == all.start.wrapping_byte_add(skip)
        })
}

/// The sum of a list as a count; a wrong one where the list is.
#[inline]
fn total<N: Number>(list: Option<&[N]>) -> i64 {
    list.map_or(WRONG, |list| i64::try_from(sum(list)).unwrap_or(i64::MAX))
}
