//! Who belongs to a communicator: the rank in the world of each of its members.
//!
//! The library's own answer (MPI_Group_translate_ranks) is quadratic in Open MPI: it looks through the world for each
//! member. Small communicators have it, wide ones exchange what each member knows of itself. A member of another world
//! may have no shim and never come to an exchange, so whoever may have met one asks the library first. Ranks of two
//! worlds come into one intracommunicator by MPI_Intercomm_merge alone (the process sets of sessions are of one world),
//! which all its members call: one that never did has met no other world. So all members of a communicator decide
//! alike whether they exchange, though not all of them ask the library before.

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::abi::{self, Comm};
use crate::frames;
use crate::world::World;

/// The most members whose ranks the library translates where they could be exchanged. From about here on an exchange
/// is quicker.
const TRANSLATED_MOST: usize = 32;
/// The most for whom a rank asks the library by itself, where nothing can be exchanged: 4 ms.
const TRANSLATED_ALONE_MOST: usize = 2048;

/// Whether this process may be in a communicator with ranks of another world.
static MET_OTHERS: AtomicBool = AtomicBool::new(false);

/// Called before a function that may put ranks of another world beside this one.
pub fn may_meet_others() {
    MET_OTHERS.store(true, Ordering::Relaxed);
}

/// Why the members of a communicator are not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unknown {
    /// Some are of another world; all members of this one see that.
    Foreign,
    /// The library reported an error, perhaps on this rank alone.
    Failed,
}

/// For each rank of `comm` its rank in the world. Collective in wide communicators whose members are all of this world.
pub fn world_ranks(world: &World, comm: Comm) -> Result<Vec<c_int>, Unknown> {
    let n_ranks = size(world, comm);
    let wide = n_ranks > TRANSLATED_MOST;
    if !wide || MET_OTHERS.load(Ordering::Relaxed) {
        let known = translated(world, comm, n_ranks);
        if !wide || known == Err(Unknown::Foreign) {
            return known;
        }
    }
    exchanged(world, comm, n_ranks)
}

/// For each rank of `comm` the number of its node, in any order, without a word to the others; `None` where that would
/// take long, and for members of another world.
pub fn nodes_alone(world: &World, comm: Comm) -> Option<Vec<u32>> {
    let n_ranks = size(world, comm);
    // As many as the world, and no rank of another: all of it.
    if n_ranks == world.node_of_rank.len() && !MET_OTHERS.load(Ordering::Relaxed) {
        return Some(world.node_of_rank.clone());
    }
    if n_ranks > TRANSLATED_ALONE_MOST {
        return None;
    }
    let ranks = translated(world, comm, n_ranks).ok()?;
    ranks.iter().map(|&rank| node_of(world, rank)).collect()
}

/// For each rank of `comm` its rank in the world, in any order; as [`nodes_alone`].
pub fn world_ranks_alone(world: &World, comm: Comm) -> Option<Vec<c_int>> {
    let n_ranks = size(world, comm);
    if n_ranks == world.node_of_rank.len() && !MET_OTHERS.load(Ordering::Relaxed) {
        return Some((0..n_ranks as c_int).collect());
    }
    match n_ranks <= TRANSLATED_ALONE_MOST {
        true => translated(world, comm, n_ranks).ok(),
        false => None,
    }
}

/// The number of a rank's node; `None` where it is of another world.
pub fn node_of(world: &World, rank: c_int) -> Option<u32> {
    world.node_of_rank.get(usize::try_from(rank).ok()?).copied()
}

/// How many there are.
pub fn size(world: &World, comm: Comm) -> usize {
    let mut n_ranks = 0;
    // SAFETY: the communicator is valid; one number is written.
    unsafe { (world.pmpi.comm_size)(comm, &mut n_ranks) };
    usize::try_from(n_ranks).unwrap_or(0)
}

/// Each member tells the others its rank.
fn exchanged(world: &World, comm: Comm, n_ranks: usize) -> Result<Vec<c_int>, Unknown> {
    let own = world.rank as c_int;
    let mut ranks = vec![abi::MPI_UNDEFINED as c_int; n_ranks];
    let (bytes, byte) = (size_of::<c_int>() as c_int, world.handles.byte);
    // SAFETY: one number of each member is read, and the list has a place for each of them.
    let exchange = || unsafe {
        let (send, recv) = ((&raw const own).cast::<c_void>(), ranks.as_mut_ptr().cast());
        (world.pmpi.allgather)(send, bytes, byte, recv, bytes, byte, comm)
    };
    let code = frames::keep_out(exchange);
    if code != abi::SUCCESS {
        return Err(Unknown::Failed);
    }
    all_here(world, ranks).ok_or(Unknown::Failed)
}

/// The library looks them up.
fn translated(world: &World, comm: Comm, n_ranks: usize) -> Result<Vec<c_int>, Unknown> {
    let ranks: Vec<c_int> = (0..n_ranks as c_int).collect();
    let mut in_world = vec![abi::MPI_UNDEFINED as c_int; n_ranks];
    let (mut group, mut world_group) = (world.handles.comm_null, world.handles.comm_null);
    // SAFETY: groups are made, used and freed here; both lists are `n_ranks` long.
    unsafe {
        (world.pmpi.comm_group)(comm, &mut group);
        (world.pmpi.comm_group)(world.handles.comm_world, &mut world_group);
        (world.pmpi.group_translate_ranks)(
            group,
            n_ranks as c_int,
            ranks.as_ptr(),
            world_group,
            in_world.as_mut_ptr(),
        );
        (world.pmpi.group_free)(&mut group);
        (world.pmpi.group_free)(&mut world_group);
    }
    all_here(world, in_world).ok_or(Unknown::Foreign)
}

/// The ranks, where all are of this world.
fn all_here(world: &World, ranks: Vec<c_int>) -> Option<Vec<c_int>> {
    let are_here = ranks.iter().all(|&rank| node_of(world, rank).is_some());
    are_here.then_some(ranks)
}
