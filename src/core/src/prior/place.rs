//! Where a cell is simulated: cells that are simulated alike have their place in common.

use bincode::{Decode, Encode};
use serde::{Deserialize, Serialize};

use crate::bound;
use crate::space::Cell;

/// What is hopeless on so many nodes, or on so many ranks of each, is so on more.
const NODES_LOOKED_AT: u64 = 32;
const PPN_LOOKED_AT: u64 = 4;

/// Where a cell is simulated: on the least of its nodes and ranks, at both ends of its sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, Encode, Decode)]
pub struct Place {
    pub(super) nodes: u64,
    pub(super) ppn: u64,
    pub(super) bytes: [u64; 2],
}

impl Place {
    pub fn of(cell: &Cell) -> Place {
        Place {
            nodes: cell.nodes.lo.clamp(1, NODES_LOOKED_AT),
            ppn: cell.ppn.lo.clamp(1, PPN_LOOKED_AT),
            bytes: bound::ends(cell.bytes),
        }
    }

    pub(super) fn n_ranks(&self) -> u64 {
        self.nodes * self.ppn
    }
}
