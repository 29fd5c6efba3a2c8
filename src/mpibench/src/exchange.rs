//! What an allreduce of two ranks can cost at best: each writes a cache line and reads the other's.
//!
//! Blocks of bare exchanges and of MPI_Allreduce of one double take turns in one process, so that the
//! ratio of the two is free of what differs between runs. Run it on two ranks of one node, pinned.

use std::sync::atomic::Ordering;
use std::time::Instant;

use serde_json::{Value, json};

use crate::mpi::Comm;

#[derive(clap::Args)]
pub struct Arguments {
    /// Timed blocks of each.
    #[arg(long, default_value_t = 200)]
    blocks: usize,
    /// Exchanges, or calls, in a block.
    #[arg(long, default_value_t = 1000)]
    calls: usize,
}

pub fn run(arguments: &Arguments, world: Comm) -> Value {
    if world.n_ranks != 2 {
        return json!({ "mode": "exchange", "wrong": 1, "problem": "this needs exactly two ranks" });
    }
    let lines = world.shared_lines();
    let (own, other) = (lines[world.rank], lines[1 - world.rank]);
    let mut buffers = ([1.0], [0.0]);
    let (mut number, mut sum) = (0, 0.0);
    let (mut bare, mut calls) = (Vec::new(), Vec::new());
    // The first blocks warm caches up and let a tuner set the communicator up.
    for block in 0..arguments.blocks + 2 {
        world.synchronise();
        let start = Instant::now();
        for _ in 0..arguments.calls {
            number += 1;
            own.value.store(1.0f64.to_bits(), Ordering::Relaxed);
            own.number.store(number, Ordering::Release);
            while other.number.load(Ordering::Acquire) < number {}
            sum = 1.0 + f64::from_bits(other.value.load(Ordering::Relaxed));
        }
        let bare_ns = start.elapsed().as_nanos() as f64;
        world.synchronise();
        let start = Instant::now();
        for _ in 0..arguments.calls {
            world.sum(&buffers.0, &mut buffers.1);
        }
        let calls_ns = start.elapsed().as_nanos() as f64;
        if block >= 2 {
            let each = arguments.calls as f64;
            bare.push(bare_ns / each);
            calls.push(calls_ns / each);
        }
    }
    let (bare, calls) = (world.maxima(&bare), world.maxima(&calls));
    json!({
        "mode": "exchange",
        "wrong": u64::from(sum != 2.0 || buffers.1 != [2.0]),
        "bare_ns": median(&bare),
        "allreduce_ns": median(&calls),
        "ratio": median(&calls) / median(&bare),
    })
}

fn median(times: &[f64]) -> f64 {
    let mut times = times.to_vec();
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied().unwrap_or(f64::NAN)
}
