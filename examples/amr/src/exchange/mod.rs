//! The exchange of ghost values: posts what must travel, copies what need not, then waits.

pub mod face;
pub mod plan;

pub mod gas;

pub mod intake;

use std::ops::Range;
use std::time::Instant;

use crate::exchange::face::Faces;
use crate::exchange::plan::{Partner, Plan, Sweep};
use crate::field::Field;
use crate::ranks::{Ranks, Request};

/// How messages travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Manner {
    pub bundling: Bundling,
    pub sending: Sending,
    pub order: Order,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bundling {
    /// All faces for one rank in one message.
    ByRank,
    /// A message for every face.
    ByFace,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sending {
    Nonblocking,
    Blocking,
}

/// What comes first when there are both messages and blocks of this rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Messages travel while blocks of this rank are served.
    SendsFirst,
    /// For comparison: nothing is posted until the own blocks have been served.
    CopiesFirst,
}

/// Seconds and traffic of exchanges since the last reset.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spent {
    pub pack: f64,
    pub copy: f64,
    pub wait: f64,
    pub unpack: f64,
    pub n_messages: u64,
    pub n_bytes: u64,
}

/// Buffers that are used again and again, and the clocks.
#[derive(Debug, Default)]
pub struct Exchange {
    spare: Vec<Vec<f64>>,
    pub spent: Spent,
}

/// Messages of one sweep that have been posted and not been waited for.
#[derive(Debug, Default)]
pub struct Posted {
    receives: Vec<Option<Request>>,
    sends: Vec<Request>,
}

/// What has arrived, in the order of the receives that were posted.
#[derive(Debug, Default)]
pub struct Arrived {
    messages: Vec<Vec<f64>>,
}

const TAG: i32 = 100;

impl Exchange {
    fn buffer(&mut self) -> Vec<f64> {
        let mut buffer = self.spare.pop().unwrap_or_default();
        buffer.clear();
        buffer
    }

    /// Posts the receives and sends of `sweep` for the variables `vars`.
    pub fn post(
        &mut self,
        ranks: &dyn Ranks,
        faces: &Faces,
        field: &Field,
        sweep: &Sweep,
        vars: Range<usize>,
        manner: Manner,
    ) -> Posted {
        let start = Instant::now();
        let mut posted = Posted::default();
        let tag = TAG + sweep.axes[0] as i32;
        for partner in &sweep.partners {
            for n in message_lens(faces, partner, manner.bundling, &vars) {
                let mut buffer = self.buffer();
                buffer.resize(n, 0.0);
                let request = ranks.start_receive(partner.rank, tag, buffer);
                posted.receives.push(Some(request));
            }
        }
        for partner in &sweep.partners {
            let per_message = match manner.bundling {
                Bundling::ByRank => partner.sends.len(),
                Bundling::ByFace => 1,
            };
            for halves in partner.sends.chunks(per_message) {
                let mut buffer = self.buffer();
                for half in halves {
                    for var in vars.clone() {
                        let from = field.var(half.slot, var);
                        faces.pack(usize::from(half.face), half.source, from, &mut buffer);
                    }
                }
                self.spent.n_messages += 1;
                self.spent.n_bytes += 8 * buffer.len() as u64;
                match manner.sending {
                    Sending::Nonblocking => {
                        posted
                            .sends
                            .push(ranks.start_send(partner.rank, tag, buffer));
                    }
                    Sending::Blocking => {
                        ranks.send(partner.rank, tag, &buffer);
                        self.spare.push(buffer);
                    }
                }
            }
        }
        self.spent.pack += start.elapsed().as_secs_f64();
        posted
    }

    /// Fills ghosts of one variable from this rank's own blocks and at the boundary.
    pub fn copy(&mut self, faces: &Faces, field: &mut Field, sweep: &Sweep, var: usize) {
        let start = Instant::now();
        for link in &sweep.links {
            let (to, from) = field.pair(link.to, link.from, var);
            faces.copy(usize::from(link.face), link.source, to, from);
        }
        for &(slot, face) in &sweep.boundary {
            faces.reflect(usize::from(face), field.var_mut(slot, var));
        }
        self.spent.copy += start.elapsed().as_secs_f64();
    }

    /// Waits for everything that was posted.
    pub fn wait(&mut self, ranks: &dyn Ranks, mut posted: Posted) -> Arrived {
        let start = Instant::now();
        let mut messages = Vec::new();
        messages.resize_with(posted.receives.len(), Vec::new);
        while let Some((place, message)) = ranks.finish_any(&mut posted.receives) {
            messages[place] = message;
        }
        for send in posted.sends {
            self.spare.push(ranks.finish(send));
        }
        self.spent.wait += start.elapsed().as_secs_f64();
        Arrived { messages }
    }

    /// Fills ghosts of one variable, one of `vars`, from the messages.
    pub fn unpack(
        &mut self,
        faces: &Faces,
        field: &mut Field,
        sweep: &Sweep,
        arrived: &Arrived,
        vars: &Range<usize>,
        var: usize,
    ) {
        let start = Instant::now();
        let mut messages = arrived.messages.iter().map(Vec::as_slice).peekable();
        for partner in &sweep.partners {
            let mut rest: &[f64] = &[];
            for half in &partner.receives {
                if rest.is_empty() {
                    rest = messages.next().expect("one message at least per partner");
                }
                let face = usize::from(half.face);
                let len = faces.packed_len(face, half.source);
                let (now, later) = rest.split_at(len * vars.len());
                let values = &now[len * (var - vars.start)..][..len];
                faces.unpack(face, half.source, field.var_mut(half.slot, var), values);
                rest = later;
            }
        }
        self.spent.unpack += start.elapsed().as_secs_f64();
    }

    /// Posts and waits for the messages of all sweeps, without filling any ghosts.
    pub fn gather(
        &mut self,
        ranks: &dyn Ranks,
        faces: &Faces,
        field: &Field,
        plan: &Plan,
        vars: Range<usize>,
        manner: Manner,
        order: &[usize],
    ) -> Arrived {
        let mut by_sweep: Vec<Vec<Vec<f64>>> = vec![Vec::new(); plan.sweeps.len()];
        for &sweep in order {
            let posted = self.post(
                ranks,
                faces,
                field,
                &plan.sweeps[sweep],
                vars.clone(),
                manner,
            );
            by_sweep[sweep] = self.wait(ranks, posted).messages;
        }
        Arrived {
            messages: by_sweep.into_iter().flatten().collect(),
        }
    }

    /// Keeps the buffers for the next exchange.
    pub fn recycle(&mut self, arrived: Arrived) {
        self.spare.extend(arrived.messages);
    }

    /// Fills the ghosts of all `vars`, one sweep after the other, in the given order of sweeps.
    pub fn run(
        &mut self,
        ranks: &dyn Ranks,
        faces: &Faces,
        field: &mut Field,
        plan: &Plan,
        vars: Range<usize>,
        manner: Manner,
        order: &[usize],
    ) {
        for &sweep in order {
            let sweep = &plan.sweeps[sweep];
            if manner.order == Order::CopiesFirst {
                vars.clone()
                    .for_each(|var| self.copy(faces, field, sweep, var));
            }
            let posted = self.post(ranks, faces, field, sweep, vars.clone(), manner);
            if manner.order == Order::SendsFirst {
                vars.clone()
                    .for_each(|var| self.copy(faces, field, sweep, var));
            }
            let arrived = self.wait(ranks, posted);
            for var in vars.clone() {
                self.unpack(faces, field, sweep, &arrived, &vars, var);
            }
            self.recycle(arrived);
        }
    }
}

fn message_lens(
    faces: &Faces,
    partner: &Partner,
    bundling: Bundling,
    vars: &Range<usize>,
) -> Vec<usize> {
    match bundling {
        Bundling::ByRank => vec![partner.n_received * vars.len()],
        Bundling::ByFace => partner
            .receives
            .iter()
            .map(|half| faces.packed_len(usize::from(half.face), half.source) * vars.len())
            .collect(),
    }
}
