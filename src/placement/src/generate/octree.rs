//! Randomly refined meshes.

use std::collections::HashMap;

use super::random::Random;
use crate::curve::{Curve, Octant};
use crate::problem::Mesh;

/// The leaves of a quadtree or octree over the whole cube, in Hilbert order.
#[derive(Debug, Clone, PartialEq)]
pub struct Octree {
    pub dimensions: u8,
    pub root_level: u8,
    pub octants: Vec<Octant>,
}

impl Octree {
    pub fn as_mesh(&self) -> Mesh<'_> {
        Mesh {
            dimensions: self.dimensions,
            root_level: self.root_level,
            octants: &self.octants,
        }
    }
}

/// Refines random leaves until there are at least `leaves`, or nothing is left to refine.
///
/// Shape: starts with a uniform grid of `root_level`; no leaf is finer than `level_max`; leaves that
/// share a face differ by at most one level. The result has fewer than `leaves + 2^dimensions *
/// (level_max + 1)` leaves.
pub fn octree(seed: u64, dimensions: u8, root_level: u8, level_max: u8, leaves: usize) -> Octree {
    assert!(matches!(dimensions, 2 | 3) && root_level <= level_max);
    assert!(
        u32::from(dimensions) * u32::from(root_level) < 32,
        "the root grid must fit"
    );
    let mut forest = Leaves::default();
    forest.fill(dimensions, Octant::ROOT, root_level);
    let mut random = Random::new(seed);
    let mut refused = 0;
    while forest.leaves.len() < leaves && refused < 64 * forest.leaves.len() {
        let leaf = forest.leaves[random.below(forest.leaves.len())];
        if leaf.level == level_max {
            refused += 1;
            continue;
        }
        refused = 0;
        forest.refine(dimensions, leaf);
    }
    let order = Curve::Hilbert.order(dimensions, &forest.leaves);
    Octree {
        dimensions,
        root_level,
        octants: order
            .into_iter()
            .map(|i| forest.leaves[i as usize])
            .collect(),
    }
}

/// The leaves in an order that depends on the history alone, with the place of each.
#[derive(Default)]
struct Leaves {
    leaves: Vec<Octant>,
    places: HashMap<Octant, usize>,
}

impl Leaves {
    fn insert(&mut self, leaf: Octant) {
        self.places.insert(leaf, self.leaves.len());
        self.leaves.push(leaf);
    }

    fn remove(&mut self, leaf: Octant) {
        let place = self.places.remove(&leaf).expect("only leaves are refined");
        self.leaves.swap_remove(place);
        if let Some(moved) = self.leaves.get(place) {
            self.places.insert(*moved, place);
        }
    }

    fn fill(&mut self, dimensions: u8, octant: Octant, level: u8) {
        if octant.level == level {
            return self.insert(octant);
        }
        for child in octant.children(dimensions) {
            self.fill(dimensions, child, level);
        }
    }

    /// Splits a leaf, after the coarser ones that share a face with it.
    fn refine(&mut self, dimensions: u8, leaf: Octant) {
        for axis in 0..usize::from(dimensions) {
            for step in [-1, 1] {
                let mut direction = [0; 3];
                direction[axis] = step;
                let Some(neighbour) = leaf.neighbour(direction) else {
                    continue;
                };
                if leaf.level > 0 {
                    let coarse = neighbour.ancestor(leaf.level - 1);
                    if self.places.contains_key(&coarse) {
                        self.refine(dimensions, coarse);
                    }
                }
            }
        }
        self.remove(leaf);
        for child in leaf.children(dimensions) {
            self.insert(child);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::curve::LEVEL_MAX;

    #[test]
    fn leaves_tile_the_cube_and_faces_are_balanced() {
        for dimensions in [2, 3] {
            for seed in 0..20 {
                let mesh = octree(seed, dimensions, 1, 8, 500);
                assert!(mesh.octants.len() >= 500);
                let cells =
                    |o: &Octant| 1u128 << (u32::from(dimensions) * u32::from(LEVEL_MAX - o.level));
                let volume: u128 = mesh.octants.iter().map(cells).sum();
                assert_eq!(volume, 1 << (u32::from(dimensions) * u32::from(LEVEL_MAX)));
                for a in &mesh.octants {
                    for b in &mesh.octants {
                        if a.touching_axes(b, dimensions) == Some(1) {
                            assert!(a.level.abs_diff(b.level) <= 1, "{a:?} {b:?}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn a_seed_gives_one_mesh() {
        assert_eq!(octree(3, 3, 2, 9, 1000), octree(3, 3, 2, 9, 1000));
        assert_ne!(octree(3, 3, 2, 9, 1000), octree(4, 3, 2, 9, 1000));
    }

    #[test]
    fn a_full_mesh_ends_the_refinement() {
        assert_eq!(octree(1, 2, 0, 2, 1_000_000).octants.len(), 16);
    }
}
