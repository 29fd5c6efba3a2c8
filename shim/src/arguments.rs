//! What the application passed, and the one [`View`] that this rank makes of it: units, lengths, buffers.
//!
//! Here alone MPI's rules about arguments are known. First the view, then how each collective's arguments become one:
//! those that [`reducing`] combines and those that [`moving`] moves, over [`memory`] of the application and its
//! [`lists`] of counts.

pub mod lists;
pub mod memory;
mod view;
pub use view::{Before, Combine, Input, Members, Memory, Output, Typed, Uneven, Unit, View};

mod moving;
mod reducing;

use std::ffi::{c_int, c_void};

use colltune_core::collective::Collective;
use colltune_core::decide::rooms::Class;

use crate::abi::{Datatype, Op, bits};
use crate::world::World;
use lists::{List, Listed};

/// The arguments of a call, in the shape of its collective.
#[derive(Clone, Copy)]
pub enum Arguments {
    /// All that combine; the root of those without one is 0.
    Reduction {
        send: *const c_void,
        recv: *mut c_void,
        count: Counted,
        datatype: Datatype,
        op: Op,
        root: c_int,
    },
    Bcast {
        buffer: *mut c_void,
        count: i64,
        datatype: Datatype,
        root: c_int,
    },
    /// Allgather and alltoall, whose root is 0, gather and scatter.
    Blocks { send: Side, recv: Side, root: c_int },
    /// Allgatherv and alltoallv, whose root is 0, gatherv and scatterv.
    Uneven {
        send: UnevenSide,
        recv: UnevenSide,
        root: c_int,
    },
    /// The barrier, and alltoallw, which the library alone runs.
    Nothing,
}

/// The elements of a reduction.
#[derive(Clone, Copy)]
pub enum Counted {
    /// So many, or in each block of a reduce_scatter_block.
    All(i64),
    /// Those of each rank's result; the same on all ranks.
    Each(List),
}

/// One block of a call, or one of several equal ones, as its arguments say it.
#[derive(Clone, Copy)]
pub struct Side {
    pub start: *mut c_void,
    pub count: i64,
    pub datatype: Datatype,
}

impl Side {
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

/// Whether the library takes the same buffer twice for a call in place. MPICH refuses it, and
/// shall say so; in Open MPI such programs run, and a rank that alone ran `default` would hang them.
const ALIASES: bool = cfg!(mpi = "openmpi");

impl Arguments {
    /// The calls of a variant that are alike in the room that they need. `None` where this one stands for itself: an
    /// application's own elements may lie as far apart on a rank as it likes, and otherwise in each call. From shared
    /// facts alone.
    #[inline(always)]
    pub fn class(&self, world: &World, variant: u16, bytes: u64) -> Option<Class> {
        let root = match *self {
            Arguments::Reduction { datatype, .. }
                if world.types.get(datatype).is_none() && world.pairs.get(datatype).is_none() =>
            {
                return None;
            }
            Arguments::Reduction { root, .. }
            | Arguments::Bcast { root, .. }
            | Arguments::Blocks { root, .. }
            | Arguments::Uneven { root, .. } => root as u32,
            Arguments::Nothing => 0,
        };
        Some(Class {
            variant,
            root,
            bytes,
        })
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
        let empty = View {
            collective,
            bytes,
            members,
            root: 0,
            unit: world.byte(),
            block: bytes,
            uneven: None,
            input_units: bytes,
            input: Input::Nothing,
            output: Output::Nothing,
        };
        match *self {
            Arguments::Reduction { root, .. }
            | Arguments::Bcast { root, .. }
            | Arguments::Blocks { root, .. }
            | Arguments::Uneven { root, .. } => {
                let root = members.root(root)?;
                self.fill(world, View { root, ..empty })
            }
            Arguments::Nothing => (collective == Collective::Barrier).then_some(empty),
        }
    }

    /// Fills in where the data lies and how much there is.
    fn fill(&self, world: &World, view: View) -> Option<View> {
        match *self {
            Arguments::Bcast {
                buffer,
                count,
                datatype,
                ..
            } => Some(View {
                output: view.message(world.memory(buffer, count, datatype)?),
                input_units: 0,
                ..view
            }),
            Arguments::Blocks { send, recv, .. } => match view.collective {
                Collective::Gather => moving::gather(world, view, send, recv),
                Collective::Scatter => moving::scatter(world, view, send, recv),
                _ => moving::all_blocks(world, view, send, recv),
            },
            Arguments::Uneven { send, recv, .. } => match (view.collective, send, recv) {
                (Collective::Allgatherv, UnevenSide::One(send), UnevenSide::Each(recv)) => {
                    moving::allgatherv(world, view, send, recv)
                }
                _ => moving::uneven(world, view, send, recv),
            },
            Arguments::Reduction { .. } => reducing::reduction(self, world, view),
            Arguments::Nothing => None,
        }
    }
}
