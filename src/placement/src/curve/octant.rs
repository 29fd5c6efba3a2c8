//! One node of a quadtree or octree.

/// The finest level: 2^21 cells to a side.
pub const LEVEL_MAX: u8 = 21;

/// A square or cube of side `2^(21 - level)`, named by its lower corner.
///
/// Units: cells of the finest level; each coordinate is below 2^21 and a multiple of the side.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(C)]
pub struct Octant {
    pub x: u32,
    pub y: u32,
    pub z: u32,
    pub level: u8,
}

impl Octant {
    /// The whole domain.
    pub const ROOT: Octant = Octant::new(0, 0, 0, 0);

    pub const fn new(x: u32, y: u32, z: u32, level: u8) -> Self {
        Octant { x, y, z, level }
    }

    /// True if the level exists and the corner lies inside the domain, aligned to the level.
    pub fn is_valid(&self) -> bool {
        let all = self.x | self.y | self.z;
        self.level <= LEVEL_MAX && all < 1 << LEVEL_MAX && all & (self.side() - 1) == 0
    }

    /// The length of an edge, in cells of the finest level.
    pub const fn side(&self) -> u32 {
        1 << (LEVEL_MAX - self.level)
    }

    /// The ancestor of `level`, which is at most the octant's own.
    pub fn ancestor(&self, level: u8) -> Octant {
        debug_assert!(level <= self.level);
        let shift = LEVEL_MAX - level;
        let cut = |c: u32| c >> shift << shift;
        Octant::new(cut(self.x), cut(self.y), cut(self.z), level)
    }

    /// The `2^dimensions` octants of the next level inside this one, in Morton order.
    pub fn children(self, dimensions: u8) -> impl Iterator<Item = Octant> {
        debug_assert!(self.level < LEVEL_MAX);
        let half = self.side() / 2;
        (0..1u32 << dimensions).map(move |i| {
            Octant::new(
                self.x + half * (i & 1),
                self.y + half * (i >> 1 & 1),
                self.z + half * (i >> 2),
                self.level + 1,
            )
        })
    }

    /// The octant of the same level one step further along each axis by -1, 0 or 1; `None` outside.
    pub fn neighbour(&self, direction: [i32; 3]) -> Option<Octant> {
        let step = |c: u32, by: i32| {
            let moved = i64::from(c) + i64::from(by) * i64::from(self.side());
            (0..1 << LEVEL_MAX).contains(&moved).then_some(moved as u32)
        };
        Some(Octant::new(
            step(self.x, direction[0])?,
            step(self.y, direction[1])?,
            step(self.z, direction[2])?,
            self.level,
        ))
    }

    /// How two octants that do not overlap meet: 1 at a face, 2 at an edge (a corner in two
    /// dimensions), 3 at a corner; `None` if they do not meet, or overlap.
    pub fn touching_axes(&self, other: &Octant, dimensions: u8) -> Option<u8> {
        let pairs = [(self.x, other.x), (self.y, other.y), (self.z, other.z)];
        let mut touching = 0;
        for (a, b) in pairs.into_iter().take(usize::from(dimensions)) {
            let (a_end, b_end) = (a + self.side(), b + other.side());
            if a_end < b || b_end < a {
                return None;
            }
            touching += u8::from(a_end == b || b_end == a);
        }
        (touching > 0).then_some(touching)
    }

    /// True if `other` is this octant or lies inside it.
    pub fn contains(&self, other: &Octant) -> bool {
        other.level >= self.level && other.ancestor(self.level) == *self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn children_fill_their_parent_and_name_it() {
        let parent = Octant::new(1 << 20, 0, 1 << 20, 1);
        let children: Vec<Octant> = parent.children(3).collect();
        assert_eq!(children.len(), 8);
        for child in &children {
            assert!(child.is_valid() && parent.contains(child) && !child.contains(&parent));
            assert_eq!(child.ancestor(1), parent);
        }
        assert!(!Octant::new(0, 0, 0, 1).contains(&children[0]));
    }
}
