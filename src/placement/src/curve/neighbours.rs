//! Which leaves of a mesh touch: the neighbour graph.

use super::{Curve, Octant};
use crate::problem::{Graph, Mesh};

/// The size of one message, by how two blocks meet; 0 means that they send none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContactBytes {
    pub face: u64,
    /// In two dimensions there are no edges of this kind: squares meet at faces and corners.
    pub edge: u64,
    pub corner: u64,
}

/// A neighbour graph that owns its arrays.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Neighbours {
    pub offsets: Vec<u64>,
    pub neighbours: Vec<u32>,
    pub bytes: Vec<u64>,
}

impl Neighbours {
    pub fn as_graph(&self) -> Graph<'_> {
        Graph {
            offsets: &self.offsets,
            neighbours: &self.neighbours,
            bytes: &self.bytes,
        }
    }
}

/// The neighbour graph of the leaves of a mesh: symmetric, each row ascending.
///
/// Shape: the leaves may have any levels and need not fill the cube, but must not overlap.
pub fn neighbours(mesh: Mesh, contact: ContactBytes) -> Neighbours {
    let order = Curve::Morton.order(mesh.dimensions, mesh.octants);
    let keys: Vec<u64> = order
        .iter()
        .map(|&block| Curve::Morton.key(mesh.dimensions, mesh.octants[block as usize]))
        .collect();
    let mut graph = Neighbours {
        offsets: vec![0],
        ..Neighbours::default()
    };
    let mut row: Vec<u32> = Vec::new();
    for octant in mesh.octants {
        row.clear();
        for direction in directions(mesh.dimensions) {
            if let Some(region) = octant.neighbour(direction) {
                let found = leaves_meeting(&keys, mesh.dimensions, region);
                row.extend(order[found].iter().filter(|&&block| {
                    let other = &mesh.octants[block as usize];
                    other.touching_axes(octant, mesh.dimensions).is_some()
                }));
            }
        }
        row.sort_unstable();
        row.dedup();
        for &block in &row {
            let other = &mesh.octants[block as usize];
            let bytes = message(mesh.dimensions, octant, other, contact);
            if bytes > 0 {
                graph.neighbours.push(block);
                graph.bytes.push(bytes);
            }
        }
        graph.offsets.push(graph.neighbours.len() as u64);
    }
    graph
}

fn message(dimensions: u8, a: &Octant, b: &Octant, contact: ContactBytes) -> u64 {
    match a.touching_axes(b, dimensions) {
        Some(1) => contact.face,
        Some(axes) if axes == dimensions => contact.corner,
        Some(_) => contact.edge,
        None => 0,
    }
}

/// The places, in Morton order, of the leaf around `region` or of the leaves in it.
fn leaves_meeting(keys: &[u64], dimensions: u8, region: Octant) -> std::ops::Range<usize> {
    let first = Curve::Morton.key(dimensions, region);
    let width = u64::from(region.side()).pow(u32::from(dimensions));
    let from = keys.partition_point(|&key| key < first);
    let to = from + keys[from..].partition_point(|&key| key < first + width);
    match from == to {
        // A coarser leaf starts before the region, if one covers it at all.
        true => from.saturating_sub(1)..from,
        false => from..to,
    }
}

fn directions(dimensions: u8) -> impl Iterator<Item = [i32; 3]> {
    let depth = if dimensions == 2 { 0 } else { 1 };
    (-depth..=depth)
        .flat_map(|z| (-1..=1).flat_map(move |y| (-1..=1).map(move |x| [x, y, z])))
        .filter(|direction| *direction != [0, 0, 0])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::octree;

    const BYTES: ContactBytes = ContactBytes {
        face: 100,
        edge: 10,
        corner: 1,
    };

    #[test]
    fn the_graph_is_what_comparing_all_pairs_finds() {
        for dimensions in [2, 3] {
            for seed in 0..10 {
                let mesh = octree(seed, dimensions, 1, 6, 300);
                // Leaves out some blocks: a mesh need not fill the cube.
                let octants: Vec<Octant> =
                    mesh.octants.iter().copied().skip(seed as usize).collect();
                let mesh = Mesh {
                    octants: &octants,
                    ..mesh.as_mesh()
                };
                let graph = neighbours(mesh, BYTES);
                for (i, a) in octants.iter().enumerate() {
                    let expected: Vec<(u32, u64)> = octants
                        .iter()
                        .enumerate()
                        .map(|(j, b)| (j as u32, message(dimensions, a, b, BYTES)))
                        .filter(|&(j, bytes)| j as usize != i && bytes > 0)
                        .collect();
                    let row: Vec<(u32, u64)> = graph.as_graph().row(i).collect();
                    assert_eq!(row, expected);
                }
            }
        }
    }

    #[test]
    fn a_uniform_grid_has_the_neighbours_of_a_grid() {
        let mesh = octree(0, 3, 3, 3, 0);
        let graph = neighbours(mesh.as_mesh(), BYTES);
        let n = |bytes| graph.bytes.iter().filter(|&&b| b == bytes).count();
        // Ordered pairs of an 8 x 8 x 8 grid: along one axis 14 pairs are adjacent and 8 equal.
        assert_eq!(n(100), 3 * 14 * 8 * 8);
        assert_eq!(n(10), 3 * 14 * 14 * 8);
        assert_eq!(n(1), 14 * 14 * 14);
    }
}
