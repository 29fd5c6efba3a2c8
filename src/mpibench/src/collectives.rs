//! Times each cell in many short blocks, the blocks of all cells in a shuffled order.
//!
//! A block is a barrier and then `n` calls. Each rank times every call, or with `--sync block` the
//! block as a whole; what counts is the slowest rank. With `--sync call` (the default) a barrier
//! precedes each call and is not timed, as in the OSU benchmarks.

use std::time::Instant;

use clap::ValueEnum;
use colltune_core::select::mix;
use serde_json::{Value, json};

use crate::cells::{Cell, CellArguments};
use crate::mpi::{Buffers, Call, Comm};
use crate::random::shuffled;

#[derive(clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    cells: CellArguments,
    /// Blocks per cell.
    #[arg(long, default_value_t = 10)]
    repetitions: usize,
    /// Seed of the order in which the cells' blocks run.
    #[arg(long, default_value_t = 1)]
    order_seed: u64,
    /// Untimed calls of each cell before the first block.
    #[arg(long, default_value_t = 10)]
    warmup: usize,
    /// What a barrier precedes.
    #[arg(long, value_enum, default_value_t = Sync::Call)]
    sync: Sync,
    /// Calls in a block are as many as take about this long, between 1 and 64.
    #[arg(long, default_value_t = 1000)]
    block_us: u64,
    /// Let the root of rooted collectives walk over the ranks from call to call; else it is rank 0.
    #[arg(long)]
    walk_root: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Sync {
    /// Every call.
    Call,
    /// The first call of a block.
    Block,
}

const CALLS_MAX: f64 = 64.0;

pub fn run(arguments: &Arguments, world: Comm) -> Value {
    let cells = arguments.cells.list();
    let bytes_max = cells.iter().map(|&(_, bytes)| bytes).max().unwrap_or(0);
    let mut buffers = Buffers::new(bytes_max, world.n_ranks);
    let calls = calls_per_block(arguments, world, &cells, &mut buffers);

    let mut local = vec![Vec::with_capacity(arguments.repetitions); cells.len()];
    for repetition in 0..arguments.repetitions {
        let places: Vec<usize> = (0..cells.len()).collect();
        for place in shuffled(&places, mix(arguments.order_seed, repetition as u64)) {
            local[place].push(block(
                arguments,
                world,
                cells[place],
                calls[place],
                &mut buffers,
            ));
        }
    }

    let cells: Vec<Value> = cells
        .iter()
        .zip(&calls)
        .zip(local)
        .map(|((&(collective, bytes), &calls), blocks)| {
            let time_ns: Vec<f64> = blocks.iter().map(|times| slowest(world, times) / calls as f64).collect();
            json!({ "collective": collective, "bytes": bytes, "calls_per_block": calls, "time_ns": time_ns })
        })
        .collect();
    json!({ "mode": "collectives", "order_seed": arguments.order_seed, "cells": cells })
}

/// Warms every cell up and finds how many of its calls fill a block; all ranks find the same.
fn calls_per_block(
    arguments: &Arguments,
    world: Comm,
    cells: &[Cell],
    buffers: &mut Buffers,
) -> Vec<usize> {
    let probe = |&cell: &Cell| {
        block(arguments, world, cell, arguments.warmup.max(1), buffers);
        let call_ns = slowest(world, &block(arguments, world, cell, 3, buffers)) / 3.0;
        (arguments.block_us as f64 * 1e3 / call_ns).clamp(1.0, CALLS_MAX) as usize
    };
    cells.iter().map(probe).collect()
}

/// Times `calls` calls of one cell on this rank: one number per call, or one for all of them.
fn block(
    arguments: &Arguments,
    world: Comm,
    cell: Cell,
    calls: usize,
    buffers: &mut Buffers,
) -> Vec<f64> {
    let (collective, message_bytes) = cell;
    let call_at = |index: usize| {
        let root = if arguments.walk_root {
            index % world.n_ranks
        } else {
            0
        };
        Call {
            collective,
            message_bytes,
            root,
            in_place: false,
        }
    };
    let mut timed = |range: std::ops::Range<usize>| {
        world.synchronise();
        let start = Instant::now();
        for index in range {
            world.run(call_at(index), buffers);
        }
        start.elapsed().as_nanos() as f64
    };
    match arguments.sync {
        Sync::Call => (0..calls).map(|index| timed(index..index + 1)).collect(),
        Sync::Block => vec![timed(0..calls)],
    }
}

/// The sum over calls of the slowest rank's time.
fn slowest(world: Comm, times: &[f64]) -> f64 {
    world.maxima(times).iter().sum()
}
