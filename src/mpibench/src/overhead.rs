//! The cost of calling: blocks of calls on MPI_COMM_SELF, allreduce and bcast in turn.
//!
//! A preloaded library cannot be taken out of a running process: whoever compares with and without
//! one starts many such processes, alternately.

use std::time::Instant;

use colltune_core::collective::Collective;
use serde_json::{Value, json};

use crate::cells::CellArguments;
use crate::mpi::{self, Buffers, Call};

#[derive(clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    cells: CellArguments,
    /// Timed blocks per cell.
    #[arg(long, default_value_t = 9)]
    blocks: usize,
    /// Calls per block.
    #[arg(long, default_value_t = 500)]
    calls: usize,
}

pub fn run(arguments: &Arguments) -> Value {
    let comm = mpi::myself();
    let cells = arguments.cells.list();
    let bytes_max = cells.iter().map(|&(_, bytes)| bytes).max().unwrap_or(0);
    let mut buffers = Buffers::new(bytes_max, 1);
    let mut block = |(collective, message_bytes): (Collective, usize)| {
        let call = Call {
            collective,
            message_bytes,
            root: 0,
            in_place: false,
        };
        let start = Instant::now();
        for _ in 0..arguments.calls {
            comm.run(call, &mut buffers);
        }
        start.elapsed().as_nanos() as f64 / arguments.calls as f64
    };

    // The first block of each cell warms caches up and lets a tuner set the communicator up.
    let mut times = vec![Vec::new(); cells.len()];
    for _ in 0..=arguments.blocks {
        for (cell, times) in cells.iter().zip(&mut times) {
            times.push(block(*cell));
        }
    }
    let cells: Vec<Value> = cells
        .iter()
        .zip(&times)
        .map(|((collective, bytes), times)| json!({ "collective": collective, "bytes": bytes, "time_ns": times[1..] }))
        .collect();
    json!({ "mode": "overhead", "calls_per_block": arguments.calls, "cells": cells })
}
