//! What a synthetic machine and its program are like.

use colltune_core::algorithm::simulate::{Link, Machine};
use colltune_core::collective::Collective;

use crate::arrival::Arrival;
use crate::recorded::{self, Recorded};

/// Ranks as `nodes` x `ppn`.
pub type Shape2 = (u32, u32);

pub const COLLECTIVES: [Collective; 5] = [
    Collective::Allreduce,
    Collective::Bcast,
    Collective::Allgather,
    Collective::Alltoall,
    Collective::Reduce,
];
pub const SIZES: [u64; 6] = [8, 512, 4 << 10, 32 << 10, 256 << 10, 1 << 20];
pub const NODE: Shape2 = (1, 8);
pub const CLUSTER: Shape2 = (4, 2);

/// A network of 1 Gbit/s over a kernel's TCP, as cheap clusters have it.
const ETHERNET: Link = Link {
    latency_ns: 25_000.0,
    overhead_ns: 3_000.0,
    gap_ns: 1_500.0,
    per_byte_ns: 8.0,
    rendezvous_bytes: 65_536.0,
    burst_bytes: 0.0,
};

/// What a machine and the program on it are made of.
///
/// Units: shares and standard deviations of logarithms without unit; times relative to a call's own.
#[derive(Clone, Debug)]
pub struct Recipe {
    pub name: &'static str,
    pub layouts: Vec<Shape2>,
    pub collectives: Vec<Collective>,
    pub sizes: Vec<u64>,
    /// The most variants of a cell, `default` with them.
    pub arms_most: usize,
    /// Calls of a cell in a job.
    pub calls: u64,
    pub base: Machine,
    pub differences: Differences,
    /// Standard deviation of what one run does to one variant in one cell.
    pub run_effect: f64,
    /// Of single calls, and of the level that neighbouring calls share.
    pub noise: f64,
    pub wander: f64,
    pub stalls: Stalls,
    pub arrival: Arrival,
    /// How unlike ranks leave a variant, at most.
    pub skew_most: f64,
    /// What the program computes between two calls, in times of the default's cost.
    pub compute: f64,
    /// Whether a call waits for whoever left the one before last. Costs of variants are stated without that.
    pub next_waits: bool,
}

/// How variants differ.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Differences {
    /// As the simulator, algorithms' shapes and random fields say.
    Usual,
    /// Not at all: whatever replaces the default is wrong.
    None,
    /// One variant of each cell is faster than the default by this share, the others are as the default.
    OneFaster(f64),
    /// As they were measured, the default, too.
    Recorded(Recorded),
}

/// Rare calls that take many times as long.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Stalls {
    None,
    /// Of 1 % of the calls of every third variant, 30 to 1,000 times. The bodies of those are 10 % below the default's.
    OfSome,
}

impl Recipe {
    /// 30 cells on each of two shapes, with runs that differ by so much.
    pub fn usual(run_effect: f64) -> Recipe {
        Recipe {
            name: "usual",
            layouts: vec![NODE, CLUSTER],
            collectives: COLLECTIVES.to_vec(),
            sizes: SIZES.to_vec(),
            arms_most: 60,
            calls: 60,
            base: Machine {
                between: ETHERNET,
                ..Machine::TYPICAL
            },
            differences: Differences::Usual,
            run_effect,
            noise: 0.2,
            wander: 0.15,
            stalls: Stalls::None,
            arrival: Arrival::Balanced,
            skew_most: 0.05,
            compute: 4.0,
            next_waits: false,
        }
    }

    /// Twenty variants that are all equal.
    pub fn null(run_effect: f64) -> Recipe {
        Recipe {
            name: "null",
            arms_most: 20,
            differences: Differences::None,
            ..Recipe::usual(run_effect)
        }
    }

    /// Twenty variants that are all equal, but for one that is faster by this share.
    pub fn hidden(faster: f64, run_effect: f64) -> Recipe {
        Recipe {
            name: "hidden",
            differences: Differences::OneFaster(faster),
            ..Recipe::null(run_effect)
        }
    }

    /// 25 cells of a machine that was measured, with what is drawn of the variants that were.
    pub fn recorded(machine: Recorded, run_effect: f64) -> Recipe {
        Recipe {
            name: "recorded",
            layouts: vec![match machine {
                Recorded::Node => NODE,
                Recorded::Cluster => CLUSTER,
            }],
            sizes: recorded::SIZES.to_vec(),
            arms_most: usize::MAX,
            base: machine.machine(),
            differences: Differences::Recorded(machine),
            ..Recipe::usual(run_effect)
        }
    }

    pub fn stalling() -> Recipe {
        Recipe {
            name: "stalls",
            stalls: Stalls::OfSome,
            ..Recipe::usual(0.05)
        }
    }

    /// A strongly scaled solver's dot products, between halo exchanges: ranks come late by so many times what the
    /// default takes, and variants differ in how much of their time falls into the halo.
    pub fn solver(lateness: f64) -> Recipe {
        Recipe {
            name: "solver",
            layouts: vec![CLUSTER],
            collectives: vec![Collective::Allreduce],
            sizes: vec![8],
            calls: 6_000,
            arrival: Arrival::Random(lateness),
            skew_most: 0.6,
            compute: lateness.max(0.2),
            ..Recipe::usual(0.05)
        }
    }
}
