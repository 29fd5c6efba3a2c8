//! Who gives which ghost values to whom: made anew when the mesh or an owner changes.
//!
//! Cost: one entry of 12 bytes per face of an own leaf that needs values (up to four where the
//! neighbours are finer). Both sides of a message order its faces by the receiving leaf, face and
//! quadrant, which both know, so a message needs no header.

use std::collections::BTreeMap;

use crate::exchange::face::{Faces, Source};
use crate::field::Slot;
use crate::leaf::{FACES, axis, opposite};
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
    pub n_sent: usize,
    pub n_received: usize,
}

/// What is exchanged before anything is waited for: one axis, or all three.
#[derive(Clone, Debug, Default)]
pub struct Sweep {
    pub axes: Vec<usize>,
    pub links: Vec<Link>,
    /// Faces on the domain's boundary.
    pub boundary: Vec<(Slot, u8)>,
    pub partners: Vec<Partner>,
    /// Values per variable that the links copy.
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

/// Faces of the two directions of messages with one rank, with what they are ordered by.
#[derive(Default)]
struct Pair {
    sends: Vec<((usize, u8, Source), Half)>,
    receives: Vec<((usize, u8, Source), Half)>,
}

impl Plan {
    /// `slots[i]` is where this rank holds leaf `i`, if it owns it.
    pub fn new(mesh: &Mesh, rank: usize, slots: &[Slot], faces: &Faces, sweeps: Sweeps) -> Plan {
        let groups: Vec<Vec<usize>> = match sweeps {
            Sweeps::ByAxis => (0..3).map(|axis| vec![axis]).collect(),
            Sweeps::AtOnce => vec![vec![0, 1, 2]],
        };
        let own: Vec<usize> = mesh.own(rank).collect();
        let sweeps = groups
            .into_iter()
            .map(|axes| Sweep::new(mesh, rank, &own, slots, faces, axes))
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
    fn new(
        mesh: &Mesh,
        rank: usize,
        own: &[usize],
        slots: &[Slot],
        faces: &Faces,
        axes: Vec<usize>,
    ) -> Sweep {
        let mut sweep = Sweep::default();
        let mut pairs: BTreeMap<usize, Pair> = BTreeMap::new();
        for &i in own {
            for face in (0..FACES).filter(|&face| axes.contains(&axis(face))) {
                for (j, source) in sources(mesh, i, face) {
                    let owner = mesh.owners()[j] as usize;
                    let face = face as u8;
                    if owner == rank {
                        sweep.links.push(Link {
                            to: slots[i],
                            from: slots[j],
                            face,
                            source,
                        });
                        continue;
                    }
                    let pair = pairs.entry(owner).or_default();
                    let receive = Half {
                        slot: slots[i],
                        face,
                        source,
                    };
                    pair.receives.push(((i, face, source), receive));
                    // What j needs from i in return.
                    let (face, source) = returned(mesh, i, j, usize::from(face), source);
                    let send = Half {
                        slot: slots[i],
                        face,
                        source,
                    };
                    pair.sends.push(((j, face, source), send));
                }
                if mesh.neighbour(i, face) == Neighbour::Boundary {
                    sweep.boundary.push((slots[i], face as u8));
                }
            }
        }
        sweep.partners = pairs
            .into_iter()
            .map(|(rank, pair)| pair.into_partner(rank, faces))
            .collect();
        let len = |link: &Link| faces.packed_len(usize::from(link.face), link.source);
        sweep.n_copied = sweep.links.iter().map(len).sum();
        sweep.axes = axes;
        sweep
    }
}

impl Pair {
    fn into_partner(mut self, rank: usize, faces: &Faces) -> Partner {
        self.sends.sort_unstable_by_key(|(order, _)| *order);
        let len = |half: &Half| faces.packed_len(usize::from(half.face), half.source);
        let sends: Vec<Half> = self.sends.into_iter().map(|(_, half)| half).collect();
        let receives: Vec<Half> = self.receives.into_iter().map(|(_, half)| half).collect();
        Partner {
            rank,
            n_sent: sends.iter().map(len).sum(),
            n_received: receives.iter().map(len).sum(),
            sends,
            receives,
        }
    }
}

/// Which leaves fill the ghosts of `face` of leaf `i`.
fn sources(mesh: &Mesh, i: usize, face: usize) -> Vec<(usize, Source)> {
    match mesh.neighbour(i, face) {
        Neighbour::Boundary => Vec::new(),
        Neighbour::Same(j) => vec![(j, Source::Same)],
        Neighbour::Coarser(j) => {
            let q = quadrant(mesh.leaves()[i], axis(face)) as u8;
            vec![(j, Source::Coarser(q))]
        }
        Neighbour::Finer(quad) => {
            let of = |q: usize| (quad[q], Source::Finer(q as u8));
            (0..4).map(of).collect()
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
