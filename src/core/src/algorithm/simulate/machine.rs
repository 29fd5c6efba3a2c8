//! What the simulator knows of a machine.

use serde::{Deserialize, Serialize};

/// One level of the machine. Units: nanoseconds and bytes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
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
    /// Burst size of a token bucket in bytes: an idle port sends so much at full speed.
    #[serde(default)]
    pub burst_bytes: f64,
}

impl Link {
    /// What taking a message costs a receiver that shares its core, where nothing it does goes on beside others' work.
    pub fn taking_ns(&self) -> f64 {
        self.overhead_ns.max(self.gap_ns)
    }
}

impl Link {
    /// The key and value of the first number with which no time can be computed, and what it has to be instead.
    pub fn impossible(&self) -> Option<Impossible> {
        let times = [
            ("latency_ns", self.latency_ns),
            ("overhead_ns", self.overhead_ns),
            ("gap_ns", self.gap_ns),
            ("per_byte_ns", self.per_byte_ns),
            ("burst_bytes", self.burst_bytes),
        ];
        let wrong = times
            .into_iter()
            .find_map(|(key, value)| Impossible::as_time(key, value));
        wrong.or_else(|| {
            let value = self.rendezvous_bytes;
            let is_possible = value >= 0.0;
            (!is_possible).then(|| Impossible::new("rendezvous_bytes", value, NOT_NEGATIVE))
        })
    }
}

const FINITE: &str = "a finite number of at least 0";
const NOT_NEGATIVE: &str = "a number of at least 0";
const POSITIVE: &str = "a number above 0";

/// A number that no machine has.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Impossible {
    pub key: &'static str,
    pub value: f64,
    /// What it has to be.
    pub wanted: &'static str,
}

impl Impossible {
    fn new(key: &'static str, value: f64, wanted: &'static str) -> Impossible {
        Impossible { key, value, wanted }
    }

    /// `value`, if it is no time.
    pub fn as_time(key: &'static str, value: f64) -> Option<Impossible> {
        let is_time = value.is_finite() && value >= 0.0;
        (!is_time).then(|| Impossible::new(key, value, FINITE))
    }
}

/// A machine as a schedule sees it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Machine {
    pub inside: Link,
    pub between: Link,
    pub reduce_per_byte_ns: f64,
    pub copy_per_byte_ns: f64,
    pub cores: Cores,
}

/// What ranks run on. Those that share a core wait in turns: each that finds nothing lets the next one look.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cores {
    /// Less than one where nodes share them, as synthetic nodes on one machine do.
    pub per_node: f64,
    /// From one rank's look to the next one's.
    pub turn_ns: f64,
}

impl Cores {
    /// One for every rank.
    pub const ENOUGH: Cores = Cores {
        per_node: f64::INFINITY,
        turn_ns: 0.0,
    };

    /// The first of its numbers that cannot be.
    pub fn impossible(&self) -> Option<Impossible> {
        let is_possible = self.per_node > 0.0;
        let per_node = Impossible::new("per_node", self.per_node, POSITIVE);
        (!is_possible)
            .then_some(per_node)
            .or_else(|| Impossible::as_time("turn_ns", self.turn_ns))
    }
}

impl Machine {
    /// A cluster of present-day nodes with a network of 100 Gbit/s, where nothing was measured.
    pub const TYPICAL: Machine = Machine {
        inside: Link {
            latency_ns: 250.0,
            overhead_ns: 150.0,
            gap_ns: 100.0,
            per_byte_ns: 0.12,
            rendezvous_bytes: 4096.0,
            burst_bytes: 0.0,
        },
        between: Link {
            latency_ns: 1100.0,
            overhead_ns: 300.0,
            gap_ns: 250.0,
            per_byte_ns: 0.085,
            rendezvous_bytes: 16384.0,
            burst_bytes: 0.0,
        },
        reduce_per_byte_ns: 0.1,
        copy_per_byte_ns: 0.08,
        cores: Cores::ENOUGH,
    };
}
