//! Any policy in two steps: first over the nodes, then over the ranks inside each node.
//!
//! The first step sees a node as one rank, the second a node's blocks alone: their costs, their part
//! of the mesh and of the neighbour graph. So nodes are balanced before anything else, and what the
//! policy does for locality it does twice, first where messages are dearest.
//!
//! Nodes of unequal size: the first step places on equal parts of nodes, as large as divides both the
//! ranks of a full node and those of the last one.
//! The present owners are known to the first step only, and the second step cuts out of the mesh and
//! the graph only what the policy looks at.

use super::{Need, Placement, Policy, place};
use crate::curve::Octant;
use crate::error::PlacementError;
use crate::problem::{Graph, Limits, Matching, Mesh, Problem};

/// The owners of the blocks of `problem` by `policy` in two steps.
pub(super) fn run(problem: &Problem, policy: &Policy) -> Result<Placement, PlacementError> {
    let node_of_block = nodes(problem, policy)?;
    let mut owners = vec![0; problem.n_blocks()];
    let mut local = vec![u32::MAX; problem.n_blocks()];
    for (node, blocks) in (0u32..).zip(by_node(problem, &node_of_block)) {
        let first = node * problem.ranks_per_node();
        let ranks = problem.ranks_per_node().min(problem.ranks() - first);
        let part = Part::new(problem, policy, &blocks, &mut local);
        let placed = place(policy, &part.problem(problem, ranks)?)?;
        for (&block, rank) in blocks.iter().zip(placed.owners) {
            owners[block as usize] = first + rank;
        }
    }
    Ok(owners.into())
}

/// The node of each block.
fn nodes(problem: &Problem, policy: &Policy) -> Result<Vec<u32>, PlacementError> {
    let (ranks, per_node) = (problem.ranks(), problem.ranks_per_node());
    if problem.n_nodes() == 1 {
        return Ok(vec![0; problem.n_blocks()]);
    }
    let together = greatest_common_divisor(per_node, ranks % per_node);
    let mut coarse = Problem::new(problem.costs(), ranks / together)?
        .with_matching(Matching::Off)
        .with_threads(problem.threads());
    if let Some(mesh) = problem.mesh().filter(|_| policy.looks_at(Need::Mesh)) {
        coarse = coarse.with_mesh(mesh)?;
    }
    if let Some(graph) = problem.graph().filter(|_| policy.looks_at(Need::Graph)) {
        coarse = coarse.with_graph(graph)?;
    }
    if let Some(machine) = problem.machine() {
        coarse = coarse.with_machine(machine)?;
    }
    let before: Option<Vec<u32>> = problem
        .owners()
        .map(|owners| owners.iter().map(|owner| owner / together).collect());
    if let Some(before) = &before {
        coarse = coarse.with_owners(before)?;
    }
    let coarse = coarse.with_limits(Limits {
        blocks_per_rank: problem
            .limits()
            .blocks_per_rank
            .map(|most| most.saturating_mul(together)),
        ..problem.limits()
    })?;
    let parts_per_node = per_node / together;
    let placed = place(policy, &coarse)?;
    Ok(placed
        .owners
        .iter()
        .map(|part| part / parts_per_node)
        .collect())
}

fn greatest_common_divisor(a: u32, b: u32) -> u32 {
    match b {
        0 => a,
        _ => greatest_common_divisor(b, a % b),
    }
}

/// The blocks of each node, in curve order.
fn by_node(problem: &Problem, node_of_block: &[u32]) -> Vec<Vec<u32>> {
    let mut blocks = vec![Vec::new(); problem.n_nodes() as usize];
    for (block, &node) in (0u32..).zip(node_of_block) {
        blocks[node as usize].push(block);
    }
    blocks
}

/// Some blocks of a problem with what is known about them.
struct Part<'a> {
    costs: Vec<f64>,
    mesh: Option<Mesh<'a>>,
    octants: Vec<Octant>,
    graph: Option<Graph<'a>>,
    offsets: Vec<u64>,
    neighbours: Vec<u32>,
    bytes: Vec<u64>,
}

impl<'a> Part<'a> {
    /// `local` is the number of each block in this part; it comes and goes filled with `u32::MAX`.
    fn new(problem: &Problem<'a>, policy: &Policy, blocks: &[u32], local: &mut [u32]) -> Self {
        let mut part = Part {
            costs: blocks
                .iter()
                .map(|&b| problem.costs()[b as usize])
                .collect(),
            mesh: problem.mesh().filter(|_| policy.looks_at(Need::Mesh)),
            octants: Vec::new(),
            graph: problem.graph().filter(|_| policy.looks_at(Need::Graph)),
            offsets: vec![0],
            neighbours: Vec::new(),
            bytes: Vec::new(),
        };
        if let Some(mesh) = part.mesh {
            part.octants
                .extend(blocks.iter().map(|&b| mesh.octants[b as usize]));
        }
        if let Some(graph) = part.graph {
            part.cut_out(graph, blocks, local);
        }
        part
    }

    fn cut_out(&mut self, graph: Graph, blocks: &[u32], local: &mut [u32]) {
        for (&block, number) in blocks.iter().zip(0..) {
            local[block as usize] = number;
        }
        for &block in blocks {
            for (neighbour, bytes) in graph.row(block as usize) {
                if local[neighbour as usize] != u32::MAX {
                    self.neighbours.push(local[neighbour as usize]);
                    self.bytes.push(bytes);
                }
            }
            self.offsets.push(self.neighbours.len() as u64);
        }
        blocks
            .iter()
            .for_each(|&block| local[block as usize] = u32::MAX);
    }

    /// The part as a problem of its own on the ranks of one node.
    fn problem(&self, whole: &Problem, ranks: u32) -> Result<Problem<'_>, PlacementError> {
        let mut problem = Problem::new(&self.costs, ranks)?
            .with_ranks_per_node(ranks)?
            .with_limits(whole.limits())?
            .with_threads(whole.threads());
        if let Some(mesh) = self.mesh {
            problem = problem.with_mesh(Mesh {
                octants: &self.octants,
                ..mesh
            })?;
        }
        if self.graph.is_some() {
            problem = problem.with_graph(Graph {
                offsets: &self.offsets,
                neighbours: &self.neighbours,
                bytes: &self.bytes,
            })?;
        }
        if let Some(machine) = whole.machine() {
            problem = problem.with_machine(machine)?;
        }
        Ok(problem)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::certificate::{certify, loads};
    use crate::curve::{ContactBytes, neighbours};
    use crate::generate::{Distribution, costs, octree};

    fn node_loads(problem: &Problem, owners: &[u32]) -> Vec<f64> {
        let mut of_nodes = vec![0.0; problem.n_nodes() as usize];
        for (rank, load) in (0u32..).zip(loads(problem, owners)) {
            of_nodes[problem.node(rank) as usize] += load;
        }
        of_nodes
    }

    #[test]
    fn nodes_are_balanced_by_their_size() {
        let costs = costs(Distribution::Exponential, 1, 700);
        for (ranks, per_node) in [(64, 8), (60, 8), (61, 8), (7, 3), (5, 8), (12, 1)] {
            let problem = Problem::new(&costs, ranks).and_then(|p| p.with_ranks_per_node(per_node));
            let problem = problem.unwrap();
            for policy in ["lpt", "contiguous-optimal"] {
                let owners = run(&problem, &policy.parse().unwrap()).unwrap().owners;
                assert_eq!(problem.check_owners(&owners), Ok(()));
                for (node, load) in (0u32..).zip(node_loads(&problem, &owners)) {
                    let size = per_node.min(ranks - node * per_node);
                    let share = problem.total() / f64::from(ranks) * f64::from(size);
                    // The first step is off by a block at most for each part that it places on.
                    let parts =
                        f64::from(size / greatest_common_divisor(per_node, ranks % per_node));
                    let off = (load - share).abs();
                    assert!(
                        off <= 100.0 * parts,
                        "{policy}, {ranks}/{per_node}, node {node}: {load} for {share}"
                    );
                }
            }
        }
    }

    #[test]
    fn fewer_messages_leave_the_node_than_without_the_first_step() {
        let mesh = octree(2, 3, 2, 6, 2000);
        let contact = ContactBytes {
            face: 100,
            edge: 10,
            corner: 1,
        };
        let graph = neighbours(mesh.as_mesh(), contact);
        let costs = costs(Distribution::Gaussian, 2, mesh.octants.len());
        let problem = Problem::new(&costs, 128)
            .and_then(|p| p.with_ranks_per_node(16))
            .and_then(|p| p.with_mesh(mesh.as_mesh()))
            .and_then(|p| p.with_graph(graph.as_graph()))
            .unwrap();
        let rcb: Policy = "rcb".parse().unwrap();
        let lpt: Policy = "lpt".parse().unwrap();
        for policy in [rcb, lpt] {
            let plain = place(&policy, &problem).unwrap();
            let two_steps = run(&problem, &policy).unwrap();
            let remote = |owners: &[u32]| certify(&problem, owners).unwrap().locality.remote.bytes;
            assert!(
                remote(&two_steps.owners) <= remote(&plain.owners) * 11 / 10,
                "{policy}"
            );
        }
    }

    #[test]
    fn one_node_is_the_policy_itself() {
        let costs = costs(Distribution::PowerLaw, 3, 100);
        let problem = Problem::new(&costs, 16)
            .and_then(|p| p.with_ranks_per_node(16))
            .unwrap();
        let lpt: Policy = "lpt".parse().unwrap();
        assert_eq!(
            run(&problem, &lpt).unwrap().owners,
            place(&lpt, &problem).unwrap().owners
        );
    }

    #[test]
    fn what_the_inner_policy_needs_is_asked_for() {
        let problem = Problem::new(&[1.0, 2.0], 2).unwrap();
        let error = run(&problem, &"rcb".parse().unwrap()).unwrap_err();
        assert!(
            matches!(error, PlacementError::Needs { policy: "rcb", .. }),
            "{error}"
        );
    }
}
