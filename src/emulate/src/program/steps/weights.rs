//! What blocks have to do in a step, and what they cost their ranks.

use std::cell::OnceCell;
use std::sync::Arc;

use super::{History, Program};
use crate::EmulateError;
use crate::cost::Work;
use crate::program::epoch::{by_rank, works};

impl Program<'_> {
    /// What blocks were seen to cost in this step; seconds.
    pub(super) fn observed(&self) -> Vec<f64> {
        let owners = self.run.mesh.owners().iter();
        let leaves = self.run.mesh.leaves().iter().zip(owners);
        let of = |(work, (leaf, &owner)): (&Work, (&colltune_amr::leaf::Leaf, &u32))| {
            let noise = self.noise.as_ref();
            let factor = noise.map_or(1.0, |noise| noise.factor(leaf.packed(), owner, self.step));
            1e-9 * self.scale * self.costs.block_ns(work) * factor
        };
        self.epoch.works.iter().zip(leaves).map(of).collect()
    }

    /// The epoch of the mesh as it is now.
    pub(super) fn connect(&mut self) -> Result<(), EmulateError> {
        let (mesh, step) = (&self.run.mesh, self.step + 1);
        if mesh.len() < self.n_ranks {
            return Err(EmulateError::MoreRanksThanBlocks {
                blocks: mesh.len(),
                ranks: self.n_ranks,
                step,
            });
        }
        let recorded = self.recorded(step);
        if let Some(recorded) = recorded.filter(|recorded| recorded.leaves != mesh.leaves()) {
            return Err(EmulateError::Mesh(format!(
                "in step {step} it has {} blocks where this version's rules lead to {}: another version recorded it",
                recorded.leaves.len(),
                mesh.len()
            )));
        }
        self.epoch.sweeps = OnceCell::new();
        self.weigh(step);
        Ok(())
    }

    /// What blocks and ranks have to compute in `step`.
    pub(super) fn weigh(&mut self, step: u64) {
        let (settings, mesh) = (self.settings, &self.run.mesh);
        let recorded = self.recorded(step);
        let iterations = |i: usize| match recorded {
            Some(recorded) => recorded.iterations[i],
            None => {
                let leaf = mesh.leaves()[i];
                let shocked = || match self.history {
                    History::Shock(shock) => shock.is_in(leaf, step),
                    _ => false,
                };
                settings.cost.iterations(leaf, shocked)
            }
        };
        let works = works(
            (settings, &self.costs.memory),
            mesh,
            self.n_ranks,
            iterations,
        );
        let times: Vec<f64> = works
            .iter()
            .map(|work| self.scale * self.costs.block_ns(work))
            .collect();
        let values = (settings.shape.n_vars * settings.shape.interior_cells()) as f64;
        let sum = self.scale * self.costs.phases.sum_cell_ns * values;
        self.epoch.compute_ns = Arc::new(by_rank(mesh, self.n_ranks, &times));
        self.epoch.sum_ns = Arc::new(by_rank(mesh, self.n_ranks, &vec![sum; mesh.len()]));
        self.epoch.works = works;
    }
}
