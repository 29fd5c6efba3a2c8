//! One simulated rank: its clock, the messages it has under way, and what it must wait for.

use std::collections::VecDeque;

use crate::algorithm::schedule::{
    Buffer, Order, Part, Parts, Schedule, Step, Steps, Temporary, place,
};

/// A message under way, as its rank sees it.
pub enum Pending {
    Out { number: u64, what: Held, done: f64 },
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
    chunk_bytes: f64,
    /// Into how many chunks a block is cut, and how many of them, the first ones, hold anything.
    chunks_per_block: usize,
    chunks_filled: usize,
    temporaries: Vec<Temporary>,
    window: usize,
    pub steps: Steps,
    /// Taken from `steps` and not done yet.
    pub current: Option<Step>,
    pub pending: VecDeque<Pending>,
    /// Messages sent to this rank and not waited for, in the order in which they were sent.
    pub inbox: VecDeque<Coming>,
    pub blocked_on: Option<u32>,
    pub is_done: bool,
    /// Whether others run on its core while it waits.
    shares_core: bool,
}

/// A message on its way to a rank.
#[derive(Clone, Copy)]
pub struct Coming {
    /// The sender as the receiver knows it.
    pub from: u32,
    pub arrival: f64,
    /// What taking it costs the receiver's processor.
    pub work_ns: f64,
    /// The sender as it is simulated, and the number of its message, where it waits until that is taken.
    pub asks: Option<(u32, u64)>,
    /// Whether the receiver has paid for it, which on a shared core it does whenever it looks.
    pub taken: bool,
}

/// Why a rank does not go on.
pub enum Blocked {
    /// It waits for a message from that rank, which has not been sent yet.
    On(u32),
    /// Its core is the others' until then.
    Until(f64),
}

#[derive(Clone, Copy, PartialEq)]
enum Access {
    Read,
    Write,
}

impl Rank {
    /// `units` is how many elements, or bytes, a block can be cut into.
    pub fn new(schedule: Schedule, block_bytes: f64, units: usize, shares_core: bool) -> Rank {
        let chunks_per_block = schedule.parts_per_block;
        let chunks_filled = units.clamp(1, chunks_per_block);
        Rank {
            clock: 0.0,
            out_free: 0.0,
            chunk_bytes: block_bytes / chunks_filled as f64,
            chunks_per_block,
            chunks_filled,
            temporaries: schedule.temporaries,
            window: schedule.window,
            steps: schedule.steps,
            current: None,
            pending: VecDeque::new(),
            inbox: VecDeque::new(),
            blocked_on: None,
            is_done: false,
            shares_core,
        }
    }

    /// How many bytes a message has, or a piece of one.
    pub fn bytes(&self, parts: &[Part]) -> f64 {
        let chunks: usize = match self.chunks_filled == self.chunks_per_block {
            true => parts.iter().map(Part::count).sum(),
            false => {
                let all = parts.iter().flat_map(|part| part.chunks());
                all.filter(|chunk| chunk % self.chunks_per_block < self.chunks_filled)
                    .count()
            }
        };
        chunks as f64 * self.chunk_bytes
    }

    /// Whether a message is neither sent nor received, because there is nothing in it.
    pub fn is_empty(&self, parts: &Parts) -> bool {
        let parts = parts.as_slice();
        self.chunks_filled < self.chunks_per_block && !parts.is_empty() && self.bytes(parts) == 0.0
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
    fn settle(&mut self, part: &Part, access: Access) -> Result<(), Blocked> {
        self.retire();
        while let Some(index) = self
            .pending
            .iter()
            .position(|p| self.clashes(p, part, access))
        {
            self.complete(index)?;
        }
        Ok(())
    }

    /// Waits for one message under way.
    pub fn complete(&mut self, index: usize) -> Result<(), Blocked> {
        let (from, index) = match &self.pending[index] {
            Pending::Out { done, .. } => {
                let done = *done;
                self.wait_until(done)?;
                self.pending.remove(index);
                return Ok(());
            }
            // Messages of a pair keep their order, so the first from there completes first.
            Pending::In { from, .. } => {
                let same = |p: &Pending| matches!(p, Pending::In { from: f, .. } if f == from);
                (*from, self.pending.iter().position(same).unwrap_or(index))
            }
        };
        let first = self.inbox.iter().position(|coming| coming.from == from);
        let Some((place, coming)) = first.map(|place| (place, self.inbox[place])) else {
            return Err(Blocked::On(from));
        };
        if self.shares_core && !coming.taken {
            return Err(Blocked::Until(coming.arrival));
        }
        if !coming.taken {
            self.clock = self.clock.max(coming.arrival) + coming.work_ns;
        }
        self.inbox.remove(place);
        self.pending.remove(index);
        Ok(())
    }

    /// Waits for all messages under way.
    pub fn complete_all(&mut self) -> Result<(), Blocked> {
        while !self.pending.is_empty() {
            self.complete(0)?;
        }
        Ok(())
    }

    /// Takes whatever has come, as a rank does that looks for one message; calls `done` for each whose sender waits.
    pub fn look(&mut self, mut done: impl FnMut((u32, u64), f64)) {
        for place in 0..self.inbox.len() {
            let coming = self.inbox[place];
            if coming.taken || coming.arrival > self.clock {
                continue;
            }
            if let Some(sender) = coming.asks {
                if !self.is_posted(place) {
                    continue;
                }
                done(sender, self.clock + coming.work_ns);
            }
            self.clock += coming.work_ns;
            self.inbox[place].taken = true;
        }
    }

    /// Whether the receive of a message in the inbox is under way.
    fn is_posted(&self, place: usize) -> bool {
        let from = self.inbox[place].from;
        let before = self.inbox.iter().take(place);
        let before = before.filter(|coming| coming.from == from).count();
        let posted =
            |pending: &&Pending| matches!(pending, Pending::In { from: f, .. } if *f == from);
        self.pending.iter().filter(posted).count() > before
    }

    /// The message of that number has left.
    pub fn left(&mut self, message: u64, at: f64) {
        for pending in &mut self.pending {
            if let Pending::Out { number, done, .. } = pending
                && *number == message
            {
                *done = at;
            }
        }
    }

    fn wait_until(&mut self, time: f64) -> Result<(), Blocked> {
        if self.shares_core && time > self.clock {
            return Err(Blocked::Until(time));
        }
        self.clock = self.clock.max(time);
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
    fn make_room(&mut self, is: impl Fn(&Pending) -> bool) -> Result<(), Blocked> {
        while self.pending.iter().filter(|p| is(p)).count() >= self.window {
            let Some(oldest) = self.first(&is) else { break };
            self.complete(oldest)?;
        }
        Ok(())
    }
}

/// Waits for what a step needs; to be called again from the start when the rank was blocked.
pub fn prepare(rank: &mut Rank, step: &Step) -> Result<(), Blocked> {
    let is_in = |pending: &Pending| matches!(pending, Pending::In { .. });
    match step {
        Step::Send { what, .. } => {
            for part in what.as_slice() {
                rank.settle(part, Access::Read)?;
            }
            if what.as_slice().is_empty() {
                while let Some(token) = rank.first(is_in) {
                    rank.complete(token)?;
                }
            }
            rank.make_room(|pending| !is_in(pending))
        }
        Step::Receive { into, .. } => {
            for part in into.as_slice() {
                rank.settle(part, Access::Write)?;
            }
            rank.make_room(is_in)
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
            rank.settle(source, on_source)?;
            rank.settle(target, Access::Write)
        }
        Step::Copy { source, target } => {
            rank.settle(source, Access::Read)?;
            rank.settle(target, Access::Write)
        }
    }
}
