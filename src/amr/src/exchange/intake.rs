//! Every face of every own block with where its ghost values come from, block by block.
//!
//! For stencils without diagonals: ghosts are never stored. What comes from a block of the same level is
//! read where it lies, there or in a message; the rest is made just before the block's update.

use crate::exchange::face::{self, Faces, Source};
use crate::exchange::plan::{Plan, View, for_each_source};
use crate::exchange::{Arrived, Bundling};
use crate::field::{Field, Slot};
use crate::leaf::{FACES, axis};
use crate::mesh::Neighbour;
use crate::stencil::between::Plane;

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

impl Giver {
    /// Until the messages are known.
    const UNKNOWN: Giver = Giver::Message {
        message: u32::MAX,
        start: 0,
    };
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

/// The faces of one rank's blocks: 16 bytes each.
#[derive(Clone, Debug, Default)]
pub struct Intake {
    entries: Vec<Entry>,
    /// Where each own block's entries start, and where the last one's end.
    starts: Vec<u32>,
}

impl Intake {
    /// `own` are the rank's leaves in the order in which they are worked on; `plan` has their messages.
    pub fn new(view: View, own: &[usize], plan: &Plan, bundling: Bundling) -> Intake {
        let mut entries = Vec::with_capacity(own.len() * (FACES + 1));
        let mut starts = Vec::with_capacity(own.len() + 1);
        let owners = view.mesh.owners();
        for &i in own {
            starts.push(entries.len() as u32);
            for face in 0..FACES {
                let mut push = |source, giver| {
                    entries.push(Entry {
                        face: face as u8,
                        source,
                        giver,
                    });
                };
                let neighbour = view.mesh.neighbour(i, face);
                if neighbour == Neighbour::Boundary {
                    push(Source::Same, Giver::Boundary);
                }
                for_each_source(view.mesh, i, face, neighbour, |j, source| {
                    let giver = match owners[j] as usize == view.rank {
                        true => Giver::Block(view.slots[j]),
                        false => Giver::UNKNOWN,
                    };
                    push(source, giver);
                });
            }
        }
        starts.push(entries.len() as u32);
        let mut intake = Intake { entries, starts };
        intake.find_messages(view, own, plan, bundling);
        intake
    }

    /// Says of the faces that cross ranks in which message they come, and where in it.
    fn find_messages(&mut self, view: View, own: &[usize], plan: &Plan, bundling: Bundling) {
        let most = own.iter().map(|&i| view.slots[i] as usize + 1).max();
        let mut nth_of_slot = vec![0u32; most.unwrap_or(0)];
        for (nth, &i) in (0u32..).zip(own) {
            nth_of_slot[view.slots[i] as usize] = nth;
        }
        let mut message = 0;
        for partner in plan.sweeps.iter().flat_map(|sweep| &sweep.partners) {
            let mut start = 0;
            for half in &partner.receives {
                let nth = nth_of_slot[half.slot as usize] as usize;
                let (first, end) = (self.starts[nth] as usize, self.starts[nth + 1] as usize);
                let entry = self.entries[first..end]
                    .iter_mut()
                    .find(|entry| entry.face == half.face && entry.source == half.source);
                entry.expect("every face that is received is needed").giver =
                    Giver::Message { message, start };
                match bundling {
                    Bundling::ByRank => {
                        let face = usize::from(half.face);
                        start += view.faces.packed_len(face, half.source) as u32;
                    }
                    Bundling::ByFace => message += 1,
                }
            }
            message += u32::from(bundling == Bundling::ByRank);
        }
    }

    /// What lies beyond the faces of the `i`-th own block, whose cells of one variable are `own`.
    ///
    /// `scratch` has room for a plane of each face.
    pub fn planes<'a>(
        &self,
        i: usize,
        variable: Variable,
        from: Givers<'a>,
        own: &'a [f64],
        scratch: &'a mut [f64],
    ) -> [Plane<'a>; FACES] {
        let (start, end) = (self.starts[i] as usize, self.starts[i + 1] as usize);
        let entries = &self.entries[start..end];
        let faces = from.faces;
        let room = from.room();
        for entry in entries.iter().filter(|entry| entry.source != Source::Same) {
            let face = usize::from(entry.face);
            let giver = match entry.giver {
                Giver::Block(slot) => face::Giver::Block(from.field.var(slot, variable.var)),
                _ => face::Giver::Packed(from.packed(entry, variable)),
            };
            let to = &mut scratch[room[face]..room[face + 1]];
            faces.fill_plane(face, entry.source, to, giver);
        }
        let scratch: &'a [f64] = scratch;
        let mut planes =
            std::array::from_fn(|face| faces.beyond_packed(face, &scratch[room[face]..]));
        for entry in entries.iter().filter(|entry| entry.source == Source::Same) {
            let face = usize::from(entry.face);
            planes[face] = match entry.giver {
                Giver::Block(slot) => faces.beyond_same(face, from.field.var(slot, variable.var)),
                Giver::Boundary => faces.beyond_wall(face, own),
                Giver::Message { .. } => faces.beyond_packed(face, from.packed(entry, variable)),
            };
        }
        planes
    }
}

impl<'a> Givers<'a> {
    /// The values of one variable that came for a face.
    fn packed(self, entry: &Entry, variable: Variable) -> &'a [f64] {
        let Giver::Message { message, start } = entry.giver else {
            unreachable!("this face does not cross ranks");
        };
        let len = self.faces.packed_len(usize::from(entry.face), entry.source);
        let at = start as usize * variable.n_vars + variable.nth * len;
        &self.arrived.messages[message as usize][at..at + len]
    }

    /// Where the planes of the faces lie in the scratch space, and where the last one ends.
    fn room(self) -> [usize; FACES + 1] {
        let mut room = [0; FACES + 1];
        for face in 0..FACES {
            room[face + 1] = room[face] + self.faces.stored.face_cells(axis(face));
        }
        room
    }
}
