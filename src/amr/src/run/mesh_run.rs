//! The mesh of a run without its cells: the same objects, marks, rules, owners and triggers, step after step.
//!
//! Events are reported in the order in which a run's ranks would call each other, so that a listener can count
//! their calls and messages. Where cells decide (a gas), the leaves to come must be given.

use std::cell::RefCell;

use colltune_placement::{Balanced, Balancer, Loads, PlacementError, Proposal, Trigger};
use rustc_hash::FxHashSet;

use super::adapt::{Adaptive, Event};
use super::owners::{chosen, first_mesh};
use super::wanted::{step_length, wanted};
use crate::leaf::{LEVELS_MAX, Leaf};
use crate::mesh::Mesh;
use crate::object::Objects;
use crate::placement::library::{Told, octants};
use crate::placement::{Question, imbalance};
use crate::refine::{Mark, apply};
use crate::settings::{PlacementName, Settings};

/// Who says which rank gets which leaf.
pub type Chooser<'a> = dyn Fn(Question) -> Result<Vec<u32>, PlacementError> + 'a;

/// The mesh, and what decides about it.
pub struct MeshRun<'a> {
    settings: &'a Settings,
    n_ranks: usize,
    pub mesh: Mesh,
    objects: Objects,
    /// None: the balancer's policy.
    choose: Option<Box<Chooser<'a>>>,
    /// It is for the caller to tell costs, with `--weigh measured`.
    pub balancer: Balancer<PlacementName>,
    n_changes: u64,
}

impl<'a> MeshRun<'a> {
    /// The root blocks, before they are refined.
    pub fn new(settings: &'a Settings, n_ranks: usize) -> MeshRun<'a> {
        let mesh = first_mesh(settings, n_ranks);
        MeshRun {
            settings,
            n_ranks,
            objects: settings.objects.clone(),
            choose: None,
            balancer: settings.balancer(0, &mesh),
            n_changes: 0,
            mesh,
        }
    }

    /// The same with a policy of the caller's.
    pub fn with_chooser(
        settings: &'a Settings,
        n_ranks: usize,
        choose: Box<Chooser<'a>>,
    ) -> MeshRun<'a> {
        MeshRun {
            choose: Some(choose),
            ..MeshRun::new(settings, n_ranks)
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
            true => Telling::new(self, leaves, tell).adapt(0),
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
        }
        let refines = self.refines_after(step);
        let mut telling = Telling::new(self, leaves, tell);
        if refines {
            telling.adapt(step)?;
        }
        telling.balance_when_due(step, changes)
    }

    /// Whether a refinement follows this step.
    pub fn refines_after(&self, step: u64) -> bool {
        let options = &self.settings.options;
        options.num_refine > 0
            && options.uniform_refine == 0
            && options.refine_freq > 0
            && step.is_multiple_of(options.refine_freq)
    }
}

/// A mesh that adapts and tells it.
struct Telling<'t, 'a> {
    run: &'t mut MeshRun<'a>,
    /// The leaves to come, where objects do not decide.
    target: Option<FxHashSet<Leaf>>,
    tell: RefCell<&'t mut dyn FnMut(Event)>,
}

impl<'t, 'a> Telling<'t, 'a> {
    fn new(
        run: &'t mut MeshRun<'a>,
        leaves: Option<&[Leaf]>,
        tell: &'t mut dyn FnMut(Event),
    ) -> Telling<'t, 'a> {
        Telling {
            run,
            target: leaves.map(|all| all.iter().copied().collect()),
            tell: RefCell::new(tell),
        }
    }
}

impl Balanced for Telling<'_, '_> {
    type Policy = PlacementName;
    type Error = PlacementError;

    fn balancer(&mut self) -> &mut Balancer<PlacementName> {
        &mut self.run.balancer
    }

    fn loads(&mut self, step: u64) -> Result<Loads, PlacementError> {
        self.loads_of(step, None)
    }

    fn observe(&mut self, _: u64) -> Result<(), PlacementError> {
        Ok(())
    }

    fn loads_of(&mut self, _: u64, owners: Option<&[u32]>) -> Result<Loads, PlacementError> {
        if self.run.balancer.triggers().contains(&Trigger::BreakEven) {
            return Err(PlacementError::Policy {
                policy: "break-even",
                reason: "what placing and moving take is measured, and a mesh without its run has no times".into(),
            });
        }
        let (costs, n_ranks) = (self.costs(), self.run.n_ranks);
        let ideal = costs.iter().sum::<f64>() / n_ranks as f64;
        let owners = owners.unwrap_or(self.run.mesh.owners());
        Ok(Loads {
            makespan: ideal * imbalance(&costs, owners, n_ranks),
            ideal,
            least: ideal,
        })
    }

    fn propose(&mut self, step: u64) -> Result<Proposal, PlacementError> {
        Ok(Proposal {
            owners: self.owners_to_be(step)?,
            seconds: 0.0,
        })
    }

    fn prices(&mut self, proposal: &Proposal) -> [f64; 2] {
        [proposal.seconds, 0.0]
    }
}

impl Adaptive for Telling<'_, '_> {
    fn settings(&self) -> &Settings {
        self.run.settings
    }

    fn mesh(&self) -> &Mesh {
        &self.run.mesh
    }

    fn n_ranks(&self) -> usize {
        self.run.n_ranks
    }

    fn n_changes(&self) -> u64 {
        self.run.n_changes
    }

    fn hear(&self, event: Event) {
        (self.tell.borrow_mut())(event);
    }

    fn wanted(&mut self, _: u64) -> Vec<Mark> {
        let (run, leaves) = (&self.run, self.run.mesh.leaves().iter());
        match &self.target {
            Some(target) => leaves.map(|&leaf| towards(target, leaf)).collect(),
            None => wanted(run.settings, &run.objects, &run.mesh),
        }
    }

    fn n_passes(&self, step: u64) -> u8 {
        match (&self.target, step) {
            // As many as it takes.
            (Some(_), _) => 2 * LEVELS_MAX,
            (None, 0) => self.run.settings.options.num_refine,
            (None, _) => self.run.settings.passes,
        }
    }

    /// Leaves that are to come have their margin.
    fn n_rings(&self) -> u32 {
        match self.target {
            Some(_) => 0,
            None => self.run.settings.refine_rings,
        }
    }

    fn apply(&mut self, _: u64, marks: &[Mark]) -> Result<(), PlacementError> {
        let (new, pass) = apply(&self.run.mesh, marks);
        self.run.n_changes += pass.n_splits + pass.n_joins;
        let old = std::mem::replace(&mut self.run.mesh, new);
        self.hear(Event::Adapted {
            old: &old,
            new: &self.run.mesh,
            origins: &pass.origins,
        });
        if self.run.balancer.measures() {
            self.run.balancer.adapt(&octants(&self.run.mesh).1);
        }
        Ok(())
    }

    fn ask(&mut self, _: u64) -> Result<Vec<u32>, PlacementError> {
        let costs = self.costs();
        let run = &self.run;
        let question = Question {
            mesh: &run.mesh,
            costs: &costs,
            n_ranks: run.n_ranks,
        };
        match &run.choose {
            Some(choose) => choose(question),
            None => {
                let policy = run.balancer.policy();
                chosen(run.settings, policy, question, Told::default())
            }
        }
    }

    fn migrate(&mut self, owners: Vec<u32>) {
        self.run.mesh.place_on(owners);
    }

    fn connect(&mut self) {}

    fn check(&self, _: u64) -> Result<(), PlacementError> {
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
