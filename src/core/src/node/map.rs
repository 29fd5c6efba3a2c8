//! Which ranks of a communicator share a node, who leads there, and who carries shares. Computed alike on every rank.

use std::collections::HashMap;

use super::between::{Carriers, LANES_MOST, streams};

/// The nodes of a communicator as one of its ranks sees them.
#[derive(Clone, Debug)]
pub struct NodeMap {
    /// For each node, in the order of first ranks, its ranks: from the one that leads on, round in its order.
    pub nodes: Vec<Vec<usize>>,
    /// For each rank of the communicator its node.
    pub node_of: Vec<usize>,
    /// For each rank of the communicator its place on its node.
    pub place_of: Vec<usize>,
    /// This rank's node, and its place there.
    pub node: usize,
    pub place: usize,
    /// How many ranks of each node carry a share of their own, where that is the way.
    pub lanes: usize,
    /// The places here, in order.
    pub places: Vec<usize>,
    /// For each place here the blocks that it provides: its own.
    pub own_blocks: Vec<Vec<usize>>,
    /// For each place here the blocks of other nodes that come to it, in order: where its leader carries them, and where
    /// each rank carries its own.
    by_leader: Vec<Vec<usize>>,
    by_each: Vec<Vec<usize>>,
}

impl NodeMap {
    /// Of a communicator whose ranks are on these nodes, whatever their numbers; `None` where `rank` is none of them.
    pub fn new(nodes_of_ranks: &[u32], rank: usize) -> Option<NodeMap> {
        let mut nodes = Vec::<Vec<usize>>::new();
        let mut number_of = HashMap::new();
        for (rank, node) in nodes_of_ranks.iter().enumerate() {
            let number = *number_of.entry(*node).or_insert_with(|| {
                nodes.push(Vec::new());
                nodes.len() - 1
            });
            nodes[number].push(rank);
        }
        let n_ranks = nodes_of_ranks.len();
        let (mut node_of, mut place_of) = (vec![0; n_ranks], vec![0; n_ranks]);
        for (number, ranks) in nodes.iter_mut().enumerate() {
            // Containers on one machine would have all their leaders on one processor.
            let turn = number % ranks.len();
            ranks.rotate_left(turn);
            for (place, &rank) in ranks.iter().enumerate() {
                (node_of[rank], place_of[rank]) = (number, place);
            }
        }
        let (node, place) = (*node_of.get(rank)?, place_of[rank]);
        let least = nodes.iter().map(Vec::len).min().unwrap_or(1);
        Some(NodeMap {
            node,
            place,
            places: (0..nodes[node].len()).collect(),
            own_blocks: nodes[node].iter().map(|rank| vec![*rank]).collect(),
            lanes: least.min(LANES_MOST),
            by_leader: streams(&nodes, node, Carriers::Leader),
            by_each: streams(&nodes, node, Carriers::Each),
            nodes,
            node_of,
            place_of,
        })
    }

    /// For each place here the blocks of other nodes that come to it, in order.
    #[inline]
    pub fn streams(&self, carriers: Carriers) -> &[Vec<usize>] {
        match carriers {
            Carriers::Leader => &self.by_leader,
            Carriers::Each => &self.by_each,
        }
    }

    /// The ranks on this node, in the order of their places.
    #[inline]
    pub fn here(&self) -> &[usize] {
        &self.nodes[self.node]
    }

    /// How many ranks are on this node.
    #[inline]
    pub fn n_here(&self) -> usize {
        self.places.len()
    }

    /// The place of the lowest rank on this node, from which on the others follow in order, round the node.
    pub fn lowest_place(&self) -> usize {
        let lowest = self
            .here()
            .iter()
            .enumerate()
            .min_by_key(|(_, rank)| **rank);
        lowest.map_or(0, |(place, _)| place)
    }

    /// How many ranks the communicator has.
    #[inline]
    pub fn n_ranks(&self) -> usize {
        self.node_of.len()
    }

    /// The place of the rank that leads this node in a call with this root: the root itself, or the first.
    #[inline]
    pub fn leader_here(&self, root: usize) -> usize {
        match self.is_here(root) {
            true => self.place_of[root],
            false => 0,
        }
    }

    /// Whether a rank is on this node.
    #[inline]
    pub fn is_here(&self, rank: usize) -> bool {
        self.node_of[rank] == self.node
    }

    /// The ranks that stand in a place, one of each node; empty where one has no such place.
    pub fn lane(&self, place: usize) -> impl Iterator<Item = usize> + use<'_> {
        let all = self.nodes.iter().filter(move |_| place < self.lanes);
        all.map(move |ranks| ranks[place])
    }
}
