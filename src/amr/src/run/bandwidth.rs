//! What memory gives, measured right after the run that is judged by it, on all ranks at once.

use std::time::Instant;

use crate::ranks::{Op, Ranks};
use crate::report::Memory;

/// 64 MiB of each of two arrays: far beyond a core's own caches.
const N_VALUES: usize = 1 << 23;
const ROUNDS: usize = 4;
/// An update reads a value and writes one.
const BYTES_PER_UPDATE: f64 = 16.0;

/// How far `updates_per_s` is from what memory allows if each value is read once and written once.
pub fn measure(ranks: &dyn Ranks, updates_per_s: f64) -> Memory {
    let (mut to, mut from) = (vec![0.0; N_VALUES], vec![1.0; N_VALUES]);
    let mut best = f64::INFINITY;
    for _ in 0..ROUNDS {
        // All ranks start together: they share the memory.
        ranks.allreduce_i32(&mut [0], Op::Max);
        let start = Instant::now();
        let pairs = std::hint::black_box(&mut to).iter_mut().zip(&from);
        pairs.for_each(|(to, from): (&mut f64, &f64)| *to = 0.5 * from);
        best = best.min(start.elapsed().as_secs_f64());
        std::mem::swap(&mut to, &mut from);
    }
    let mut bytes_per_s = [BYTES_PER_UPDATE * N_VALUES as f64 / best];
    ranks.allreduce_f64(&mut bytes_per_s, Op::Sum);
    let [bytes_per_s] = bytes_per_s;
    Memory {
        bytes_per_s,
        share: updates_per_s * BYTES_PER_UPDATE / bytes_per_s,
    }
}
