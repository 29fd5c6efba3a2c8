//! All ranks of a simulation, and what happens to them in the order of time.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use super::machine::Machine;
use super::rank::{Blocked, Pending, Rank, prepare};
use super::symmetry::Fold;
use crate::algorithm::schedule::{Parts, Schedule, Step};

/// What a simulation found, and what it took.
pub struct Found {
    /// When the last rank is done.
    pub makespan_ns: f64,
    /// How often a rank or a message had its turn.
    pub turns: u64,
}

/// Runs schedules whose blocks are all `block_bytes` long to their end.
pub fn run(
    schedule: impl Fn(usize) -> Schedule,
    node_of: &[u32],
    block_bytes: f64,
    machine: &Machine,
    fold: Fold,
) -> Found {
    let ranks = (0..fold.period).map(|rank| Rank::new(schedule(rank), block_bytes));
    let n_nodes = node_of.iter().max().map_or(0, |&node| node as usize + 1);
    let mut simulation = Simulation {
        machine,
        node_of,
        ranks: ranks.collect(),
        port_out: vec![0.0; n_nodes],
        port_in: vec![0.0; n_nodes],
        fold,
        turns: BinaryHeap::with_capacity(2 * fold.period),
        made: 0,
    };
    (0..fold.period as u32).for_each(|rank| simulation.push(0.0, Event::Rank(rank)));
    while let Some(turn) = simulation.turns.pop() {
        match turn.event {
            Event::Rank(rank) => simulation.advance(rank),
            Event::Arrival(message) => simulation.arrive(turn.at, &message),
        }
    }
    let done = |rank: &Rank| {
        assert!(
            rank.blocked_on.is_none(),
            "every proved schedule comes to its end"
        );
        rank.clock
    };
    Found {
        makespan_ns: simulation.ranks.iter().map(done).fold(0.0, f64::max),
        turns: simulation.made,
    }
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
    turns: BinaryHeap<Turn>,
    /// Turns made so far.
    made: u64,
}

impl Simulation<'_> {
    fn push(&mut self, at: f64, event: Event) {
        let number = self.made;
        self.made += 1;
        self.turns.push(Turn { at, number, event });
    }

    /// Runs a rank until it must wait for a message that is not sent, it would take a shared port
    /// before a rank that is behind it, or it is done.
    fn advance(&mut self, number: u32) {
        let (machine, node_of) = (self.machine, self.node_of);
        let node = node_of[number as usize];
        let overhead = move |from: u32| {
            let inside = node_of[from as usize] == node;
            (if inside {
                machine.inside
            } else {
                machine.between
            })
            .overhead_ns
        };
        loop {
            let rank = &mut self.ranks[number as usize];
            let Some(step) = rank.current.take().or_else(|| rank.steps.next()) else {
                while !rank.pending.is_empty() {
                    if let Err(Blocked(from)) = rank.complete(0, overhead) {
                        rank.blocked_on = Some(from);
                        return;
                    }
                }
                return;
            };
            if let Err(Blocked(from)) = prepare(rank, &step, overhead) {
                rank.current = Some(step);
                rank.blocked_on = Some(from);
                return;
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
            Step::Receive { from, into } => {
                let into = rank.hold(into);
                rank.pending.push_back(Pending::In { from, into });
            }
            Step::Reduce { target, .. } => {
                rank.clock += rank.bytes(target.count()) * self.machine.reduce_per_byte_ns;
            }
            Step::Copy { target, .. } => {
                rank.clock += rank.bytes(target.count()) * self.machine.copy_per_byte_ns;
            }
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
        let rank = &mut self.ranks[from as usize];
        let bytes = rank.bytes(what.count());
        rank.clock += link.overhead_ns;
        let asks = bytes >= link.rendezvous_bytes;
        let ready = rank.clock + if asks { 2.0 * link.latency_ns } else { 0.0 };
        let transfer = bytes * link.per_byte_ns;
        let busy = link.gap_ns.max(transfer);
        let begin = ready.max(rank.out_free);
        let (to, from) = (to as u32, known_as as u32);
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
        rank.pending.push_back(Pending::Out { what, done });
        if inside {
            self.deliver(from, to, begin + link.latency_ns + transfer);
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
        self.deliver(message.from, message.to, in_turn.max(message.last_byte));
    }

    fn deliver(&mut self, from: u32, to: u32, arrival: f64) {
        let receiver = &mut self.ranks[to as usize];
        receiver.inbox.push_back((from, arrival));
        if receiver.blocked_on == Some(from) {
            receiver.blocked_on = None;
            let at = receiver.clock.max(arrival);
            self.push(at, Event::Rank(to));
        }
    }
}
