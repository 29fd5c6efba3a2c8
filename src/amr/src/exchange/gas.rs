//! Ghosts of the gas and its flux correction: the same plan as the stencil's, other values.
//!
//! All variables of a block travel together, two layers deep; one message for each partner. Only
//! interior cells are read, so nothing has to be filled before anything else.

use crate::exchange::face::Source;
use crate::exchange::plan::{Half, Partner, Sweep};
use crate::exchange::{Arrived, Posted, Spent};
use crate::field::{Field, Slot};
use crate::leaf::{axis, opposite};
use crate::physics::boundary::{self, Boundary};
use crate::physics::{FaceFluxes, N_VARS, level, reflux};
use crate::ranks::{Ranks, Tag};
use crate::shape::BlockShape;
use crate::telemetry::traffic::GhostMessage;
use crate::telemetry::{Freight, Kind, Phase, Recorder};

const TAG_GHOSTS: Tag = 103;
const TAG_FLUXES: Tag = 104;

/// What the exchange must know of the gas.
#[derive(Clone, Copy, Debug)]
pub struct GasFaces {
    pub shape: BlockShape,
    pub gamma: f64,
    pub boundary: Boundary,
}

/// The flux that finer blocks let through a quarter of a coarse block's face.
#[derive(Clone, Debug)]
pub struct FineFlux {
    pub slot: Slot,
    pub face: u8,
    pub quadrant: u8,
    pub values: Vec<f64>,
}

impl GasFaces {
    /// Fills ghosts across faces from this rank's blocks and at the domain's faces, and posts what other ranks give and
    /// get. A block that gets nothing may be advanced before that is [received](GasFaces::receive): whoever needs its
    /// cells has them.
    pub fn post(
        &self,
        ranks: &dyn Ranks,
        field: &mut Field,
        sweep: &Sweep,
        spent: &mut Spent,
    ) -> Posted {
        let mut posted = post_receives(ranks, sweep, TAG_GHOSTS, &spent.recorder, |partner| {
            partner.receives.iter().map(|half| self.len(half)).sum()
        });
        let clock = spent.recorder.clock.clone();
        let pack = clock.during(Phase::Pack);
        for partner in &sweep.partners {
            let (mut values, mut message) = (Vec::new(), GhostMessage::default());
            for half in &partner.sends {
                let before = values.len();
                self.give(half.face, half.source, field.block(half.slot), &mut values);
                message.holds(half.source, values.len() - before, &mut spent.traffic);
            }
            message.sent(&mut spent.traffic);
            spent
                .recorder
                .sent(partner.rank, Freight::Ghost, values.len());
            let request = ranks.start_send(partner.rank, TAG_GHOSTS, values);
            posted.sends.push((partner.rank, request));
        }
        posted.round.posted = spent.recorder.moment();
        drop(pack);
        let copy = clock.during(Phase::Copy);
        let mut values = Vec::new();
        for link in &sweep.links {
            values.clear();
            self.give(link.face, link.source, field.block(link.from), &mut values);
            self.take(link.face, link.source, &values, field.block_mut(link.to));
            spent.traffic.add(Kind::Local, 1, 8 * values.len() as u64);
        }
        for &(slot, face) in &sweep.boundary {
            let block = field.block_mut(slot);
            boundary::fill(self.shape, usize::from(face), self.boundary, block);
        }
        drop(copy);
        posted
    }

    /// Waits for the messages, and fills the ghosts that they bring.
    pub fn receive(
        &self,
        ranks: &dyn Ranks,
        field: &mut Field,
        sweep: &Sweep,
        posted: Posted,
        spent: &mut Spent,
    ) {
        let (arrived, _) = posted.wait(ranks, &spent.recorder);
        let clock = spent.recorder.clock.clone();
        let _unpack = clock.during(Phase::Unpack);
        for (partner, message) in by_partner(sweep, &arrived) {
            let mut rest = message;
            for half in &partner.receives {
                let (now, later) = rest.split_at(self.len(half));
                self.take(half.face, half.source, now, field.block_mut(half.slot));
                rest = later;
            }
        }
        spent.recorder.done(arrived.round);
    }

    /// The fluxes that finer neighbours let through, in the order in which they must be applied.
    ///
    /// Shape:  `fluxes` holds those of a block at its slot.
    pub fn fine_fluxes(
        &self,
        ranks: &dyn Ranks,
        fluxes: &[FaceFluxes],
        sweep: &Sweep,
        spent: &mut Spent,
    ) -> Vec<FineFlux> {
        let mut posted = post_receives(ranks, sweep, TAG_FLUXES, &spent.recorder, |partner| {
            let finer = partner.receives.iter().filter(|half| is_finer(half.source));
            finer.map(|half| self.flux_len(half.face)).sum()
        });
        let clock = spent.recorder.clock.clone();
        let pack = clock.during(Phase::Pack);
        let restrict = |giver: Slot, face: u8, out: &mut Vec<f64>| {
            let face = opposite(usize::from(face));
            reflux::restrict(self.shape, &fluxes[giver as usize], face, out);
        };
        for partner in &sweep.partners {
            let mut values = Vec::new();
            for half in partner.sends.iter().filter(|half| is_finer(half.source)) {
                restrict(half.slot, half.face, &mut values);
            }
            if values.is_empty() {
                continue;
            }
            let n_values = values.len();
            spent.traffic.add(Kind::Flux, 1, 8 * n_values as u64);
            spent.recorder.sent(partner.rank, Freight::Flux, n_values);
            let request = ranks.start_send(partner.rank, TAG_FLUXES, values);
            posted.sends.push((partner.rank, request));
        }
        posted.round.posted = spent.recorder.moment();
        drop(pack);
        let copy = clock.during(Phase::Copy);
        let mut found = Vec::new();
        for link in &sweep.links {
            if let Source::Finer(quadrant) = link.source {
                let mut values = Vec::new();
                restrict(link.from, link.face, &mut values);
                let (slot, face) = (link.to, link.face);
                found.push(FineFlux {
                    slot,
                    face,
                    quadrant,
                    values,
                });
            }
        }
        drop(copy);
        let (arrived, _) = posted.wait(ranks, &spent.recorder);
        let _unpack = clock.during(Phase::Unpack);
        for (partner, message) in by_partner(sweep, &arrived) {
            let mut rest = message;
            for half in &partner.receives {
                let Source::Finer(quadrant) = half.source else {
                    continue;
                };
                let (now, later) = rest.split_at(self.flux_len(half.face));
                rest = later;
                found.push(FineFlux {
                    slot: half.slot,
                    face: half.face,
                    quadrant,
                    values: now.to_vec(),
                });
            }
        }
        // A cell at an edge is corrected through several faces: their order decides its last bit.
        found.sort_by_key(|flux| (flux.slot, flux.face, flux.quadrant));
        spent.recorder.done(arrived.round);
        found
    }

    /// Appends what `giver` has for the ghosts beyond `face` of the block that takes them.
    fn give(&self, face: u8, source: Source, giver: &[f64], out: &mut Vec<f64>) {
        let (shape, face) = (self.shape, opposite(usize::from(face)));
        match source {
            Source::Same => level::read_face(shape, face, giver, out),
            Source::Coarser(q) => {
                level::prolong_face(shape, self.gamma, face, usize::from(q), giver, out);
            }
            Source::Finer(_) => level::restrict_face(shape, face, giver, out),
        }
    }

    fn take(&self, face: u8, source: Source, values: &[f64], taker: &mut [f64]) {
        level::write(self.shape, self.region(face, source), values, taker);
        if let Source::Coarser(_) = source {
            level::limit_ghosts(self.shape, self.gamma, usize::from(face), taker);
        }
    }

    fn region(&self, face: u8, source: Source) -> level::Region {
        let face = usize::from(face);
        match source {
            Source::Same | Source::Coarser(_) => level::ghosts(self.shape, face),
            Source::Finer(q) => level::ghosts_of_quadrant(self.shape, face, usize::from(q)),
        }
    }

    fn len(&self, half: &Half) -> usize {
        self.packed_len(half.face, half.source)
    }

    /// Values that a message carries for the ghosts beyond this face.
    pub fn packed_len(&self, face: u8, source: Source) -> usize {
        N_VARS * self.region(face, source).cells()
    }

    /// Values of the flux that a finer block gives for a face.
    pub fn flux_len(&self, face: u8) -> usize {
        N_VARS * self.shape.face_cells(axis(usize::from(face))) / 4
    }
}

fn is_finer(source: Source) -> bool {
    matches!(source, Source::Finer(_))
}

/// One receive for each partner that sends anything.
fn post_receives(
    ranks: &dyn Ranks,
    sweep: &Sweep,
    tag: Tag,
    recorder: &Recorder,
    len: impl Fn(&Partner) -> usize,
) -> Posted {
    let mut posted = Posted {
        round: recorder.round(),
        ..Posted::default()
    };
    for partner in &sweep.partners {
        let n = len(partner);
        if n > 0 {
            let request = ranks.start_receive(partner.rank, tag, vec![0.0; n]);
            posted.expect(partner.rank, n, request);
        }
    }
    posted
}

/// The partners that sent something, and their messages.
fn by_partner<'a>(
    sweep: &'a Sweep,
    arrived: &'a Arrived,
) -> impl Iterator<Item = (&'a Partner, &'a [f64])> {
    let mut messages = arrived.from.iter().zip(&arrived.messages).peekable();
    sweep.partners.iter().filter_map(move |partner| {
        let (_, message) = messages.next_if(|(from, _)| **from == partner.rank)?;
        Some((partner, message.as_slice()))
    })
}
