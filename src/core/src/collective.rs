//! The MPI collectives that colltune tunes, and what "message size" means for each.

use bincode::{Decode, Encode};
use serde::{Deserialize, Serialize};

use crate::named::named;

named! {
    /// A tuned MPI collective operation. Its number is its place.
    #[derive(
        Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, Encode, Decode,
    )]
    #[serde(rename_all = "snake_case")]
    #[repr(u8)]
    pub enum Collective {
        Allreduce = "allreduce",
        Bcast = "bcast",
        Allgather = "allgather",
        Alltoall = "alltoall",
        Reduce = "reduce",
        Allgatherv = "allgatherv",
        Gather = "gather",
        Gatherv = "gatherv",
        Scatter = "scatter",
        Scatterv = "scatterv",
        Alltoallv = "alltoallv",
        Alltoallw = "alltoallw",
        ReduceScatter = "reduce_scatter",
        ReduceScatterBlock = "reduce_scatter_block",
        Scan = "scan",
        Exscan = "exscan",
        Barrier = "barrier",
    }
}

impl Collective {
    pub const fn index(self) -> usize {
        self as usize
    }

    pub fn from_index(index: usize) -> Option<Collective> {
        Self::ALL.get(index).copied()
    }

    /// Whether the call combines contributions with an operation, so that count and type are
    /// facts that all ranks share.
    pub const fn is_reduction(self) -> bool {
        use Collective::{Allreduce, Exscan, Reduce, ReduceScatter, ReduceScatterBlock, Scan};
        matches!(
            self,
            Allreduce | Reduce | ReduceScatter | ReduceScatterBlock | Scan | Exscan
        )
    }

    /// Whether one rank is the root.
    pub const fn has_root(self) -> bool {
        use Collective::{Bcast, Gather, Gatherv, Reduce, Scatter, Scatterv};
        matches!(self, Bcast | Reduce | Gather | Gatherv | Scatter | Scatterv)
    }

    /// Whether each rank knows its own counts alone.
    pub const fn has_own_counts(self) -> bool {
        use Collective::{Alltoallv, Alltoallw, Gatherv, Scatterv};
        matches!(self, Gatherv | Scatterv | Alltoallv | Alltoallw)
    }

    /// The collective with equal blocks whose algorithms may carry the blocks of this one, each padded to one length.
    pub const fn padded(self) -> Option<Collective> {
        match self {
            Collective::Alltoallv | Collective::Alltoallw => Some(Collective::Alltoall),
            _ => None,
        }
    }

    /// Whether the size of a call is what the ranks agreed on of earlier ones. Where there is a root they do not: a rank may
    /// leave such a call before the others come, and must not wait for one whose call the library refuses.
    pub const fn agrees_on_size(self) -> bool {
        self.padded().is_some()
    }

    /// What the bytes of a call count.
    pub const fn size(self) -> MessageSize {
        match self {
            Collective::Allreduce
            | Collective::Bcast
            | Collective::Reduce
            | Collective::ReduceScatter
            | Collective::ReduceScatterBlock
            | Collective::Scan
            | Collective::Exscan => MessageSize::Message,
            Collective::Allgather
            | Collective::Allgatherv
            | Collective::Alltoall
            | Collective::Gather
            | Collective::Scatter
            | Collective::Alltoallv
            | Collective::Alltoallw => MessageSize::Block,
            Collective::Barrier | Collective::Gatherv | Collective::Scatterv => {
                MessageSize::Nothing
            }
        }
    }
}

/// What the message size of a collective means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageSize {
    /// The whole message: a vector that is sent, or reduced.
    Message,
    /// One block of as many as there are ranks; of uneven blocks, the mean.
    Block,
    /// There is nothing, or each rank knows its own counts alone: every call counts as 0 bytes.
    Nothing,
}

impl std::fmt::Display for Collective {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_lead_back_to_the_same_collective() {
        for (index, collective) in Collective::ALL.into_iter().enumerate() {
            assert_eq!(collective.index(), index);
            assert_eq!(Collective::from_index(index), Some(collective));
            assert_eq!(Collective::from_name(collective.name()), Some(collective));
        }
        assert_eq!(
            Collective::from_name("reduce_scatter_block"),
            Some(Collective::ReduceScatterBlock)
        );
        assert_eq!(Collective::from_name("Allreduce"), None);
        assert_eq!(Collective::from_index(Collective::ALL.len()), None);
    }
}
