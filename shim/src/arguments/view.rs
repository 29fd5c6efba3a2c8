//! One call as a rank sees it: units, lengths, and where the application has them.

use std::ffi::c_int;

use colltune_core::collective::Collective;

use super::lists::{List, Located};
use super::side::Typed;
use crate::abi::{Aint, Datatype, Op};

/// A part of the application's memory: so many elements of a datatype.
#[derive(Clone, Copy)]
pub struct Memory {
    pub start: *mut u8,
    pub count: u64,
    pub datatype: Datatype,
    /// Whether it is the packed bytes of its elements as it is.
    pub plain: bool,
}

impl Memory {
    pub fn typed(&self) -> Typed {
        Typed {
            start: self.start,
            count: self.count,
            datatype: self.datatype,
        }
    }
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

impl Unit {
    /// The bytes that so many units take in memory; saturates.
    pub fn bytes(&self, units: u64) -> usize {
        let Some(before_last) = units.checked_sub(1) else {
            return 0;
        };
        let stride = self.stride.unsigned_abs() as u64;
        let last = u64::try_from(self.true_extent).unwrap_or(0);
        let bytes = before_last.saturating_mul(stride).saturating_add(last);
        usize::try_from(bytes).unwrap_or(usize::MAX)
    }

    /// The address of unit 0 of `units` units that fill the memory from `start` on.
    pub fn first(&self, start: *mut u8, units: u64) -> *mut u8 {
        let below = if self.stride < 0 {
            units.saturating_sub(1) as Aint * -self.stride
        } else {
            0
        };
        start.wrapping_offset(below - self.true_lower)
    }

    /// The address of a unit.
    #[inline]
    pub fn at(&self, base: *mut u8, unit: u64) -> *mut u8 {
        base.wrapping_offset(unit as Aint * self.stride)
    }

    /// So many units that begin at an address.
    #[inline]
    pub fn typed(&self, start: *mut u8, count: u64) -> Typed {
        Typed {
            start,
            count,
            datatype: self.datatype,
        }
    }

    fn memory(&self, start: *mut u8, count: u64) -> Memory {
        Memory {
            start,
            count,
            datatype: self.datatype,
            plain: self.plain,
        }
    }
}

/// What a schedule's input is.
#[derive(Clone, Copy)]
pub enum Input {
    /// There is none on this rank.
    Nothing,
    User(Memory),
    /// Blocks that differ in length; this rank alone knows by how much.
    Blocks(Located),
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

impl Output {
    /// Memory for a result.
    pub(super) fn result(memory: Memory, before: Before) -> Output {
        Output::User {
            memory,
            before,
            written: true,
        }
    }

    /// The caller's memory, on ranks that have one piece of it.
    pub fn memory(&self) -> Option<&Memory> {
        match self {
            Output::User { memory, .. } => Some(memory),
            Output::Nothing | Output::InInput | Output::Blocks { .. } => None,
        }
    }
}

/// One call as this rank sees it.
#[derive(Clone, Copy)]
pub struct View {
    pub collective: Collective,
    /// The message size by which all ranks know the call.
    pub bytes: u64,
    pub members: Members,
    pub root: usize,
    pub unit: Unit,
    /// Units of one block; of uneven ones, of this rank's; of those that each rank counts for itself, of the longest that
    /// is padded.
    pub block: u64,
    /// The blocks' lengths, where they differ.
    pub uneven: Option<Uneven>,
    /// Units of the input: the own block of an allgather, else the message.
    pub input_units: u64,
    pub input: Input,
    pub output: Output,
}

impl View {
    /// An allreduce of one number in place.
    pub fn of_number(memory: Memory, op: Op, members: Members) -> View {
        let bytes = size_of::<u64>();
        View {
            collective: Collective::Allreduce,
            bytes: bytes as u64,
            members,
            root: 0,
            unit: Unit {
                datatype: memory.datatype,
                stride: bytes as Aint,
                true_lower: 0,
                true_extent: bytes as Aint,
                plain: true,
                combine: Some(Combine {
                    op,
                    commutative: true,
                }),
            },
            block: 1,
            uneven: None,
            input_units: 1,
            input: Input::InOutput { from: 0 },
            output: Output::result(memory, Before::All),
        }
    }

    #[inline]
    pub fn is_root(&self) -> bool {
        self.members.rank == self.root
    }

    /// Whether each rank knows the lengths of its own blocks alone.
    #[inline]
    pub fn has_own_counts(&self) -> bool {
        self.collective.has_own_counts()
    }

    /// The bytes of a packed unit: a fact that all ranks share.
    #[inline]
    pub fn unit_bytes(&self) -> u64 {
        match self.unit.combine {
            Some(_) if self.block > 0 => self.bytes / self.block,
            _ => 1,
        }
    }

    /// The message of a broadcast, which the root has.
    pub(super) fn message(&self, memory: Memory) -> Output {
        let is_root = self.is_root();
        Output::User {
            memory,
            before: match is_root {
                true => Before::All,
                false => Before::Nothing,
            },
            written: !is_root,
        }
    }

    /// Whether input and output are one piece of memory.
    pub fn is_in_place(&self) -> bool {
        matches!(self.input, Input::InOutput { .. }) || matches!(self.output, Output::InInput)
    }

    /// The same collective among some of the ranks, or others that stand for them, with blocks of so many units: a
    /// part of the message, or what nodes have combined or collected. `data` is this rank's contribution, unless it
    /// lies in the second place already, and the place of the result. They lie as this view's units do.
    pub fn part(
        &self,
        (members, root): (Members, usize),
        block: u64,
        (given, result): (Option<*mut u8>, *mut u8),
    ) -> View {
        let view = View {
            bytes: block * self.unit_bytes(),
            members,
            root,
            block,
            uneven: None,
            ..*self
        };
        let (own, n) = (members.rank as u64, members.n_ranks as u64);
        let (sent, received, from, before) = match self.collective {
            Collective::Allgather => (1, n, own * block, Before::OwnBlock),
            Collective::Alltoall => (n, n, 0, Before::All),
            _ => (1, 1, 0, Before::All),
        };
        let memory = |start, blocks| self.unit.memory(start, blocks * block);
        if self.collective == Collective::Bcast {
            return View {
                output: view.message(memory(result, 1)),
                ..view
            };
        }
        let has_result = self.collective != Collective::Reduce || view.is_root();
        View {
            input_units: sent * block,
            input: match given {
                Some(start) => Input::User(memory(start, sent)),
                None => Input::InOutput { from },
            },
            output: match (has_result, given) {
                (false, _) => Output::Nothing,
                (true, Some(_)) => Output::result(memory(result, received), Before::Nothing),
                (true, None) => Output::result(memory(result, received), before),
            },
            ..view
        }
    }
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
