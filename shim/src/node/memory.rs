//! What a communicator keeps for its nodes: who is where, the segment of this rank's, the library's communicators.

use crate::library::Pmpi;
use crate::limits::Reservation;
use crate::p2p::OpenChannel;
use crate::private::Parent;
use crate::world::World;

use super::bridges::Bridges;
use super::segment::Segment;
use super::team::Team;

/// What hangs on a communicator for its nodes.
#[derive(Default)]
pub enum NodeMemory {
    #[default]
    Unopened,
    /// Could not be opened, on any member.
    Failed,
    Open(Box<Nodes>),
}

/// The memory and the communicators of ours between the nodes.
pub struct Nodes {
    pub(super) team: Team,
    /// `None` where this rank is alone on its node.
    pub(super) segment: Option<Segment>,
    pub(super) bridges: Bridges,
    /// Of the team's lists.
    _memory: Reservation,
}

impl NodeMemory {
    /// Opens it for the members of a communicator that has a channel. Collective, and alike on all.
    #[cold]
    pub(super) fn open(world: &World, parent: Parent, channel: &OpenChannel) -> NodeMemory {
        let Some(team) = Team::new(world, channel.rank, &channel.world_ranks) else {
            // The layout is known to all members alike.
            return NodeMemory::Failed;
        };
        let (segment, failed) = Segment::open(world, channel, &team);
        let memory = Reservation::of(team.bytes());
        let mut agreed = [u64::from(failed || memory.is_none())];
        if !world.largest(parent.comm, &mut agreed) || agreed[0] != 0 {
            return NodeMemory::Failed;
        }
        let segment = segment.map(|segment| segment.settle(world));
        NodeMemory::Open(Box::new(Nodes {
            team,
            segment,
            bridges: Bridges::default(),
            _memory: memory.unwrap_or_default(),
        }))
    }

    /// Lets go of the segment. Others may still read in theirs: every rank has its own mapping.
    pub fn free(&mut self, pmpi: &Pmpi) {
        if let NodeMemory::Open(open) = self {
            open.bridges.free(pmpi);
        }
        *self = NodeMemory::Unopened;
    }
}
