//! Arguments that every library refuses, at once and without a message. Some that it refuses, too, are found out by
//! its answer alone.

use std::ffi::{c_int, c_void};

use colltune_core::collective::Collective;

use super::lists::Listed;
use super::shared::{block, total};
use super::{Arguments, Counted, Reduction, Side, UnevenSide};
use crate::abi::{self, Comm, Datatype, bits, is_in_place};
use crate::world::World;

impl Arguments {
    /// Whether they are refused on this rank: by no library that does not look at them. Where the kind of arguments is
    /// known little is left of it.
    #[inline(always)]
    pub fn is_refused(
        &self,
        world: &World,
        collective: Collective,
        comm: Comm,
        n_ranks: u32,
    ) -> bool {
        if !world.checks_arguments {
            return false;
        }
        let is_beyond = u32::try_from(self.root()).map_or(true, |root| root >= n_ranks);
        is_beyond
            || match *self {
                Arguments::Reduction(reduction) => {
                    reduction.is_refused(world, collective, (comm, n_ranks))
                }
                Arguments::Bcast { all, .. } => is_wrong(world, all),
                Arguments::Blocks { send, recv, root } => {
                    is_refused_block(world, collective, (send, recv), (comm, root))
                }
                Arguments::Uneven { send, recv, root } => {
                    is_refused_list(world, collective, (send, recv), (comm, n_ranks, root))
                }
                Arguments::Nothing => false,
            }
    }
}

impl Arguments {
    /// Whether the library refuses the call on this rank since a type is not committed. It is asked by packing none of
    /// its elements: a message of none MPICH does not look at.
    ///
    /// MPICH (4.0, 5.0) refuses such types wherever they have a meaning, but in a bcast of nothing. Open MPI (4.1, 5.0)
    /// looks at what is sent, but in scatter; and at what is received in alltoall and alltoallv alone, elsewhere only
    /// whether it is a type. What it lets pass takes place.
    #[cold]
    pub fn has_uncommitted(&self, world: &World, collective: Collective, comm: Comm) -> bool {
        use UnevenSide::{Each, One};
        let is_lax = cfg!(mpi = "openmpi");
        // What has no meaning on this rank may be anything.
        let is_root = || own_rank_at_root(world, comm, self.root()).is_some();
        let sent = |start, datatype| (!is_in_place(start)).then_some(datatype);
        let strict = |datatype| (!is_lax || world.is_no_type(datatype)).then_some(datatype);
        let types = match *self {
            Arguments::Reduction(reduction) => [Some(reduction.datatype), None],
            Arguments::Bcast { all, .. } if all.count == 0 => [None, None],
            Arguments::Bcast { all, .. } => [Some(all.datatype), None],
            Arguments::Blocks { send, recv, .. } => match collective {
                Collective::Gather => [
                    sent(send.start, send.datatype),
                    strict(recv.datatype).filter(|_| is_root()),
                ],
                Collective::Scatter => [
                    sent(recv.start, recv.datatype).and_then(strict),
                    Some(send.datatype).filter(|_| !is_lax && is_root()),
                ],
                Collective::Allgather => [sent(send.start, send.datatype), strict(recv.datatype)],
                _ => [sent(send.start, send.datatype), Some(recv.datatype)],
            },
            Arguments::Uneven { send, recv, .. } => match (send, recv) {
                (One(send), Each(recv)) if collective == Collective::Allgatherv => [
                    sent(send.start, send.datatype),
                    recv.types.one().and_then(strict),
                ],
                (One(send), Each(recv)) => [
                    sent(send.start, send.datatype),
                    recv.types.one().and_then(strict).filter(|_| is_root()),
                ],
                (Each(send), One(recv)) => [
                    sent(recv.start, recv.datatype).and_then(strict),
                    send.types.one().filter(|_| is_root()),
                ],
                (Each(send), Each(recv)) if collective == Collective::Alltoallw => {
                    let sent = (!is_in_place(send.start)).then_some(send);
                    let lists = sent.into_iter().chain([recv]);
                    return lists
                        .into_iter()
                        .any(|list| has_uncommitted(world, comm, list));
                }
                (Each(send), Each(recv)) => [
                    send.types.one().filter(|_| !is_in_place(send.start)),
                    recv.types.one(),
                ],
                (One(_), One(_)) => [None, None],
            },
            Arguments::Nothing => [None, None],
        };
        types
            .into_iter()
            .flatten()
            .any(|datatype| is_uncommitted(world, datatype))
    }
}

/// Whether a type that is not committed is among those of blocks with a type each.
fn has_uncommitted(world: &World, comm: Comm, list: Listed) -> bool {
    if list.counts.is_null() || list.types.is_null() {
        return false;
    }
    let mut n_ranks = 0;
    // SAFETY: the communicator was found to have a state, so it is valid; one number is written.
    unsafe { (world.pmpi.comm_size)(comm, &mut n_ranks) };
    let mut last = None;
    (0..n_ranks as usize).any(|rank| {
        // SAFETY: MPI asks for a count and a type for each rank.
        let (count, datatype) = unsafe { (list.counts.at(rank), list.types.at(rank)) };
        count > 0 && last.replace(datatype) != Some(datatype) && is_uncommitted(world, datatype)
    })
}

/// Whether a library refuses to pack elements of a type. False without a communicator of ours to try it.
fn is_uncommitted(world: &World, datatype: Datatype) -> bool {
    let comm = world.messages.comm();
    let Some(comm) = comm.filter(|_| world.types.get(datatype).is_none()) else {
        return false;
    };
    let (mut nothing, mut at) = ([0u64; 2], 0);
    let place: *mut c_void = nothing.as_mut_ptr().cast();
    let bytes = size_of_val(&nothing) as c_int;
    // SAFETY: no element is packed; the application passed the handle as a datatype.
    let code = unsafe { (world.pmpi.pack)(place, 0, datatype, place, bytes, &mut at, comm) };
    code != abi::SUCCESS
}

#[inline(always)]
fn is_refused_block(
    world: &World,
    collective: Collective,
    (send, recv): (Side, Side),
    at: (Comm, c_int),
) -> bool {
    let (all, own) = match collective {
        Collective::Gather => (recv, send),
        Collective::Scatter => (send, recv),
        _ => {
            let is_wrong_sent = !is_in_place(send.start) && is_wrong(world, send);
            let is_wrong_received =
                is_wrong(world, recv) || is_into_place(recv.start, || recv.count);
            return is_wrong_sent || is_wrong_received;
        }
    };
    let place = |rank| Some((all.count, all.count.checked_mul(rank as i64)?));
    is_wrong(world, block(collective, send, recv)) || is_own_block(world, at, own, all, place)
}

fn is_refused_list(
    world: &World,
    collective: Collective,
    sides: (UnevenSide, UnevenSide),
    (comm, n_ranks, root): (Comm, u32, c_int),
) -> bool {
    use UnevenSide::{Each, One};
    let (own, all) = match sides {
        (_, Each(recv)) if collective == Collective::Allgatherv => {
            let count = total(recv.counts, n_ranks);
            let is_no_type = recv
                .types
                .one()
                .is_none_or(|datatype| world.is_no_type(datatype));
            return count < 0 || is_no_type || is_into_place(recv.start, || count);
        }
        (Each(_), Each(recv)) => {
            let count = || total(recv.counts, n_ranks);
            return recv.counts.is_null() || is_into_place(recv.start, count);
        }
        (One(send), Each(recv)) => (send, recv),
        (Each(send), One(recv)) => (recv, send),
        (One(_), One(_)) => return false,
    };
    let Some(datatype) = all.types.one() else {
        return false;
    };
    let whole = Side {
        start: all.start,
        count: own.count,
        datatype,
    };
    is_own_block(world, (comm, root), own, whole, |rank| own_place(all, rank))
}

/// The count and displacement of a rank's block at a root; `None` where there are none.
fn own_place(all: Listed, rank: usize) -> Option<(i64, i64)> {
    if all.counts.is_null() || all.places.is_null() {
        return None;
    }
    // SAFETY: MPI asks the root for a count and a displacement for each rank.
    Some(unsafe { (all.counts.at(rank), all.places.at(rank)) })
}

impl Reduction {
    #[inline(always)]
    fn is_refused(
        &self,
        world: &World,
        collective: Collective,
        (comm, n_ranks): (Comm, u32),
    ) -> bool {
        if self.has_no_operation(world) || world.is_no_type(self.datatype) {
            return true;
        }
        let count = match self.count {
            Counted::All(count) => count,
            Counted::Each(counts) => return total(counts, n_ranks) < 0,
        };
        let in_place = || is_into_place(self.recv, || count) || self.is_alias(collective, count);
        count < 0
            || (count > 0 && self.has_no_operands(world))
            || match collective {
                Collective::Allreduce | Collective::Scan => in_place(),
                Collective::Reduce => self.is_refused_by_role(world, comm, count),
                _ => false,
            }
    }

    /// Whether there is no buffer where there are elements; Open MPI reads it all the same. An address of 0 may be right
    /// where a type has absolute ones.
    fn has_no_operands(&self, world: &World) -> bool {
        !cfg!(mpi = "openmpi") && self.send.is_null() && world.types.get(self.datatype).is_some()
    }

    /// Whether a reduce is refused on this rank for its buffers: the root's result may lie neither in place nor where
    /// its operands are, the others have operands.
    fn is_refused_by_role(&self, world: &World, comm: Comm, count: i64) -> bool {
        let has_alias = !self.send.is_null() && self.send == self.recv.cast_const();
        let at_root = is_in_place(self.recv) || has_alias;
        let elsewhere = is_in_place(self.send);
        // Of nothing libraries take what they like.
        if count == 0 || (!at_root && !elsewhere) {
            return false;
        }
        match own_rank_at_root(world, comm, self.root) {
            Some(_) => at_root,
            None => elsewhere,
        }
    }

    /// Whether both buffers are one where the library refuses that on every rank: MPICH where there are elements;
    /// Open MPI where there are several, and not in a scan (`allreduce.c`, `scan.c` of 4.1.4 and 5.0.5).
    fn is_alias(&self, collective: Collective, count: i64) -> bool {
        let refused = match (cfg!(mpi = "openmpi"), collective) {
            (true, Collective::Allreduce) => count > 1,
            (true, _) => false,
            (false, _) => count != 0,
        };
        refused && self.send == self.recv.cast_const()
    }
}

/// Whether so many elements of a type are refused.
#[inline(always)]
fn is_wrong(world: &World, side: Side) -> bool {
    side.count < 0 || world.is_no_type(side.datatype)
}

/// Whether a result is to lie in place, which no library takes but MPICH where there is none.
#[inline(always)]
fn is_into_place(recv: *const std::ffi::c_void, count: impl Fn() -> i64) -> bool {
    is_in_place(recv) && (cfg!(mpi = "openmpi") || count() != 0)
}

/// This rank in a communicator, where it is the root of the call.
#[cold]
pub fn own_rank_at_root(world: &World, comm: Comm, root: c_int) -> Option<usize> {
    let mut own = -1;
    // SAFETY: the communicator was found to have a state, so it is valid; one number is written.
    let code = unsafe { (world.pmpi.comm_rank)(comm, &mut own) };
    let is_root = code == abi::SUCCESS && own == root;
    is_root.then(|| usize::try_from(own).ok())?
}

/// Whether this rank is the root, and its own block lies where it goes to: MPICH refuses that where both sides have
/// one type and count. `own` gives the count of a rank's block among all, and how many elements lie before it.
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
