//! What stays the same while mesh and owners do: exchanges, and what blocks cost their ranks.

use std::collections::BTreeMap;
use std::sync::Arc;

use colltune_amr::exchange::Bundling;
use colltune_amr::exchange::face::{Faces, Source};
use colltune_amr::exchange::gas::GasFaces;
use colltune_amr::exchange::plan::Sweeps as Grouping;
use colltune_amr::field::Meaning;
use colltune_amr::mesh::Mesh;
use colltune_amr::physics::GAMMA;
use colltune_amr::physics::boundary::Boundary;
use colltune_amr::settings::{Settings, Work as Kernel};
use colltune_amr::telemetry::Freight;

use super::Exchange;
use crate::cost::{Memory, Slowness, Work};
use crate::traffic::{Sweep, finer_faces, groups, sweep};

/// The exchanges of one mesh.
#[derive(Clone, Debug)]
pub struct Sweeps {
    /// In their order; values are those of one variable, or of all where the gas sends them together.
    pub sweeps: Vec<Arc<Sweep>>,
    by_vars: BTreeMap<u64, Vec<Arc<Exchange>>>,
    pub flux: Option<Arc<Exchange>>,
}

impl Sweeps {
    pub fn new(settings: &Settings, mesh: &Mesh, n_ranks: usize) -> Sweeps {
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
        let sweeps: Vec<Arc<Sweep>> = axes
            .iter()
            .map(|axes| Arc::new(sweep(mesh, n_ranks, axes, bundling, &len)))
            .collect();
        let mut by_vars = BTreeMap::new();
        for n_vars in groups(settings) {
            let n = if gas { 1 } else { n_vars };
            by_vars.entry(n_vars).or_insert_with(|| {
                let of = |sweep| Arc::new(Exchange::of_sweep(Freight::Ghost, sweep, n));
                sweeps.iter().map(of).collect()
            });
        }
        Sweeps {
            flux: gas.then(|| flux(settings, mesh, n_ranks)),
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
        meaning: Meaning::Total,
        reach: settings.reach(),
        crossing: settings.crossing(),
    };
    Box::new(move |face, source| faces.packed_len(face, source))
}

fn flux(settings: &Settings, mesh: &Mesh, n_ranks: usize) -> Arc<Exchange> {
    let faces = gas_faces(settings);
    let len = |face: usize, source| match source {
        Source::Finer(_) if !settings.options.break_flux => faces.flux_len(face as u8),
        _ => 0,
    };
    let sweep = Arc::new(sweep(mesh, n_ranks, &[0, 1, 2], Bundling::ByRank, len));
    Arc::new(Exchange::of_sweep(Freight::Flux, &sweep, 1))
}

/// What the blocks of a mesh have to do in a step, where memory costs this.
pub fn works(
    (settings, memory): (&Settings, &Memory),
    mesh: &Mesh,
    n_ranks: usize,
    iterations: impl Fn(usize) -> u32,
) -> Vec<Work> {
    let finer = finer_faces(mesh);
    let mut n_own = vec![0; n_ranks];
    for &owner in mesh.owners() {
        n_own[owner as usize] += 1;
    }
    let of_rank: Vec<Slowness> = n_own
        .iter()
        .map(|&n| memory.slowness(settings, n))
        .collect();
    let work = |i: usize| {
        let level = mesh.leaves()[i].level;
        let slow = of_rank[mesh.owners()[i] as usize];
        Work::of(settings, level, iterations(i), finer[i]).on(slow)
    };
    (0..mesh.len()).map(work).collect()
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

    #[test]
    fn emulated_ranks_compute_as_fast_as_their_memory_lets_them() {
        let words = "--num_refine 0 --npx 4 --npy 2 --npz 2 --nx 6 --ny 6 --nz 6 --num_vars 2 --comm_vars 1";
        let words: Vec<String> = words.split(' ').map(str::to_owned).collect();
        let settings = settings(&words, 2, 2).unwrap();
        // Two blocks, and fourteen.
        let owners = (0..16).map(|i| u32::from(i >= 2)).collect();
        let mesh = Mesh::roots(settings.grid, owners);
        let at = |resident_mib: f64, update_ns: f64| MemoryCost {
            cells: [6; 3],
            resident_mib,
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
}
