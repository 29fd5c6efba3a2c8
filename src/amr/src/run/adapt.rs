//! How a mesh adapts between steps, and how its blocks are placed anew: the same loop for a run with its cells and for the
//! mesh alone.

use std::convert::identity;

use colltune_placement::Balanced;

use super::owners::{is_uneven, limit_moves};
use crate::mesh::Mesh;
use crate::refine::{Mark, Origin, first_marks, settle, widen};
use crate::settings::{PlacementName, Settings};

/// What happens to the mesh.
pub enum Event<'e> {
    /// miniAMR counts blocks by level, or those of the ranks, or those that moved.
    Levels(&'e Mesh),
    Loads(&'e Mesh),
    Moved,
    /// The marks of a pass are settled; `wants` is what each leaf wanted.
    Marked {
        mesh: &'e Mesh,
        marks: &'e [Mark],
        wants: &'e dyn Fn(usize) -> Mark,
    },
    Adapted {
        old: &'e Mesh,
        new: &'e Mesh,
        origins: &'e [Origin],
    },
    /// A policy was asked; `owners` is its answer before the limit of what may move.
    Placed {
        mesh: &'e Mesh,
        owners: &'e [u32],
        limited: bool,
    },
    /// Blocks of `mesh` move to new owners.
    Migrated {
        mesh: &'e Mesh,
        owners: &'e [u32],
    },
    /// A refinement has ended; who exchanges with whom is known.
    Refined {
        mesh: &'e Mesh,
        changed: bool,
    },
}

/// A mesh that adapts.
pub(super) trait Adaptive: Balanced<Policy = PlacementName> {
    fn settings(&self) -> &Settings;

    fn mesh(&self) -> &Mesh;

    fn n_ranks(&self) -> usize;

    /// Splits and joins so far.
    fn n_changes(&self) -> u64;

    fn hear(&self, event: Event);

    /// What the leaves want in a pass.
    fn wanted(&mut self, step: u64) -> Vec<Mark>;

    fn n_passes(&self, step: u64) -> u8;

    /// Rings of blocks that are refined along with each block that is.
    fn n_rings(&self) -> u32 {
        self.settings().refine_rings
    }

    /// Splits and joins as the marks say.
    fn apply(&mut self, step: u64, marks: &[Mark]) -> Result<(), Self::Error>;

    /// What the policy answers now.
    fn ask(&mut self, step: u64) -> Result<Vec<u32>, Self::Error>;

    /// Blocks go to other owners.
    fn migrate(&mut self, owners: Vec<u32>);

    /// Mesh or owners have changed.
    fn connect(&mut self);

    fn check(&self, step: u64) -> Result<(), Self::Error>;

    /// Refines and joins, then balances if that is due. `step` 0 is before the first step.
    fn adapt(&mut self, step: u64) -> Result<(), Self::Error> {
        self.observe(step)?;
        let by_refinement = self.balancer().triggers().is_empty();
        let options = &self.settings().options;
        let (compat, balance) = (options.compat, options.lb_opt);
        self.hear(Event::Levels(self.mesh()));
        let mut changed = false;
        for _ in 0..self.n_passes(step) {
            let changes = self.pass(step)?;
            changed |= changes;
            if compat {
                self.hear(Event::Levels(self.mesh()));
            } else if !changes {
                // Objects stand still between passes: the next one would change nothing either.
                break;
            }
            if balance == 2 && by_refinement {
                self.hear(Event::Loads(self.mesh()));
                if self.is_uneven() {
                    changed |= self.balance(step)?;
                    self.hear(Event::Levels(self.mesh()));
                }
            }
        }
        self.hear(Event::Loads(self.mesh()));
        self.hear(Event::Moved);
        if balance > 0 && by_refinement && self.is_uneven() {
            changed |= self.balance(step)?;
            self.hear(Event::Loads(self.mesh()));
            self.hear(Event::Levels(self.mesh()));
        }
        self.refined(step, changed)
    }

    fn refined(&mut self, step: u64, changed: bool) -> Result<(), Self::Error> {
        if changed {
            self.connect();
        }
        let mesh = self.mesh();
        self.hear(Event::Refined { mesh, changed });
        self.check(step)
    }

    /// One pass: each block goes up or down by one level at most. Says whether any did.
    fn pass(&mut self, step: u64) -> Result<bool, Self::Error> {
        let all = self.wanted(step);
        let mesh = self.mesh();
        let wants: &dyn Fn(usize) -> Mark = &|i| all[i];
        let widened = widen(mesh, all.clone(), self.n_rings());
        let mut marks = first_marks(mesh, |i| widened[i]);
        settle(mesh, &mut marks);
        self.hear(Event::Marked {
            mesh,
            marks: &marks,
            wants,
        });
        if marks.iter().all(|&mark| mark == Mark::Stay) {
            return Ok(false);
        }
        self.apply(step, &marks).map(|()| true)
    }

    /// What the leaves cost: measured, or all the same. A policy of this app wants positive costs.
    fn costs(&mut self) -> Vec<f64> {
        let n = self.mesh().len();
        let costs = self.balancer().costs(n);
        costs.into_iter().map(|cost| cost.max(1e-12)).collect()
    }

    /// Whether loads differ enough for a new placement, or one is wanted in any case.
    fn is_uneven(&mut self) -> bool {
        if self.balancer().is_demanded() {
            return true;
        }
        let measured = self.balancer().measures();
        let costs = measured.then(|| self.costs());
        let options = &self.settings().options;
        is_uneven(options, self.mesh(), costs.as_deref(), self.n_ranks())
    }

    /// What the policy answers, within the limit of what may move.
    fn owners_to_be(&mut self, step: u64) -> Result<Vec<u32>, Self::Error> {
        let mut owners = self.ask(step)?;
        let limit = self.settings().options.limit_move as usize;
        let limited = limit > 0 && step > 0;
        let mesh = self.mesh();
        self.hear(Event::Placed {
            mesh,
            owners: &owners,
            limited,
        });
        if limited {
            limit_moves(mesh, &mut owners, limit, self.n_ranks());
        }
        Ok(owners)
    }

    /// Places all blocks anew and moves those that change owner; says whether any did.
    fn balance(&mut self, step: u64) -> Result<bool, Self::Error> {
        let owners = self.owners_to_be(step)?;
        self.balancer().placed(step);
        Ok(self.move_to(owners))
    }

    /// Says whether any block moved.
    fn move_to(&mut self, owners: Vec<u32>) -> bool {
        let mesh = self.mesh();
        if owners == mesh.owners() {
            return false;
        }
        let new = owners.as_slice();
        self.hear(Event::Migrated { mesh, owners: new });
        self.migrate(owners);
        true
    }

    /// Balances where a trigger says so; `changes` counts splits and joins before this step's.
    fn balance_when_due(&mut self, step: u64, changes: u64) -> Result<(), Self::Error> {
        let mesh_changed = self.n_changes() != changes;
        let placed = self.balance_after(step, mesh_changed)?;
        let moved = placed.map(|proposal| self.move_to(proposal.owners));
        match moved.is_some_and(identity) {
            true => self.refined(step, true),
            false => Ok(()),
        }
    }
}
