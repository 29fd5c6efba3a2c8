//! When messages arrive: each alone, or through the ports of their nodes.

use colltune_core::algorithm::simulate::Link;

use crate::counting::sort_by_number;
use crate::machine::Machine;
use crate::program::{Exchange, Message};

/// How messages travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Network {
    /// Each alone.
    Axes,
    /// Between nodes through the port out of one and the port in of another, in the order of time; inside a node by
    /// the receiver's hand, once it waits, one after another.
    Events,
}

impl Network {
    pub fn name(self) -> &'static str {
        match self {
            Network::Axes => "axes",
            Network::Events => "events",
        }
    }
}

/// What nodes' ports owe.
#[derive(Clone, Debug)]
pub struct Ports {
    out: Vec<Port>,
    into: Vec<Port>,
    /// Reused: messages by who serves them and time.
    queues: Vec<Queued>,
    spare: Vec<Queued>,
}

/// A message before a port or a receiver.
#[derive(Clone, Copy, Debug)]
struct Queued {
    /// The node, or the rank.
    server: u32,
    /// Its place in the exchange.
    place: u32,
    at: f64,
    transfer: f64,
}

impl Queued {
    /// Orders by time, then by place: times are not negative, so their bits order like they do.
    fn key(&self) -> u128 {
        u128::from(self.at.to_bits()) << 32 | u128::from(self.place)
    }
}

/// When a port has let everything through: at a link's own pace, and at that of a network under load.
#[derive(Clone, Copy, Debug, Default)]
struct Port {
    alone: f64,
    loaded: f64,
}

impl Port {
    /// Takes what is ready at a moment and lasts so long; from when it is served. What has to queue does so at the pace of
    /// a network under load.
    fn serve(&mut self, ready: f64, (gap, transfer): (f64, f64), congestion: f64) -> f64 {
        let owed = if self.alone > ready {
            self.loaded
        } else {
            ready
        };
        self.alone = owed + gap.max(transfer);
        self.loaded = owed + gap.max(congestion * transfer);
        owed
    }
}

/// Asking first takes a latency there and one back.
fn asks(link: &Link, bytes: f64) -> f64 {
    match bytes >= link.rendezvous_bytes {
        true => 2.0 * link.latency_ns,
        false => 0.0,
    }
}

/// Whether the sender is kept until the receiver has taken the message: in a node only the two of them copy.
pub fn is_taken(machine: &Machine, node_of: &[u32], message: &Message) -> bool {
    let long = message.bytes as f64 >= machine.network.inside.rendezvous_bytes;
    long && node_of[message.from as usize] == node_of[message.to as usize]
}

/// What a message goes through.
pub fn link<'m>(machine: &'m Machine, node_of: &[u32], message: &Message) -> &'m Link {
    match node_of[message.from as usize] == node_of[message.to as usize] {
        true => &machine.network.inside,
        false => &machine.network.between,
    }
}

/// Every message by itself: `t_s + bytes * t_c` after it was posted.
pub fn alone(
    machine: &Machine,
    node_of: &[u32],
    exchange: &Exchange,
    posted: &[f64],
    arrived: &mut [f64],
) {
    let messages = exchange.messages.iter().zip(posted).zip(arrived);
    for ((message, &posted), arrived) in messages {
        let link = link(machine, node_of, message);
        let bytes = message.bytes as f64;
        *arrived = posted + asks(link, bytes) + link.latency_ns + bytes * link.per_byte_ns;
    }
}

impl Ports {
    pub fn new(machine: &Machine, n_ranks: usize) -> Ports {
        let n_nodes = n_ranks.div_ceil(machine.shape.ppn as usize);
        Ports {
            out: vec![Port::default(); n_nodes],
            into: vec![Port::default(); n_nodes],
            queues: Vec::new(),
            spare: Vec::new(),
        }
    }

    /// Messages between nodes go through two ports; those inside are taken by their receivers, who wait from `waiting` on,
    /// and short ones go alone.
    pub fn pass(
        &mut self,
        machine: &Machine,
        node_of: &[u32],
        exchange: &Exchange,
        (posted, waiting): (&[f64], &[f64]),
        arrived: &mut [f64],
    ) {
        alone(machine, node_of, exchange, posted, arrived);
        self.take(machine, node_of, exchange, (posted, waiting), arrived);
        let link = &machine.network.between;
        let credit = link.burst_bytes * link.per_byte_ns;
        self.queues.clear();
        self.queues.reserve(exchange.messages.len());
        for (place, message) in exchange.messages.iter().enumerate() {
            let node = node_of[message.from as usize];
            if node != node_of[message.to as usize] {
                let bytes = message.bytes as f64;
                self.queues.push(Queued {
                    server: node,
                    place: place as u32,
                    at: posted[place] + asks(link, bytes),
                    transfer: bytes * link.per_byte_ns,
                });
            }
        }
        // They lie by sender, so by node.
        serve_each(&mut self.queues, |queued| {
            let (at, transfer) = (queued.at, queued.transfer);
            let port = &mut self.out[queued.server as usize];
            let owed = port.serve(at, (link.gap_ns, transfer), machine.congestion);
            // What a port owes runs ahead of what it has let through by a burst at most.
            arrived[queued.place as usize] =
                at.max(owed + transfer - credit).max(at + transfer) + link.latency_ns;
            queued.at = at.max(owed - credit) + link.latency_ns;
            queued.server = node_of[exchange.messages[queued.place as usize].to as usize];
        });
        let n_nodes = self.into.len();
        sort_by_number(&mut self.queues, &mut self.spare, n_nodes, |queued| {
            queued.server
        });
        serve_each(&mut self.queues, |queued| {
            let (first_byte, transfer) = (queued.at, queued.transfer);
            let port = &mut self.into[queued.server as usize];
            let owed = port.serve(first_byte, (link.gap_ns, transfer), machine.congestion);
            let arrived = &mut arrived[queued.place as usize];
            *arrived = arrived.max(owed + transfer - credit);
        });
    }

    /// Receivers copy what is there, in the order in which it came.
    fn take(
        &mut self,
        machine: &Machine,
        node_of: &[u32],
        exchange: &Exchange,
        (posted, waiting): (&[f64], &[f64]),
        arrived: &mut [f64],
    ) {
        let link = &machine.network.inside;
        self.queues.clear();
        self.queues.reserve(exchange.messages.len());
        for (place, message) in exchange.messages.iter().enumerate() {
            if is_taken(machine, node_of, message) {
                let bytes = message.bytes as f64;
                let asked = asks(link, bytes) + link.latency_ns;
                self.queues.push(Queued {
                    server: message.to,
                    place: place as u32,
                    at: posted[place] + asked,
                    transfer: bytes * link.per_byte_ns,
                });
            }
        }
        let n_ranks = node_of.len();
        sort_by_number(&mut self.queues, &mut self.spare, n_ranks, |queued| {
            queued.server
        });
        let mut receiver = (u32::MAX, 0.0);
        serve_each(&mut self.queues, |queued| {
            let to = queued.server;
            if receiver.0 != to {
                receiver = (to, waiting[to as usize]);
            }
            receiver.1 = queued.at.max(receiver.1) + queued.transfer;
            arrived[queued.place as usize] = receiver.1;
        });
    }
}

/// Lets each server have its messages, which lie together, in the order of time.
fn serve_each(queues: &mut [Queued], mut serve: impl FnMut(&mut Queued)) {
    for queue in queues.chunk_by_mut(|a, b| a.server == b.server) {
        queue.sort_unstable_by_key(Queued::key);
        queue.iter_mut().for_each(&mut serve);
    }
}
