//! Every face of every own block with where its ghost values come from, block by block.
//!
//! For stencils without diagonals: a block's ghosts are filled in a scratch block just before its
//! update, straight from its neighbours or from messages, and never stored.

use crate::exchange::face::{Faces, Source};
use crate::exchange::plan::Plan;
use crate::exchange::{Arrived, Bundling};
use crate::field::{Field, Slot};

/// Where the ghost values of one face come from.
#[derive(Clone, Copy, Debug)]
enum Giver {
    Block(Slot),
    Boundary,
    /// The place among the messages of all sweeps, and of the face in it, per variable.
    Message {
        message: u32,
        start: u32,
    },
}

/// A variable, and which of the `n_vars` it is that came with the messages.
#[derive(Clone, Copy, Debug)]
pub struct Variable {
    pub var: usize,
    pub nth: usize,
    pub n_vars: usize,
}

/// What ghost values are taken from.
#[derive(Clone, Copy)]
pub struct Givers<'a> {
    pub faces: &'a Faces,
    pub field: &'a Field,
    pub arrived: &'a Arrived,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    face: u8,
    source: Source,
    giver: Giver,
}

/// The faces of one rank's blocks: about 24 bytes each.
#[derive(Clone, Debug, Default)]
pub struct Intake {
    entries: Vec<Entry>,
    /// Where each own block's entries start, and where the last one's end.
    starts: Vec<u32>,
}

impl Intake {
    /// `own` are the slots of the rank's leaves in order.
    pub fn new(plan: &Plan, own: &[Slot], faces: &Faces, bundling: Bundling) -> Intake {
        let most = own.iter().max().map_or(0, |&slot| slot as usize + 1);
        let mut rank_of_slot = vec![0u32; most];
        for (i, &slot) in (0u32..).zip(own) {
            rank_of_slot[slot as usize] = i;
        }
        let mut all: Vec<(u32, Entry)> = Vec::new();
        let mut push = |slot: Slot, face: u8, source: Source, giver: Giver| {
            let entry = Entry {
                face,
                source,
                giver,
            };
            all.push((rank_of_slot[slot as usize], entry));
        };
        let mut message = 0;
        for sweep in &plan.sweeps {
            for link in &sweep.links {
                push(link.to, link.face, link.source, Giver::Block(link.from));
            }
            for &(slot, face) in &sweep.boundary {
                push(slot, face, Source::Same, Giver::Boundary);
            }
            for partner in &sweep.partners {
                let mut start = 0;
                for half in &partner.receives {
                    let giver = Giver::Message { message, start };
                    push(half.slot, half.face, half.source, giver);
                    match bundling {
                        Bundling::ByRank => {
                            let face = usize::from(half.face);
                            start += faces.packed_len(face, half.source) as u32;
                        }
                        Bundling::ByFace => message += 1,
                    }
                }
                message += u32::from(bundling == Bundling::ByRank);
            }
        }
        // Sorted by block through counting; the order of a block's faces does not matter.
        let mut starts = vec![0u32; own.len() + 1];
        for (i, _) in &all {
            starts[*i as usize + 1] += 1;
        }
        for i in 1..starts.len() {
            starts[i] += starts[i - 1];
        }
        let mut next = starts.clone();
        let mut entries = vec![all.first().map(|(_, entry)| *entry); all.len()];
        for (i, entry) in all {
            let place = &mut next[i as usize];
            entries[*place as usize] = Some(entry);
            *place += 1;
        }
        Intake {
            entries: entries.into_iter().flatten().collect(),
            starts,
        }
    }

    /// Fills the ghosts of the `i`-th own block for one variable in `scratch`, whose interior is there.
    pub fn fill(&self, i: usize, variable: Variable, from: Givers, scratch: &mut [f64]) {
        let (start, end) = (self.starts[i] as usize, self.starts[i + 1] as usize);
        let faces = from.faces;
        for entry in &self.entries[start..end] {
            let face = usize::from(entry.face);
            match entry.giver {
                Giver::Block(slot) => {
                    let giver = from.field.var(slot, variable.var);
                    faces.copy(face, entry.source, scratch, giver);
                }
                Giver::Boundary => faces.reflect(face, scratch),
                Giver::Message { message, start } => {
                    let len = faces.packed_len(face, entry.source);
                    let at = start as usize * variable.n_vars + variable.nth * len;
                    let values = &from.arrived.messages[message as usize][at..at + len];
                    faces.unpack(face, entry.source, scratch, values);
                }
            }
        }
    }
}
