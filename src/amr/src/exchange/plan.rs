//! Who gives which ghost values to whom: made anew when the mesh or an owner changes.
//!
//! Cost: one entry of 12 bytes per face of an own leaf that needs values (up to four where the neighbours are finer).
//! Stencils without diagonals, which take ghosts in through an [`Intake`](super::intake::Intake), have entries only
//! for faces that cross ranks. Both sides of a message order its faces by the receiving leaf, face and quadrant,
//! which both know, so a message needs no header.

use std::collections::BTreeMap;

use crate::exchange::face::{Faces, Source};
use crate::field::Slot;
use crate::leaf::{axis, opposite};
use crate::mesh::{Mesh, Neighbour, quadrant};

/// Ghosts of one face of `to`, filled from another block of this rank.
#[derive(Clone, Copy, Debug)]
pub struct Link {
    pub to: Slot,
    pub from: Slot,
    pub face: u8,
    pub source: Source,
}

/// Ghosts of one face that cross ranks: `slot` is the giving block in a send, the taking one in a
/// receive; the face is the taking block's.
#[derive(Clone, Copy, Debug)]
pub struct Half {
    pub slot: Slot,
    pub face: u8,
    pub source: Source,
}

/// What this rank exchanges with another.
#[derive(Clone, Debug, Default)]
pub struct Partner {
    pub rank: usize,
    pub sends: Vec<Half>,
    pub receives: Vec<Half>,
    /// Values per variable.
    pub n_received: usize,
}

/// What is exchanged before anything is waited for: one axis, or all three.
#[derive(Clone, Debug, Default)]
pub struct Sweep {
    pub axes: Vec<usize>,
    /// Where [`Within::Listed`].
    pub links: Vec<Link>,
    /// Faces on the domain's boundary, where [`Within::Listed`].
    pub boundary: Vec<(Slot, u8)>,
    pub partners: Vec<Partner>,
    /// Faces, or quarters of them, filled from this rank's own blocks, and their values per variable.
    pub n_links: usize,
    pub n_copied: usize,
}

/// The exchange of one mesh, seen from one rank.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    pub sweeps: Vec<Sweep>,
}

/// How the axes are grouped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sweeps {
    /// x, then y, then z, each one waited for.
    ByAxis,
    /// All at once: fewer, larger messages; without edges and corners.
    AtOnce,
}

/// Faces that this rank fills by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Within {
    /// The plan lists them.
    Listed,
    /// The plan counts them: an intake has them.
    Counted,
}

/// What a plan is made for: a mesh as one rank sees it.
#[derive(Clone, Copy)]
pub struct View<'a> {
    pub mesh: &'a Mesh,
    pub rank: usize,
    /// Where this rank holds each leaf, if it owns it.
    pub slots: &'a [Slot],
    pub faces: &'a Faces,
}

/// Faces of the two directions of messages with one rank, with what they are ordered by.
#[derive(Default)]
struct Pair {
    sends: Vec<((usize, u8, Source), Half)>,
    receives: Vec<((usize, u8, Source), Half)>,
}

impl Plan {
    pub fn new(view: View, sweeps: Sweeps, within: Within) -> Plan {
        let groups: Vec<Vec<usize>> = match sweeps {
            Sweeps::ByAxis => (0..3).map(|axis| vec![axis]).collect(),
            Sweeps::AtOnce => vec![vec![0, 1, 2]],
        };
        let sweeps = groups
            .into_iter()
            .map(|axes| Sweep::new(view, axes, within))
            .collect();
        Plan { sweeps }
    }

    /// Ranks that this one exchanges ghosts with, per axis where the sweeps are by axis.
    pub fn n_partners(&self) -> Vec<usize> {
        self.sweeps
            .iter()
            .map(|sweep| sweep.partners.len())
            .collect()
    }
}

impl Sweep {
    fn new(view: View, axes: Vec<usize>, within: Within) -> Sweep {
        let mut sweep = Sweep::default();
        let mut pairs: BTreeMap<usize, Pair> = BTreeMap::new();
        let owners = view.mesh.owners();
        for i in view.mesh.own(view.rank) {
            for face in axes.iter().flat_map(|&axis| [2 * axis, 2 * axis + 1]) {
                let neighbour = view.mesh.neighbour(i, face);
                for_each_source(view.mesh, i, face, neighbour, |j, source| {
                    let owner = owners[j] as usize;
                    if owner == view.rank {
                        sweep.links_to(view, (i, j), face, source, within);
                    } else {
                        let pair = pairs.entry(owner).or_default();
                        pair.crosses(view, (i, j), face, source);
                    }
                });
                if neighbour == Neighbour::Boundary && within == Within::Listed {
                    sweep.boundary.push((view.slots[i], face as u8));
                }
            }
        }
        sweep.partners = pairs
            .into_iter()
            .map(|(rank, pair)| pair.into_partner(rank, view.faces))
            .collect();
        sweep.axes = axes;
        sweep
    }

    /// Own leaf `i` takes `source` from own leaf `j`.
    fn links_to(
        &mut self,
        view: View,
        (i, j): (usize, usize),
        face: usize,
        source: Source,
        within: Within,
    ) {
        self.n_links += 1;
        self.n_copied += view.faces.packed_len(face, source);
        if within == Within::Listed {
            self.links.push(Link {
                to: view.slots[i],
                from: view.slots[j],
                face: face as u8,
                source,
            });
        }
    }
}

impl Pair {
    /// Own leaf `i` takes `source` from leaf `j` of the other rank, and gives what `j` needs in return.
    fn crosses(&mut self, view: View, (i, j): (usize, usize), face: usize, source: Source) {
        let half = |face: u8, source: Source| Half {
            slot: view.slots[i],
            face,
            source,
        };
        let (back, given) = returned(view.mesh, i, j, face, source);
        let face = face as u8;
        self.receives.push(((i, face, source), half(face, source)));
        self.sends.push(((j, back, given), half(back, given)));
    }

    fn into_partner(mut self, rank: usize, faces: &Faces) -> Partner {
        self.sends.sort_unstable_by_key(|(order, _)| *order);
        let len = |half: &Half| faces.packed_len(usize::from(half.face), half.source);
        let sends: Vec<Half> = self.sends.into_iter().map(|(_, half)| half).collect();
        let receives: Vec<Half> = self.receives.into_iter().map(|(_, half)| half).collect();
        Partner {
            rank,
            n_received: receives.iter().map(len).sum(),
            sends,
            receives,
        }
    }
}

/// Which leaves fill the ghosts of `face` of leaf `i`, beyond which lies `neighbour`.
#[inline]
pub fn for_each_source(
    mesh: &Mesh,
    i: usize,
    face: usize,
    neighbour: Neighbour,
    mut take: impl FnMut(usize, Source),
) {
    match neighbour {
        Neighbour::Boundary => {}
        Neighbour::Same(j) => take(j, Source::Same),
        Neighbour::Coarser(j) => {
            let q = quadrant(mesh.leaves()[i], axis(face)) as u8;
            take(j, Source::Coarser(q));
        }
        Neighbour::Finer(quad) => {
            let numbered = quad.into_iter().zip(0u8..);
            numbered.for_each(|(j, q)| take(j, Source::Finer(q)));
        }
    }
}

/// Face and source of what leaf `j` takes from leaf `i`, when `i` takes `source` from `j`.
fn returned(mesh: &Mesh, i: usize, j: usize, face: usize, source: Source) -> (u8, Source) {
    let back = match source {
        Source::Same => Source::Same,
        Source::Coarser(_) => Source::Finer(quadrant(mesh.leaves()[i], axis(face)) as u8),
        Source::Finer(_) => Source::Coarser(quadrant(mesh.leaves()[j], axis(face)) as u8),
    };
    (opposite(face) as u8, back)
}
