//! Who shares a node with whom, and who leads. Computed alike on every rank of a communicator.

use std::ffi::c_int;

use crate::tune::Tuner;

/// The nodes of a communicator as one of its ranks sees them.
pub struct Team {
    /// The ranks on this node, by their rank in the communicator, in its order.
    pub here: Vec<usize>,
    /// This rank's place among them.
    pub place: usize,
    /// For each rank of the communicator the place of its node among [`Team::leaders`].
    pub node_of: Vec<usize>,
    /// For each rank of the communicator its place on its node.
    pub place_of: Vec<usize>,
    /// The place of this rank's node.
    pub node: usize,
    /// For each node, in the order of first ranks, its first rank's number in the world.
    pub leaders: Vec<c_int>,
    /// For each rank of the communicator its rank in the world.
    pub world_ranks: Vec<c_int>,
}

impl Team {
    /// `None` for members of another world, which tuned communicators do not have.
    pub fn new(tuner: &Tuner, rank: usize, world_ranks: &[c_int]) -> Option<Team> {
        let node_of_rank = |world: &c_int| {
            let place = usize::try_from(*world).ok()?;
            tuner.node_of_rank.get(place).copied()
        };
        let nodes: Option<Vec<u32>> = world_ranks.iter().map(node_of_rank).collect();
        let nodes = nodes?;
        let (mut seen, mut leaders, mut sizes) = (Vec::<u32>::new(), Vec::new(), Vec::new());
        let (mut node_of, mut place_of) = (Vec::new(), Vec::new());
        let mut number_of = std::collections::HashMap::new();
        for (world, node) in world_ranks.iter().zip(&nodes) {
            let number = *number_of.entry(*node).or_insert_with(|| {
                seen.push(*node);
                leaders.push(*world);
                sizes.push(0);
                seen.len() - 1
            });
            node_of.push(number);
            place_of.push(sizes[number]);
            sizes[number] += 1;
        }
        let node = *node_of.get(rank)?;
        let here: Vec<usize> = (0..nodes.len()).filter(|&r| node_of[r] == node).collect();
        Some(Team {
            place: place_of[rank],
            here,
            node_of,
            place_of,
            node,
            leaders,
            world_ranks: world_ranks.to_vec(),
        })
    }

    pub fn n_here(&self) -> usize {
        self.here.len()
    }

    /// The place of the rank that leads a node in a call with this root, and its own if it is not
    /// the root's node: its first.
    pub fn leader_here(&self, root: usize) -> usize {
        if self.node_of[root] == self.node {
            self.place_of[root]
        } else {
            0
        }
    }
}
