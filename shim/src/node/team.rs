//! Who shares a node with whom, and who leads. Computed alike on every rank of a communicator.

use std::ffi::c_int;
use std::sync::Arc;

use colltune_core::catalogue::Carriers;
use colltune_core::node::between::{self, LANES_MOST};

use crate::arguments::{Members, View};
use crate::world::World;

/// The nodes of a communicator as one of its ranks sees them.
pub struct Team {
    /// The ranks on this node, by their rank in the communicator: from the one that leads on, round in its order.
    pub here: Vec<usize>,
    /// This rank's place among them.
    pub place: usize,
    /// For each rank of the communicator the place of its node among [`Team::leaders`].
    pub node_of: Vec<usize>,
    /// For each rank of the communicator its place on its node.
    pub place_of: Vec<usize>,
    /// The place of this rank's node.
    pub node: usize,
    /// For each node, in the order of first ranks, the number in the world of the rank that leads it.
    pub leaders: Vec<c_int>,
    /// For each node its ranks, as [`Team::here`] has them.
    pub nodes: Vec<Vec<usize>>,
    /// How many ranks of each node carry a share of their own, where that is the way.
    pub lanes: usize,
    /// The ranks in the world of those that stand in this rank's place, one of each node; empty for a rank that
    /// is no lane.
    pub lane: Vec<c_int>,
    /// The places here, in order.
    pub places: Vec<usize>,
    /// For each place here the blocks that it provides: its own.
    pub own_blocks: Vec<Vec<usize>>,
    /// The blocks of other nodes that it gets.
    pub by_leader: Vec<Vec<usize>>,
    pub by_each: Vec<Vec<usize>>,
    /// For each rank of the communicator its rank in the world.
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
        let nodes = nodes?;
        let mut members = Vec::<Vec<usize>>::new();
        let mut number_of = std::collections::HashMap::new();
        for (rank, node) in nodes.iter().enumerate() {
            let number = *number_of.entry(*node).or_insert_with(|| {
                members.push(Vec::new());
                members.len() - 1
            });
            members[number].push(rank);
        }
        let (mut node_of, mut place_of) = (vec![0; nodes.len()], vec![0; nodes.len()]);
        for (number, ranks) in members.iter_mut().enumerate() {
            // Containers on one machine would have all their leaders on one processor.
            let turn = number % ranks.len();
            ranks.rotate_left(turn);
            for (place, &rank) in ranks.iter().enumerate() {
                (node_of[rank], place_of[rank]) = (number, place);
            }
        }
        let leaders = members.iter().map(|ranks| world_ranks[ranks[0]]).collect();
        let (node, place) = (*node_of.get(rank)?, place_of[rank]);
        let lanes = members.iter().map(Vec::len).min().unwrap_or(1);
        let lanes = lanes.min(LANES_MOST);
        let in_lane = members.iter().filter(|_| place < lanes);
        let here = members[node].clone();
        Some(Team {
            place,
            places: (0..here.len()).collect(),
            own_blocks: here.iter().map(|rank| vec![*rank]).collect(),
            by_leader: between::streams(&members, node, Carriers::Leader),
            by_each: between::streams(&members, node, Carriers::Each),
            lanes,
            lane: in_lane.map(|ranks| world_ranks[ranks[place]]).collect(),
            here,
            nodes: members,
            node_of,
            place_of,
            node,
            leaders,
            world_ranks: world_ranks.into(),
        })
    }

    /// The memory of the lists, about: a few numbers for each rank, and as many lists as nodes.
    pub fn bytes(&self) -> u64 {
        let (ranks, nodes) = (self.node_of.len(), self.nodes.len());
        (ranks * 8 * size_of::<usize>() + nodes * 2 * size_of::<Vec<usize>>()) as u64
    }

    /// The blocks of other nodes that each place gets.
    pub fn streams(&self, carriers: Carriers) -> &[Vec<usize>] {
        match carriers {
            Carriers::Leader => &self.by_leader,
            Carriers::Each => &self.by_each,
        }
    }

    /// This rank among the ranks that stand in one place, one of each node.
    pub fn across(&self) -> Members {
        Members {
            rank: self.node,
            n_ranks: self.nodes.len(),
        }
    }

    /// The part of a call that so many units of its message are, among ranks of which one is on each node.
    pub fn part(&self, view: &View, units: u64, data: (Option<*mut u8>, *mut u8)) -> View {
        view.part((self.across(), self.node_of[view.root]), units, data)
    }

    pub fn n_here(&self) -> usize {
        self.here.len()
    }

    /// The place of the rank that leads this node in a call with this root: the root itself, or the first.
    pub fn leader_here(&self, root: usize) -> usize {
        if self.node_of[root] == self.node {
            self.place_of[root]
        } else {
            0
        }
    }
}
