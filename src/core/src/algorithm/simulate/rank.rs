//! One simulated rank: its clock, the messages it has under way, and what it must wait for.

use std::collections::VecDeque;

use crate::algorithm::schedule::{
    Buffer, Order, Part, Parts, Schedule, Step, Steps, Temporary, place,
};

/// A message under way, as its rank sees it.
pub enum Pending {
    Out { what: Held, done: f64 },
    In { from: u32, into: Held },
}

/// The chunks of a message under way.
pub struct Held {
    parts: Parts,
    /// Whether they are single runs of one buffer in ascending order, so that one can be searched for.
    ascending: bool,
}

pub struct Rank {
    pub clock: f64,
    /// When the last message had left the rank.
    pub out_free: f64,
    pub chunk_bytes: f64,
    temporaries: Vec<Temporary>,
    window: usize,
    pub steps: Steps,
    /// Taken from `steps` and not done yet.
    pub current: Option<Step>,
    pub pending: VecDeque<Pending>,
    /// Messages sent to this rank and not waited for: their sender and arrival, in the order in
    /// which they were sent.
    pub inbox: VecDeque<(u32, f64)>,
    pub blocked_on: Option<u32>,
}

/// The rank must wait for a message from that rank, which has not been sent yet.
pub struct Blocked(pub u32);

#[derive(Clone, Copy, PartialEq)]
enum Access {
    Read,
    Write,
}

impl Rank {
    pub fn new(schedule: Schedule, block_bytes: f64) -> Rank {
        Rank {
            clock: 0.0,
            out_free: 0.0,
            chunk_bytes: block_bytes / schedule.parts_per_block as f64,
            temporaries: schedule.temporaries,
            window: schedule.window,
            steps: schedule.steps,
            current: None,
            pending: VecDeque::new(),
            inbox: VecDeque::new(),
            blocked_on: None,
        }
    }

    pub fn bytes(&self, chunks: usize) -> f64 {
        chunks as f64 * self.chunk_bytes
    }

    /// The chunks of a message, to be compared with those of later steps.
    pub fn hold(&self, parts: Parts) -> Held {
        let all = parts.as_slice();
        let single = |part: &Part| part.runs == 1 && part.len > 0 && self.is_flat(part);
        let ascends = |pair: &[Part]| {
            pair[0].buffer == pair[1].buffer && pair[0].first + pair[0].len <= pair[1].first
        };
        let ascending = all.len() > 2 && all.iter().all(single) && all.windows(2).all(ascends);
        Held { parts, ascending }
    }

    /// Whether chunks of the part's buffer lie where they are named.
    fn is_flat(&self, part: &Part) -> bool {
        match part.buffer {
            Buffer::Temporary(index) => {
                let temporary = self.temporaries.get(usize::from(index));
                !matches!(temporary, Some(Temporary::Ring { .. }))
            }
            Buffer::Input | Buffer::Output => true,
        }
    }

    fn clashes(&self, pending: &Pending, part: &Part, access: Access) -> bool {
        let held = match pending {
            Pending::Out { .. } if access == Access::Read => return false,
            Pending::Out { what: held, .. } | Pending::In { into: held, .. } => held,
        };
        let parts = &held.parts;
        if held.ascending && part.runs == 1 {
            let all = parts.as_slice();
            let next = all.partition_point(|other| other.first + other.len <= part.first);
            return all.get(next).is_some_and(|other| other.overlaps(part));
        }
        let overlaps = |other: &Part| {
            other.buffer == part.buffer
                && place(other, &self.temporaries).overlaps(&place(part, &self.temporaries))
        };
        parts.as_slice().iter().any(overlaps)
    }

    /// Waits for everything that must be complete before `part` is touched.
    fn settle(
        &mut self,
        part: &Part,
        access: Access,
        overhead: impl Fn(u32) -> f64 + Copy,
    ) -> Result<(), Blocked> {
        self.retire();
        while let Some(index) = self
            .pending
            .iter()
            .position(|p| self.clashes(p, part, access))
        {
            self.complete(index, overhead)?;
        }
        Ok(())
    }

    /// Waits for one message under way.
    pub fn complete(
        &mut self,
        index: usize,
        overhead: impl Fn(u32) -> f64 + Copy,
    ) -> Result<(), Blocked> {
        let (from, index) = match &self.pending[index] {
            Pending::Out { done, .. } => {
                self.clock = self.clock.max(*done);
                self.pending.remove(index);
                return Ok(());
            }
            // Messages of a pair keep their order, so the first from there completes first.
            Pending::In { from, .. } => {
                let same = |p: &Pending| matches!(p, Pending::In { from: f, .. } if f == from);
                (*from, self.pending.iter().position(same).unwrap_or(index))
            }
        };
        let Some(arrived) = self.inbox.iter().position(|&(sender, _)| sender == from) else {
            return Err(Blocked(from));
        };
        let (_, at) = self.inbox.remove(arrived).unwrap_or((from, 0.0));
        self.clock = self.clock.max(at) + overhead(from);
        self.pending.remove(index);
        Ok(())
    }

    /// Forgets the oldest messages where they have left long ago.
    fn retire(&mut self) {
        while let Some(Pending::Out { done, .. }) = self.pending.front()
            && *done <= self.clock
        {
            self.pending.pop_front();
        }
    }

    fn first(&self, is: impl Fn(&Pending) -> bool) -> Option<usize> {
        self.pending.iter().position(is)
    }

    /// Waits until another message may be under way in the direction that `is` names.
    fn make_room(
        &mut self,
        is: impl Fn(&Pending) -> bool,
        overhead: impl Fn(u32) -> f64 + Copy,
    ) -> Result<(), Blocked> {
        while self.pending.iter().filter(|p| is(p)).count() >= self.window {
            let Some(oldest) = self.first(&is) else { break };
            self.complete(oldest, overhead)?;
        }
        Ok(())
    }
}

/// Waits for what a step needs; to be called again from the start when the rank was blocked.
pub fn prepare(
    rank: &mut Rank,
    step: &Step,
    overhead: impl Fn(u32) -> f64 + Copy,
) -> Result<(), Blocked> {
    let is_in = |pending: &Pending| matches!(pending, Pending::In { .. });
    match step {
        Step::Send { what, .. } => {
            for part in what.as_slice() {
                rank.settle(part, Access::Read, overhead)?;
            }
            if what.as_slice().is_empty() {
                while let Some(token) = rank.first(is_in) {
                    rank.complete(token, overhead)?;
                }
            }
            rank.make_room(|pending| !is_in(pending), overhead)
        }
        Step::Receive { into, .. } => {
            for part in into.as_slice() {
                rank.settle(part, Access::Write, overhead)?;
            }
            rank.make_room(is_in, overhead)
        }
        Step::Reduce {
            source,
            target,
            order,
        } => {
            let on_source = match order {
                Order::SourceFirst => Access::Read,
                Order::SourceLast => Access::Write,
            };
            rank.settle(source, on_source, overhead)?;
            rank.settle(target, Access::Write, overhead)
        }
        Step::Copy { source, target } => {
            rank.settle(source, Access::Read, overhead)?;
            rank.settle(target, Access::Write, overhead)
        }
    }
}
