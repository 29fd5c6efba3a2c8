//! What a curve policy places as one: single blocks, or roots with everything refined from them.

use super::row::Argument;
use crate::curve::{Curve, Octant};
use crate::problem::Mesh;

/// Units numbered along the Hilbert curve.
pub(super) struct Units {
    /// The unit of each block.
    pub of_block: Vec<u32>,
    /// Where each unit starts on the curve, ascending.
    pub keys: Vec<u64>,
}

/// The units of a mesh: its blocks, or with [`Argument::Roots`] its roots.
pub(super) fn units(mesh: Mesh, argument: &Argument) -> Units {
    match argument {
        Argument::Roots => by_key(mesh, |octant| octant.ancestor(mesh.root_level)),
        _ => by_key(mesh, |octant| octant),
    }
}

/// The roots of a mesh; each block belongs to the one that it was refined from.
pub(super) fn roots(mesh: Mesh) -> Units {
    units(mesh, &Argument::Roots)
}

fn by_key(mesh: Mesh, unit: impl Fn(Octant) -> Octant) -> Units {
    let of_blocks: Vec<u64> = mesh
        .octants
        .iter()
        .map(|&octant| Curve::Hilbert.key(mesh.dimensions, unit(octant)))
        .collect();
    let mut keys = of_blocks.clone();
    keys.dedup();
    if !keys.is_sorted() {
        keys.sort_unstable();
        keys.dedup();
    }
    // Blocks mostly stand in the order of the curve: the next unit is the last one or its successor.
    let mut last = 0;
    let of_block = of_blocks.iter().map(|&key| {
        if keys[last] != key {
            last = match keys.get(last + 1) {
                Some(&next) if next == key => last + 1,
                _ => keys.partition_point(|&k| k < key),
            };
        }
        last as u32
    });
    Units {
        of_block: of_block.collect(),
        keys,
    }
}

impl Units {
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// The sum over the blocks of each unit, in the order of the blocks.
    pub fn sums(&self, costs: &[f64]) -> Vec<f64> {
        let mut sums = vec![0.0; self.len()];
        for (&unit, cost) in self.of_block.iter().zip(costs) {
            sums[unit as usize] += cost;
        }
        sums
    }

    /// The owner of each block, from the owner of each unit.
    pub fn owners(&self, of_units: &[u32]) -> Vec<u32> {
        self.of_block
            .iter()
            .map(|&unit| of_units[unit as usize])
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::octree;

    #[test]
    fn units_are_numbered_along_the_curve_in_any_order_of_the_blocks() {
        let mesh = octree(1, 3, 2, 5, 700);
        let mut shuffled = mesh.octants.clone();
        shuffled.sort_by_key(|o| (o.y, o.x, o.z));
        for octants in [&mesh.octants, &shuffled] {
            let mesh = Mesh {
                octants,
                ..mesh.as_mesh()
            };
            let blocks = units(mesh, &Argument::None);
            assert_eq!(blocks.len(), octants.len());
            let roots = roots(mesh);
            assert_eq!(roots.len(), 64);
            assert!(blocks.keys.is_sorted() && roots.keys.is_sorted());
            for (block, octant) in octants.iter().enumerate() {
                let key = |units: &Units| units.keys[units.of_block[block] as usize];
                assert_eq!(key(&blocks), Curve::Hilbert.key(3, *octant));
                assert_eq!(key(&roots), Curve::Hilbert.key(3, octant.ancestor(2)));
            }
            assert_eq!(
                roots.sums(&vec![1.0; octants.len()]).iter().sum::<f64>(),
                octants.len() as f64
            );
        }
    }
}
