//! The exchange of ghost values: posts what must travel, copies what need not, then waits.

mod view;

pub mod face;
pub mod plan;

pub mod gas;

pub mod intake;

use std::ops::Range;
use std::time::Instant;

use crate::exchange::face::Faces;
use crate::exchange::plan::{Half, Partner, Plan, Sweep};
use crate::field::Field;
use crate::ranks::{Ranks, Request};
use crate::telemetry::traffic::GhostMessage;
use crate::telemetry::{Kind, Traffic};

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

/// One exchange of ghost values as all its parts see it.
#[derive(Clone, Copy)]
pub struct Task<'a> {
    pub ranks: &'a dyn Ranks,
    pub faces: &'a Faces,
    pub plan: &'a Plan,
    pub manner: Manner,
    /// The order of the plan's sweeps.
    pub order: &'a [usize],
}

/// Seconds and traffic of all exchanges so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spent {
    pub pack: f64,
    pub copy: f64,
    pub wait: f64,
    pub unpack: f64,
    pub traffic: Traffic,
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
        task: Task,
        field: &Field,
        sweep: &Sweep,
        vars: &Range<usize>,
    ) -> Posted {
        let start = Instant::now();
        let mut posted = Posted::default();
        let tag = TAG + sweep.axes[0] as i32;
        for partner in &sweep.partners {
            for n in message_lens(task.faces, partner, task.manner.bundling, vars) {
                let mut buffer = self.buffer();
                buffer.resize(n, 0.0);
                let request = task.ranks.start_receive(partner.rank, tag, buffer);
                posted.receives.push(Some(request));
            }
        }
        for partner in &sweep.partners {
            let per_message = match task.manner.bundling {
                Bundling::ByRank => partner.sends.len(),
                Bundling::ByFace => 1,
            };
            for halves in partner.sends.chunks(per_message) {
                let buffer = self.packed(task.faces, field, halves, vars);
                match task.manner.sending {
                    Sending::Nonblocking => {
                        let request = task.ranks.start_send(partner.rank, tag, buffer);
                        posted.sends.push(request);
                    }
                    Sending::Blocking => {
                        task.ranks.send(partner.rank, tag, &buffer);
                        self.spare.push(buffer);
                    }
                }
            }
        }
        self.spent.pack += start.elapsed().as_secs_f64();
        posted
    }

    /// One message: all variables of each face.
    fn packed(
        &mut self,
        faces: &Faces,
        field: &Field,
        halves: &[Half],
        vars: &Range<usize>,
    ) -> Vec<f64> {
        let mut buffer = self.buffer();
        let mut message = GhostMessage::default();
        for half in halves {
            let before = buffer.len();
            for var in vars.clone() {
                let from = field.var(half.slot, var);
                faces.pack(usize::from(half.face), half.source, from, &mut buffer);
            }
            let n_values = buffer.len() - before;
            message.holds(half.source, n_values, &mut self.spent.traffic);
        }
        message.sent(&mut self.spent.traffic);
        buffer
    }

    /// Counts the copies between blocks of this rank, which the caller makes for `n_vars` variables.
    fn count_copies(&mut self, sweep: &Sweep, n_vars: usize) {
        let bytes = 8 * sweep.n_copied * n_vars;
        let traffic = &mut self.spent.traffic;
        traffic.add(Kind::Local, sweep.n_links as u64, bytes as u64);
    }

    /// Fills ghosts of `vars` from this rank's own blocks and at the boundary.
    pub fn copy(&mut self, faces: &Faces, field: &mut Field, sweep: &Sweep, vars: &Range<usize>) {
        let start = Instant::now();
        for var in vars.clone() {
            for link in &sweep.links {
                let (to, from) = field.pair(link.to, link.from, var);
                faces.copy(usize::from(link.face), link.source, to, from);
            }
            for &(slot, face) in &sweep.boundary {
                faces.reflect(usize::from(face), field.var_mut(slot, var));
            }
        }
        self.count_copies(sweep, vars.len());
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

    /// Fills ghosts of `vars` from the messages.
    pub fn unpack(
        &mut self,
        faces: &Faces,
        field: &mut Field,
        sweep: &Sweep,
        arrived: &Arrived,
        vars: &Range<usize>,
    ) {
        let start = Instant::now();
        for var in vars.clone() {
            let mut messages = arrived.messages.iter().map(Vec::as_slice);
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
        }
        self.spent.unpack += start.elapsed().as_secs_f64();
    }

    /// Posts and waits for the messages of all sweeps, without filling any ghosts: the caller does.
    pub fn gather(&mut self, task: Task, field: &Field, vars: &Range<usize>) -> Arrived {
        let mut by_sweep: Vec<Vec<Vec<f64>>> = vec![Vec::new(); task.plan.sweeps.len()];
        for &nth in task.order {
            let sweep = &task.plan.sweeps[nth];
            let posted = self.post(task, field, sweep, vars);
            by_sweep[nth] = self.wait(task.ranks, posted).messages;
            self.count_copies(sweep, vars.len());
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
    pub fn run(&mut self, task: Task, field: &mut Field, vars: &Range<usize>) {
        let faces = task.faces;
        for &nth in task.order {
            let sweep = &task.plan.sweeps[nth];
            if task.manner.order == Order::CopiesFirst {
                self.copy(faces, field, sweep, vars);
            }
            let posted = self.post(task, field, sweep, vars);
            if task.manner.order == Order::SendsFirst {
                self.copy(faces, field, sweep, vars);
            }
            let arrived = self.wait(task.ranks, posted);
            self.unpack(faces, field, sweep, &arrived, vars);
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
