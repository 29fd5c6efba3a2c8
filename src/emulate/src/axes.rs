//! Time axes: one clock a rank, moved by what ranks do and by whom they wait for.
//!
//! A message leaves when it has been packed, behind those before it, and comes a latency after its bytes. On `axes`
//! every message travels alone (Wu et al., CLUSTER 2011, eq. (2) and fig. 5); with `events` those between nodes go
//! through their nodes' ports, out and in, in the order of time. Ports serve one exchange after another. Long messages
//! inside a node move while both ranks wait: the receiver copies them, one after another, and keeps the sender.
//!
//! A collective is a gate, which opens its time after the last rank came.

mod network;

use std::sync::Arc;

use colltune_amr::telemetry::Freight;
use colltune_core::algorithm::simulate::Link;

use crate::cores::Cores;
use crate::cost::PhaseCosts;
use crate::machine::Machine;
use crate::noise::Noise;
use crate::program::{Call, Exchange, Message, Operation, Phase};

pub use network::Network;
use network::Ports;

/// All ranks' clocks, and where their time went. Nanoseconds.
#[derive(Clone, Debug)]
pub struct Axes<'m> {
    machine: &'m Machine,
    node_of: Vec<u32>,
    handling: PhaseCosts,
    network: Network,
    ports: Ports,
    cores: Option<Cores>,
    pub clocks: Vec<f64>,
    /// By rank and phase.
    pub spent: Vec<[f64; Phase::ALL.len()]>,
    /// Since when each rank has wanted a core.
    ready: Vec<f64>,
    /// By rank: how many times as long it computes.
    slowness: Vec<f64>,
    stops: Option<Stops>,
    /// Reused from exchange to exchange.
    posted: Vec<f64>,
    arrived: Vec<f64>,
}

/// When ranks are stopped next.
#[derive(Clone, Debug)]
struct Stops {
    noise: Noise,
    /// By rank: how often it was, and how much it works until it is again.
    n: Vec<u32>,
    left: Vec<f64>,
}

impl Stops {
    /// Of work whose time holds stops by the mean: the work alone, and what stops it.
    fn pass(&mut self, rank: usize, time: f64) -> (f64, f64) {
        let costs = self.noise.costs;
        let (work, mut stopped) = (time * (1.0 - costs.stop_share), 0.0);
        self.left[rank] -= work;
        while self.left[rank] <= 0.0 {
            self.n[rank] += 1;
            stopped += costs.stop_ns;
            let until = self.noise.until_stop(rank, self.n[rank]);
            self.left[rank] += until.unwrap_or(f64::INFINITY);
        }
        (work, stopped)
    }
}

impl<'m> Axes<'m> {
    /// All ranks at time 0. `handling` is what messages cost the program, where the machine does not say.
    pub fn new(
        machine: &'m Machine,
        n_ranks: usize,
        handling: &PhaseCosts,
        network: Network,
    ) -> Axes<'m> {
        let handling = machine.app.map_or(*handling, |app| PhaseCosts {
            pack_message_ns: app.pack_message_ns,
            pack_byte_ns: app.pack_byte_ns,
            unpack_message_ns: app.unpack_message_ns,
            unpack_byte_ns: app.unpack_byte_ns,
            copy_link_ns: 0.0,
            copy_byte_ns: app.copy_byte_ns,
            ..*handling
        });
        Axes {
            node_of: machine.node_of(n_ranks),
            ports: Ports::new(machine, n_ranks),
            cores: Cores::new(machine, n_ranks),
            machine,
            handling,
            network,
            clocks: vec![0.0; n_ranks],
            spent: vec![[0.0; Phase::ALL.len()]; n_ranks],
            ready: vec![0.0; n_ranks],
            slowness: vec![1.0; n_ranks],
            stops: None,
            posted: Vec::new(),
            arrived: Vec::new(),
        }
    }

    /// Makes ranks compute so many times as long.
    pub fn slow(&mut self, ranks: std::ops::Range<usize>, factor: f64) {
        self.slowness[ranks].fill(factor);
    }

    /// Lets ranks be stopped as often and as long as this noise says.
    pub fn interrupt(&mut self, noise: Noise) {
        let first = |rank| noise.until_stop(rank, 0);
        let left: Option<Vec<f64>> = (0..self.n_ranks()).map(first).collect();
        self.stops = left.map(|left| Stops {
            noise,
            n: vec![0; left.len()],
            left,
        });
    }

    pub fn n_ranks(&self) -> usize {
        self.clocks.len()
    }

    /// When the last rank is done.
    pub fn makespan(&self) -> f64 {
        self.clocks.iter().copied().fold(0.0, f64::max)
    }

    /// Lets an operation happen; `price_ns` says how long a collective takes.
    pub fn act(&mut self, operation: &Operation, price_ns: &mut dyn FnMut(&Call) -> f64) {
        match operation {
            Operation::Work { phase, time_ns } => {
                for (rank, &time) in time_ns.iter().enumerate() {
                    self.spend(rank, *phase, time);
                }
            }
            Operation::Alike { phase, time_ns } => {
                for rank in 0..self.n_ranks() {
                    self.spend(rank, *phase, *time_ns);
                }
            }
            Operation::Exchange(exchange) => self.exchange(exchange),
            Operation::Collective(call) => self.meet(price_ns(call)),
        }
    }

    fn spend(&mut self, rank: usize, phase: Phase, time_ns: f64) {
        let works = matches!(phase, Phase::Compute | Phase::Sum);
        let mut time = match works {
            true => time_ns * self.slowness[rank],
            false => time_ns,
        };
        if let Some(stops) = self.stops.as_mut().filter(|_| works) {
            let stopped;
            (time, stopped) = stops.pass(rank, time);
            self.clocks[rank] += stopped;
            self.spent[rank][Phase::Stopped as usize] += stopped;
        }
        self.clocks[rank] += time;
        self.spent[rank][phase as usize] += time;
    }

    /// Gives ranks their cores for what they did since they last waited.
    fn take_turns(&mut self) {
        let Some(cores) = &mut self.cores else { return };
        let served = cores.serve(&self.ready, &self.clocks);
        for (rank, served) in served.into_iter().enumerate() {
            self.spent[rank][Phase::Queue as usize] += served - self.clocks[rank];
            self.clocks[rank] = served;
        }
    }

    /// Messages are posted, own blocks copied, and then everything is waited for.
    pub fn exchange(&mut self, exchange: &Arc<Exchange>) {
        let (pack, unpack) = match exchange.freight {
            Freight::Block => (Phase::Migrate, Phase::Migrate),
            _ => (Phase::Pack, Phase::Unpack),
        };
        let handling = self.handling;
        let [pack_cost, unpack_cost] = match exchange.freight {
            Freight::Block => [(0.0, handling.migrate_byte_ns); 2],
            _ => [
                (handling.pack_message_ns, handling.pack_byte_ns),
                (handling.unpack_message_ns, handling.unpack_byte_ns),
            ],
        };
        // Offsets from where the rank begins, until cores have said when that is.
        self.posted.resize(exchange.messages.len(), 0.0);
        for rank in 0..self.n_ranks() {
            let mut packed = 0.0;
            for place in exchange.of_rank(rank) {
                let message = &exchange.messages[place];
                let send = pack_cost
                    .0
                    .max(self.share_of_message(message, |link| link.overhead_ns));
                packed += send + pack_cost.1 * exchange.read_bytes(place);
                self.posted[place] = self.clocks[rank] + packed;
            }
            self.spend(rank, pack, packed);
            if let (Some(&links), Some(&bytes)) =
                (exchange.links.get(rank), exchange.copied_bytes.get(rank))
            {
                let time =
                    handling.copy_link_ns * links as f64 + handling.copy_byte_ns * bytes as f64;
                self.spend(rank, Phase::Copy, time);
            }
        }
        if self.cores.is_some() {
            let before = self.clocks.clone();
            self.take_turns();
            for (message, posted) in exchange.messages.iter().zip(&mut self.posted) {
                let from = message.from as usize;
                *posted += self.clocks[from] - before[from];
            }
        }
        let mut arrived = std::mem::take(&mut self.arrived);
        arrived.clear();
        arrived.resize(exchange.messages.len(), 0.0);
        match self.network {
            Network::Axes => network::alone(
                self.machine,
                &self.node_of,
                exchange,
                &self.posted,
                &mut arrived,
            ),
            Network::Events => {
                self.ports.pass(
                    self.machine,
                    &self.node_of,
                    exchange,
                    (&self.posted, &self.clocks),
                    &mut arrived,
                );
            }
        }
        self.wait(exchange, &arrived);
        self.arrived = arrived;
        for message in &exchange.messages {
            let taking = self.share_of_message(message, Link::taking_ns);
            if taking > 0.0 {
                self.spend(message.to as usize, Phase::Transit, taking);
            }
            let time = unpack_cost.0 + unpack_cost.1 * message.bytes as f64;
            self.spend(message.to as usize, unpack, time);
        }
    }

    /// What a message costs its sender's processor at least, and its receiver's, where ranks share cores: nothing of it
    /// goes on beside others' work there. What costs were fitted to may have had too few messages to tell.
    fn share_of_message(&self, message: &Message, of: fn(&Link) -> f64) -> f64 {
        match self.cores {
            Some(_) => of(network::link(self.machine, &self.node_of, message)),
            None => 0.0,
        }
    }

    /// Each rank waits for the last message that it gets, and for the last of its own that a receiver has to take.
    fn wait(&mut self, exchange: &Exchange, arrived: &[f64]) {
        // The latest arrival of each rank, and when that message was posted.
        let mut last = vec![(f64::NEG_INFINITY, 0.0); self.n_ranks()];
        for ((message, &arrived), &posted) in
            exchange.messages.iter().zip(arrived).zip(&self.posted)
        {
            let (from, to) = (message.from as usize, message.to as usize);
            if arrived > last[to].0 {
                last[to] = (arrived, posted);
            }
            let keeps = self.network == Network::Events
                && network::is_taken(self.machine, &self.node_of, message);
            if keeps && arrived > last[from].0 {
                // A receiver that has not come is late, too.
                last[from] = (arrived, posted.max(self.clocks[to]));
            }
        }
        for (rank, (arrived, posted)) in last.into_iter().enumerate() {
            let waits = arrived - self.clocks[rank];
            if waits > 0.0 {
                let transit = waits.min(arrived - posted);
                self.spent[rank][Phase::Transit as usize] += transit;
                self.spent[rank][Phase::Late as usize] += waits - transit;
                self.clocks[rank] = arrived;
            }
            self.ready[rank] = self.clocks[rank];
        }
    }

    /// A collective of all ranks.
    pub fn meet(&mut self, time_ns: f64) {
        self.take_turns();
        let last = self.makespan();
        for rank in 0..self.n_ranks() {
            let spent = &mut self.spent[rank];
            spent[Phase::Sync as usize] += last - self.clocks[rank];
            spent[Phase::Collective as usize] += time_ns;
            self.clocks[rank] = last + time_ns;
        }
        self.ready.copy_from_slice(&self.clocks);
    }

    /// The end of the run: what was not waited for gets its cores.
    pub fn end(&mut self) {
        self.take_turns();
        self.ready.copy_from_slice(&self.clocks);
    }

    /// How far the phases of a rank are from its clock, relatively, at worst: rounding alone.
    pub fn gap(&self) -> f64 {
        let of = |(spent, clock): (&[f64; Phase::ALL.len()], &f64)| {
            let sum: f64 = spent.iter().sum();
            (sum - clock).abs() / clock.max(1.0)
        };
        self.spent
            .iter()
            .zip(&self.clocks)
            .map(of)
            .fold(0.0, f64::max)
    }
}
