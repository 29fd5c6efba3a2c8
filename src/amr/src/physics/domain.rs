//! Where the domain lies in space.

use crate::leaf::Leaf;

/// A box: the mesh's unit cube, stretched and moved.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Domain {
    pub lower: [f64; 3],
    pub upper: [f64; 3],
}

impl Domain {
    pub fn edges(&self) -> [f64; 3] {
        std::array::from_fn(|d| self.upper[d] - self.lower[d])
    }

    pub fn volume(&self) -> f64 {
        self.edges().iter().product()
    }

    pub fn middle(&self) -> [f64; 3] {
        std::array::from_fn(|d| self.lower[d] + 0.5 * (self.upper[d] - self.lower[d]))
    }

    /// Lower and upper corner of a leaf.
    pub fn corners(&self, leaf: Leaf, roots: [u32; 3]) -> [[f64; 3]; 2] {
        let edges = self.edges();
        let place = |unit: [f64; 3]| std::array::from_fn(|d| self.lower[d] + unit[d] * edges[d]);
        [place(leaf.lower(roots)), place(leaf.upper(roots))]
    }
}
