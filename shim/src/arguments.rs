//! What the application passed, and what this rank makes of it: units, lengths, user's buffers.
//!
//! First the arguments' shapes, then each collective's view of them: those that [`reducing`] combines
//! and those that [`moving`] moves, over [`memory`] of the application and its [`lists`] of counts.

pub mod lists;
pub mod memory;

mod moving;
mod reducing;

use std::ffi::{c_int, c_void};

use colltune_core::collective::Collective;

use crate::abi::{Aint, Datatype, Op, bits};
use crate::world::World;
use lists::{List, Listed, Located};
use moving::Blocks;
use reducing::Gets;

/// The arguments of a call, in the shape of its collective.
#[derive(Clone, Copy)]
pub enum Arguments {
    /// Allreduce, scan, exscan and reduce_scatter_block, whose root is 0, and reduce. Of
    /// reduce_scatter_block `count` is one block's.
    Reduction {
        send: *const c_void,
        recv: *mut c_void,
        count: i64,
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
    /// Reduce_scatter.
    ReduceScatter {
        send: *const c_void,
        recv: *mut c_void,
        /// Elements of each rank's result; the same on all ranks.
        counts: List,
        datatype: Datatype,
        op: Op,
    },
    /// Allgather and alltoall, whose root is 0, gather and scatter.
    Blocks { send: Side, recv: Side, root: c_int },
    /// Allgatherv and alltoallv, whose root is 0, gatherv and scatterv.
    Uneven { send: Held, recv: Held, root: c_int },
    /// The barrier, and alltoallw, which the library alone runs.
    Nothing,
}

/// How long what the ranks agree on holds.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Agreement {
    /// For all calls of a variant and size class that have this root.
    Class { root: c_int },
    /// For one call: an application's own elements may lie as far apart on a rank as it likes, and
    /// otherwise in each call.
    OneCall,
}

/// One block of a call, or one of several equal ones, as its arguments say it.
#[derive(Clone, Copy)]
pub struct Side {
    pub start: *mut c_void,
    pub count: i64,
    pub datatype: Datatype,
}

impl Side {
    /// Whether both are the same bytes. Two types over one address may name different ones.
    fn is(self, other: Side, world: &World) -> bool {
        let plain = |side: Side| world.types.get(side.datatype).is_some();
        let one_type = bits(self.datatype) == bits(other.datatype) && self.count == other.count;
        self.start == other.start && (one_type || (plain(self) && plain(other)))
    }
}

/// What one side of a call with uneven blocks has.
#[derive(Clone, Copy)]
pub enum Held {
    One(Side),
    Each(Listed),
}

/// A part of the application's memory: so many elements of a datatype.
#[derive(Clone, Copy)]
pub struct Memory {
    pub start: *mut u8,
    pub count: u64,
    pub datatype: Datatype,
    /// Whether it is the packed bytes of its elements as it is.
    pub plain: bool,
}

/// What lengths are counted in, and how a unit lies in memory.
#[derive(Clone, Copy)]
pub struct Unit {
    pub datatype: Datatype,
    /// From one unit to the next.
    pub stride: Aint,
    /// Where a unit's first byte lies, and how many bytes further its last one ends.
    pub true_lower: Aint,
    pub true_extent: Aint,
    /// Whether units can be copied as bytes.
    pub plain: bool,
    pub combine: Option<Combine>,
}

/// The operation of a reduction.
#[derive(Clone, Copy)]
pub struct Combine {
    pub op: Op,
    pub commutative: bool,
}

/// What a schedule's input is.
#[derive(Clone, Copy)]
pub enum Input {
    /// There is none on this rank.
    Nothing,
    User(Memory),
    /// The same memory as the output, from this unit on.
    InOutput {
        from: u64,
    },
}

/// What a schedule's output is.
#[derive(Clone, Copy)]
pub enum Output {
    /// There is none on this rank.
    Nothing,
    /// The same memory as the input's own block, where it is already.
    InInput,
    User {
        memory: Memory,
        /// What of it must be there before the schedule begins.
        before: Before,
        /// Whether the schedule writes it.
        written: bool,
    },
    /// Blocks that do not lie one behind another as packed bytes.
    Blocks { listed: Located, before: Before },
}

/// What of an output the caller filled.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Before {
    Nothing,
    /// This rank's block.
    OwnBlock,
    All,
}

/// One call as this rank sees it.
#[derive(Clone, Copy)]
pub struct View {
    pub root: usize,
    pub unit: Unit,
    /// Units of one block; of uneven ones, of this rank's.
    pub block: u64,
    /// The blocks' lengths, where they differ.
    pub uneven: Option<Uneven>,
    /// Units of the input: the own block of an allgather, else the message.
    pub input_units: u64,
    pub input: Input,
    pub output: Output,
}

/// Lengths of blocks that all ranks know.
#[derive(Clone, Copy)]
pub struct Uneven {
    pub counts: List,
    /// Units of one of what is counted.
    pub units: u64,
}

impl Uneven {
    /// Lists where each rank's block begins, and where the last one ends, in units.
    pub fn fill(&self, starts: &mut Vec<u64>, n_ranks: usize) -> Option<()> {
        starts.clear();
        starts.push(0);
        let mut end = 0u64;
        for rank in 0..n_ranks {
            // SAFETY: MPI asks for a count for each rank.
            let count = u64::try_from(unsafe { self.counts.at(rank) }).ok()?;
            end = end.checked_add(count.checked_mul(self.units)?)?;
            starts.push(end);
        }
        Some(())
    }
}

/// Who takes part.
#[derive(Clone, Copy)]
pub struct Members {
    pub rank: usize,
    pub n_ranks: usize,
}

impl Arguments {
    /// How long what is agreed of room for such a call holds. From shared facts alone.
    #[inline(always)]
    pub fn agreement(&self, world: &World) -> Agreement {
        let known =
            |datatype| world.types.get(datatype).is_some() || world.pairs.get(datatype).is_some();
        match *self {
            Arguments::Reduction { datatype, .. } | Arguments::ReduceScatter { datatype, .. }
                if !known(datatype) =>
            {
                Agreement::OneCall
            }
            Arguments::Reduction { root, .. }
            | Arguments::Bcast { root, .. }
            | Arguments::Blocks { root, .. }
            | Arguments::Uneven { root, .. } => Agreement::Class { root },
            Arguments::ReduceScatter { .. } | Arguments::Nothing => Agreement::Class { root: 0 },
        }
    }

    /// `None` where an argument is wrong: the library shall say so, as it would without us.
    /// `bytes` is the message size by which all ranks know the call.
    pub fn view(
        &self,
        world: &World,
        collective: Collective,
        bytes: u64,
        members: Members,
    ) -> Option<View> {
        match collective {
            Collective::Allreduce | Collective::Scan => {
                self.reduction(world, Gets::Everywhere, members)
            }
            Collective::Reduce => self.reduction(world, Gets::AtRoot, members),
            Collective::Exscan => self.reduction(world, Gets::AboveFirst, members),
            Collective::ReduceScatterBlock => self.reduction(world, Gets::OneBlock, members),
            Collective::Bcast => self.bcast(world, bytes, members),
            Collective::ReduceScatter => self.reduce_scatter(world, members),
            Collective::Allgather => self.blocks(world, Blocks::Own, bytes, members),
            Collective::Allgatherv => self.allgatherv(world, members),
            Collective::Alltoall => self.blocks(world, Blocks::All, bytes, members),
            Collective::Gather => self.gather(world, bytes, members),
            Collective::Scatter => self.scatter(world, bytes, members),
            Collective::Barrier => Some(View {
                root: 0,
                unit: world.byte(),
                block: 0,
                uneven: None,
                input_units: 0,
                input: Input::Nothing,
                output: Output::Nothing,
            }),
            // Each rank knows its own counts alone (`exchange`), or there are no schedules.
            _ => None,
        }
    }
}

impl Members {
    pub fn root(&self, root: c_int) -> Option<usize> {
        usize::try_from(root)
            .ok()
            .filter(|&root| root < self.n_ranks)
    }
}

/// Whether the library takes the same buffer twice for a call in place. MPICH refuses it, and
/// shall say so; in Open MPI such programs run, and a rank that alone ran `default` would hang them.
const ALIASES: bool = cfg!(mpi = "openmpi");
