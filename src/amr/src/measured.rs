//! What blocks and ranks took, exchanged among all ranks.

use std::time::Instant;

use crate::cost::{Slowness, iterate};
use crate::mesh::Mesh;
use crate::ranks::Ranks;

/// The seconds of all leaves, in the mesh's order, and of each rank's [`reference_s`], from those of each rank's own.
pub fn gather(
    ranks: &dyn Ranks,
    mesh: &Mesh,
    own: &[f64],
    reference_s: f64,
) -> (Vec<f64>, Vec<f64>) {
    let words = std::iter::once(&reference_s).chain(own);
    let bytes: Vec<u8> = words.flat_map(|time| time.to_le_bytes()).collect();
    let all = ranks.allgather_bytes(&bytes);
    let mut next: Vec<_> = all.iter().map(|times| times.chunks_exact(8)).collect();
    let mut of = |rank: usize| {
        let time = next[rank].next().expect("a time for each leaf");
        f64::from_le_bytes(time.try_into().expect("chunks of eight"))
    };
    let references: Vec<f64> = (0..all.len()).map(&mut of).collect();
    let owners = mesh.owners().iter();
    (
        owners.map(|&owner| of(owner as usize)).collect(),
        references,
    )
}

/// Seconds of a piece of work that is the same on every rank: the least of some tries, as one may be interrupted.
pub fn reference_s(slowness: Slowness) -> f64 {
    const CELLS: [f64; 256] = [0.5; 256];
    let tries = (0..5).map(|_| {
        let (start, pace) = (Instant::now(), slowness.begin());
        iterate(&std::hint::black_box(CELLS), 16);
        slowness.end(pace);
        start.elapsed().as_secs_f64()
    });
    tries.fold(f64::INFINITY, f64::min).max(1e-9)
}
