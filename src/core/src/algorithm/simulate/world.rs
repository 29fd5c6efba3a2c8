//! All ranks of a simulation, and what happens to them in the order of time.

mod shared;

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use super::machine::Machine;
use super::rank::{Coming, Pending, Rank, prepare};
use super::symmetry::Fold;
use super::taking_turns::TakingTurns;
use crate::algorithm::schedule::{Parts, Schedule, Step};

/// What a simulation found, and what it took.
pub struct Found {
    /// When the last rank is done.
    pub makespan_ns: f64,
    /// How often a rank or a message had its turn.
    pub turns: u64,
}

/// A block of the message.
#[derive(Clone, Copy)]
pub struct Block {
    pub bytes: f64,
    /// What is not cut further: an element of a reduction, else a byte.
    pub unit_bytes: f64,
}

impl Block {
    /// How many units there are, where every rank is simulated: ranks that stand for others have no chunks of
    /// their own, so all of theirs hold something.
    fn units(self, n_ranks: usize, fold: Fold) -> usize {
        match fold.period == n_ranks {
            true => (self.bytes / self.unit_bytes).ceil() as usize,
            false => usize::MAX,
        }
    }
}

/// Runs schedules whose blocks are all alike to their end.
pub fn run(
    schedule: impl Fn(usize) -> Schedule,
    node_of: &[u32],
    block: Block,
    machine: &Machine,
    fold: Fold,
) -> Found {
    let turns = TakingTurns::new(&machine.cores, &node_of[..fold.period]);
    followed(&schedule, node_of, block, machine, fold, turns)
        // A core for each rank is the next best account.
        .or_else(|| followed(&schedule, node_of, block, machine, fold, None))
        .expect("every proved schedule comes to its end")
}

/// The same with these turns on shared cores; `None` where some rank is left waiting.
pub fn followed(
    schedule: &impl Fn(usize) -> Schedule,
    node_of: &[u32],
    block: Block,
    machine: &Machine,
    fold: Fold,
    turns: Option<TakingTurns>,
) -> Option<Found> {
    let shares = turns.is_some();
    let units = block.units(node_of.len(), fold);
    let ranks = (0..fold.period).map(|rank| Rank::new(schedule(rank), block.bytes, units, shares));
    let n_nodes = node_of.iter().max().map_or(0, |&node| node as usize + 1);
    let simulation = Simulation {
        machine,
        node_of,
        ranks: ranks.collect(),
        port_out: vec![0.0; n_nodes],
        port_in: vec![0.0; n_nodes],
        fold,
        cores: turns,
        turns: BinaryHeap::with_capacity(2 * fold.period),
        made: 0,
        sent: 0,
    };
    simulation.ended()
}

/// What happens next, ordered so that the heap gives the earliest; of several the first one made.
struct Turn {
    at: f64,
    number: u64,
    event: Event,
}

enum Event {
    /// A rank goes on.
    Rank(u32),
    /// A core looks for its next rank, unless another promise took the place of this one.
    Core(u32, u64),
    /// The first byte of a message reaches its receiver's node.
    Arrival(Message),
}

/// A message between nodes.
struct Message {
    from: u32,
    to: u32,
    bytes: f64,
    /// How long it keeps a port busy.
    busy: f64,
    /// When its last byte would come if the port in were idle.
    last_byte: f64,
}

impl PartialEq for Turn {
    fn eq(&self, other: &Turn) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Turn {}

impl Ord for Turn {
    fn cmp(&self, other: &Turn) -> Ordering {
        let time = other.at.total_cmp(&self.at);
        time.then(other.number.cmp(&self.number))
    }
}

impl PartialOrd for Turn {
    fn partial_cmp(&self, other: &Turn) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

struct Simulation<'a> {
    machine: &'a Machine,
    node_of: &'a [u32],
    ranks: Vec<Rank>,
    port_out: Vec<f64>,
    port_in: Vec<f64>,
    fold: Fold,
    /// `None` where every rank has its own core.
    cores: Option<TakingTurns>,
    turns: BinaryHeap<Turn>,
    /// Turns made so far.
    made: u64,
    /// Messages sent so far.
    sent: u64,
}

impl Simulation<'_> {
    /// Runs it; `None` where nothing happens any more and a rank is not done.
    fn ended(mut self) -> Option<Found> {
        for rank in 0..self.fold.period as u32 {
            self.push(0.0, Event::Rank(rank));
        }
        while let Some(turn) = self.turns.pop() {
            match turn.event {
                Event::Rank(rank) => self.wake(turn.at, rank),
                Event::Core(core, promise) => self.grant(turn.at, core, promise),
                Event::Arrival(message) => self.arrive(turn.at, &message),
            }
        }
        let done = |rank: &Rank| rank.is_done.then_some(rank.clock);
        let ends_ns = self.ranks.iter().map(done).collect::<Option<Vec<f64>>>()?;
        Some(Found {
            makespan_ns: ends_ns.into_iter().fold(0.0, f64::max),
            turns: self.made,
        })
    }

    fn push(&mut self, at: f64, event: Event) {
        let number = self.sent;
        self.sent += 1;
        self.turns.push(Turn { at, number, event });
    }

    /// Runs a rank until it must wait for a message that is not sent, it would take a shared port
    /// before a rank that is behind it, or it is done.
    fn advance(&mut self, number: u32) {
        let node_of = self.node_of;
        let node = node_of[number as usize];
        loop {
            let rank = &mut self.ranks[number as usize];
            let Some(step) = rank.current.take().or_else(|| rank.steps.next()) else {
                let Err(why) = rank.complete_all() else {
                    rank.is_done = true;
                    return self.leave(number);
                };
                match self.goes_on(number, why) {
                    true => continue,
                    false => return,
                }
            };
            if let Err(why) = prepare(rank, &step) {
                rank.current = Some(step);
                match self.goes_on(number, why) {
                    true => continue,
                    false => return,
                }
            }
            let behind = |turn: &Turn| turn.at < rank.clock;
            let takes_port = matches!(step, Step::Send { to, .. } if node_of[to as usize] != node);
            if takes_port && self.turns.peek().is_some_and(behind) {
                let at = rank.clock;
                rank.current = Some(step);
                self.push(at, Event::Rank(number));
                return;
            }
            self.perform(number, step);
        }
    }

    /// A step whose chunks are free.
    fn perform(&mut self, number: u32, step: Step) {
        let rank = &mut self.ranks[number as usize];
        match step {
            Step::Receive { into, .. } if rank.is_empty(&into) => {}
            Step::Receive { from, into } => {
                let into = rank.hold(into);
                rank.pending.push_back(Pending::In { from, into });
            }
            Step::Reduce { target, .. } => {
                rank.clock += rank.bytes(&[target]) * self.machine.reduce_per_byte_ns;
            }
            Step::Copy { target, .. } => {
                rank.clock += rank.bytes(&[target]) * self.machine.copy_per_byte_ns;
            }
            Step::Send { what, .. } if rank.is_empty(&what) => {}
            Step::Send { to, what } => self.send(number, to, what),
        }
    }

    fn send(&mut self, from: u32, to: u32, what: Parts) {
        let inside = self.node_of[from as usize] == self.node_of[to as usize];
        let sender = from as usize;
        let (to, known_as) = self.fold.message(sender, to as usize);
        let nodes = [from as usize, to].map(|rank| self.node_of[rank] as usize);
        let link = if inside {
            self.machine.inside
        } else {
            self.machine.between
        };
        let number = self.sent;
        self.sent += 1;
        let rank = &mut self.ranks[from as usize];
        let bytes = rank.bytes(what.as_slice());
        rank.clock += link.overhead_ns;
        let asks = bytes >= link.rendezvous_bytes;
        let ready = rank.clock + if asks { 2.0 * link.latency_ns } else { 0.0 };
        let transfer = bytes * link.per_byte_ns;
        let busy = link.gap_ns.max(transfer);
        let begin = ready.max(rank.out_free);
        let (to, from) = (to as u32, known_as as u32);
        if inside && self.cores.is_some() {
            // What asks is read where it lies, so its sender waits.
            let asking_ns = ready - rank.clock;
            let coming = Coming {
                from,
                arrival: rank.clock + link.latency_ns,
                work_ns: link.taking_ns() + asking_ns + transfer,
                asks: asks.then_some((sender as u32, number)),
                taken: false,
            };
            let done = if asks { f64::INFINITY } else { rank.clock };
            let what = rank.hold(what);
            rank.pending.push_back(Pending::Out { number, what, done });
            return self.deliver(to, coming);
        }
        if inside {
            rank.out_free = begin + busy;
        } else {
            // What a port owes runs ahead of what it has let through by a burst at most.
            let credit = link.burst_bytes * link.per_byte_ns;
            let port = &mut self.port_out[nodes[0]];
            let owed = port.max(begin);
            *port = owed + busy;
            rank.out_free = begin.max(*port - credit);
            let message = Message {
                from,
                to,
                bytes,
                busy,
                last_byte: begin.max(owed + transfer - credit) + link.latency_ns,
            };
            let first_byte = begin.max(owed - credit) + link.latency_ns;
            self.push(first_byte, Event::Arrival(message));
        }
        let rank = &mut self.ranks[sender];
        let (done, what) = (rank.out_free, rank.hold(what));
        rank.pending.push_back(Pending::Out { number, what, done });
        if inside {
            let coming = Coming {
                from,
                arrival: begin + link.latency_ns + transfer,
                work_ns: link.overhead_ns,
                asks: None,
                taken: false,
            };
            self.deliver(to, coming);
        }
    }

    /// A message comes to its node's port in.
    fn arrive(&mut self, at: f64, message: &Message) {
        let link = &self.machine.between;
        let port = &mut self.port_in[self.node_of[message.to as usize] as usize];
        let owed = port.max(at);
        *port = owed + message.busy;
        let transfer = message.bytes * link.per_byte_ns;
        let in_turn = owed + transfer - link.burst_bytes * link.per_byte_ns;
        let work_ns = match self.cores {
            Some(_) => link.taking_ns(),
            None => link.overhead_ns,
        };
        let coming = Coming {
            from: message.from,
            arrival: in_turn.max(message.last_byte),
            work_ns,
            asks: None,
            taken: false,
        };
        self.deliver(message.to, coming);
    }

    fn deliver(&mut self, to: u32, coming: Coming) {
        let receiver = &mut self.ranks[to as usize];
        receiver.inbox.push_back(coming);
        let awaited = receiver.blocked_on.take_if(|from| *from == coming.from);
        if awaited.is_some() || self.cores.is_some() {
            let at = match self.cores {
                Some(_) => coming.arrival,
                None => receiver.clock.max(coming.arrival),
            };
            self.push(at, Event::Rank(to));
        }
    }
}
