//! Who shares a node with whom, and who leads. Computed alike on every rank of a communicator.

use std::ffi::c_int;
use std::sync::Arc;

use colltune_core::node::map::NodeMap;

use crate::arguments::{Members, View};
use crate::world::World;

/// The nodes of a communicator as one of its ranks sees them, and how they are reached.
pub struct Team {
    pub map: NodeMap,
    pub reach: Reach,
}

/// Ranks by their rank in the world, which messages go by.
pub struct Reach {
    /// For each node, in their order, the one that leads it.
    pub leaders: Vec<c_int>,
    /// Those that stand in this rank's place, one of each node; empty for a rank that is no lane.
    pub lane: Vec<c_int>,
    /// Each rank of the communicator.
    pub world_ranks: Arc<[c_int]>,
}

impl Team {
    /// `None` for members of another world, which tuned communicators do not have.
    pub fn new(world: &World, rank: usize, world_ranks: &[c_int]) -> Option<Team> {
        let node_of_rank = |rank: &c_int| {
            let place = usize::try_from(*rank).ok()?;
            world.node_of_rank.get(place).copied()
        };
        let nodes: Option<Vec<u32>> = world_ranks.iter().map(node_of_rank).collect();
        let map = NodeMap::new(&nodes?, rank)?;
        let in_world = |rank: usize| world_ranks[rank];
        Some(Team {
            reach: Reach {
                leaders: map.nodes.iter().map(|ranks| in_world(ranks[0])).collect(),
                lane: map.lane(map.place).map(in_world).collect(),
                world_ranks: world_ranks.into(),
            },
            map,
        })
    }

    /// The memory of the lists, about: a few numbers for each rank, and as many lists as nodes.
    pub fn bytes(&self) -> u64 {
        let (ranks, nodes) = (self.map.n_ranks(), self.map.nodes.len());
        (ranks * 8 * size_of::<usize>() + nodes * 2 * size_of::<Vec<usize>>()) as u64
    }

    pub fn n_here(&self) -> usize {
        self.map.n_here()
    }
}

/// This rank among the ranks that stand in one place, one of each node.
pub fn across(map: &NodeMap) -> Members {
    Members {
        rank: map.node,
        n_ranks: map.nodes.len(),
    }
}

/// The part of a call that so many units of its message are, among ranks of which one is on each node.
pub fn part(map: &NodeMap, view: &View, units: u64, data: (Option<*mut u8>, *mut u8)) -> View {
    view.part((across(map), map.node_of[view.root]), units, data)
}
