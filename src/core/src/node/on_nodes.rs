//! What runs a collective over shared memory inside the nodes and whatever carries it between them.

use super::between::{Carriers, LANES_MOST};
use crate::algorithm::registry::Scheduled;
use crate::need::Facts;

/// A collective over shared memory inside each node: who carries what between the nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnNodes {
    /// No rank: there is one node.
    Alone,
    /// No rank, and ranks read each other's buffers where they lie.
    Reading,
    /// One rank of each node meets those of the others.
    Leaders(Crossing),
    /// Several ranks of each node meet their like, each with its share of the message.
    Lanes(Crossing),
    /// Blocks go straight to where they are wanted.
    Direct(Carriers),
}

impl OnNodes {
    /// How one rank of each node meets those of the others, where that is the way.
    pub fn crossing(self) -> Option<Crossing> {
        match self {
            OnNodes::Leaders(crossing) | OnNodes::Lanes(crossing) => Some(crossing),
            OnNodes::Alone | OnNodes::Reading | OnNodes::Direct(_) => None,
        }
    }

    /// How many ranks of each node carry a share, at most.
    pub(crate) fn lanes_most(self, facts: &Facts) -> u64 {
        match self {
            // As many as the smallest node has, which is not above the mean.
            OnNodes::Lanes(_) => {
                let mean = facts.n_ranks / facts.nodes.max(1);
                u64::from(mean).clamp(1, LANES_MOST as u64)
            }
            _ => 1,
        }
    }
}

/// What ranks of different nodes run with each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Crossing {
    Schedule(Scheduled),
    /// The library's collective, by its own choice.
    Library,
}
