//! What stays the same while mesh and owners do: exchanges, and what blocks cost their ranks.

use std::collections::BTreeMap;
use std::sync::Arc;

use colltune_amr::exchange::Bundling;
use colltune_amr::exchange::face::{Faces, Source};
use colltune_amr::exchange::gas::GasFaces;
use colltune_amr::exchange::plan::Sweeps as Grouping;
use colltune_amr::mesh::Mesh;
use colltune_amr::physics::GAMMA;
use colltune_amr::physics::boundary::Boundary;
use colltune_amr::settings::{Settings, Work as Kernel};
use colltune_amr::telemetry::Freight;

use super::Exchange;
use crate::cost::{Memory, Slowness, Work};
use crate::traffic::{Sweep, finer_faces, groups, reads, sweep};

/// The exchanges of one mesh.
#[derive(Clone, Debug)]
pub struct Sweeps {
    /// In their order; values are those of one variable, or of all where the gas sends them together.
    pub sweeps: Vec<Arc<Sweep>>,
    by_vars: BTreeMap<u64, Vec<Arc<Exchange>>>,
    pub flux: Option<Arc<Exchange>>,
}

impl Sweeps {
    /// The exchanges on ranks where memory costs this.
    pub fn new((settings, memory): (&Settings, &Memory), mesh: &Mesh, n_ranks: usize) -> Sweeps {
        let gas = settings.work == Kernel::Euler;
        let (axes, bundling) = match (gas, settings.sweeps) {
            (true, _) => (vec![vec![0, 1, 2]], Bundling::ByRank),
            (_, Grouping::AtOnce) => (vec![vec![0, 1, 2]], settings.manner.bundling),
            (_, Grouping::ByAxis) => (
                (0..3).map(|axis| vec![axis]).collect(),
                settings.manner.bundling,
            ),
        };
        let len = lengths(settings);
        // Faces are read before any of their variables is computed anew: out of what all blocks take.
        let slow = slowness((settings, memory), mesh, n_ranks);
        let slow: Vec<f64> = slow.iter().map(|slow| slow.updates).collect();
        let packing = (reads(settings), &slow[..]);
        let sweeps: Vec<Arc<Sweep>> = axes
            .iter()
            .map(|axes| Arc::new(sweep(mesh, n_ranks, axes, bundling, &len)))
            .collect();
        let mut by_vars = BTreeMap::new();
        for n_vars in groups(settings) {
            let n = if gas { 1 } else { n_vars };
            by_vars.entry(n_vars).or_insert_with(|| {
                let of = |sweep| Arc::new(Exchange::of_sweep(Freight::Ghost, sweep, n, packing));
                sweeps.iter().map(of).collect()
            });
        }
        Sweeps {
            flux: gas.then(|| flux(settings, mesh, &slow)),
            sweeps,
            by_vars,
        }
    }

    /// The exchanges of so many variables.
    pub fn ghosts(&self, n_vars: u64) -> &[Arc<Exchange>] {
        self.by_vars.get(&n_vars).map_or(&[], Vec::as_slice)
    }

    /// Partners of a rank in each sweep.
    pub fn n_partners(&self, rank: usize) -> Vec<usize> {
        let partners = |sweep: &Arc<Sweep>| {
            let mut all: Vec<u32> = sweep
                .flows
                .iter()
                .filter_map(|flow| match rank as u32 {
                    rank if flow.from == rank => Some(flow.to),
                    rank if flow.to == rank => Some(flow.from),
                    _ => None,
                })
                .collect();
            all.sort_unstable();
            all.dedup();
            all.len()
        };
        self.sweeps.iter().map(partners).collect()
    }
}

fn gas_faces(settings: &Settings) -> GasFaces {
    GasFaces {
        shape: settings.shape,
        gamma: GAMMA,
        // What lies beyond the domain travels nowhere.
        boundary: Boundary::Reflecting,
    }
}

/// How many values fill a face from a source.
fn lengths(settings: &Settings) -> Box<dyn Fn(usize, Source) -> usize> {
    if settings.work == Kernel::Euler {
        let faces = gas_faces(settings);
        return Box::new(move |face, source| faces.packed_len(face as u8, source));
    }
    let faces = Faces {
        stored: settings.shape,
        ghosted: settings.ghosted(),
        reach: settings.reach(),
        crossing: settings.crossing(),
    };
    Box::new(move |face, source| faces.packed_len(face, source))
}

/// Fluxes of finer cells that make one of a coarser cell.
const FLUXES: u64 = 4;

fn flux(settings: &Settings, mesh: &Mesh, slowness: &[f64]) -> Arc<Exchange> {
    let faces = gas_faces(settings);
    let len = |face: usize, source| match source {
        Source::Finer(_) if !settings.options.break_flux => faces.flux_len(face as u8),
        _ => 0,
    };
    let n_ranks = slowness.len();
    let sweep = Arc::new(sweep(mesh, n_ranks, &[0, 1, 2], Bundling::ByRank, len));
    Arc::new(Exchange::of_sweep(
        Freight::Flux,
        &sweep,
        1,
        (FLUXES, slowness),
    ))
}

/// What the blocks of a mesh have to do in a step, where memory costs this.
pub fn works(
    (settings, memory): (&Settings, &Memory),
    mesh: &Mesh,
    n_ranks: usize,
    iterations: impl Fn(usize) -> u32,
) -> Vec<Work> {
    let finer = finer_faces(settings, mesh);
    let of_rank = slowness((settings, memory), mesh, n_ranks);
    let work = |i: usize| {
        let level = mesh.leaves()[i].level;
        let slow = of_rank[mesh.owners()[i] as usize];
        Work::of(settings, level, iterations(i), finer[i]).on(slow)
    };
    (0..mesh.len()).map(work).collect()
}

/// How slow each rank is with its blocks.
fn slowness(
    (settings, memory): (&Settings, &Memory),
    mesh: &Mesh,
    n_ranks: usize,
) -> Vec<Slowness> {
    let mut n_own = vec![0; n_ranks];
    for &owner in mesh.owners() {
        n_own[owner as usize] += 1;
    }
    let of_rank = n_own.iter().map(|&n| memory.slowness(settings, n));
    of_rank.collect()
}

/// Sums by owner.
pub fn by_rank(mesh: &Mesh, n_ranks: usize, values: &[f64]) -> Vec<f64> {
    let mut sums = vec![0.0; n_ranks];
    for (value, &owner) in values.iter().zip(mesh.owners()) {
        sums[owner as usize] += value;
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost::{MemoryCost, exchanged_mib, resident_mib};
    use crate::mesh::settings;
    use crate::program::message_work;
    use colltune_amr::leaf::Leaf;

    #[test]
    fn emulated_ranks_compute_as_fast_as_their_memory_lets_them() {
        let words = "--num_refine 0 --npx 4 --npy 2 --npz 2 --nx 6 --ny 6 --nz 6 --num_vars 2 --comm_vars 1";
        let words: Vec<String> = words.split(' ').map(str::to_owned).collect();
        let settings = settings(&words, 2, 2).unwrap();
        // Two blocks, and fourteen.
        let owners = (0..16).map(|i| u32::from(i >= 2)).collect();
        let mesh = Mesh::roots(settings.grid, owners);
        let at = |working_set_mib: f64, update_ns: f64| MemoryCost {
            cells: [6; 3],
            working_set_mib,
            update_ns,
        };
        let [two, fourteen] = [2, 14].map(|n| resident_mib(settings.shape, n));
        let exchanged = [2, 14].map(|n| exchanged_mib(&settings, n));
        assert_eq!(exchanged, [two / 2.0, fourteen / 2.0]);
        let memory = Memory {
            updates: vec![at(two, 1.0), at(fourteen, 4.0)],
            beside_finer: vec![at(exchanged[0], 1.0), at(exchanged[1], 8.0)],
        };
        let works = works((&settings, &memory), &mesh, 2, |_| 0);
        for (work, &owner) in works.iter().zip(mesh.owners()) {
            let slowness = work.slowness;
            let both = [slowness.updates, slowness.beside_finer];
            assert_eq!(both, [[0.25, 0.125], [1.0, 1.0]][owner as usize]);
        }
    }

    /// Two roots, of which the second is split; the four children that touch the first are on these ranks.
    fn beside_a_split_root(owners: [u32; 4], more: &str) -> (Settings, Mesh) {
        let words = format!("--num_refine 1 --npx 2 --npy 1 --npz 1 --nx 4 --ny 4 --nz 4 {more}");
        let words: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
        let settings = settings(&words, 2, 2).unwrap();
        let root = |x| Leaf {
            level: 0,
            at: [x, 0, 0],
        };
        let mut leaves = vec![root(0)];
        leaves.extend((0..8).map(|octant| root(1).child(octant)));
        let mut quads = owners.into_iter();
        let owner = |leaf: &Leaf| match (leaf.level, leaf.at[0]) {
            (1, 2) => quads.next().expect("four touch it"),
            _ => 0,
        };
        let owners = leaves.iter().map(owner).collect();
        let mesh = Mesh::new(settings.grid, leaves, owners, None);
        (settings, mesh)
    }

    #[test]
    fn what_finer_blocks_give_is_read_by_their_own_rank() {
        let of = |owners, more| {
            let (settings, mesh) = beside_a_split_root(owners, more);
            let sweeps = Sweeps::new((&settings, &Memory::default()), &mesh, 2);
            let value = 8.0 * settings.shape.n_vars as f64;
            let mut more = 0.0;
            for exchange in sweeps.ghosts(settings.shape.n_vars as u64) {
                for (place, message) in exchange.messages.iter().enumerate() {
                    more += (exchange.read_bytes(place) - message.bytes as f64) / value;
                }
            }
            (finer_faces(&settings, &mesh)[0], more)
        };
        assert_eq!(of([0; 4], ""), (1.0, 0.0));
        // Of each finer face 16 cells are summed to 4, which travel.
        assert_eq!(of([0, 0, 0, 1], ""), (0.75, 12.0));
        assert_eq!(of([0, 0, 1, 1], ""), (0.5, 24.0));
        // Where the receiver sums, all cells travel, and it reads them.
        assert_eq!(of([0, 0, 0, 1], "--code 1"), (1.0, 0.0));
    }

    #[test]
    fn ranks_with_little_memory_pack_faster() {
        let (settings, mesh) = beside_a_split_root([1; 4], "");
        let at = |n_blocks: usize, update_ns: f64| MemoryCost {
            cells: [4; 3],
            working_set_mib: resident_mib(settings.shape, n_blocks),
            update_ns,
        };
        let memory = Memory {
            updates: vec![at(4, 1.0), at(5, 2.0)],
            ..Memory::default()
        };
        let all = message_work((&settings, &Memory::default()), &mesh, 2, 1);
        let fast = message_work((&settings, &memory), &mesh, 2, 1);
        // Five blocks, and four.
        assert_eq!(fast[0].read_bytes, all[0].read_bytes);
        assert_eq!(fast[1].read_bytes, 0.5 * all[1].read_bytes);
        assert!(fast[1].read_bytes > 0.0);
    }
}
