//! Where chunks begin and how long they are, for the message of one call. Pure arithmetic.

use colltune_core::algorithm::schedule::Temporary;

/// The cut of a message of equal blocks; lengths are in units: elements of a reduction, else bytes.
#[derive(Clone, Copy, Debug)]
pub struct Lengths {
    /// Units of a block.
    block: u64,
    parts: u64,
    /// Units of the shorter parts of a block, and how many parts have one more.
    whole: u64,
    rest: u64,
    chunks: u64,
}

impl Lengths {
    /// Blocks of `block` units in `parts` near-equal parts each; `chunks` is how many parts there are.
    pub fn new(block: u64, parts: u32, chunks: u32) -> Lengths {
        let parts = u64::from(parts);
        Lengths {
            block,
            parts,
            whole: block / parts,
            rest: block % parts,
            chunks: chunks.into(),
        }
    }

    /// Where chunk `chunk` begins, as `part_bounds` has it; of the number of chunks, the end.
    #[inline]
    pub fn start(&self, chunk: u64) -> u64 {
        if self.parts == 1 {
            return chunk * self.block;
        }
        let (block, part) = (chunk / self.parts, chunk % self.parts);
        block * self.block + part * self.whole + part.min(self.rest)
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

    /// The units that a temporary holds.
    pub fn temporary(&self, temporary: Temporary) -> u64 {
        match temporary {
            Temporary::Like { first, chunks } => self.between(first.into(), chunks.into()),
            Temporary::Ring { places } => u64::from(places) * self.longest(),
        }
    }

    /// Where a chunk that a part names begins in a temporary.
    #[inline]
    pub fn in_temporary(&self, temporary: Temporary, chunk: u32) -> u64 {
        match temporary {
            Temporary::Like { first, .. } => self.between(first.into(), chunk.into()),
            Temporary::Ring { places } => u64::from(chunk % places) * self.longest(),
        }
    }

    /// The units of `len` chunks that a part names in a temporary.
    #[inline]
    pub fn of_temporary(&self, temporary: Temporary, chunk: u32, len: u32) -> u64 {
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
    use colltune_core::algorithm::schedule::part_bounds;

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
