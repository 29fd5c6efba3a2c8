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
    /// Bytes that a port which was idle lets through at once, as switches and rate limiters do.
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
    /// Whether times can be computed with it: no number is negative or not one.
    pub fn is_valid(&self) -> bool {
        let times = [
            self.latency_ns,
            self.overhead_ns,
            self.gap_ns,
            self.per_byte_ns,
            self.burst_bytes,
        ];
        times.iter().all(|time| time.is_finite() && *time >= 0.0) && self.rendezvous_bytes >= 0.0
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
    /// Less than one where nodes share them, as made-up nodes on one machine do.
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

    /// Whether there can be so many.
    pub fn is_valid(&self) -> bool {
        self.per_node > 0.0 && self.turn_ns.is_finite() && self.turn_ns >= 0.0
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
