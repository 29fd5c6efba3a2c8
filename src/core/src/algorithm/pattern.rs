//! What a collective asks for, as far as a schedule sees it: who begins with which chunks, and
//! who must end with which.
//!
//! | pattern | Input | Output | blocks of the message |
//! |---|---|---|---|
//! | allreduce, scan, exscan | the message | the message | one |
//! | reduce | the message | at the root: the message | one |
//! | bcast | none | the message; at the root it holds it at the start | one |
//! | allgather | the rank's block | all blocks | one per rank |
//! | gather | the rank's block | at the root: all blocks | one per rank |
//! | scatter | at the root: all blocks | the rank's block | one per rank |
//! | alltoall | all blocks, by destination | all blocks, by source | one per rank |
//! | reduce_scatter | all blocks | the rank's block | one per rank |
//! | barrier | none | none | one, never touched |

use super::schedule::{Buffer, Part, narrow};
use crate::collective::Collective;
use crate::named::named;

named! {
    /// A collective's movement of data; the irregular forms share the pattern of the regular ones.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Pattern {
        Allreduce = "allreduce",
        Bcast = "bcast",
        Reduce = "reduce",
        Allgather = "allgather",
        Alltoall = "alltoall",
        ReduceScatter = "reduce_scatter",
        Gather = "gather",
        Scatter = "scatter",
        Scan = "scan",
        Exscan = "exscan",
        Barrier = "barrier",
    }
}

/// Whether a user buffer exists on a rank, and how many blocks it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holds {
    Nothing,
    /// The rank's own block, of as many chunks as a block has parts.
    OwnBlock,
    /// The whole message: every block.
    Message,
}

impl Pattern {
    /// The pattern of a collective whose schedules the shim runs; `None` for the others.
    pub const fn of(collective: Collective) -> Option<Pattern> {
        Some(match collective {
            Collective::Allreduce => Pattern::Allreduce,
            Collective::Bcast => Pattern::Bcast,
            Collective::Allgather | Collective::Allgatherv => Pattern::Allgather,
            Collective::Alltoall | Collective::Alltoallv | Collective::Alltoallw => {
                Pattern::Alltoall
            }
            Collective::Reduce => Pattern::Reduce,
            Collective::Gather | Collective::Gatherv => Pattern::Gather,
            Collective::Scatter | Collective::Scatterv => Pattern::Scatter,
            Collective::ReduceScatter | Collective::ReduceScatterBlock => Pattern::ReduceScatter,
            Collective::Scan => Pattern::Scan,
            Collective::Exscan => Pattern::Exscan,
            Collective::Barrier => Pattern::Barrier,
        })
    }

    /// Whether the blocks of a collective may differ in length.
    pub const fn is_uneven(collective: Collective) -> bool {
        use Collective::{Allgatherv, Alltoallv, Alltoallw, Gatherv, ReduceScatter, Scatterv};
        matches!(
            collective,
            Allgatherv | Alltoallv | Alltoallw | Gatherv | ReduceScatter | Scatterv
        )
    }

    /// How many blocks the whole message has.
    pub const fn blocks(self, n_ranks: usize) -> usize {
        match self {
            Pattern::Allgather
            | Pattern::Alltoall
            | Pattern::ReduceScatter
            | Pattern::Gather
            | Pattern::Scatter => n_ranks,
            _ => 1,
        }
    }

    pub const fn has_root(self) -> bool {
        matches!(
            self,
            Pattern::Bcast | Pattern::Reduce | Pattern::Gather | Pattern::Scatter
        )
    }

    pub const fn is_reduction(self) -> bool {
        matches!(
            self,
            Pattern::Allreduce
                | Pattern::Reduce
                | Pattern::ReduceScatter
                | Pattern::Scan
                | Pattern::Exscan
        )
    }

    /// What [`Buffer::Input`](super::schedule::Buffer::Input) is on rank `rank`.
    pub fn input(self, rank: usize, root: usize) -> Holds {
        match self {
            Pattern::Bcast | Pattern::Barrier => Holds::Nothing,
            Pattern::Allgather | Pattern::Gather => Holds::OwnBlock,
            Pattern::Scatter if rank != root => Holds::Nothing,
            _ => Holds::Message,
        }
    }

    /// What [`Buffer::Output`](super::schedule::Buffer::Output) is on rank `rank`.
    pub fn output(self, rank: usize, root: usize) -> Holds {
        match self {
            Pattern::Barrier => Holds::Nothing,
            Pattern::Reduce | Pattern::Gather if rank != root => Holds::Nothing,
            Pattern::ReduceScatter | Pattern::Scatter => Holds::OwnBlock,
            _ => Holds::Message,
        }
    }

    /// Where `part` lies in a call in place: one of the two user buffers is a part of the other,
    /// and this names it as such. Unchanged where the rank has no form in place.
    pub fn in_place(self, rank: usize, root: usize, parts_per_block: usize, part: Part) -> Part {
        let own = narrow(rank * parts_per_block);
        let (inner, outer, offset) = match self {
            Pattern::Allreduce | Pattern::Scan | Pattern::Exscan | Pattern::Alltoall => {
                (Buffer::Input, Buffer::Output, 0)
            }
            Pattern::Reduce if rank == root => (Buffer::Input, Buffer::Output, 0),
            Pattern::Allgather => (Buffer::Input, Buffer::Output, own),
            Pattern::Gather if rank == root => (Buffer::Input, Buffer::Output, own),
            Pattern::Scatter if rank == root => (Buffer::Output, Buffer::Input, own),
            Pattern::ReduceScatter => (Buffer::Output, Buffer::Input, 0),
            _ => return part,
        };
        if part.buffer != inner {
            return part;
        }
        Part {
            buffer: outer,
            first: part.first + offset,
            ..part
        }
    }
}
