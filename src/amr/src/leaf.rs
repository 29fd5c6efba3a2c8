//! The root grid and the leaves of its octrees: integer coordinates, order, family and corners.

/// The most refinement levels: a leaf's coordinate has 19 bits in [`Leaf::packed`].
pub const LEVELS_MAX: u8 = 15;
/// Coordinates stay below this on every level.
pub const COORDINATE_END: u32 = 1 << 19;

/// Faces in order: low x, high x, low y, high y, low z, high z.
pub const FACES: usize = 6;

/// The axis that `face` is normal to.
pub fn axis(face: usize) -> usize {
    face / 2
}

/// The face that touches `face` from the other side.
pub fn opposite(face: usize) -> usize {
    face ^ 1
}

/// The two axes along a face, the faster one in memory first.
pub fn tangents(axis: usize) -> [usize; 2] {
    [[1, 2], [0, 2], [0, 1]][axis]
}

/// The domain: a grid of root blocks over the unit cube, each refined at most `depth` times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grid {
    pub roots: [u32; 3],
    pub depth: u8,
    /// Beyond each face of the domain lies its opposite one.
    pub periodic: bool,
}

/// One block of the mesh: where it lies on its level, counted in blocks of that level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Leaf {
    pub level: u8,
    pub at: [u32; 3],
}

impl Leaf {
    /// Level and coordinates in one word, different for every leaf.
    pub fn packed(self) -> u64 {
        let [x, y, z] = self.at.map(u64::from);
        (u64::from(self.level) << 57) | (z << 38) | (y << 19) | x
    }

    /// Inverse of [`Leaf::packed`]; none where the word is no leaf's.
    pub fn from_packed(word: u64) -> Option<Leaf> {
        let level = u8::try_from(word >> 57).ok()?;
        let part = |shift: u32| ((word >> shift) as u32) & (COORDINATE_END - 1);
        let at = [part(0), part(19), part(38)];
        (level <= LEVELS_MAX).then_some(Leaf { level, at })
    }

    /// The child in `octant`: bit 0 is the upper half in x, bit 1 in y, bit 2 in z.
    pub fn child(self, octant: usize) -> Leaf {
        let at = std::array::from_fn(|d| 2 * self.at[d] + ((octant >> d) & 1) as u32);
        Leaf {
            level: self.level + 1,
            at,
        }
    }

    /// None for a root.
    pub fn parent(self) -> Option<Leaf> {
        let level = self.level.checked_sub(1)?;
        let at = self.at.map(|c| c / 2);
        Some(Leaf { level, at })
    }

    /// Which child of its parent this is.
    pub fn octant(self) -> usize {
        (0..3).map(|d| ((self.at[d] & 1) as usize) << d).sum()
    }

    /// The leaf of the same level beyond `face`; none outside a domain that is not periodic.
    pub fn beyond(self, face: usize, grid: Grid) -> Option<Leaf> {
        let mut step = [0; 3];
        step[axis(face)] = if face.is_multiple_of(2) { -1 } else { 1 };
        self.stepped(step, grid)
    }

    /// The leaf of the same level so many blocks away along each axis, at most a domain's width; none outside a domain
    /// that is not periodic.
    pub fn stepped(self, step: [i64; 3], grid: Grid) -> Option<Leaf> {
        let mut at = self.at;
        for d in 0..3 {
            let end = i64::from(grid.roots[d]) << self.level;
            let to = i64::from(at[d]) + step[d];
            let inside = if grid.periodic {
                to.rem_euclid(end)
            } else {
                to
            };
            if !(0..end).contains(&inside) {
                return None;
            }
            at[d] = inside as u32;
        }
        Some(Leaf { at, ..self })
    }

    /// Lower corner in the unit cube.
    pub fn lower(self, roots: [u32; 3]) -> [f64; 3] {
        std::array::from_fn(|d| f64::from(self.at[d]) / f64::from(roots[d] << self.level))
    }

    /// Upper corner in the unit cube.
    pub fn upper(self, roots: [u32; 3]) -> [f64; 3] {
        std::array::from_fn(|d| f64::from(self.at[d] + 1) / f64::from(roots[d] << self.level))
    }
}

impl Grid {
    /// The order of leaves: root by root (x fastest), inside a root along the Morton curve.
    ///
    /// A block covers the keys from its own up to that of the next block of its level, exclusive.
    pub fn key(self, leaf: Leaf) -> u64 {
        let root = leaf.at.map(|c| u64::from(c >> leaf.level));
        let [rx, ry, _] = self.roots.map(u64::from);
        let index = (root[2] * ry + root[1]) * rx + root[0];
        let mask = (1u64 << leaf.level) - 1;
        let path: u64 = (0..3)
            .map(|d| spread(u64::from(leaf.at[d]) & mask) << d)
            .sum();
        (index << (3 * self.depth)) | (path << (3 * (self.depth - leaf.level)))
    }

    /// How many keys a block of `level` covers.
    pub fn span(self, level: u8) -> u64 {
        1 << (3 * (self.depth - level))
    }

    pub fn n_roots(self) -> usize {
        self.roots.iter().map(|&n| n as usize).product()
    }

    /// Why no mesh can be built on this grid, if so.
    pub fn check(self) -> Result<(), String> {
        if self.depth > LEVELS_MAX {
            return Err(format!(
                "{} refinement levels are more than {LEVELS_MAX}",
                self.depth
            ));
        }
        for (d, name) in ["x", "y", "z"].into_iter().enumerate() {
            let finest = u64::from(self.roots[d]) << self.depth;
            if finest == 0 || finest >= u64::from(COORDINATE_END) {
                return Err(format!(
                    "{} root blocks in {name} with {} levels make {finest} blocks on the finest level; \
                     1 to {} are possible",
                    self.roots[d],
                    self.depth,
                    COORDINATE_END - 1
                ));
            }
        }
        let key_bits = (self.n_roots() as f64).log2() + 3.0 * f64::from(self.depth);
        if key_bits >= 63.0 {
            return Err("root grid and refinement levels are too large together".into());
        }
        Ok(())
    }
}

/// Puts two zero bits between the bits of the low 21.
fn spread(bits: u64) -> u64 {
    let mut x = bits & 0x1f_ffff;
    x = (x | (x << 32)) & 0x001f_0000_0000_ffff;
    x = (x | (x << 16)) & 0x001f_0000_ff00_00ff;
    x = (x | (x << 8)) & 0x100f_00f0_0f00_f00f;
    x = (x | (x << 4)) & 0x10c3_0c30_c30c_30c3;
    (x | (x << 2)) & 0x1249_2492_4924_9249
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn children_divide_the_keys_of_their_parent() {
        let grid = Grid {
            roots: [3, 2, 5],
            depth: 4,
            periodic: false,
        };
        let root = Leaf {
            level: 0,
            at: [2, 1, 3],
        };
        let mut leaf = root;
        for octant in [5, 0, 7] {
            let first = grid.key(leaf);
            for child in 0..8 {
                let expected = first + child as u64 * grid.span(leaf.level + 1);
                assert_eq!(grid.key(leaf.child(child)), expected);
                assert_eq!(leaf.child(child).parent(), Some(leaf));
                assert_eq!(leaf.child(child).octant(), child);
            }
            leaf = leaf.child(octant);
            assert_eq!(Leaf::from_packed(leaf.packed()), Some(leaf));
        }
        assert_eq!(grid.key(root), (3 * 6 + 3 + 2) << 12);
    }

    #[test]
    fn beyond_and_back_is_the_same_leaf_and_nothing_lies_outside() {
        for periodic in [false, true] {
            let grid = Grid {
                roots: [2, 1, 1],
                depth: 2,
                periodic,
            };
            let leaf = Leaf {
                level: 1,
                at: [3, 0, 1],
            };
            for face in 0..FACES {
                match leaf.beyond(face, grid) {
                    Some(other) => assert_eq!(other.beyond(opposite(face), grid), Some(leaf)),
                    None => assert!(!periodic && [1, 2, 5].contains(&face), "face {face}"),
                }
            }
            let across = leaf.stepped([1, -1, 1], grid).map(|leaf| leaf.at);
            assert_eq!(across, periodic.then_some([0, 1, 0]));
        }
    }
}
