//! What the ranks of a node do together in a phase, and which way a reduction goes.

/// What the ranks of a node do together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Every rank gets the piece of rank `root`.
    Bcast { root: usize },
    /// Every rank combines whole pieces for itself: fewest waits.
    AllreduceWhole,
    /// Every rank combines a slice of each piece for all: least work.
    AllreduceSliced,
    /// The root combines whole pieces.
    ReduceWhole { root: usize },
    /// Every rank combines a slice for the root.
    ReduceSliced { root: usize },
    /// Every rank gets something from the piece of each of the first `givers` ranks.
    Exchange { givers: usize },
    /// Each of the first `lanes` ranks combines its share of everybody's piece, for itself.
    ReduceScatter { lanes: usize },
    /// The root gets the pieces of the first `lanes` ranks.
    Gather { root: usize, lanes: usize },
}

/// A message that is longer is combined in slices: with two waits instead of one, but `n_ranks`
/// times less work for each. Pieces are looked at, because each has its waits.
const WHOLE_MOST: u64 = 4 << 10;

/// How an allreduce of `bytes` bytes runs.
pub fn allreduce(bytes: u64, n_ranks: usize) -> Kind {
    if bytes.saturating_mul(n_ranks as u64) <= 2 * WHOLE_MOST {
        Kind::AllreduceWhole
    } else {
        Kind::AllreduceSliced
    }
}

/// How a reduce of `bytes` bytes runs.
pub fn reduce(bytes: u64, n_ranks: usize, root: usize) -> Kind {
    if n_ranks == 2 || bytes <= WHOLE_MOST {
        Kind::ReduceWhole { root }
    } else {
        Kind::ReduceSliced { root }
    }
}
