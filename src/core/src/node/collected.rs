//! How blocks lie on the leaders of nodes, where they go over these.
//!
//! Between leaders all blocks are as long as those of the node with the most ranks: so any allgather or alltoall
//! runs there, and short messages, for which this is, are little longer for it. The ranks of a node need not follow
//! one another, so blocks change places on their way.

use super::map::NodeMap;
use crate::collective::Collective;

/// A leader holds what all ranks of its node have for all others: with wide nodes far more than a rank has memory.
const ROOM_MOST: u64 = 128 << 20;

/// Where the blocks of one call lie on a leader, in bytes; each is `block` long.
#[derive(Clone, Copy, Debug)]
pub struct CollectedLayout {
    collective: Collective,
    block: u64,
    /// Ranks of the communicator, of this node, and of the node with the most.
    n_ranks: u64,
    n_here: u64,
    widest: u64,
    n_nodes: u64,
    leads: bool,
}

impl CollectedLayout {
    /// Of an allgather or alltoall whose blocks go over leaders.
    pub fn new(map: &NodeMap, collective: Collective, block: u64) -> CollectedLayout {
        CollectedLayout {
            collective,
            block,
            n_ranks: map.n_ranks() as u64,
            n_here: map.n_here() as u64,
            widest: map.nodes.iter().map(Vec::len).max().unwrap_or(1) as u64,
            n_nodes: map.nodes.len() as u64,
            leads: map.place == 0,
        }
    }

    /// What a leader has for another, or for all others.
    pub fn between(&self) -> u64 {
        match self.collective {
            Collective::Allgather => self.block.saturating_mul(self.widest),
            _ => self
                .block
                .saturating_mul(self.widest)
                .saturating_mul(self.widest),
        }
    }

    /// Units of the messages of all ranks of this node.
    pub fn collected(&self) -> u64 {
        self.message().saturating_mul(self.n_here)
    }

    /// A block for each rank.
    pub fn message(&self) -> u64 {
        self.block.saturating_mul(self.n_ranks)
    }

    /// What a leader has for all others, or gets of them.
    pub fn across(&self) -> u64 {
        self.between().saturating_mul(self.n_nodes)
    }

    /// The room that this rank needs: of an alltoall for what its node has collected, what it sends and what it
    /// receives.
    pub fn room(&self) -> u64 {
        match (self.leads, self.collective) {
            (false, _) => 0,
            (true, Collective::Allgather) => self.across(),
            (true, _) => {
                let both = self.across().saturating_mul(2);
                self.collected().saturating_add(both)
            }
        }
    }

    /// Whether this rank may take that much room, and as much again: so much longer are the longest messages of a
    /// class. The library can count what goes between leaders, then.
    pub fn is_modest(&self) -> bool {
        self.room() <= ROOM_MOST
    }

    /// Where the block of a rank, by its node and place, lies among those of an allgather.
    pub fn gathered(&self, node: usize, place: usize) -> u64 {
        self.between() * node as u64 + place as u64 * self.block
    }

    /// Where a block lies among those that leaders exchange in an alltoall, by the node at the other end, the place of
    /// the sender and that of the receiver.
    pub fn exchanged(&self, node: usize, from: usize, to: usize) -> u64 {
        ((node as u64 * self.widest + from as u64) * self.widest + to as u64) * self.block
    }

    /// Where a block lies among the collected messages, by the place of the rank here and the rank at the other end.
    pub fn of_message(&self, place: usize, rank: usize) -> u64 {
        (place as u64 * self.n_ranks + rank as u64) * self.block
    }
}

/// Whether a collective moves a block of each rank to all others.
pub fn moves_blocks(collective: Collective) -> bool {
    matches!(collective, Collective::Allgather | Collective::Alltoall)
}
