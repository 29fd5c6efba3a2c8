//! What a stage of a call says.

use crate::collective::Collective;
use crate::node::blocks::Blocks;
use crate::node::kind::Kind;
use crate::node::layout::LINE_BYTES;
use crate::node::map::NodeMap;
use crate::node::on_nodes::OnNodes;

/// What the stages of a call depend on.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    pub collective: Collective,
    pub own: OnNodes,
    /// Bytes of the message, alike on all ranks.
    pub bytes: u64,
    /// Units of the message, or of one block: elements of a reduction, else bytes.
    pub block: u64,
    pub root: usize,
    /// Whether the input begins where the output does, on this rank.
    pub in_place: bool,
}

/// Memory that a rank has in a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Buffer {
    Input,
    Output,
    /// Room of ours, for a sum that is no rank's result here, or for blocks that are collected.
    Spare,
}

/// A place in a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct At {
    pub buffer: Buffer,
    /// Units before it.
    pub unit: u64,
}

pub const INPUT: At = Buffer::Input.at(0);
pub const OUTPUT: At = Buffer::Output.at(0);
pub const SPARE: At = Buffer::Spare.at(0);

impl Buffer {
    pub const fn at(self, unit: u64) -> At {
        At { buffer: self, unit }
    }
}

impl At {
    pub fn behind(self, units: u64) -> At {
        self.buffer.at(self.unit + units)
    }
}

/// What the ranks of a node do together.
#[derive(Clone, Copy, Debug)]
pub struct Inside<'a> {
    pub kind: Kind,
    /// Where this rank's contribution begins, and where its result shall.
    pub source: At,
    pub target: At,
    /// Units of the message, or of one block.
    pub units: u64,
    pub blocks: Blocks<'a>,
    /// Whether the two places are one.
    pub in_place: bool,
    /// Whether what this rank gives comes from other nodes meanwhile.
    pub arriving: bool,
}

impl Inside<'_> {
    /// Whether the message, or all of its blocks, of units of `unit_bytes` bytes fit into a line.
    #[inline(always)]
    pub fn fits_a_line(&self, unit_bytes: u64) -> bool {
        let bytes = self.units.saturating_mul(unit_bytes);
        let all = bytes.saturating_mul(self.blocks.copies() as u64);
        all <= LINE_BYTES as u64 && !self.arriving && self.blocks.are_single()
    }
}

/// Some ranks, one of each node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Among {
    /// One of each node, where the root of the call leads its own.
    Leaders,
    /// Those in this rank's place.
    Lane,
}

/// The same collective among some ranks; the one on the root's node is the root there.
#[derive(Clone, Copy, Debug)]
pub struct Across {
    pub among: Among,
    /// Units of the message, or of one block.
    pub units: u64,
    /// What this rank contributes; `None` where it lies where the result shall.
    pub given: Option<At>,
    /// The result, or unused room where this rank gets none.
    pub result: At,
}

/// One step of a call.
#[derive(Clone, Copy, Debug)]
pub enum Stage<'a> {
    Inside(Inside<'a>),
    Across(Across),
    /// Units go from one place to another.
    Copy {
        from: At,
        to: At,
        units: u64,
    },
    /// Blocks are awaited from a rank of the communicator, each in its place in the output. All receives of a call come
    /// before all its sends.
    Receive {
        blocks: &'a [usize],
        from: usize,
    },
    /// Blocks are sent to a rank of the communicator, each from its place behind `from`.
    Send {
        from: At,
        blocks: &'a [usize],
        to: usize,
    },
    /// Waits for all messages that are under way.
    Finish,
}

impl Call {
    /// The message, from one place to another.
    pub fn whole<'a>(&self, kind: Kind, source: At, target: At) -> Stage<'a> {
        self.of(kind, source, target, Blocks::One)
    }

    /// Blocks of it.
    pub fn of<'a>(&self, kind: Kind, source: At, target: At, blocks: Blocks<'a>) -> Stage<'a> {
        Stage::Inside(Inside {
            kind,
            source,
            target,
            units: self.block,
            blocks,
            in_place: self.is_same(source, target),
            arriving: false,
        })
    }

    /// The block of this rank goes to its place in the output.
    #[inline]
    pub fn place_own_block<'a, E>(
        &self,
        map: &NodeMap,
        visit: &mut impl FnMut(Stage<'a>) -> Result<(), E>,
    ) -> Result<(), E> {
        let rank = map.here()[map.place];
        visit(Stage::Copy {
            from: INPUT,
            to: OUTPUT.behind(rank as u64 * self.block),
            units: self.block,
        })
    }

    /// Whether two places are one.
    pub fn is_same(&self, a: At, b: At) -> bool {
        let both_users = a.buffer != Buffer::Spare && b.buffer != Buffer::Spare;
        a.unit == b.unit && (a.buffer == b.buffer || self.in_place && both_users)
    }
}
