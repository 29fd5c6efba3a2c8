//! The exchange of ghost values: posts what must travel, copies what need not, then waits.

mod view;

pub mod face;
pub mod plan;

pub mod gas;

pub mod intake;

use std::ops::Range;

use clap::ValueEnum;

use crate::exchange::face::Faces;
use crate::exchange::plan::{Half, Partner, Plan, Sweep};
use crate::field::Field;
use crate::ranks::{Ranks, Request};
use crate::telemetry::recorder::Round;
use crate::telemetry::traffic::GhostMessage;
use crate::telemetry::{Freight, Kind, Phase, Recorder, Traffic};

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
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
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

/// Time and traffic of all exchanges so far.
#[derive(Clone, Debug, Default)]
pub struct Spent {
    pub recorder: Recorder,
    pub traffic: Traffic,
}

/// Buffers that are used again and again, and what is recorded.
#[derive(Debug, Default)]
pub struct Exchange {
    spare: Vec<Vec<f64>>,
    pub spent: Spent,
}

/// Messages of one sweep that have been posted and not been waited for, each with its partner.
#[derive(Debug, Default)]
pub struct Posted {
    receives: Vec<Option<Request>>,
    from: Vec<usize>,
    sends: Vec<(usize, Request)>,
    round: Round,
}

/// What has arrived, in the order of the receives that were posted.
#[derive(Debug, Default)]
pub struct Arrived {
    messages: Vec<Vec<f64>>,
    from: Vec<usize>,
    round: Round,
}

const TAG: i32 = 100;
/// What the end of a send takes that need not be waited for.
const PROMPT_NS: u64 = 2_000;

impl Exchange {
    /// An exchange whose rounds and times are recorded.
    pub fn recorded(recorder: Recorder) -> Exchange {
        Exchange {
            spare: Vec::new(),
            spent: Spent {
                recorder,
                ..Spent::default()
            },
        }
    }

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
        let _pack = self.spent.recorder.clock.during(Phase::Pack);
        let mut posted = Posted {
            round: self.spent.recorder.round(),
            ..Posted::default()
        };
        let tag = TAG + sweep.axes[0] as i32;
        for partner in &sweep.partners {
            for n in message_lens(task.faces, partner, task.manner.bundling, vars) {
                // What an earlier message left is overwritten; zeros stand only where this one is longer.
                let mut buffer = self.spare.pop().unwrap_or_default();
                buffer.resize(n, 0.0);
                let request = task.ranks.start_receive(partner.rank, tag, buffer);
                posted.expect(partner.rank, n, request);
            }
        }
        for partner in &sweep.partners {
            let per_message = match task.manner.bundling {
                Bundling::ByRank => partner.sends.len(),
                Bundling::ByFace => 1,
            };
            for halves in partner.sends.chunks(per_message) {
                let buffer = self.packed(task.faces, field, halves, vars);
                let recorder = &self.spent.recorder;
                recorder.sent(partner.rank, Freight::Ghost, buffer.len());
                match task.manner.sending {
                    Sending::Nonblocking => {
                        let request = task.ranks.start_send(partner.rank, tag, buffer);
                        posted.sends.push((partner.rank, request));
                    }
                    Sending::Blocking => {
                        task.ranks.send(partner.rank, tag, &buffer);
                        self.spare.push(buffer);
                    }
                }
            }
        }
        posted.round.posted = self.spent.recorder.moment();
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
        let _copy = self.spent.recorder.clock.during(Phase::Copy);
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
    }

    /// Waits for everything that was posted.
    pub fn wait(&mut self, ranks: &dyn Ranks, posted: Posted) -> Arrived {
        let (arrived, sent) = posted.wait(ranks, &self.spent.recorder);
        self.spare.extend(sent);
        arrived
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
        let _unpack = self.spent.recorder.clock.during(Phase::Unpack);
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
    }

    /// Posts and waits for the messages of all sweeps, without filling any ghosts: the caller does.
    pub fn gather(&mut self, task: Task, field: &Field, vars: &Range<usize>) -> Arrived {
        let mut by_sweep: Vec<Vec<Vec<f64>>> = vec![Vec::new(); task.plan.sweeps.len()];
        for &nth in task.order {
            let sweep = &task.plan.sweeps[nth];
            let posted = self.post(task, field, sweep, vars);
            let arrived = self.wait(task.ranks, posted);
            self.spent.recorder.done(arrived.round);
            by_sweep[nth] = arrived.messages;
            self.count_copies(sweep, vars.len());
        }
        Arrived {
            messages: by_sweep.into_iter().flatten().collect(),
            ..Arrived::default()
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
            let begin = self.spent.recorder.moment();
            if task.manner.order == Order::CopiesFirst {
                self.copy(faces, field, sweep, vars);
            }
            let mut posted = self.post(task, field, sweep, vars);
            posted.round.begin = begin;
            if task.manner.order == Order::SendsFirst {
                self.copy(faces, field, sweep, vars);
            }
            let arrived = self.wait(task.ranks, posted);
            self.unpack(faces, field, sweep, &arrived, vars);
            self.spent.recorder.done(arrived.round);
            self.recycle(arrived);
        }
    }
}

impl Posted {
    /// A message of `n_values` is expected.
    fn expect(&mut self, from: usize, n_values: usize, request: Request) {
        self.receives.push(Some(request));
        self.from.push(from);
        self.round.messages += 1;
        self.round.bytes += 8 * n_values as u64;
    }

    /// Lets messages that have not come yet move on: a rank that only computes moves none of more than some 64 KiB.
    pub fn progress(&self, ranks: &dyn Ranks) {
        let mut receives = self.receives.iter().flatten();
        let _all = receives.all(|request| ranks.is_complete(request));
    }

    /// Waits for everything; gives the buffers of what was sent, too.
    fn wait(mut self, ranks: &dyn Ranks, recorder: &Recorder) -> (Arrived, Vec<Vec<f64>>) {
        let _wait = recorder.clock.during(Phase::Wait);
        let mut round = self.round;
        round.served = recorder.moment();
        let mut messages = Vec::new();
        messages.resize_with(self.receives.len(), Vec::new);
        while let Some((place, message)) = ranks.finish_any(&mut self.receives) {
            round.last(recorder.moment(), self.from[place]);
            messages[place] = message;
        }
        let mut sent = Vec::with_capacity(self.sends.len());
        for (to, send) in self.sends {
            // A large message leaves when its receiver takes it, who is waited for then; one that has left needs no
            // wait, however late this rank looks.
            let waits = !ranks.is_complete(&send);
            sent.push(ranks.finish(send));
            let now = recorder.moment();
            if waits && now > round.last + PROMPT_NS {
                round.last(now, to);
            }
        }
        let arrived = Arrived {
            messages,
            from: self.from,
            round,
        };
        (arrived, sent)
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
