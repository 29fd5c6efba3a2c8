//! The neighbours of a new mesh from those of the old one: no search, a few steps a face.
//!
//! Marks that have been settled say what lies beyond a face afterwards: a leaf and what touches it
//! change by one level at most, and never apart from each other by more than one.

use super::{Mark, Origin};
use crate::leaf::{FACES, axis, tangents};
use crate::mesh::{Mesh, Neighbour, touching_octant};

/// An old mesh, what its leaves do, and the first place in the new mesh of what becomes of each.
#[derive(Clone, Copy)]
pub struct Carried<'a> {
    pub old: &'a Mesh,
    pub marks: &'a [Mark],
    pub places: &'a [u32],
}

impl Carried<'_> {
    /// What lies beyond `face` of the new leaf at place `i`, which comes from `origin`.
    pub fn neighbour(&self, i: usize, origin: Origin, face: usize) -> Neighbour {
        debug_assert!(face < FACES);
        match origin {
            Origin::Kept(old) => self.beyond_kept(old, face),
            Origin::Part(old, octant) => {
                let side = face % 2;
                if (octant >> axis(face)) & 1 == side {
                    self.beyond_part(old, octant, face)
                } else {
                    // Its sibling.
                    Neighbour::Same(i - octant + across(octant, face))
                }
            }
            Origin::Joined(first) => self.beyond_joined(first, face),
        }
    }

    fn place(&self, old: usize) -> usize {
        self.places[old] as usize
    }

    /// The children of the old leaf `old` that touch `face` from beyond it.
    fn children(&self, old: usize, face: usize) -> Neighbour {
        Neighbour::Finer(std::array::from_fn(|q| {
            self.place(old) + touching_octant(face, q)
        }))
    }

    /// The child of the coarser leaf `beyond` that is as large as the old leaf `old` and touches its `face`.
    fn child_beyond(&self, old: usize, beyond: usize, face: usize) -> usize {
        self.place(beyond) + across(self.old.leaves()[old].octant(), face)
    }

    fn beyond_kept(&self, old: usize, face: usize) -> Neighbour {
        match self.old.neighbour(old, face) {
            Neighbour::Boundary => Neighbour::Boundary,
            Neighbour::Same(j) => match self.marks[j] {
                Mark::Stay => Neighbour::Same(self.place(j)),
                Mark::Split => self.children(j, face),
                Mark::Join => Neighbour::Coarser(self.place(j)),
            },
            Neighbour::Coarser(j) => match self.marks[j] {
                Mark::Stay => Neighbour::Coarser(self.place(j)),
                Mark::Split => Neighbour::Same(self.child_beyond(old, j, face)),
                Mark::Join => unsettled(),
            },
            // Four siblings: they join together.
            Neighbour::Finer(quad) => match self.marks[quad[0]] {
                Mark::Stay => Neighbour::Finer(quad.map(|j| self.place(j))),
                Mark::Join => Neighbour::Same(self.place(quad[0])),
                Mark::Split => unsettled(),
            },
        }
    }

    fn beyond_part(&self, old: usize, octant: usize, face: usize) -> Neighbour {
        match self.old.neighbour(old, face) {
            Neighbour::Boundary => Neighbour::Boundary,
            Neighbour::Same(j) => match self.marks[j] {
                Mark::Stay => Neighbour::Coarser(self.place(j)),
                Mark::Split => Neighbour::Same(self.place(j) + across(octant, face)),
                Mark::Join => unsettled(),
            },
            Neighbour::Coarser(j) => match self.marks[j] {
                Mark::Split => Neighbour::Coarser(self.child_beyond(old, j, face)),
                _ => unsettled(),
            },
            Neighbour::Finer(quad) => {
                let [t0, t1] = tangents(axis(face));
                let j = quad[((octant >> t0) & 1) + 2 * ((octant >> t1) & 1)];
                match self.marks[j] {
                    Mark::Stay => Neighbour::Same(self.place(j)),
                    Mark::Split => self.children(j, face),
                    Mark::Join => Neighbour::Coarser(self.place(j)),
                }
            }
        }
    }

    fn beyond_joined(&self, first: usize, face: usize) -> Neighbour {
        // The siblings on this side are those that touch the opposite face of the block beyond it.
        let sibling = |q: usize| first + touching_octant(face ^ 1, q);
        match self.old.neighbour(sibling(0), face) {
            Neighbour::Boundary => Neighbour::Boundary,
            Neighbour::Same(j) => match self.marks[j] {
                Mark::Join => Neighbour::Same(self.place(j)),
                _ => Neighbour::Finer(std::array::from_fn(|q| {
                    match self.old.neighbour(sibling(q), face) {
                        Neighbour::Same(j) if self.marks[j] == Mark::Stay => self.place(j),
                        _ => unsettled(),
                    }
                })),
            },
            Neighbour::Coarser(j) => match self.marks[j] {
                Mark::Stay => Neighbour::Same(self.place(j)),
                Mark::Split => self.children(j, face),
                Mark::Join => Neighbour::Coarser(self.place(j)),
            },
            Neighbour::Finer(_) => unsettled(),
        }
    }
}

/// The octant beyond `face` of `octant`, in the same block or in the next one.
fn across(octant: usize, face: usize) -> usize {
    octant ^ (1 << axis(face))
}

fn unsettled() -> ! {
    panic!("marks that have not been settled would break the 2:1 rule")
}
