//! Where chunks begin and how long they are, for the message of one call. Pure arithmetic.

use super::program::Span;
use super::schedule::{Buffer, Temporary};

/// The cut of a message; lengths are in units: elements of a reduction, else bytes.
#[derive(Clone, Copy, Debug)]
pub struct Lengths<'a> {
    /// Where each block begins, and where the last one ends; empty where all are equal.
    starts: &'a [u64],
    /// Units of a block; of uneven ones, of the longest.
    block: u64,
    parts: u64,
    /// Units of the shorter parts of a block, and how many parts have one more.
    whole: u64,
    rest: u64,
    chunks: u64,
    /// How many chunks of the message stand before those that the input and the output name, where
    /// these hold a rank's own block alone. Of equal blocks the first may stand for it.
    pub before: PartsBefore,
}

/// Chunks before the buffers' first ones.
#[derive(Clone, Copy, Debug, Default)]
pub struct PartsBefore {
    pub input: u64,
    pub output: u64,
}

impl<'a> Lengths<'a> {
    /// Blocks of `block` units in `parts` near-equal parts each; `chunks` is how many parts there are.
    pub fn new(block: u64, parts: u32, chunks: u32) -> Lengths<'a> {
        let parts = u64::from(parts);
        Lengths {
            starts: &[],
            block,
            parts,
            whole: block / parts,
            rest: block % parts,
            chunks: chunks.into(),
            before: PartsBefore::default(),
        }
    }

    /// The same of uneven blocks; each begins where `starts` says, whose last number is the end.
    pub fn uneven(starts: &'a [u64], parts: u32, chunks: u32, before: PartsBefore) -> Lengths<'a> {
        let longest = starts.windows(2).map(|pair| pair[1] - pair[0]).max();
        Lengths {
            starts,
            before,
            ..Lengths::new(longest.unwrap_or(0), parts, chunks)
        }
    }

    /// Where chunk `chunk` begins, as `part_bounds` has it; of the number of chunks, the end.
    #[inline]
    pub fn start(&self, chunk: u64) -> u64 {
        if !self.starts.is_empty() {
            return self.uneven_start(chunk);
        }
        if self.parts == 1 {
            return chunk * self.block;
        }
        let (block, part) = (chunk / self.parts, chunk % self.parts);
        block * self.block + part * self.whole + part.min(self.rest)
    }

    fn uneven_start(&self, chunk: u64) -> u64 {
        let (block, part) = ((chunk / self.parts) as usize, chunk % self.parts);
        let start = self.starts[block];
        if part == 0 {
            return start;
        }
        let units = self.starts[block + 1] - start;
        start + part * (units / self.parts) + part.min(units % self.parts)
    }

    /// The units of `len` chunks from `first` on, going on at 0 behind the last.
    #[inline]
    pub fn between(&self, first: u64, len: u64) -> u64 {
        self.around(first + len) - self.around(first)
    }

    fn around(&self, chunk: u64) -> u64 {
        if chunk <= self.chunks {
            return self.start(chunk);
        }
        chunk / self.chunks * self.total() + self.start(chunk % self.chunks)
    }

    /// The units of the whole message.
    pub fn total(&self) -> u64 {
        self.start(self.chunks)
    }

    /// The units of the longest chunk.
    pub fn longest(&self) -> u64 {
        self.whole + u64::from(self.rest > 0)
    }

    /// The most units of so many chunks, which may be more than the message has.
    pub fn most(&self, chunks: u32) -> u64 {
        let messages = u64::from(chunks).div_ceil(self.chunks.max(1));
        (u64::from(chunks) * self.longest()).min(messages * self.total())
    }

    /// Where a span begins in its buffer, and how many units it has.
    #[inline]
    pub fn of(&self, span: Span, temporaries: &[Temporary]) -> (u64, u64) {
        let before = match span.buffer {
            Buffer::Input => self.before.input,
            Buffer::Output => self.before.output,
            Buffer::Temporary(which) => {
                let temporary = temporaries[usize::from(which)];
                return (
                    self.in_temporary(temporary, span.first),
                    self.of_temporary(temporary, span.first, span.len),
                );
            }
        };
        let first = before + u64::from(span.first);
        let from = self.start(first);
        let units = self.start(first + u64::from(span.len)) - from;
        (from - self.start(before), units)
    }

    /// The units that a temporary holds.
    pub fn temporary(&self, temporary: Temporary) -> u64 {
        match temporary {
            Temporary::Like { first, chunks } => self.between(first.into(), chunks.into()),
            Temporary::Ring { places } => u64::from(places) * self.longest(),
        }
    }

    /// Where a chunk that a part names begins in a temporary.
    #[inline]
    fn in_temporary(&self, temporary: Temporary, chunk: u32) -> u64 {
        match temporary {
            Temporary::Like { first, .. } => self.between(first.into(), chunk.into()),
            Temporary::Ring { places } => u64::from(chunk % places) * self.longest(),
        }
    }

    /// The units of `len` chunks that a part names in a temporary.
    #[inline]
    fn of_temporary(&self, temporary: Temporary, chunk: u32, len: u32) -> u64 {
        match temporary {
            Temporary::Like { first, .. } => {
                self.between(u64::from(first) + u64::from(chunk), len.into())
            }
            Temporary::Ring { .. } => self.between(chunk.into(), len.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::schedule::part_bounds;

    #[test]
    fn chunks_of_uneven_blocks_are_the_parts_of_their_blocks() {
        let blocks = [3u64, 0, 7, 1, 0];
        let mut starts = vec![0];
        for block in blocks {
            starts.push(starts[starts.len() - 1] + block);
        }
        for parts in 1..5u32 {
            let lengths = Lengths::uneven(&starts, parts, parts * 5, PartsBefore::default());
            for chunk in 0..parts * 5 {
                let (block, part) = ((chunk / parts) as usize, (chunk % parts) as usize);
                let bounds = part_bounds(blocks[block], part, parts as usize);
                assert_eq!(lengths.start(chunk.into()), starts[block] + bounds.0);
                assert_eq!(lengths.between(chunk.into(), 1), bounds.1 - bounds.0);
                assert!(bounds.1 - bounds.0 <= lengths.longest());
            }
            assert_eq!(lengths.total(), 11);
            assert_eq!(lengths.most(parts * 5), 11);
            // As many as a message that goes round the end has.
            let twice = lengths.between(1, u64::from(parts * 10));
            assert!(lengths.most(parts * 10) >= twice, "{twice}");
            assert_eq!(lengths.between((2 * parts).into(), parts.into()), 7);
            // Round the end: the last two blocks and the first.
            let around = u64::from(3 * parts);
            assert_eq!(lengths.between(around, u64::from(3 * parts)), 1 + 3);
        }
    }

    #[test]
    fn chunks_are_the_parts_of_their_blocks() {
        for block in 0..20 {
            for parts in 1..7u32 {
                for blocks in 1..4u32 {
                    let lengths = Lengths::new(block, parts, parts * blocks);
                    for chunk in 0..parts * blocks {
                        let part = part_bounds(block, (chunk % parts) as usize, parts as usize);
                        let before = u64::from(chunk / parts) * block;
                        assert_eq!(lengths.start(chunk.into()), before + part.0);
                        assert_eq!(lengths.between(chunk.into(), 1), part.1 - part.0);
                        assert!(part.1 - part.0 <= lengths.longest());
                    }
                    assert_eq!(lengths.total(), block * u64::from(blocks));
                    let around = Temporary::Like {
                        first: parts * blocks - 1,
                        chunks: 2,
                    };
                    let first_two = part_bounds(block, 0, parts as usize);
                    let last = part_bounds(block, parts as usize - 1, parts as usize);
                    assert_eq!(lengths.in_temporary(around, 1), last.1 - last.0);
                    assert_eq!(
                        lengths.of_temporary(around, 1, 1),
                        first_two.1 - first_two.0
                    );
                }
            }
        }
    }
}
