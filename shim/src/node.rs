//! Shared memory inside the nodes: each node of a communicator has its own segment.
//!
//! `colltune_core::node` says what the ranks do with it, in stages that the checker there runs, too. On several nodes
//! one rank of each, its leader, meets the other leaders in a schedule over messages; before that the node combines,
//! and after it the node spreads. A root leads its node, so that nothing goes a longer way.
//!
//! In the order of a call: the [`team`] of the communicator, the [`segment`] of its node, and how ranks wait for each
//! other ([`patience`]) as long as there are any ([`neighbours`]). [`short`] messages travel beside their flags; the
//! [`elements`] of all others travel in [`pieces`]. On [`bridges`] the library meets the other nodes; [`call`] and
//! [`barrier`] put phases together; [`repeat`] is the short way of a call like the last one.

mod team;

mod neighbours;
mod patience;
mod segment;

mod bases;
mod elements;
mod fixed_order;
mod pieces;
mod short;
mod transfers;

mod bridges;
mod memory;
pub use memory::NodeMemory;

mod barrier;
mod overlap;
mod phases;
mod reads;

mod call;
pub use call::{compile, has_room, run};

mod repeat;
pub use repeat::Repeat;

use colltune_core::catalogue::{Crossing, OnNodes};

use crate::p2p::{self, Schedules};
use crate::private::Parent;
use crate::world::World;

/// Sees to it that ranks can meet over their nodes' memory. Collective at the first call that needs it; the answer is
/// the same on all ranks.
#[inline]
pub fn open(
    world: &World,
    parent: Parent,
    (schedules, node): (&mut Schedules, &mut NodeMemory),
    own: OnNodes,
) -> bool {
    if matches!(node, NodeMemory::Unopened) {
        let _agreement = world.spending.opening();
        if !p2p::open(world, parent, schedules) {
            *node = NodeMemory::Failed;
            return false;
        }
        *node = NodeMemory::open(world, parent, schedules.channel());
    }
    let NodeMemory::Open(nodes) = node else {
        return false;
    };
    !matches!(own.crossing(), Some(Crossing::Library))
        || nodes.bridges.ready(world, parent, &nodes.team)
}
