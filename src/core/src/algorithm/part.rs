//! Chunks of the message, by name: which buffer, and which of its chunks.

/// A logical buffer of one rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Buffer {
    /// What the caller contributes; never written.
    Input,
    /// What the caller receives; of a bcast the one buffer, which at the root holds the message.
    Output,
    /// Number in [`Schedule::temporaries`]; undefined at the start.
    Temporary(u8),
}

/// Chunks of one buffer: `runs` runs of `len` chunks each, whose firsts are `stride` apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Part {
    pub buffer: Buffer,
    pub first: u32,
    pub len: u32,
    pub runs: u32,
    pub stride: u32,
}

/// Narrows an index of a chunk or rank.
///
/// # Panics
/// Above `u32::MAX`, which no communicator and no number of segments reaches.
pub fn narrow(index: usize) -> u32 {
    u32::try_from(index).expect("chunk and rank indices fit 32 bits")
}

impl Part {
    /// The chunks `first .. first + len`.
    pub fn range(buffer: Buffer, first: usize, len: usize) -> Part {
        Part::strided(buffer, first, len, 1, len)
    }

    pub fn strided(buffer: Buffer, first: usize, len: usize, runs: usize, stride: usize) -> Part {
        assert!(stride >= len, "runs of one part must not overlap");
        Part {
            buffer,
            first: narrow(first),
            len: narrow(len),
            runs: narrow(runs),
            stride: narrow(stride),
        }
    }

    /// How many chunks the part names.
    pub fn count(&self) -> usize {
        self.len as usize * self.runs as usize
    }

    /// The runs as (first chunk, number of chunks).
    pub fn ranges(self) -> impl Iterator<Item = (usize, usize)> {
        let (first, stride) = (self.first as usize, self.stride as usize);
        (0..self.runs as usize).map(move |run| (first + run * stride, self.len as usize))
    }

    /// Every chunk, in order.
    pub fn chunks(self) -> impl Iterator<Item = usize> {
        self.ranges().flat_map(|(first, len)| first..first + len)
    }

    /// Whether the two parts share a chunk.
    pub fn overlaps(&self, other: &Part) -> bool {
        if self.buffer != other.buffer || self.count() == 0 || other.count() == 0 {
            return false;
        }
        let end = |part: &Part| part.first + (part.runs - 1) * part.stride + part.len;
        if end(self) <= other.first || end(other) <= self.first {
            return false;
        }
        if self.runs == 1 && other.runs == 1 {
            return true;
        }
        // The runs of each ascend, so one pass over both finds a shared chunk.
        let (mut ours, mut theirs) = (self.ranges().peekable(), other.ranges().peekable());
        while let (Some(&(a, a_len)), Some(&(b, b_len))) = (ours.peek(), theirs.peek()) {
            if a + a_len <= b {
                ours.next();
            } else if b + b_len <= a {
                theirs.next();
            } else {
                return true;
            }
        }
        false
    }
}

/// What one message carries: parts one after another. A message whose chunks are all empty is
/// neither sent nor received. One of no part at all is a *token*: it carries no bytes, is always
/// sent, and only after all tokens that stand before it have been received.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Parts {
    #[default]
    None,
    One(Part),
    Two([Part; 2]),
}

impl Parts {
    pub fn as_slice(&self) -> &[Part] {
        match self {
            Parts::None => &[],
            Parts::One(part) => std::slice::from_ref(part),
            Parts::Two(parts) => parts,
        }
    }

    /// Chunks `first .. first + len` of a buffer of `total` chunks, going on at 0 after the last.
    pub fn around(buffer: Buffer, first: usize, len: usize, total: usize) -> Parts {
        let first = first % total;
        assert!(len <= total, "a message names no chunk twice");
        if first + len <= total {
            return Parts::One(Part::range(buffer, first, len));
        }
        let before_end = total - first;
        Parts::Two([
            Part::range(buffer, first, before_end),
            Part::range(buffer, 0, len - before_end),
        ])
    }

    pub fn count(&self) -> usize {
        self.as_slice().iter().map(Part::count).sum()
    }

    /// The parts, each put somewhere else.
    pub fn relocated(self, lies_at: impl Fn(Part) -> Part) -> Parts {
        match self {
            Parts::None => Parts::None,
            Parts::One(part) => Parts::One(lies_at(part)),
            Parts::Two(parts) => Parts::Two(parts.map(lies_at)),
        }
    }
}

impl From<Part> for Parts {
    fn from(part: Part) -> Parts {
        Parts::One(part)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlap_means_a_shared_chunk() {
        let parts: Vec<Part> = (0..6)
            .flat_map(|first| (0..3).map(move |len| (first, len)))
            .flat_map(|(first, len)| (0..3).map(move |runs| (first, len, runs)))
            .flat_map(|(first, len, runs)| {
                (len..5).map(move |stride| Part::strided(Buffer::Output, first, len, runs, stride))
            })
            .collect();
        for a in &parts {
            for b in &parts {
                let shared = a.chunks().any(|chunk| b.chunks().any(|c| c == chunk));
                assert_eq!(a.overlaps(b), shared, "{a:?} {b:?}");
                let elsewhere = Part {
                    buffer: Buffer::Input,
                    ..*b
                };
                assert!(!a.overlaps(&elsewhere));
            }
        }
    }

    #[test]
    fn ranges_round_the_end_name_every_chunk_once() {
        for first in 0..7 {
            for len in 0..=7 {
                let parts = Parts::around(Buffer::Output, first, len, 7);
                let chunks: Vec<_> = parts.as_slice().iter().flat_map(|p| p.chunks()).collect();
                let expected: Vec<_> = (0..len).map(|i| (first + i) % 7).collect();
                assert_eq!(chunks, expected);
            }
        }
    }
}
