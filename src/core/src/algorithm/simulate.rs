//! How long a schedule takes on a machine of two levels, in the manner of LogGP.
//!
//! Every message costs its sender and its receiver an overhead, occupies its sender for the gap
//! or for its bytes, whichever is longer, and arrives a latency after its bytes have left. Inside
//! a node the sender is one rank; between nodes it is the whole node, whose ranks share one port
//! out and one port in. Combining and copying cost per byte. Ranks begin together. Waiting follows
//! the rules of [`Plan`](super::plan::Plan): program order, what chunks demand, and the window;
//! that receives are posted too late is not modelled.
//!
//! Ranks are advanced in the order of their clocks, so that messages reach a shared port in the
//! order of time; steps are generated as they are needed.
//!
//! Source: Alexandrov, Ionescu, Schauser & Scheiman, LogGP, SPAA 1995.

mod rank;

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use super::pattern::Pattern;
use super::registry::{Row, Values};
use super::schedule::{Parts, Schedule, Step};
use rank::{Blocked, Pending, Rank, prepare};

/// One level of the machine. Units: nanoseconds and bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Link {
    /// From the last byte's leaving to its arrival.
    pub latency_ns: f64,
    /// What one message costs the processor, at each end.
    pub overhead_ns: f64,
    /// The least time between two messages of one sender.
    pub gap_ns: f64,
    pub per_byte_ns: f64,
    /// Messages of so many bytes first ask, which takes a latency there and one back.
    pub rendezvous_bytes: f64,
}

/// A machine as a schedule sees it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Machine {
    pub inside: Link,
    pub between: Link,
    pub reduce_per_byte_ns: f64,
    pub copy_per_byte_ns: f64,
}

/// The time at which the last rank is done.
///
/// Shape:  `node_of[rank]` is the node of each rank; nodes are numbered from 0.
/// Units:  `message_bytes` as the collective defines its message size; nanoseconds out.
pub fn makespan_ns(
    row: &Row,
    values: Values,
    node_of: &[u32],
    message_bytes: u64,
    machine: &Machine,
) -> f64 {
    let n_ranks = node_of.len();
    let block_bytes = match row.pattern {
        Pattern::ReduceScatter => message_bytes as f64 / n_ranks.max(1) as f64,
        _ => message_bytes as f64,
    };
    let schedule = |rank| (row.schedule)(row.case(rank, n_ranks, 0, values, message_bytes));
    schedules_ns(schedule, node_of, block_bytes, machine)
}

/// As [`makespan_ns`], for any schedules whose blocks are all `block_bytes` long.
pub fn schedules_ns(
    schedule: impl Fn(usize) -> Schedule,
    node_of: &[u32],
    block_bytes: f64,
    machine: &Machine,
) -> f64 {
    let ranks = (0..node_of.len()).map(|rank| Rank::new(schedule(rank), block_bytes));
    let n_nodes = node_of.iter().max().map_or(0, |&node| node as usize + 1);
    let mut simulation = Simulation {
        machine,
        node_of,
        ranks: ranks.collect(),
        port_out: vec![0.0; n_nodes],
        port_in: vec![0.0; n_nodes],
        turns: (0..node_of.len() as u32)
            .map(|rank| Turn { at: 0.0, rank })
            .collect(),
    };
    while let Some(turn) = simulation.turns.pop() {
        simulation.advance(turn.rank);
    }
    let done = |rank: &Rank| {
        assert!(
            rank.blocked_on.is_none(),
            "every proved schedule comes to its end"
        );
        rank.clock
    };
    simulation.ranks.iter().map(done).fold(0.0, f64::max)
}

/// A rank that can go on, ordered so that the heap gives the earliest.
#[derive(Clone, Copy, PartialEq)]
struct Turn {
    at: f64,
    rank: u32,
}

impl Eq for Turn {}

impl Ord for Turn {
    fn cmp(&self, other: &Turn) -> Ordering {
        other
            .at
            .total_cmp(&self.at)
            .then(other.rank.cmp(&self.rank))
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
    turns: BinaryHeap<Turn>,
}

impl Simulation<'_> {
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
                self.turns.push(Turn { at, rank: number });
                return;
            }
            self.perform(number, step);
        }
    }

    /// A step whose chunks are free.
    fn perform(&mut self, number: u32, step: Step) {
        let rank = &mut self.ranks[number as usize];
        match step {
            Step::Receive { from, into } => rank.pending.push_back(Pending::In { from, into }),
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
        let nodes = [from, to].map(|rank| self.node_of[rank as usize] as usize);
        let inside = nodes[0] == nodes[1];
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
        let busy = link.gap_ns.max(bytes * link.per_byte_ns);
        let mut start = ready.max(rank.out_free);
        if !inside {
            start = start.max(self.port_out[nodes[0]]);
            self.port_out[nodes[0]] = start + busy;
        }
        rank.out_free = start + busy;
        let done = rank.out_free;
        rank.pending.push_back(Pending::Out { what, done });
        let mut first_byte = start + link.latency_ns;
        if !inside {
            first_byte = first_byte.max(self.port_in[nodes[1]]);
            self.port_in[nodes[1]] = first_byte + busy;
        }
        let arrival = first_byte + bytes * link.per_byte_ns;
        let receiver = &mut self.ranks[to as usize];
        receiver.inbox.push_back((from, arrival));
        if receiver.blocked_on == Some(from) {
            receiver.blocked_on = None;
            let at = receiver.clock.max(arrival);
            self.turns.push(Turn { at, rank: to });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::registry::{ROWS, find};
    use crate::algorithm::schedule::Part;
    use crate::algorithm::symbolic::claims::fits;

    const LINK: Link = Link {
        latency_ns: 1000.0,
        overhead_ns: 100.0,
        gap_ns: 50.0,
        per_byte_ns: 0.1,
        rendezvous_bytes: f64::INFINITY,
    };
    const MACHINE: Machine = Machine {
        inside: LINK,
        between: LINK,
        reduce_per_byte_ns: 0.05,
        copy_per_byte_ns: 0.0,
    };
    const VALUES: Values = Values {
        segsize: 0,
        radix: 2,
        window: 1,
    };

    fn one_rank_per_node(n: u32) -> Vec<u32> {
        (0..n).collect()
    }

    fn time(pattern: Pattern, name: &str, n: u32, bytes: u64, machine: &Machine) -> f64 {
        let row = find(pattern, name).unwrap();
        makespan_ns(row, VALUES, &one_rank_per_node(n), bytes, machine)
    }

    fn assert_close(found: f64, expected: f64, what: &str) {
        let bound = 1e-9 * expected.abs().max(1.0);
        assert!(
            (found - expected).abs() <= bound,
            "{what}: {found}, expected {expected}"
        );
    }

    /// Both overheads and the latency.
    const START: f64 = 1200.0;

    #[test]
    fn recursive_doubling_takes_its_closed_form() {
        for (n, q) in [(2, 1.0), (8, 3.0), (64, 6.0), (1024, 10.0)] {
            let m = 4096.0;
            let found = time(Pattern::Allreduce, "recursive_doubling", n, 4096, &MACHINE);
            assert_close(
                found,
                q * (START + 0.1 * m + 0.05 * m),
                "recursive doubling",
            );
        }
    }

    #[test]
    fn ring_and_circulant_allreduce_take_their_closed_forms() {
        for n in [2u32, 5, 16, 37] {
            let m = f64::from(n) * 4000.0;
            let nf = f64::from(n);
            let moved = (nf - 1.0) / nf * m;
            let work = 2.0 * moved * 0.1 + moved * 0.05;
            let ring = time(Pattern::Allreduce, "ring", n, m as u64, &MACHINE);
            assert_close(ring, 2.0 * (nf - 1.0) * START + work, "ring");
            let rounds = f64::from(n.next_power_of_two().ilog2());
            let circulant = time(Pattern::Allreduce, "circulant", n, m as u64, &MACHINE);
            if n.is_power_of_two() {
                assert_close(circulant, 2.0 * rounds * START + work, "circulant");
            } else {
                // A round of fewer blocks than the last does not wait for all of it.
                assert!(circulant <= 2.0 * rounds * START + work);
                assert!(circulant >= rounds * START + work);
            }
        }
    }

    #[test]
    fn a_pipelined_chain_takes_its_closed_form() {
        let free = Link {
            overhead_ns: 0.0,
            gap_ns: 0.0,
            ..LINK
        };
        let machine = Machine {
            inside: free,
            between: free,
            ..MACHINE
        };
        let row = find(Pattern::Bcast, "chain").unwrap();
        for (n, segments) in [(2, 4), (9, 16), (30, 64)] {
            let segment = 1000.0;
            let values = Values {
                segsize: 1000,
                ..VALUES
            };
            let bytes = 1000 * segments;
            let found = makespan_ns(row, values, &one_rank_per_node(n), bytes, &machine);
            let hop = 1000.0 + 0.1 * segment;
            let expected = f64::from(n - 1) * hop + (segments - 1) as f64 * 0.1 * segment;
            assert_close(found, expected, "chain");
        }
    }

    #[test]
    fn ranks_of_a_node_share_its_port_and_are_near_each_other() {
        let inside = Link {
            latency_ns: 10.0,
            overhead_ns: 0.0,
            gap_ns: 0.0,
            per_byte_ns: 0.01,
            ..LINK
        };
        let between = Link {
            overhead_ns: 0.0,
            gap_ns: 0.0,
            ..LINK
        };
        let machine = Machine {
            inside,
            between,
            ..MACHINE
        };
        let pair = |distance: usize| {
            move |rank: usize| {
                use crate::algorithm::schedule::Buffer;
                let own = Part::range(Buffer::Input, 0, 1);
                let theirs = Part::range(Buffer::Output, 0, 1);
                let peer = (rank + distance) % 8;
                let from = (rank + 8 - distance) % 8;
                let steps = [Step::send(peer, own), Step::receive(from, theirs)];
                Schedule::new(1, steps.into_iter())
            }
        };
        let node_of = [0, 0, 0, 0, 1, 1, 1, 1];
        // Four messages leave each node one after another; the fourth waits for three.
        let across = schedules_ns(pair(4), &node_of, 1000.0, &machine);
        assert_close(across, 4.0 * 100.0 + 1000.0, "between nodes");
        let alone = schedules_ns(pair(4), &[0, 1, 2, 3, 4, 5, 6, 7], 1000.0, &machine);
        assert_close(alone, 100.0 + 1000.0, "one rank per node");
        let near = schedules_ns(pair(4), &[0; 8], 1000.0, &machine);
        assert_close(near, 10.0 + 10.0, "inside a node");
        let asking = Link {
            rendezvous_bytes: 1000.0,
            ..inside
        };
        let asking = Machine {
            inside: asking,
            ..machine
        };
        let asked = schedules_ns(pair(4), &[0; 8], 1000.0, &asking);
        assert_close(asked, 3.0 * 10.0 + 10.0, "inside a node, asking first");
    }

    #[test]
    fn every_row_comes_to_its_end_and_no_faster_machine_is_slower() {
        let slower = Link {
            latency_ns: 9000.0,
            per_byte_ns: 0.7,
            ..LINK
        };
        let slower = Machine {
            between: slower,
            ..MACHINE
        };
        let node_of: Vec<u32> = (0..32).map(|rank| rank / 4).collect();
        for row in ROWS.iter().filter(|row| fits(row, 32)) {
            for values in row.values() {
                let [fast, slow] = [MACHINE, slower]
                    .map(|machine| makespan_ns(row, values, &node_of, 1 << 20, &machine));
                assert!(fast > 0.0, "{} takes no time", row.variant(values));
                assert!(
                    fast < slow,
                    "{}: {fast} against {slow}",
                    row.variant(values)
                );
            }
        }
    }
}
