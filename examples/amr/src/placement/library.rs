//! The policies of the placement library, by name, on this app's mesh.

use colltune_placement::curve::LEVEL_MAX;
use colltune_placement::{Curve, Graph, Machine, Octant, PlacementError, Policy, Problem, place};

use crate::leaf::{FACES, axis};
use crate::mesh::{Mesh, Neighbour};
use crate::placement::Question;
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

/// A rank for each leaf, by `policy`, which sees the leaves along the Hilbert curve.
///
/// Errors: the policy's own; the same on every rank.
pub fn owners(
    policy: &Policy,
    question: Question,
    shape: BlockShape,
) -> Result<Vec<u32>, PlacementError> {
    owners_on(policy, question, shape, None)
}

/// The same, with the ranks per node and what messages cost where that is known.
pub fn owners_on(
    policy: &Policy,
    question: Question,
    shape: BlockShape,
    machine: Option<(u32, Machine)>,
) -> Result<Vec<u32>, PlacementError> {
    let mesh = question.mesh;
    let (root_level, octants) = octants(mesh);
    let order = Curve::Hilbert.order(3, &octants);
    let along = |i: &u32| *i as usize;
    let costs: Vec<f64> = order.iter().map(|i| question.costs[along(i)]).collect();
    let octants: Vec<Octant> = order.iter().map(|i| octants[along(i)]).collect();
    let present: Vec<u32> = order.iter().map(|i| mesh.owners()[along(i)]).collect();
    let messages = Messages::new(mesh, shape, &order);
    let problem = Problem::new(&costs, question.n_ranks as u32)?
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
    let problem = match machine {
        Some((ppn, machine)) => problem.with_ranks_per_node(ppn)?.with_machine(machine)?,
        None => problem,
    };
    let placed = place(policy, &problem)?;
    let mut owners = vec![0; mesh.len()];
    for (i, owner) in order.iter().zip(placed.owners) {
        owners[along(i)] = owner;
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
        for &i in order {
            for face in 0..FACES {
                let whole = 8 * shape.n_vars * shape.face_cells(axis(face)) * shape.ghosts.max(1);
                let (to, bytes) = match mesh.neighbour(i as usize, face) {
                    Neighbour::Boundary => (Vec::new(), 0),
                    Neighbour::Same(j) => (vec![j], whole),
                    Neighbour::Coarser(j) => (vec![j], whole / 4),
                    Neighbour::Finer(quad) => (quad.to_vec(), whole / 4),
                };
                for j in to {
                    messages.neighbours.push(place[j]);
                    messages.bytes.push(bytes as u64);
                }
            }
            messages.offsets.push(messages.neighbours.len() as u64);
        }
        messages
    }
}
