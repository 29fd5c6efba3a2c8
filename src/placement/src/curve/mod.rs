//! Space-filling curves over the leaves of refined quadtrees and octrees.
//!
//! Coordinates are integers in units of the finest level, 2^21 to a side, so a key of three times
//! 21 bits fits into 64. A key of a coarse octant is the smallest key of the finest octants in it:
//! leaves of any levels, sorted by key, stand in the order in which the curve visits them, and the
//! descendants of an octant are one interval. Where an octant and its own descendant are both
//! sorted (they are never both leaves), the ancestor comes first: the level breaks the tie.

mod hilbert;
mod morton;
mod neighbours;
mod octant;

pub use neighbours::{ContactBytes, Neighbours, neighbours};
pub use octant::{LEVEL_MAX, Octant};

use std::fmt;
use std::str::FromStr;

use crate::error::PlacementError;

/// The order in which leaves are visited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Curve {
    /// Bits interleaved, x lowest: cheap, with jumps.
    Morton,
    /// Consecutive cells of one level share a face.
    Hilbert,
}

impl Curve {
    /// The position of `octant` on the curve, `dimensions * 21` bits.
    ///
    /// Shape: `dimensions` is 2 or 3 and the octant valid; two octants of different levels can have
    /// equal keys only if one lies in the other.
    #[inline]
    pub fn key(self, dimensions: u8, octant: Octant) -> u64 {
        debug_assert!(octant.is_valid());
        match (self, dimensions) {
            (Curve::Morton, 2) => morton::key_2d(octant),
            (Curve::Morton, _) => morton::key_3d(octant),
            (Curve::Hilbert, 2) => hilbert::key_2d(octant),
            (Curve::Hilbert, _) => hilbert::key_3d(octant),
        }
    }

    /// The octant of `level` whose interval of keys holds `key`; the inverse of [`Curve::key`].
    pub fn octant(self, dimensions: u8, key: u64, level: u8) -> Octant {
        debug_assert!(level <= LEVEL_MAX);
        match (self, dimensions) {
            (Curve::Morton, 2) => morton::octant_2d(key, level),
            (Curve::Morton, _) => morton::octant_3d(key, level),
            (Curve::Hilbert, 2) => hilbert::octant_2d(key, level),
            (Curve::Hilbert, _) => hilbert::octant_3d(key, level),
        }
    }

    /// The order of leaves along the curve: `octants[result[0]]` is visited first.
    pub fn order(self, dimensions: u8, octants: &[Octant]) -> Vec<u32> {
        let keys: Vec<(u64, u8)> = octants
            .iter()
            .map(|&octant| (self.key(dimensions, octant), octant.level))
            .collect();
        let mut order: Vec<u32> = (0..octants.len() as u32).collect();
        order.sort_by_key(|&block| keys[block as usize]);
        order
    }
}

impl fmt::Display for Curve {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Curve::Morton => "morton",
            Curve::Hilbert => "hilbert",
        })
    }
}

impl FromStr for Curve {
    type Err = PlacementError;

    fn from_str(name: &str) -> Result<Self, PlacementError> {
        match name {
            "morton" => Ok(Curve::Morton),
            "hilbert" => Ok(Curve::Hilbert),
            _ => Err(PlacementError::UnknownCurve(name.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::Random;

    const ALL: [(Curve, u8); 4] = [
        (Curve::Morton, 2),
        (Curve::Morton, 3),
        (Curve::Hilbert, 2),
        (Curve::Hilbert, 3),
    ];

    fn random_octant(random: &mut Random, dimensions: u8, level: u8) -> Octant {
        let mut coordinate = || (random.bits() as u32 & 0x1f_ffff) >> (21 - level) << (21 - level);
        let (x, y, z) = (coordinate(), coordinate(), coordinate());
        Octant::new(x, y, if dimensions == 2 { 0 } else { z }, level)
    }

    #[test]
    fn keys_and_octants_are_inverse_on_every_level() {
        for (curve, dimensions) in ALL {
            let mut random = Random::new(1);
            for level in (0..=LEVEL_MAX).cycle().take(20_000) {
                let octant = random_octant(&mut random, dimensions, level);
                let key = curve.key(dimensions, octant);
                assert!(key < 1 << (u32::from(dimensions) * 21));
                assert_eq!(
                    curve.octant(dimensions, key, level),
                    octant,
                    "{curve} {dimensions}"
                );
            }
        }
    }

    #[test]
    fn the_whole_of_a_level_is_visited_once() {
        for (curve, dimensions) in ALL {
            for level in 0..=4 {
                let shift = u32::from(dimensions) * u32::from(LEVEL_MAX - level);
                let n = 1u64 << (u32::from(dimensions) * u32::from(level));
                let visited: std::collections::BTreeSet<_> = (0..n)
                    .map(|i| curve.octant(dimensions, i << shift, level))
                    .map(|o| (o.x, o.y, o.z))
                    .collect();
                assert_eq!(visited.len() as u64, n);
            }
        }
    }

    #[test]
    fn consecutive_cells_of_hilbert_share_a_face() {
        for dimensions in [2, 3] {
            for level in 1..=5 {
                let shift = u32::from(dimensions) * u32::from(LEVEL_MAX - level);
                let n = 1u64 << (u32::from(dimensions) * u32::from(level));
                let cell = |i: u64| Curve::Hilbert.octant(dimensions, i << shift, level);
                for i in 1..n {
                    assert_eq!(distance(cell(i - 1), cell(i)), 1 << (LEVEL_MAX - level));
                }
            }
            // On the finest level, around random places of the whole curve.
            let mut random = Random::new(2);
            for _ in 0..20_000 {
                let n = 1u64 << (u32::from(dimensions) * 21);
                let i = random.bits() % (n - 1);
                let cell = |i: u64| Curve::Hilbert.octant(dimensions, i, LEVEL_MAX);
                assert_eq!(distance(cell(i), cell(i + 1)), 1);
            }
        }
    }

    fn distance(a: Octant, b: Octant) -> u32 {
        a.x.abs_diff(b.x) + a.y.abs_diff(b.y) + a.z.abs_diff(b.z)
    }

    #[test]
    fn the_descendants_of_an_octant_are_one_interval() {
        for (curve, dimensions) in ALL {
            let mut random = Random::new(3);
            for level in (0..LEVEL_MAX).cycle().take(5_000) {
                let parent = random_octant(&mut random, dimensions, level);
                let from = curve.key(dimensions, parent);
                let width = 1u64 << (u32::from(dimensions) * u32::from(LEVEL_MAX - level));
                assert_eq!(from % width, 0, "the key starts its interval");
                let mut children: Vec<u64> = parent
                    .children(dimensions)
                    .map(|child| curve.key(dimensions, child))
                    .collect();
                children.sort_unstable();
                let child_width = width >> dimensions;
                for (i, key) in children.into_iter().enumerate() {
                    assert_eq!(key, from + i as u64 * child_width);
                }
            }
        }
    }

    #[test]
    fn leaves_of_mixed_levels_are_ordered_as_their_finest_cells() {
        for (curve, dimensions) in ALL {
            let mesh = crate::generate::octree(5, dimensions, 2, 7, 400);
            let mut last_end = 0;
            for block in curve.order(dimensions, &mesh.octants) {
                let octant = mesh.octants[block as usize];
                let key = curve.key(dimensions, octant);
                assert_eq!(key, last_end, "the leaves tile the curve");
                last_end =
                    key + (1 << (u32::from(dimensions) * u32::from(LEVEL_MAX - octant.level)));
            }
            assert_eq!(last_end, 1 << (u32::from(dimensions) * 21));
        }
    }

    #[test]
    fn names_are_read_back() {
        for curve in [Curve::Morton, Curve::Hilbert] {
            assert_eq!(curve.to_string().parse::<Curve>().unwrap(), curve);
        }
        assert!("peano".parse::<Curve>().is_err());
    }
}
