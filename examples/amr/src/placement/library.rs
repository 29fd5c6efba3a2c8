//! The policies of the placement library, by name, on this app's mesh.

use colltune_placement::curve::LEVEL_MAX;
use colltune_placement::policy::{Argument, Need};
use colltune_placement::{
    Curve, Graph, Octant, PlacementError, Policy, Problem, match_owners, place,
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

/// Whether a policy, or the one inside it, does something with the ranks' nodes or with message times. Others are not
/// told: they place alike on any machine.
pub fn asks_for_nodes(policy: &Policy) -> bool {
    let own = ["hierarchical", "grouplb"].contains(&policy.row().name) || needs_links(policy);
    let inner = match policy.argument() {
        Argument::Inner(inner) => asks_for_nodes(inner),
        _ => false,
    };
    own || inner
}

/// Whether a policy, or the one inside it, cannot do without message times.
pub fn needs_links(policy: &Policy) -> bool {
    match policy.argument() {
        Argument::Inner(inner) => needs_links(inner),
        Argument::Auto => true,
        _ => policy.row().needs.contains(&Need::Machine),
    }
}

/// A rank for each leaf, by `policy`, which sees the leaves along the Hilbert curve.
///
/// Errors: the policy's own; the same on every rank.
pub fn owners(
    policy: &Policy,
    question: Question,
    shape: BlockShape,
) -> Result<Vec<u32>, PlacementError> {
    owners_in(policy, question, shape, None)
}

/// The same, where `topology` is told to policies that ask for it alone: what the run asks, and the emulator.
pub fn owners_told(
    policy: &Policy,
    question: Question,
    shape: BlockShape,
    topology: Option<&Topology>,
) -> Result<Vec<u32>, PlacementError> {
    let topology = topology.filter(|_| asks_for_nodes(policy));
    owners_in(policy, question, shape, topology)
}

/// The same on ranks that lie on nodes as `topology` says.
pub fn owners_in(
    policy: &Policy,
    question: Question,
    shape: BlockShape,
    topology: Option<&Topology>,
) -> Result<Vec<u32>, PlacementError> {
    answered(question, shape, topology, |problem| {
        Ok(place(policy, problem)?.owners)
    })
}

/// The same on ranks of these speeds, of which only the ratios count, by a policy that heeds them.
pub fn owners_by_speed(
    policy: &Policy,
    question: Question,
    shape: BlockShape,
    speeds: &[f64],
) -> Result<Vec<u32>, PlacementError> {
    debug_assert!(!asks_for_nodes(policy), "none that heeds speeds does");
    answered(question, shape, None, |problem| {
        let problem = problem.with_speeds(speeds)?;
        Ok(place(policy, &problem)?.owners)
    })
}

/// `owners` with the ranks renumbered so that little moves from the mesh's present owners, as the library's own policies
/// have it: loads stay what they are, and what follows the curve from rank to rank goes on doing so.
pub fn matched(
    question: Question,
    shape: BlockShape,
    owners: &[u32],
) -> Result<Vec<u32>, PlacementError> {
    let order = curve_order(question.mesh).1;
    let along: Vec<u32> = order.iter().map(|&i| owners[i as usize]).collect();
    if along.is_sorted() || owners.is_sorted() {
        return Ok(owners.to_vec());
    }
    answered(question, shape, None, |problem| {
        match_owners(problem, &along)
    })
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
    topology: Option<&Topology>,
    answer: impl FnOnce(&Problem) -> Result<Vec<u32>, PlacementError>,
) -> Result<Vec<u32>, PlacementError> {
    let mesh = question.mesh;
    let ((root_level, octants), order) = curve_order(mesh);
    let along = |i: &u32| *i as usize;
    let costs: Vec<f64> = order.iter().map(|i| question.costs[along(i)]).collect();
    let octants: Vec<Octant> = order.iter().map(|i| octants[along(i)]).collect();
    let mut present: Vec<u32> = order.iter().map(|i| mesh.owners()[along(i)]).collect();
    if let Some(topology) = topology {
        let places = topology.places();
        present
            .iter_mut()
            .for_each(|rank| *rank = places[*rank as usize]);
    }
    let messages = Messages::new(mesh, shape, &order);
    let mut problem = Problem::new(&costs, question.n_ranks as u32)?
        .with_mesh(colltune_placement::Mesh {
            dimensions: 3,
            root_level,
            octants: &octants,
        })?
        .with_graph(Graph {
            offsets: &messages.offsets,
            neighbours: &messages.neighbours,
            bytes: &messages.bytes,
        })?
        .with_owners(&present)?;
    if let Some(topology) = topology {
        problem = problem.with_ranks_per_node(topology.ranks_per_node)?;
        if let Some(links) = topology.links {
            problem = problem.with_machine(links)?;
        }
    }
    let placed = answer(&problem)?;
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
                let (to, bytes) = match mesh.neighbour(i as usize, face) {
                    Neighbour::Boundary => (Vec::new(), 0),
                    Neighbour::Same(j) => (vec![j], whole),
                    Neighbour::Coarser(j) => (vec![j], whole / 4),
                    Neighbour::Finer(quad) => (quad.to_vec(), whole / 4),
                };
                for j in to {
                    messages.add(first, own, place[j], bytes as u64);
                }
            }
            messages.offsets.push(messages.neighbours.len() as u64);
        }
        messages
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
