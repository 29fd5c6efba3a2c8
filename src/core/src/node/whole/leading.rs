//! A leader that runs a schedule with the other leaders while its node combines and gets pieces: operations of the
//! schedule and steps in the node's memory, one at a time.

use super::memory::{Buffers, Case, Content, Found, Haste};
use super::messages::Network;
use super::node::{Running, Shared};
use crate::algorithm::lengths::Lengths;
use crate::algorithm::plan::Plan;
use crate::algorithm::program::{Message, Operation, Program, Span};
use crate::algorithm::row::InPlace;
use crate::algorithm::schedule;
use crate::algorithm::symbolic::Sum;
use crate::catalogue::Crossing;
use crate::collective::Collective;
use crate::node::map::NodeMap;
use crate::node::overlap::{final_at, wanted};
use crate::node::stage::{Across, At};

/// A message under way: the channel, which of its messages it is, and what it carries.
#[derive(Clone, Copy)]
struct Request {
    channel: (usize, usize),
    index: usize,
    message: Message,
    receives: bool,
}

/// Where units lie: in a buffer of the call, in the copy of the input, or in a temporary, by its number.
enum Units {
    Buffer(At),
    Copy(u64),
    Temporary(usize, u64),
}

/// A leader in a call.
pub struct Leading<'a> {
    program: Program,
    lengths: Lengths<'static>,
    across: Across,
    /// The ranks that meet, and which of them this one is.
    members: Vec<usize>,
    own: usize,
    pub combining: Option<Running<'a>>,
    pub giving: Option<Running<'a>>,
    /// All of the node's is combined before the schedule begins.
    combines_first: bool,
    haste: Option<Haste>,
    /// Whether the schedule takes its input from a copy, and that copy.
    copies_input: bool,
    input: Vec<Content>,
    at: usize,
    /// Whether the operation has ended, and the node may get what is final.
    ended: bool,
    temporaries: Vec<Vec<Option<Content>>>,
    requests: Vec<Option<Request>>,
}

impl<'a> Leading<'a> {
    pub fn new(
        case: &Case,
        map: &NodeMap,
        across: Across,
        (combining, giving): (Option<Running<'a>>, Option<Running<'a>>),
    ) -> Leading<'a> {
        let Some(Crossing::Schedule(schedule)) = case.own.crossing() else {
            unreachable!("only schedules overlap")
        };
        let (row, root) = (schedule.row(), map.node_of[case.root]);
        let mut members: Vec<usize> = map.nodes.iter().map(|ranks| ranks[0]).collect();
        if case.collective != Collective::Allreduce {
            members[root] = case.root;
        }
        let (n, bytes) = (members.len(), across.units * case.unit_bytes);
        let schedule = (row.schedule)(row.case(map.node, n, root, schedule.values, bytes));
        let is_shared = across.given.is_none() && case.collective.is_reduction();
        let plan = match row.in_place {
            InPlace::Shared if is_shared => Plan::in_place(schedule, row.pattern, map.node, root),
            _ => Plan::new(schedule),
        };
        let blocks = row.pattern.blocks(n);
        let program = Program::new(&plan, blocks);
        let lengths = Lengths::new(across.units, program.parts_per_block, program.chunks);
        let rooms = program.temporaries.iter();
        let rooms = rooms.map(|room| vec![None; lengths.temporary(*room) as usize]);
        Leading {
            temporaries: rooms.collect(),
            requests: vec![None; program.n_requests()],
            program,
            lengths,
            across,
            own: map.node,
            haste: case.haste,
            combines_first: case.call(members[map.node]).in_place,
            members,
            combining,
            giving,
            copies_input: is_shared && row.in_place == InPlace::Copied,
            input: Vec::new(),
            at: 0,
            ended: false,
        }
    }

    /// Where the units of a span lie, and how many they are.
    fn units(&self, span: Span) -> (Units, u64) {
        let (offset, units) = self.lengths.of(span, &self.program.temporaries);
        let place = match span.buffer {
            schedule::Buffer::Input if self.copies_input => Units::Copy(offset),
            schedule::Buffer::Input => {
                let given = self.across.given.unwrap_or(self.across.result);
                Units::Buffer(given.behind(offset))
            }
            schedule::Buffer::Output => Units::Buffer(self.across.result.behind(offset)),
            schedule::Buffer::Temporary(which) => Units::Temporary(usize::from(which), offset),
        };
        (place, units)
    }

    fn read(&self, buffers: &Buffers, span: Span) -> Found<Vec<Content>> {
        let (place, units) = self.units(span);
        let one = |unit: u64| match place {
            Units::Buffer(at) => buffers.take(at, unit),
            Units::Copy(first) => Ok(self.input[(first + unit) as usize].clone()),
            Units::Temporary(which, first) => {
                let held = self.temporaries[which].get((first + unit) as usize);
                let content = held.cloned().flatten();
                content.ok_or_else(|| format!("temporary {which} is read before it is written"))
            }
        };
        (0..units).map(one).collect()
    }

    fn write(&mut self, buffers: &mut Buffers, span: Span, contents: &[Content]) -> Found<()> {
        let (place, units) = self.units(span);
        if contents.len() as u64 != units {
            return Err(format!("{} units come where {units} fit", contents.len()));
        }
        for (unit, content) in (0..).zip(contents) {
            let content = Some(content.clone());
            match place {
                Units::Buffer(at) => buffers.write(at, unit, content)?,
                Units::Copy(_) => return Err("the copy of the input is written".to_owned()),
                Units::Temporary(which, first) => {
                    self.temporaries[which][(first + unit) as usize] = content;
                }
            }
        }
        Ok(())
    }

    /// The spans of a message that lie in buffers of the call, which no rank may touch while it is under way.
    fn spans(&self, message: Message) -> Vec<Span> {
        let mut spans = Vec::new();
        self.program.each(&message, &mut |span| spans.push(*span));
        spans
    }

    fn buffers_of(&self, message: Message) -> Vec<(At, u64)> {
        let spans = self.spans(message).into_iter();
        let places = spans.filter_map(|span| match self.units(span) {
            (Units::Buffer(at), units) => Some((at, units)),
            _ => None,
        });
        places.collect()
    }

    /// Takes a step, unless it waits; `None` where all is over.
    pub fn step(
        &mut self,
        node: &mut Shared,
        buffers: &mut Buffers,
        network: &mut Network,
    ) -> Found<Option<bool>> {
        let Some(&operation) = self.program.operations.get(self.at) else {
            return self.finishes(node, buffers);
        };
        if self.ended {
            return self.gives(node, buffers).map(Some);
        }
        let needed = self.wanted_by(&operation);
        if let Some(combining) = self.combining.as_mut().filter(|one| one.over() < needed) {
            combining.next();
            return step(combining, node, buffers).map(Some);
        }
        if self.copies_input && self.input.is_empty() {
            let all = (0..self.across.units).map(|unit| buffers.take(self.across.result, unit));
            self.input = all.collect::<Found<_>>()?;
        }
        let went_on = self.operate(operation, buffers, network)?;
        self.ended = went_on;
        Ok(Some(went_on))
    }

    /// Pieces that are to be combined before an operation.
    fn wanted_by(&self, operation: &Operation) -> u64 {
        let waits = self.haste != Some(Haste::Reads);
        let Some(combining) = self.combining.as_ref().filter(|_| waits) else {
            return 0;
        };
        if self.combines_first {
            return combining.phase().cut.pieces;
        }
        let mut needed = 0;
        self.program.reads(operation, &mut |span| {
            if span.buffer == schedule::Buffer::Input {
                needed = needed.max(wanted(combining.phase(), &self.lengths, span));
            }
        });
        needed
    }

    /// Gives the node what is final by now and finds room, step by step; in the end goes on to the next operation.
    fn gives(&mut self, node: &mut Shared, buffers: &mut Buffers) -> Found<bool> {
        let combined = self.combining.as_ref().is_none_or(Running::is_over);
        if let Some(giving) = self.giving.as_mut().filter(|_| combined) {
            let is_final = |units| {
                let last = final_at(&self.program, &self.lengths, units);
                last <= self.at as u32 || self.haste == Some(Haste::Gives)
            };
            let begins = !giving.is_within() && !giving.is_over();
            if giving.is_within()
                || begins && is_final(giving.next_units()) && giving.has_room(node)
            {
                giving.next();
                return step(giving, node, buffers);
            }
        }
        self.at += 1;
        self.ended = false;
        Ok(true)
    }

    /// What is left of both phases, in order.
    fn finishes(&mut self, node: &mut Shared, buffers: &mut Buffers) -> Found<Option<bool>> {
        for phase in [&mut self.combining, &mut self.giving]
            .into_iter()
            .flatten()
        {
            if phase.next().is_some() {
                return step(phase, node, buffers).map(Some);
            }
        }
        match self.requests.iter().all(Option::is_none) {
            true => Ok(None),
            false => Err("a message is never waited for".to_owned()),
        }
    }

    /// Carries an operation out; false where it waits.
    fn operate(
        &mut self,
        operation: Operation,
        buffers: &mut Buffers,
        network: &mut Network,
    ) -> Found<bool> {
        match operation {
            Operation::Receive {
                request,
                from,
                into,
            } => self.post((request, from, true), into, buffers, network)?,
            Operation::Send { request, to, what } => {
                self.post((request, to, false), what, buffers, network)?;
            }
            Operation::Wait { request } => {
                return self.waits([request as usize], buffers, network);
            }
            Operation::WaitAll => {
                let all = 0..self.requests.len();
                return self.waits(all, buffers, network);
            }
            Operation::Reduce {
                source,
                target,
                order,
            } => {
                let both = self
                    .read(buffers, source)?
                    .into_iter()
                    .zip(self.read(buffers, target)?);
                let sums: Vec<Content> = both
                    .map(|(source, target)| Sum::both(source, target, order))
                    .collect();
                self.write(buffers, target, &sums)?;
            }
            Operation::Copy { source, target } => {
                let is_same = match (self.units(source).0, self.units(target).0) {
                    (Units::Buffer(source), Units::Buffer(target)) => {
                        buffers.is_same(source, target)
                    }
                    _ => false,
                };
                if !is_same {
                    let contents = self.read(buffers, source)?;
                    self.write(buffers, target, &contents)?;
                }
            }
        }
        Ok(true)
    }

    fn post(
        &mut self,
        (request, peer, receives): (u32, u32, bool),
        message: Message,
        buffers: &mut Buffers,
        network: &mut Network,
    ) -> Found<()> {
        let spans = self.spans(message);
        let units: u64 = spans.iter().map(|span| self.units(*span).1).sum();
        // Both sides know that there is nothing to send.
        if units == 0 && !matches!(message, Message::Token) {
            return Ok(());
        }
        let (own, peer) = (self.members[self.own], self.members[peer as usize]);
        let channel = if receives { (peer, own) } else { (own, peer) };
        let index = if receives {
            for (at, units) in self.buffers_of(message) {
                buffers.awaits(at, units);
            }
            network.awaits(channel, units)
        } else {
            let contents = spans.iter().map(|span| self.read(buffers, *span));
            let contents = contents.collect::<Found<Vec<_>>>()?.concat();
            for (at, units) in self.buffers_of(message) {
                buffers.send(at, units);
            }
            network.sends(channel, contents)
        };
        self.requests[request as usize] = Some(Request {
            channel,
            index,
            message,
            receives,
        });
        Ok(())
    }

    /// Ends messages, once the other side of each has come; whether it has.
    fn waits(
        &mut self,
        requests: impl IntoIterator<Item = usize>,
        buffers: &mut Buffers,
        network: &Network,
    ) -> Found<bool> {
        let all: Vec<usize> = requests.into_iter().collect();
        let has_come = |request: &usize| {
            self.requests[*request].is_none_or(|request| match request.receives {
                true => network.sent(request.channel, request.index).is_some(),
                false => network.is_awaited(request.channel, request.index),
            })
        };
        if !all.iter().all(has_come) {
            return Ok(false);
        }
        for request in all {
            let Some(request) = self.requests[request].take() else {
                continue;
            };
            for (at, units) in self.buffers_of(request.message) {
                match request.receives {
                    true => buffers.no_longer_awaits(at, units),
                    false => buffers.release(at, units),
                }
            }
            if request.receives {
                let sent = network.sent(request.channel, request.index);
                let mut contents = sent.unwrap_or_default();
                for span in self.spans(request.message) {
                    let units = self.units(span).1 as usize;
                    if units > contents.len() {
                        return Err("a message is shorter than what is awaited".to_owned());
                    }
                    let (these, others) = contents.split_at(units);
                    self.write(buffers, span, these)?;
                    contents = others;
                }
                if !contents.is_empty() {
                    return Err("a message is longer than what is awaited".to_owned());
                }
            }
        }
        Ok(true)
    }
}

fn step(phase: &mut Running, node: &mut Shared, buffers: &mut Buffers) -> Found<bool> {
    phase.step(node, buffers, |_, _| {
        unreachable!("nothing arrives by itself")
    })
}
