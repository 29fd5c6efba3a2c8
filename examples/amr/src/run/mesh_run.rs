//! The mesh of a run without its cells: the same objects, marks, rules, owners and triggers, step after step.
//!
//! What happens is told in the order in which a run's ranks would call each other, so that a listener can count
//! their calls and messages. Where cells decide (a gas, a gradient), the leaves to come must be given.

use colltune_placement::{Balancer, Loads, PlacementError, Trigger};
use rustc_hash::FxHashSet;

use super::owners::{chosen, first_mesh, is_uneven, limit_moves};
use super::wanted::{step_length, wanted};
use crate::leaf::{LEVELS_MAX, Leaf};
use crate::measured::Measured;
use crate::mesh::Mesh;
use crate::object::Objects;
use crate::options::WeighName;
use crate::placement::library::Told;
use crate::placement::{Question, imbalance};
use crate::refine::{Mark, Origin, apply, first_marks, settle_across, widen};
use crate::settings::Settings;

/// Who says which rank gets which leaf.
pub type Chooser<'a> = dyn Fn(Question) -> Result<Vec<u32>, PlacementError> + 'a;

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

/// The mesh, and what decides about it.
pub struct MeshRun<'a> {
    settings: &'a Settings,
    n_ranks: usize,
    pub mesh: Mesh,
    objects: Objects,
    choose: Box<Chooser<'a>>,
    /// With `--weigh measured`: what leaves cost, as the caller has told.
    pub measured: Option<Measured>,
    balancer: Option<Balancer>,
    n_changes: u64,
}

impl<'a> MeshRun<'a> {
    /// The root blocks, before they are refined.
    pub fn new(settings: &'a Settings, n_ranks: usize) -> MeshRun<'a> {
        let choose =
            Box::new(move |question: Question| chosen(settings, question, Told::default()));
        MeshRun::with_chooser(settings, n_ranks, choose)
    }

    /// The same with a policy of the caller's.
    pub fn with_chooser(
        settings: &'a Settings,
        n_ranks: usize,
        choose: Box<Chooser<'a>>,
    ) -> MeshRun<'a> {
        let mesh = first_mesh(settings, n_ranks);
        let measures = settings.options.weigh == WeighName::Measured;
        let measured = measures.then(|| Measured::new(&mesh).expect("the smoothing is in range"));
        MeshRun {
            settings,
            n_ranks,
            objects: settings.objects.clone(),
            choose,
            measured,
            balancer: settings.balancer(0),
            n_changes: 0,
            mesh,
        }
    }

    /// Refines before the first step. `leaves` are those to come, where objects do not decide.
    ///
    /// Errors: a policy's.
    pub fn start(
        &mut self,
        leaves: Option<&[Leaf]>,
        tell: &mut dyn FnMut(Event),
    ) -> Result<(), PlacementError> {
        let options = &self.settings.options;
        match options.num_refine > 0 || options.uniform_refine == 1 {
            true => self.refine(0, leaves, tell),
            false => Ok(()),
        }
    }

    /// What follows the stages of `step`.
    ///
    /// Errors: a policy's.
    pub fn end_step(
        &mut self,
        step: u64,
        leaves: Option<&[Leaf]>,
        tell: &mut dyn FnMut(Event),
    ) -> Result<(), PlacementError> {
        let options = &self.settings.options;
        let changes = self.n_changes;
        if options.num_refine > 0 && options.uniform_refine == 0 {
            let delta = step_length(self.settings, &self.objects, self.mesh.grid);
            self.objects.advance(delta);
            if self.refines_after(step) {
                self.refine(step, leaves, tell)?;
            }
        }
        self.balance_when_due(step, changes, tell)
    }

    /// Whether a refinement follows this step.
    pub fn refines_after(&self, step: u64) -> bool {
        let options = &self.settings.options;
        options.num_refine > 0
            && options.uniform_refine == 0
            && options.refine_freq > 0
            && step.is_multiple_of(options.refine_freq)
    }

    fn refine(
        &mut self,
        step: u64,
        leaves: Option<&[Leaf]>,
        tell: &mut dyn FnMut(Event),
    ) -> Result<(), PlacementError> {
        let options = &self.settings.options;
        let passes = match (leaves, step) {
            // As many as it takes.
            (Some(_), _) => 2 * LEVELS_MAX,
            (None, 0) => options.num_refine,
            (None, _) => self.settings.passes,
        };
        tell(Event::Levels(&self.mesh));
        let mut changed = false;
        for _ in 0..passes {
            let changes = self.pass(leaves, tell);
            changed |= changes;
            if options.compat {
                tell(Event::Levels(&self.mesh));
            } else if !changes {
                break;
            }
            if options.lb_opt == 2 && self.settings.trigger.is_none() {
                tell(Event::Loads(&self.mesh));
                if self.is_uneven() {
                    changed |= self.balance(step, tell)?;
                    tell(Event::Levels(&self.mesh));
                }
            }
        }
        tell(Event::Loads(&self.mesh));
        tell(Event::Moved);
        if options.lb_opt > 0 && self.settings.trigger.is_none() && self.is_uneven() {
            changed |= self.balance(step, tell)?;
            tell(Event::Loads(&self.mesh));
            tell(Event::Levels(&self.mesh));
        }
        let mesh = &self.mesh;
        tell(Event::Refined { mesh, changed });
        Ok(())
    }

    /// One pass; says whether anything changed.
    fn pass(&mut self, leaves: Option<&[Leaf]>, tell: &mut dyn FnMut(Event)) -> bool {
        let (settings, mesh) = (self.settings, &self.mesh);
        let target: Option<FxHashSet<Leaf>> = leaves.map(|all| all.iter().copied().collect());
        let wants = |i: usize| {
            let leaf = mesh.leaves()[i];
            match &target {
                Some(target) => towards(target, leaf),
                None if settings.options.uniform_refine == 1 => {
                    match leaf.level < mesh.grid.depth {
                        true => Mark::Split,
                        false => Mark::Stay,
                    }
                }
                None => wanted(settings, &self.objects, mesh, leaf),
            }
        };
        // Leaves that are to come have their margin.
        let n_rings = match target {
            Some(_) => 0,
            None => settings.refine_rings,
        };
        let widened = widen(mesh, (0..mesh.len()).map(wants).collect(), n_rings);
        let mut marks = first_marks(mesh, |i| widened[i]);
        settle_across(mesh, &mut marks, settings.across());
        let (marks, wants): (_, &dyn Fn(usize) -> Mark) = (&marks, &wants);
        tell(Event::Marked { mesh, marks, wants });
        if marks.iter().all(|&mark| mark == Mark::Stay) {
            return false;
        }
        let (new, pass) = apply(mesh, marks);
        self.n_changes += pass.n_splits + pass.n_joins;
        let old = std::mem::replace(&mut self.mesh, new);
        let (new, origins) = (&self.mesh, pass.origins.as_slice());
        let old = &old;
        tell(Event::Adapted { old, new, origins });
        if let Some(measured) = &mut self.measured {
            measured.adapt(&self.mesh);
        }
        true
    }

    fn costs(&self) -> Option<Vec<f64>> {
        self.measured.as_ref().map(Measured::costs)
    }

    fn is_uneven(&self) -> bool {
        let costs = self.costs();
        let options = &self.settings.options;
        is_uneven(options, &self.mesh, costs.as_deref(), self.n_ranks)
    }

    fn balance(&mut self, step: u64, tell: &mut dyn FnMut(Event)) -> Result<bool, PlacementError> {
        if let Some(balancer) = &mut self.balancer {
            balancer.placed(step);
        }
        let costs = self.costs();
        // A policy of the app wants positive costs.
        let costs = costs.map_or(vec![1.0; self.mesh.len()], |costs| {
            costs.into_iter().map(|cost| cost.max(1e-12)).collect()
        });
        let mesh = &self.mesh;
        let mut owners = (self.choose)(Question {
            mesh,
            costs: &costs,
            n_ranks: self.n_ranks,
        })?;
        let limit = self.settings.options.limit_move as usize;
        let limited = limit > 0 && step > 0;
        let answer = owners.as_slice();
        tell(Event::Placed {
            mesh,
            owners: answer,
            limited,
        });
        if limited {
            limit_moves(mesh, &mut owners, limit, self.n_ranks);
        }
        if owners == mesh.owners() {
            return Ok(false);
        }
        let new = owners.as_slice();
        tell(Event::Migrated { mesh, owners: new });
        self.mesh.place_on(owners);
        Ok(true)
    }

    fn balance_when_due(
        &mut self,
        step: u64,
        changes: u64,
        tell: &mut dyn FnMut(Event),
    ) -> Result<(), PlacementError> {
        let Some(balancer) = &mut self.balancer else {
            return Ok(());
        };
        if balancer.trigger() == Trigger::BreakEven {
            return Err(PlacementError::Policy {
                policy: "break-even",
                reason: "what placing and moving take is measured, and a mesh without its run has no times".into(),
            });
        }
        let mesh_changed = self.n_changes != changes;
        if mesh_changed {
            balancer.mesh_changed(step);
        }
        let mut loads = Loads::default();
        if balancer.weighs_loads() {
            let costs = self.measured.as_ref().map(Measured::costs);
            let costs = costs.unwrap_or(vec![1.0; self.mesh.len()]);
            loads.ideal = costs.iter().sum::<f64>() / self.n_ranks as f64;
            loads.makespan = loads.ideal * imbalance(&costs, self.mesh.owners(), self.n_ranks);
        }
        if balancer.asks(step, mesh_changed, loads) && self.balance(step, tell)? {
            let mesh = &self.mesh;
            tell(Event::Refined {
                mesh,
                changed: true,
            });
        }
        Ok(())
    }
}

/// What brings a leaf nearer to a mesh of these leaves.
fn towards(target: &FxHashSet<Leaf>, leaf: Leaf) -> Mark {
    if target.contains(&leaf) {
        return Mark::Stay;
    }
    let mut above = leaf;
    while let Some(parent) = above.parent() {
        if target.contains(&parent) {
            return Mark::Join;
        }
        above = parent;
    }
    Mark::Split
}
