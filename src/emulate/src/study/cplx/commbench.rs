//! The paper's commbench: rounds of messages between neighbours on random octrees, emulated.

use std::sync::Arc;

use colltune_amr::telemetry::Freight;
use colltune_placement::curve::{ContactBytes, neighbours};
use colltune_placement::generate::{Distribution, costs, octree};

use super::epoch::refused;
use super::scale::{PERCENT, POLICIES};
use crate::EmulateError;
use crate::axes::{Axes, Network};
use crate::cost::PhaseCosts;
use crate::machine::Machine;
use crate::program::{Exchange, Message};

/// Bytes at faces, edges and corners.
const CONTACT: ContactBytes = ContactBytes {
    face: 20_480,
    edge: 2_560,
    corner: 320,
};
/// Blocks a rank: the meshes have one to two.
const BLOCKS_PER_RANK: f64 = 1.5;

/// Milliseconds of a round under CPLX with X = 0, 25, 50, 75, 100, the mean over so many meshes.
///
/// Errors: `Policy` that refuses so many ranks.
pub fn latency_ms(
    machine: &Machine,
    n_ranks: usize,
    n_meshes: u64,
) -> Result<[f64; PERCENT.len()], EmulateError> {
    let mut sums = [0.0; PERCENT.len()];
    for seed in 0..n_meshes {
        let root_level = (n_ranks as f64).log2() as u8 / 3;
        let n_blocks = (BLOCKS_PER_RANK * n_ranks as f64) as usize;
        let mesh = octree(seed, 3, root_level, root_level + 2, n_blocks);
        let neighbours = neighbours(mesh.as_mesh(), CONTACT);
        let graph = neighbours.as_graph();
        let draw = costs(Distribution::Exponential, seed, mesh.octants.len());
        for (sum, &policy) in sums.iter_mut().zip(&POLICIES[1..]) {
            let owners = policy.place(&draw, n_ranks as u32);
            let owners = owners.ok_or_else(|| refused(policy, n_ranks))?;
            let rows = (0..owners.len()).flat_map(|block| {
                let row = graph.row(block);
                row.map(move |(other, bytes)| (block, other as usize, bytes))
            });
            let messages = rows.filter_map(|(block, other, bytes)| {
                let [from, to] = [block, other].map(|block| owners[block]);
                (from != to).then_some(Message { from, to, bytes })
            });
            let exchange = Exchange::new(Freight::Ghost, n_ranks, messages.collect());
            let costs = PhaseCosts::default();
            let mut axes = Axes::new(machine, n_ranks, &costs, Network::Events);
            axes.exchange(&Arc::new(exchange));
            *sum += 1e-6 * axes.makespan() / n_meshes as f64;
        }
    }
    Ok(sums)
}
