//! Short-lived communicators: split, one allreduce or a few, free.

use std::time::Instant;

use colltune_core::collective::Collective;
use serde_json::{Value, json};

use crate::mpi::{Buffers, Call, Comm};

#[derive(clap::Args)]
pub struct Arguments {
    /// How often.
    #[arg(long, default_value_t = 10_000)]
    times: usize,
    /// Allreduces on each communicator.
    #[arg(long, default_value_t = 1)]
    calls: usize,
    /// Parts that the world is split into.
    #[arg(long, default_value_t = 1)]
    parts: usize,
}

pub fn run(arguments: &Arguments, world: Comm) -> Value {
    let mut buffers = Buffers::new(8, 1);
    let call = Call {
        collective: Collective::Allreduce,
        message_bytes: 8,
        root: 0,
        in_place: false,
    };
    let mut once = || {
        let part = world.split(world.rank % arguments.parts.max(1));
        (0..arguments.calls).for_each(|_| part.run(call, &mut buffers));
        part.free();
    };
    (0..100).for_each(|_| once());
    world.synchronise();
    let start = Instant::now();
    (0..arguments.times).for_each(|_| once());
    let elapsed = start.elapsed().as_nanos() as f64;
    json!({ "mode": "churn", "times": arguments.times, "time_ns": world.maxima(&[elapsed])[0] })
}
