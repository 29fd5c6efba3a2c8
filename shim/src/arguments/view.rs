//! The shapes of arguments, and what a rank makes of them: units, lengths, and where the application has them.

use std::ffi::{c_int, c_void};

use super::lists::{List, Listed, Located};
use crate::abi::{Aint, Datatype, Op, bits};
use crate::world::World;

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
    pub(super) fn is(self, other: Side, world: &World) -> bool {
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

impl Members {
    pub fn root(&self, root: c_int) -> Option<usize> {
        usize::try_from(root)
            .ok()
            .filter(|&root| root < self.n_ranks)
    }
}

/// Whether the library takes the same buffer twice for a call in place. MPICH refuses it, and
/// shall say so; in Open MPI such programs run, and a rank that alone ran `default` would hang them.
pub(super) const ALIASES: bool = cfg!(mpi = "openmpi");
