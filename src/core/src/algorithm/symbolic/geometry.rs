//! The collective that is run, how long its chunks are, where they lie, and what can go wrong.

use super::sum::Sum;
use crate::algorithm::lengths::{Lengths, PartsBefore};
use crate::algorithm::pattern::{Holds, Pattern};
use crate::algorithm::schedule::{Buffer, Temporary, part_bounds};

/// The collective, and how long its chunks are.
#[derive(Clone, Copy, Debug)]
pub struct Geometry<'a> {
    pub pattern: Pattern,
    pub n_ranks: usize,
    pub root: usize,
    pub parts_per_block: usize,
    /// Elements of each block; of an alltoall, block `(source + 2 destination) mod n_ranks` here
    /// is as long as the block from that source to that destination.
    pub blocks: &'a [u64],
    /// Whether Input and Output share memory, as in a call in place.
    pub memory: Memory,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memory {
    Separate,
    /// In place, where the pattern and rank have a form in place.
    Shared,
}

impl Geometry<'_> {
    pub fn total_chunks(&self) -> usize {
        self.blocks.len() * self.parts_per_block
    }

    /// Elements of chunk `chunk` of the whole message.
    pub fn len(&self, chunk: usize) -> u64 {
        self.part_len(chunk / self.parts_per_block, chunk)
    }

    fn part_len(&self, block: usize, chunk: usize) -> u64 {
        let part = chunk % self.parts_per_block;
        let (start, end) = part_bounds(self.blocks[block], part, self.parts_per_block);
        end - start
    }

    /// Elements of chunk `chunk` of what `source` has for all destinations.
    fn len_from(&self, source: usize, chunk: usize) -> u64 {
        match self.pattern {
            Pattern::Alltoall => {
                let destination = chunk / self.parts_per_block;
                self.part_len((source + 2 * destination) % self.n_ranks, chunk)
            }
            _ => self.len(chunk),
        }
    }

    /// Elements of the longest chunk.
    pub fn longest(&self) -> u64 {
        let longest = self.blocks.iter().max().copied().unwrap_or(0);
        longest.div_ceil(self.parts_per_block as u64)
    }

    fn has_equal_blocks(&self) -> bool {
        self.blocks.windows(2).all(|pair| pair[0] == pair[1])
    }

    /// Where each block begins, and where the last one ends; nothing where all are equal.
    pub fn starts(&self) -> Vec<u64> {
        if self.has_equal_blocks() {
            return Vec::new();
        }
        let ends = self.blocks.iter().scan(0, |end, block| {
            *end += block;
            Some(*end)
        });
        std::iter::once(0).chain(ends).collect()
    }

    /// What a rank asks where chunks lie; `None` for an alltoall of uneven blocks, which runs no program.
    pub fn lengths<'s>(&self, rank: usize, starts: &'s [u64]) -> Option<Lengths<'s>> {
        let (parts, chunks) = (self.parts_per_block as u32, self.total_chunks() as u32);
        if starts.is_empty() {
            let block = self.blocks.first().copied().unwrap_or(0);
            return Some(Lengths::new(block, parts, chunks));
        }
        let before = |holds| match holds {
            Holds::OwnBlock => (rank * self.parts_per_block) as u64,
            Holds::Message | Holds::Nothing => 0,
        };
        let before = PartsBefore {
            input: before(self.pattern.input(rank, self.root)),
            output: before(self.pattern.output(rank, self.root)),
        };
        (self.pattern != Pattern::Alltoall).then(|| Lengths::uneven(starts, parts, chunks, before))
    }

    pub fn content_len(&self, content: &Content) -> u64 {
        match content.sum {
            Sum::Of(source) => self.len_from(usize::from(source), content.chunk),
            Sum::Both(_) => self.len(content.chunk),
        }
    }

    /// Elements that place `chunk` of a buffer, counted in chunks of the message, is long.
    pub fn place_len(&self, rank: usize, buffer: Buffer, chunk: usize) -> u64 {
        match (self.pattern, buffer) {
            (Pattern::Alltoall, Buffer::Output) => {
                let source = chunk / self.parts_per_block;
                self.part_len((source + 2 * rank) % self.n_ranks, chunk)
            }
            (Pattern::Alltoall, Buffer::Input) => self.len_from(rank, chunk),
            _ => self.len(chunk),
        }
    }
}

/// When the adversary lets ranks run and messages arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// The rank that is behind in time runs next; sends complete with their receives.
    InTime,
    /// The lowest rank that can runs as far as it can; rendezvous.
    LowestFirst,
    /// The highest rank that can runs as far as it can; rendezvous.
    HighestFirst,
    /// The lowest and the highest rank that can, in turn by messages; rendezvous.
    Alternating,
    /// As `LowestFirst`, and sends complete at once.
    Buffered,
}

impl Delivery {
    pub const ALL: [Delivery; 5] = [
        Delivery::InTime,
        Delivery::LowestFirst,
        Delivery::HighestFirst,
        Delivery::Alternating,
        Delivery::Buffered,
    ];
}

/// What the checker found wrong; `rank` and `at` name the instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    pub rank: usize,
    pub at: usize,
    pub what: Wrong,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wrong {
    /// Every rank waits; this one is the first.
    Deadlock,
    /// A message was sent or awaited that has no partner.
    Unmatched,
    /// The two ends of a message disagree about its length.
    Length,
    /// No such rank, or the rank itself.
    Peer,
    /// No such chunk, or a buffer that the rank does not have.
    Chunk,
    /// Read before written.
    Undefined,
    /// Touched while a message under way uses it.
    InUse,
    /// The caller's input was written, or a bcast's buffer at its root.
    InputWritten,
    /// Combined or stored chunks of different places of the message.
    Misplaced,
    /// A request was used while pending, or never waited for.
    Request,
    /// Where a chunk lies in memory, or how long it is, is not what the message's cut says.
    Offset,
    /// A chunk of the output was written behind the operation that is said to be its last.
    Late,
    /// A rank ended without what the collective promises it.
    Postcondition,
    /// Of one result ranks have different bits, where operations round.
    Association,
}

/// Ranks' contributions and how they are combined, all to one chunk of the message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Content {
    pub chunk: usize,
    pub sum: Sum<u8>,
}

/// Where a buffer's cells begin on a rank: Input, Output, then the temporaries.
pub fn base(
    temporaries: &[Temporary],
    geometry: &Geometry,
    rank: usize,
    buffer: Buffer,
) -> (usize, usize) {
    let held = |holds| match holds {
        Holds::Nothing => 0,
        Holds::OwnBlock => geometry.parts_per_block,
        Holds::Message => geometry.total_chunks(),
    };
    let input = held(geometry.pattern.input(rank, geometry.root));
    let output = held(geometry.pattern.output(rank, geometry.root));
    match buffer {
        Buffer::Input => match shared(geometry, rank) {
            Some(Shared::InputInOutput(offset)) => (input + offset, input),
            _ => (0, input),
        },
        Buffer::Output => match shared(geometry, rank) {
            Some(Shared::OutputInInput(offset)) => (offset, output),
            _ => (input, output),
        },
        Buffer::Temporary(index) => {
            let index = usize::from(index);
            let before = temporaries.iter().take(index).map(Temporary::places);
            let len = temporaries.get(index).map_or(0, Temporary::places);
            (input + output + before.sum::<usize>(), len)
        }
    }
}

enum Shared {
    /// Input is Output from this cell on.
    InputInOutput(usize),
    /// Output is Input from this cell on.
    OutputInInput(usize),
}

fn shared(geometry: &Geometry, rank: usize) -> Option<Shared> {
    if geometry.memory == Memory::Separate {
        return None;
    }
    let own = rank * geometry.parts_per_block;
    match geometry.pattern {
        Pattern::Allreduce | Pattern::Scan | Pattern::Exscan | Pattern::Alltoall => {
            Some(Shared::InputInOutput(0))
        }
        Pattern::Reduce if rank == geometry.root => Some(Shared::InputInOutput(0)),
        Pattern::Allgather => Some(Shared::InputInOutput(own)),
        Pattern::Gather if rank == geometry.root => Some(Shared::InputInOutput(own)),
        Pattern::Scatter if rank == geometry.root => Some(Shared::OutputInInput(own)),
        Pattern::ReduceScatter => Some(Shared::OutputInInput(0)),
        _ => None,
    }
}
