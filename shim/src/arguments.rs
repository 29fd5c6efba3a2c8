//! What the application passed, what all ranks know of it, and the one [`View`] that this rank makes of it: units,
//! lengths, buffers.
//!
//! Here alone MPI's rules about arguments are known: what all ranks know of a call ([`shared`]), which arguments every
//! library refuses ([`refusal`]), and how each collective's arguments become a view, those that [`reducing`] combines
//! and those that [`moving`] moves, over [`memory`] of the application and its [`lists`] of counts.

pub mod lists;
pub mod memory;
mod view;
pub use view::{Before, Combine, Input, Members, Memory, Output, Typed, Uneven, Unit, View};

mod moving;
mod reducing;
mod refusal;
mod shared;

use std::ffi::{c_int, c_void};

use colltune_core::collective::Collective;

use crate::abi::{Datatype, Op, bits};
use crate::world::World;
use lists::{List, Listed};

/// The arguments of a call, in the shape of its collective. The root of those without one is 0.
#[derive(Clone, Copy)]
pub enum Arguments {
    Reduction(Reduction),
    Bcast {
        all: Side,
        root: c_int,
    },
    /// Allgather, alltoall, gather and scatter.
    Blocks {
        send: Side,
        recv: Side,
        root: c_int,
    },
    /// Allgatherv, alltoallv, gatherv and scatterv.
    Uneven {
        send: UnevenSide,
        recv: UnevenSide,
        root: c_int,
    },
    /// Alltoallw, which the library alone runs.
    Types {
        send: *const c_void,
        recv: *mut c_void,
        received: List,
    },
    /// The barrier.
    Nothing,
}

/// The arguments of all that combine.
#[derive(Clone, Copy)]
pub struct Reduction {
    pub send: *const c_void,
    pub recv: *mut c_void,
    pub count: Counted,
    pub datatype: Datatype,
    pub op: Op,
    pub root: c_int,
}

/// The elements of a reduction.
#[derive(Clone, Copy)]
pub enum Counted {
    /// So many, or in each block of a reduce_scatter_block.
    All(i64),
    /// Those of each rank's result; the same on all ranks.
    Each(List),
}

impl Counted {
    #[inline(always)]
    pub fn all(count: impl Into<i64>) -> Counted {
        Counted::All(count.into())
    }
}

/// One block of a call, or one of several equal ones, as its arguments say it.
#[derive(Clone, Copy)]
pub struct Side {
    pub start: *mut c_void,
    pub count: i64,
    pub datatype: Datatype,
}

impl Side {
    #[inline(always)]
    pub fn new(start: *const c_void, count: impl Into<i64>, datatype: Datatype) -> Side {
        Side {
            start: start.cast_mut(),
            count: count.into(),
            datatype,
        }
    }

    /// Of one that is right.
    pub fn typed(self) -> Typed {
        Typed {
            start: self.start.cast(),
            count: self.count as u64,
            datatype: self.datatype,
        }
    }

    /// Whether both are the same bytes. Two types over one address may name different ones.
    fn is(self, other: Side, world: &World) -> bool {
        let plain = |side: Side| world.types.get(side.datatype).is_some();
        let one_type = bits(self.datatype) == bits(other.datatype) && self.count == other.count;
        self.start == other.start && (one_type || (plain(self) && plain(other)))
    }
}

/// What one side of a call with uneven blocks has.
#[derive(Clone, Copy)]
pub enum UnevenSide {
    One(Side),
    Each(Listed),
}

/// The arguments of a reduction.
#[inline(always)]
pub fn reduction(
    (send, recv): (*const c_void, *mut c_void),
    count: Counted,
    datatype: Datatype,
    op: Op,
    root: c_int,
) -> Arguments {
    Arguments::Reduction(Reduction {
        send,
        recv,
        count,
        datatype,
        op,
        root,
    })
}

/// Those of equal blocks.
#[inline(always)]
pub fn blocks<N: Into<i64>>(
    send: (*const c_void, N, Datatype),
    recv: (*mut c_void, N, Datatype),
    root: c_int,
) -> Arguments {
    Arguments::Blocks {
        send: Side::new(send.0, send.1, send.2),
        recv: Side::new(recv.0, recv.1, recv.2),
        root,
    }
}

/// Those of blocks of which each has a length of its own.
#[inline(always)]
pub fn uneven(send: UnevenSide, recv: UnevenSide, root: c_int) -> Arguments {
    Arguments::Uneven { send, recv, root }
}

/// Whether the library takes the same buffer twice for a call in place. MPICH refuses it, and
/// shall say so; in Open MPI such programs run, and a rank that alone ran `default` would hang them.
const ALIASES: bool = cfg!(mpi = "openmpi");

impl Arguments {
    #[inline(always)]
    fn root(&self) -> c_int {
        match *self {
            Arguments::Reduction(Reduction { root, .. })
            | Arguments::Bcast { root, .. }
            | Arguments::Blocks { root, .. }
            | Arguments::Uneven { root, .. } => root,
            Arguments::Types { .. } | Arguments::Nothing => 0,
        }
    }

    /// The call as this rank sees it. `None` where an argument is wrong: the library shall say so, as it would
    /// without us. `bytes` is the message size by which all ranks know the call.
    pub fn view(
        &self,
        world: &World,
        collective: Collective,
        bytes: u64,
        members: Members,
    ) -> Option<View> {
        let view = View {
            collective,
            bytes,
            members,
            root: members.root(self.root())?,
            unit: world.byte(),
            block: bytes,
            uneven: None,
            input_units: bytes,
            input: Input::Nothing,
            output: Output::Nothing,
        };
        match *self {
            Arguments::Reduction(ref reduction) => reducing::reduction(reduction, world, view),
            Arguments::Bcast { all, .. } => Some(View {
                output: view.message(world.memory(all.start, all.count, all.datatype)?),
                input_units: 0,
                ..view
            }),
            Arguments::Blocks { send, recv, .. } => match collective {
                Collective::Gather => moving::gather(world, view, send, recv),
                Collective::Scatter => moving::scatter(world, view, send, recv),
                _ => moving::all_blocks(world, view, send, recv),
            },
            Arguments::Uneven { send, recv, .. } => match (collective, send, recv) {
                (Collective::Allgatherv, UnevenSide::One(send), UnevenSide::Each(recv)) => {
                    moving::allgatherv(world, view, send, recv)
                }
                _ => moving::uneven(world, view, send, recv),
            },
            Arguments::Types { .. } => None,
            Arguments::Nothing => Some(view),
        }
    }
}
