//! The policies of the placement library, by name, on this app's mesh.

use colltune_placement::curve::LEVEL_MAX;
use colltune_placement::policy::{Argument, Need};
use colltune_placement::{
    Curve, Graph, Matching, Octant, PlacementError, Policy, Problem, match_owners, place,
};

use crate::leaf::{FACES, axis};
use crate::mesh::{Mesh, Neighbour};
use crate::placement::Question;
use crate::placement::topology::Topology;
use crate::shape::BlockShape;

/// The level of a root block, and the leaves in their order: the root grid stands in a corner of a
/// cube whose edge is a power of two.
pub fn octants(mesh: &Mesh) -> (u8, Vec<Octant>) {
    let longest = mesh.grid.roots.iter().max().copied().unwrap_or(1);
    let root_level = longest.next_power_of_two().trailing_zeros() as u8;
    let leaves = mesh.leaves().iter().map(|leaf| {
        let level = root_level + leaf.level;
        let [x, y, z] = leaf.at.map(|c| c << (LEVEL_MAX - level));
        Octant::new(x, y, z, level)
    });
    (root_level, leaves.collect())
}

/// Whether a policy does something with the ranks' nodes or with message times. To others nodes matter only where their
/// answer is matched to the present owners.
pub fn asks_for_nodes(policy: &Policy) -> bool {
    policy.row().name == "grouplb" || needs_links(policy)
}

/// Whether a policy cannot do without message times.
pub fn needs_links(policy: &Policy) -> bool {
    *policy.argument() == Argument::Auto || policy.row().needs.contains(&Need::Machine)
}

/// What is known of the ranks besides their number.
#[derive(Clone, Copy, Debug, Default)]
pub struct Told<'a> {
    /// Who shares a node with whom, and what messages cost.
    pub topology: Option<&'a Topology>,
    /// Of which only the ratios count.
    pub speeds: Option<&'a [f64]>,
}

/// A rank for each leaf, by `policy`, which sees the leaves along the Hilbert curve and nothing of the ranks.
///
/// Errors: the policy's own; the same on every rank.
pub fn owners(
    policy: &Policy,
    question: Question,
    shape: BlockShape,
) -> Result<Vec<u32>, PlacementError> {
    owners_told(policy, question, shape, Told::default())
}

/// The same where more is known of the ranks: what the run asks, and the emulator. Every policy gets the nodes, within which
/// its answer is matched to the present owners; message times and speeds go to policies that use them.
pub fn owners_told(
    policy: &Policy,
    question: Question,
    shape: BlockShape,
    told: Told,
) -> Result<Vec<u32>, PlacementError> {
    let told = Told {
        speeds: told.speeds.filter(|_| policy.heeds_speeds()),
        ..told
    };
    let links = asks_for_nodes(policy);
    answered(question, shape, told, links, |problem, messages| {
        placed(policy, problem, messages)
    })
}

/// `owners` with the ranks renumbered so that little moves from the mesh's present owners, as the library's own policies
/// have it: loads stay what they are, and what follows the curve from rank to rank goes on doing so.
pub fn matched(
    question: Question,
    shape: BlockShape,
    topology: Option<&Topology>,
    owners: &[u32],
) -> Result<Vec<u32>, PlacementError> {
    let order = curve_order(question.mesh).1;
    let along: Vec<u32> = order.iter().map(|&i| owners[i as usize]).collect();
    if along.is_sorted() || owners.is_sorted() {
        return Ok(owners.to_vec());
    }
    let told = Told {
        topology,
        speeds: None,
    };
    answered(question, shape, told, false, |problem, messages| {
        let along = match topology {
            Some(topology) => topology.to_places(&along),
            None => along,
        };
        renumbered(problem, &along, messages)
    })
}

/// A policy's answer. Messages are looked for where the policy looks at them, or where the match does.
fn placed(
    policy: &Policy,
    problem: Problem,
    messages: &dyn Fn() -> Messages,
) -> Result<Vec<u32>, PlacementError> {
    if policy.looks_at(Need::Graph) {
        let messages = messages();
        return Ok(place(policy, &problem.with_graph(messages.graph())?)?.owners);
    }
    let own = place(policy, &problem.with_matching(Matching::Off))?.owners;
    match own.is_sorted() {
        true => Ok(own),
        false => renumbered(problem, &own, messages),
    }
}

/// The same parts on ranks that have much of them now.
fn renumbered(
    problem: Problem,
    parts: &[u32],
    messages: &dyn Fn() -> Messages,
) -> Result<Vec<u32>, PlacementError> {
    // Where ranks share one node, or none, all are as far from each other.
    if !(2..problem.ranks()).contains(&problem.n_nodes()) {
        return match_owners(&problem, parts);
    }
    let messages = messages();
    match_owners(&problem.with_graph(messages.graph())?, parts)
}

/// The leaves, and their order along the Hilbert curve.
fn curve_order(mesh: &Mesh) -> ((u8, Vec<Octant>), Vec<u32>) {
    let octants = octants(mesh);
    let order = Curve::Hilbert.order(3, &octants.1);
    (octants, order)
}

/// Puts the question as the library wants it, along the Hilbert curve and with ranks node by node, and its answer back.
fn answered(
    question: Question,
    shape: BlockShape,
    told: Told,
    wants_links: bool,
    answer: impl FnOnce(Problem, &dyn Fn() -> Messages) -> Result<Vec<u32>, PlacementError>,
) -> Result<Vec<u32>, PlacementError> {
    let (mesh, topology) = (question.mesh, told.topology);
    let ((root_level, octants), order) = curve_order(mesh);
    let along = |i: &u32| *i as usize;
    let costs: Vec<f64> = order.iter().map(|i| question.costs[along(i)]).collect();
    let octants: Vec<Octant> = order.iter().map(|i| octants[along(i)]).collect();
    let mut present: Vec<u32> = order.iter().map(|i| mesh.owners()[along(i)]).collect();
    let mut speeds = told.speeds.map(<[f64]>::to_vec);
    if let Some(topology) = topology {
        present = topology.to_places(&present);
        if let (Some(speeds), Some(of_ranks)) = (&mut speeds, told.speeds) {
            let of_places = topology.ranks.iter().map(|&rank| of_ranks[rank as usize]);
            *speeds = of_places.collect();
        }
    }
    let mut problem = Problem::new(&costs, question.n_ranks as u32)?
        .with_mesh(colltune_placement::Mesh {
            dimensions: 3,
            root_level,
            octants: &octants,
        })?
        .with_owners(&present)?;
    if let Some(speeds) = &speeds {
        problem = problem.with_speeds(speeds)?;
    }
    if let Some(topology) = topology {
        problem = problem.with_ranks_per_node(topology.ranks_per_node)?;
        if let Some(links) = topology.links.filter(|_| wants_links) {
            problem = problem.with_machine(links)?;
        }
    }
    let placed = answer(problem, &|| Messages::new(mesh, shape, &order))?;
    let mut owners = vec![0; mesh.len()];
    for (i, place) in order.iter().zip(placed) {
        owners[along(i)] = match topology {
            Some(topology) => topology.ranks[place as usize],
            None => place,
        };
    }
    Ok(owners)
}

/// Who sends ghosts to whom, in the order of the curve.
struct Messages {
    offsets: Vec<u64>,
    neighbours: Vec<u32>,
    bytes: Vec<u64>,
}

impl Messages {
    fn new(mesh: &Mesh, shape: BlockShape, order: &[u32]) -> Messages {
        let mut place = vec![0u32; order.len()];
        for (position, &i) in (0..).zip(order) {
            place[i as usize] = position;
        }
        let mut messages = Messages {
            offsets: vec![0],
            neighbours: Vec::new(),
            bytes: Vec::new(),
        };
        for (own, &i) in (0..).zip(order) {
            let first = messages.neighbours.len();
            for face in 0..FACES {
                let whole = 8 * shape.n_vars * shape.face_cells(axis(face)) * shape.ghosts.max(1);
                let mut add = |j: usize, bytes: usize| {
                    messages.add(first, own, place[j], bytes as u64);
                };
                match mesh.neighbour(i as usize, face) {
                    Neighbour::Boundary => {}
                    Neighbour::Same(j) => add(j, whole),
                    Neighbour::Coarser(j) => add(j, whole / 4),
                    Neighbour::Finer(quad) => quad.into_iter().for_each(|j| add(j, whole / 4)),
                }
            }
            messages.offsets.push(messages.neighbours.len() as u64);
        }
        messages
    }

    fn graph(&self) -> Graph<'_> {
        Graph {
            offsets: &self.offsets,
            neighbours: &self.neighbours,
            bytes: &self.bytes,
        }
    }

    /// Adds what block `from`, whose neighbours begin at `first`, sends to `to`. Where the domain is periodic and a block
    /// wide or two, that may be itself, or one that it met at another face.
    fn add(&mut self, first: usize, from: u32, to: u32, bytes: u64) {
        if from == to {
            return;
        }
        let known = self.neighbours[first..]
            .iter()
            .position(|&other| other == to);
        match known {
            Some(place) => self.bytes[first + place] += bytes,
            None => {
                self.neighbours.push(to);
                self.bytes.push(bytes);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn messages_are_looked_for_where_somebody_looks_at_them() {
        let costs: Vec<f64> = (0..48).map(|i| 1.0 + f64::from(i % 5)).collect();
        let present: Vec<u32> = (0..48).map(|i| i * 7 % 12).collect();
        let octants: Vec<Octant> = (0..48u32)
            .map(|i| Octant::new(i % 4, i / 4 % 4, i / 16, LEVEL_MAX))
            .collect();
        let n_looked_for = |name: &str, ranks_per_node| {
            let problem = Problem::new(&costs, 12).unwrap();
            let mesh = colltune_placement::Mesh {
                dimensions: 3,
                root_level: LEVEL_MAX,
                octants: &octants,
            };
            let problem = problem
                .with_mesh(mesh)
                .and_then(|problem| problem.with_owners(&present))
                .and_then(|problem| problem.with_ranks_per_node(ranks_per_node))
                .unwrap();
            let n = Cell::new(0);
            let none = || {
                n.set(n.get() + 1);
                Messages {
                    offsets: vec![0; 49],
                    neighbours: Vec::new(),
                    bytes: Vec::new(),
                }
            };
            placed(&name.parse().unwrap(), problem, &none).unwrap();
            n.get()
        };
        // Of nodes only the match knows, which leaves alone what follows the curve.
        for name in ["contiguous", "contiguous-optimal"] {
            assert_eq!(
                [1, 4, 12].map(|ppn| n_looked_for(name, ppn)),
                [0; 3],
                "{name}"
            );
        }
        assert_eq!([1, 4, 12].map(|ppn| n_looked_for("lpt", ppn)), [0, 1, 0]);
        assert_eq!([1, 4, 12].map(|ppn| n_looked_for("grouplb", ppn)), [1; 3]);
    }
}
