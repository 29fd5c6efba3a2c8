//! A workload to train on: every cell equally often, in a random order, with gaps of computing.
//!
//! The order depends on the seed and is the same on all ranks; the gaps depend on the rank too, so
//! that ranks reach a call at different times, as they do in real programs.

use std::hint::black_box;
use std::time::{Duration, Instant};

use colltune_core::select::mix;
use serde_json::{Value, json};

use crate::cells::{Cell, CellArguments};
use crate::mpi::{Buffers, Call, Comm};
use crate::random::shuffled;

#[derive(clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    cells: CellArguments,
    /// Seed of the order of calls.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Calls in all.
    #[arg(long, default_value_t = 3000)]
    calls: usize,
    /// The longest gap of computing between two calls; gaps are uniform from zero up to it.
    #[arg(long, default_value_t = 20)]
    gap_us: u64,
}

pub fn run(arguments: &Arguments, world: Comm) -> Value {
    let cells = arguments.cells.list();
    let bytes_max = cells.iter().map(|&(_, bytes)| bytes).max().unwrap_or(0);
    let mut buffers = Buffers::new(bytes_max, world.n_ranks);

    world.synchronise();
    let start = Instant::now();
    for (index, (collective, message_bytes)) in
        order(&cells, arguments.seed, arguments.calls).enumerate()
    {
        compute(gap(arguments, world.rank, index));
        world.run(
            Call {
                collective,
                message_bytes,
                root: 0,
                in_place: false,
            },
            &mut buffers,
        );
    }
    world.synchronise();
    let elapsed = start.elapsed().as_nanos() as f64;
    json!({ "mode": "mix", "seed": arguments.seed, "calls": arguments.calls, "time_ns": world.maxima(&[elapsed])[0] })
}

/// Deck after deck of all cells, each shuffled on its own.
fn order(cells: &[Cell], seed: u64, calls: usize) -> impl Iterator<Item = Cell> {
    (0..)
        .flat_map(move |deck| shuffled(cells, mix(seed, deck)))
        .take(calls)
}

fn gap(arguments: &Arguments, rank: usize, index: usize) -> Duration {
    let draw = mix(mix(arguments.seed, rank as u64), index as u64);
    Duration::from_nanos(draw % (arguments.gap_us * 1000 + 1))
}

/// Keeps the core busy, as computing would: a rank that slept would hand it to another rank.
fn compute(duration: Duration) {
    let start = Instant::now();
    let mut value = 1.0f64;
    while start.elapsed() < duration {
        for _ in 0..50 {
            value = black_box(value * 1.000_000_1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use colltune_core::collective::Collective;

    #[test]
    fn every_deck_holds_every_cell_and_seeds_give_other_orders() {
        let cells: Vec<Cell> = Collective::ALL
            .into_iter()
            .flat_map(|c| [(c, 8), (c, 512)])
            .collect();
        let calls: Vec<Cell> = order(&cells, 1, 100).collect();
        for deck in calls.chunks(cells.len()) {
            assert!(cells.iter().all(|cell| deck.contains(cell)));
        }
        assert_ne!(calls, order(&cells, 2, 100).collect::<Vec<_>>());
    }
}
