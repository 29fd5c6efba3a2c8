//! A seeded mesh with its neighbour graph, and what of it a policy asks for.

use colltune_placement::curve::{ContactBytes, Neighbours, neighbours};
use colltune_placement::generate::{Octree, octree};
use colltune_placement::policy::Need;
use colltune_placement::{Link, Machine, PlacementError, Policy, Problem};

/// A mesh of a given number of blocks.
pub struct Scene {
    tree: Octree,
    graph: Neighbours,
}

#[derive(clap::Args, Debug)]
pub struct SceneArgs {
    /// Dimensions of the mesh
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u8).range(2..=3), value_name = "2|3")]
    pub dimensions: u8,
    /// Bytes of a message across a face, an edge and a corner [default: 2048,128,8; of `colltune-bench comm` 20480,2560,320]
    #[arg(long, value_parser = contact, value_name = "F,E,C")]
    pub message_bytes: Option<ContactBytes>,
    /// Time of a message inside a node and between nodes, in the unit of the costs
    #[arg(long, default_value = "1,3", value_parser = machine, value_name = "T,T")]
    pub message_time: Machine,
    /// Ranks on a node
    #[arg(long, default_value_t = 16, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub ranks_per_node: u32,
}

fn contact(text: &str) -> Result<ContactBytes, String> {
    let parts: Result<Vec<u64>, _> = text.split(',').map(str::parse).collect();
    match parts.as_deref() {
        Ok(&[face, edge, corner]) => Ok(ContactBytes { face, edge, corner }),
        _ => Err("three numbers of bytes such as 2048,128,8".to_owned()),
    }
}

fn machine(text: &str) -> Result<Machine, String> {
    let parts: Result<Vec<f64>, _> = text.split(',').map(str::parse).collect();
    let link = |latency| Link {
        latency,
        per_byte: 0.0,
    };
    match parts.as_deref() {
        Ok(&[node, remote]) if node >= 0.0 && remote >= 0.0 && (node + remote).is_finite() => {
            Ok(Machine {
                same_node: link(node),
                remote: link(remote),
            })
        }
        _ => Err("two times of at least 0 such as 1,3".to_owned()),
    }
}

impl SceneArgs {
    /// Those of one variable of 16 x 16 x 16 cells and one layer, unless others were asked for.
    pub fn message_bytes(&self) -> ContactBytes {
        self.message_bytes.unwrap_or(ContactBytes {
            face: 2048,
            edge: 128,
            corner: 8,
        })
    }
}

impl Scene {
    /// `blocks` leaves of a randomly refined octree, in Hilbert order.
    pub fn new(seed: u64, blocks: usize, args: &SceneArgs) -> Scene {
        let children = f64::from(1u32 << args.dimensions);
        let level = (blocks.max(1) as f64 / children)
            .log(children)
            .floor()
            .clamp(0.0, 10.0) as u8;
        let mut tree = octree(seed, args.dimensions, level, 20, blocks);
        tree.octants.truncate(blocks);
        let graph = neighbours(tree.as_mesh(), args.message_bytes());
        Scene { tree, graph }
    }

    /// Adds the mesh and the graph to a problem.
    pub fn add_to<'a>(&'a self, problem: Problem<'a>) -> Result<Problem<'a>, PlacementError> {
        problem
            .with_mesh(self.tree.as_mesh())?
            .with_graph(self.graph.as_graph())
    }

    pub fn n_blocks(&self) -> usize {
        self.tree.octants.len()
    }

    pub fn graph(&self) -> colltune_placement::Graph<'_> {
        self.graph.as_graph()
    }
}

/// Whether a policy cannot do without the mesh or the graph.
pub fn needs_mesh(policy: &Policy) -> bool {
    let needs = policy.row().needs;
    needs.contains(&Need::Mesh) || needs.contains(&Need::Graph)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scene_has_the_blocks_that_were_asked_for() {
        for dimensions in [2, 3] {
            let args = SceneArgs {
                dimensions,
                message_bytes: contact("4,2,1").ok(),
                message_time: machine("1,3").unwrap(),
                ranks_per_node: 4,
            };
            for blocks in [1, 2, 7, 100, 1000] {
                let scene = Scene::new(1, blocks, &args);
                let costs = vec![1.0; blocks];
                let problem = scene.add_to(Problem::new(&costs, 3).unwrap()).unwrap();
                assert!(problem.mesh().is_some() && problem.graph().is_some());
            }
        }
    }

    #[test]
    fn what_a_policy_needs_is_seen() {
        let needs = |name: &str| needs_mesh(&name.parse().unwrap());
        assert!(needs("rcb") && needs("grouplb") && needs("published:lpt"));
        assert!(!needs("lpt") && !needs("cplx:auto"));
        assert!(contact("1,2").is_err() && machine("1,-3").is_err() && machine("1,x").is_err());
    }
}
