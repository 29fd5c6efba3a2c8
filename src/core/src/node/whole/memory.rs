//! What is checked, and a rank's memory in it.

use std::collections::VecDeque;

use crate::catalogue::OnNodes;
use crate::collective::Collective;
use crate::node::map::NodeMap;
use crate::node::stage::{At, Buffer, Call, Stage};

/// Who contributed which unit of its input, in the order in which they are combined.
pub type Content = Vec<(usize, u64)>;
pub type Found<T> = Result<T, String>;

/// What is checked: a call, and the nodes of the communicator's ranks.
pub struct Case<'a> {
    pub nodes_of_ranks: &'a [u32],
    pub collective: Collective,
    pub own: OnNodes,
    pub block: u64,
    pub unit_bytes: u64,
    pub root: usize,
    pub in_place: bool,
    pub overlaps: bool,
    /// Whether the highest rank that can runs first.
    pub highest: bool,
}

impl Case<'_> {
    pub fn n_ranks(&self) -> usize {
        self.nodes_of_ranks.len()
    }

    /// Where the input lies in the output, in a call in place.
    pub fn within(&self, rank: usize) -> Option<u64> {
        let within = match self.collective {
            Collective::Reduce if rank != self.root => return None,
            Collective::Allgather => rank as u64 * self.block,
            _ => 0,
        };
        self.in_place.then_some(within)
    }

    pub fn call(&self, rank: usize) -> Call {
        Call {
            collective: self.collective,
            own: self.own,
            bytes: self.block * self.unit_bytes,
            block: self.block,
            root: self.root,
            in_place: self.within(rank) == Some(0),
        }
    }
}

/// One rank's memory, and what it has yet to do.
pub struct Rank<'a> {
    pub map: &'a NodeMap,
    pub left: VecDeque<Stage<'a>>,
    pub input: Vec<Option<Content>>,
    pub output: Vec<Option<Content>>,
    pub spare: Vec<Option<Content>>,
    pub within: Option<u64>,
}

impl Rank<'_> {
    pub fn place(&self, at: At, unit: u64) -> (&Vec<Option<Content>>, usize) {
        let unit = at.unit + unit;
        match (at.buffer, self.within) {
            (Buffer::Input, Some(within)) => (&self.output, (within + unit) as usize),
            (Buffer::Input, None) => (&self.input, unit as usize),
            (Buffer::Output, _) => (&self.output, unit as usize),
            (Buffer::Spare, _) => (&self.spare, unit as usize),
        }
    }

    pub fn read(&self, at: At, unit: u64) -> Found<Option<Content>> {
        let (memory, index) = self.place(at, unit);
        let content = memory.get(index);
        content
            .cloned()
            .ok_or_else(|| format!("unit {unit} behind {at:?} is read, outside of the buffer"))
    }

    /// What is there and defined.
    pub fn take(&self, at: At, unit: u64) -> Found<Content> {
        let content = self.read(at, unit)?;
        content.ok_or_else(|| format!("unit {unit} behind {at:?} is read before it is written"))
    }

    pub fn write(&mut self, at: At, unit: u64, content: Option<Content>) -> Found<()> {
        let index = (at.unit + unit) as usize;
        let cell = match (at.buffer, self.within) {
            (Buffer::Input, None) => return Err("the input is written".to_owned()),
            (Buffer::Input, Some(within)) => self.output.get_mut(within as usize + index),
            (Buffer::Output, _) => self.output.get_mut(index),
            (Buffer::Spare, _) => self.spare.get_mut(index),
        };
        let cell = cell.ok_or_else(|| format!("unit {unit} behind {at:?} is outside"))?;
        *cell = content;
        Ok(())
    }
}
