//! Refined meshes with what tests of policies ask of them.

use super::costs::{Distribution, costs};
use super::octree::Octree;
use crate::curve::{ContactBytes, Neighbours, neighbours};
use crate::problem::Problem;

/// What a message across a face, an edge and a corner has.
pub(crate) const MESSAGE_BYTES: ContactBytes = ContactBytes {
    face: 4096,
    edge: 256,
    corner: 16,
};

/// A mesh with the messages between its blocks and what these cost.
pub(crate) struct Refined {
    pub mesh: Octree,
    pub graph: Neighbours,
    pub costs: Vec<f64>,
}

impl Refined {
    pub fn new(mesh: Octree, distribution: Distribution, seed: u64) -> Self {
        let costs = costs(distribution, seed, mesh.octants.len());
        Refined {
            graph: neighbours(mesh.as_mesh(), MESSAGE_BYTES),
            mesh,
            costs,
        }
    }

    pub fn problem(&self, ranks: u32) -> Problem<'_> {
        let problem = self.without_graph(ranks);
        problem.with_graph(self.graph.as_graph()).unwrap()
    }

    pub fn without_graph(&self, ranks: u32) -> Problem<'_> {
        let problem = Problem::new(&self.costs, ranks);
        problem
            .and_then(|p| p.with_mesh(self.mesh.as_mesh()))
            .unwrap()
    }
}
