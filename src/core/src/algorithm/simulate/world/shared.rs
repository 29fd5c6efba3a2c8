//! Ranks that share their cores: who runs next, and what a rank does whenever it looks for a message.

use super::{Event, Simulation};
use crate::algorithm::simulate::rank::Blocked;
use crate::algorithm::simulate::taking_turns::Promise;

impl Simulation<'_> {
    /// A rank has something to do.
    pub fn wake(&mut self, at: f64, rank: u32) {
        let Some(cores) = &mut self.cores else {
            return self.advance(rank);
        };
        if self.ranks[rank as usize].is_done {
            return;
        }
        if cores.holds(rank) {
            return self.advance(rank);
        }
        let next = cores.wake(rank, at);
        self.promise(next);
    }

    /// A core comes to a rank that has something to do.
    pub fn grant(&mut self, at: f64, core: u32, promise: u64) {
        let taken = self
            .cores
            .as_mut()
            .and_then(|cores| cores.take(core, promise));
        if let Some(rank) = taken {
            let clock = &mut self.ranks[rank as usize].clock;
            *clock = clock.max(at);
            self.look(rank);
            self.advance(rank);
        }
    }

    fn promise(&mut self, next: Option<Promise>) {
        if let Some(Promise { core, number, at }) = next {
            self.push(at, Event::Core(core, number));
        }
    }

    /// A rank that shares its core takes whatever has come, and tells the senders that wait for it.
    fn look(&mut self, number: u32) {
        let mut left = Vec::new();
        let latency = self.machine.inside.latency_ns;
        self.ranks[number as usize].look(|sender, at| left.push((sender, at + latency)));
        for ((sender, message), at) in left {
            self.ranks[sender as usize].left(message, at);
            self.push(at, Event::Rank(sender));
        }
    }

    /// Whether a rank that cannot go on has something to do all the same.
    pub fn goes_on(&mut self, number: u32, why: Blocked) -> bool {
        // What came before its receive was posted is found here: its sender may be the one that all wait for.
        if self.cores.is_some() {
            self.look(number);
        }
        let rank = &mut self.ranks[number as usize];
        let clock = rank.clock;
        match why {
            Blocked::On(from) => rank.blocked_on = Some(from),
            Blocked::Until(at) if at <= clock => return true,
            // What comes wakes it anyway, but not what leaves.
            Blocked::Until(at) if at.is_finite() => self.push(at, Event::Rank(number)),
            Blocked::Until(_) => {}
        }
        self.leave(number);
        false
    }

    /// A rank that waits leaves its core to the others; what comes wakes it.
    pub fn leave(&mut self, number: u32) {
        let clock = self.ranks[number as usize].clock;
        let next = self
            .cores
            .as_mut()
            .and_then(|cores| cores.leave(number, clock));
        self.promise(next);
    }
}
