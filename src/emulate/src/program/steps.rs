//! The steps of a run, one after another: stages, checks, refinement.

mod stages;
mod weights;

use std::borrow::Cow;
use std::cell::{Cell, OnceCell};
use std::rc::Rc;
use std::sync::Arc;

use colltune_amr::compat::Compat;
use colltune_amr::cost::CostModel;
use colltune_amr::leaf::Leaf;
use colltune_amr::placement::Question;
use colltune_amr::run::{Chooser, MeshRun};
use colltune_amr::settings::{Settings, Work as Kernel};
use colltune_amr::telemetry::Meeting;
use colltune_amr::telemetry::cadence::steps_between_writes;

use super::epoch::Sweeps;
use super::refinement::Refinement;
use super::{Call, Calls, Operation, Phase};
use crate::EmulateError;
use crate::clock::{Timer, timed};
use crate::cost::{Costs, Work};
use crate::mesh::{RecordedStep, Recording, Shock};
use crate::noise::Noise;

/// Where the mesh comes from.
#[derive(Clone, Copy)]
pub enum History<'a> {
    /// The settings' objects decide.
    Objects,
    /// What was recorded decides, or is what the objects have to lead to.
    Recorded(&'a Recording),
    /// An exact shock stands for the gas.
    Shock(&'a Shock),
    /// These leaves, in every step.
    Still(&'a [Leaf]),
}

/// A run of the mini-app, step by step.
pub struct Program<'a> {
    settings: &'a Settings,
    n_ranks: usize,
    costs: &'a Costs,
    scale: f64,
    noise: Option<Noise>,
    history: History<'a>,
    run: MeshRun<'a>,
    refinement: Refinement<'a>,
    epoch: Epoch,
    /// What telemetry's own agreement adds to the next step.
    telemetry_due: bool,
    /// Whether the gas's fastest signal is known from the step before: the mesh has not changed since.
    signal_known: bool,
    step: u64,
    n_steps: u64,
}

/// What stays the same while mesh and owners do.
struct Epoch {
    /// Made when they are first asked for.
    sweeps: OnceCell<Sweeps>,
    works: Vec<Work>,
    /// By rank, in a whole step.
    compute_ns: Arc<Vec<f64>>,
    /// By rank, in one check.
    sum_ns: Arc<Vec<f64>>,
}

/// What a program is run with.
pub struct Given<'a> {
    pub settings: &'a Settings,
    pub n_ranks: usize,
    pub costs: &'a Costs,
    pub scale: f64,
    pub noise: Option<Noise>,
    pub history: History<'a>,
    /// None: the policy of the settings.
    pub choose: Option<Box<Chooser<'a>>>,
    /// Who says what `choose` takes; none: the costs do.
    pub timer: Option<Timer<'a>>,
    pub compat: Option<(&'a Compat<'a>, &'a Calls)>,
}

impl<'a> Program<'a> {
    /// The run before its first step.
    ///
    /// Errors: `Costs` of another kernel, `Program` for an unknown length or mesh, a policy's.
    pub fn new(given: Given<'a>) -> Result<Program<'a>, EmulateError> {
        let Given {
            settings,
            n_ranks,
            costs,
            scale,
            noise,
            history,
            choose,
            timer,
            compat,
        } = given;
        costs.check_kernel(settings)?;
        let n_recorded = match history {
            History::Recorded(recording) => Some(recording.steps.len() as u64),
            History::Objects if needs_cells(settings) => {
                return Err(EmulateError::Program(
                    "its cells decide about its mesh: give a recording of it, shell:DECK for a blast, or octree:SEED"
                        .to_owned(),
                ));
            }
            History::Objects | History::Shock(_) | History::Still(_) => None,
        };
        let n_steps = match (n_recorded, settings.n_steps) {
            (Some(recorded), steps) => steps.unwrap_or(recorded).min(recorded),
            (None, Some(steps)) => steps,
            (None, None) => {
                let what = "it runs for a time: give --num_tsteps".to_owned();
                return Err(EmulateError::Program(what));
            }
        };
        let took_s = Rc::new(Cell::new(None));
        let choose = match (choose, timer) {
            (Some(choose), Some(timer)) => Some(by_clock(choose, timer, &took_s)),
            (choose, _) => choose,
        };
        let run = match choose {
            Some(choose) => MeshRun::with_chooser(settings, n_ranks, choose),
            None => MeshRun::new(settings, n_ranks),
        };
        let refinement = Refinement {
            settings,
            n_ranks,
            phases: costs.phases,
            scale,
            took_s,
            compat,
        };
        let epoch = Epoch {
            sweeps: OnceCell::new(),
            works: Vec::new(),
            compute_ns: Arc::default(),
            sum_ns: Arc::default(),
        };
        let mut program = Program {
            settings,
            n_ranks,
            costs,
            scale,
            noise,
            history,
            run,
            refinement,
            epoch,
            telemetry_due: false,
            signal_known: false,
            step: 0,
            n_steps,
        };
        let leaves = program.leaves_of(1);
        program.run.start(leaves.as_deref(), &mut |_| {})?;
        if let Some((_, calls)) = program.refinement.compat {
            calls.take();
        }
        program.connect()?;
        Ok(program)
    }

    pub fn mesh(&self) -> &colltune_amr::mesh::Mesh {
        &self.run.mesh
    }

    /// The step that was last listed.
    pub fn step(&self) -> u64 {
        self.step
    }

    /// What each rank computes in a step of this mesh, by level; nanoseconds.
    pub fn loads(&self) -> Vec<Vec<f64>> {
        let depth = usize::from(self.settings.grid.depth);
        let mut loads = vec![vec![0.0; self.n_ranks]; depth + 1];
        let all = self.epoch.works.iter().zip(self.run.mesh.owners());
        for (work, &owner) in all {
            loads[usize::from(work.level)][owner as usize] +=
                self.scale * self.costs.block_ns(work);
        }
        loads
    }

    /// Gives the operations of the next step to `act`; false at the end.
    ///
    /// Errors: a policy's; `Mesh` where objects and recording part; more ranks than blocks.
    pub fn next_step(&mut self, act: &mut dyn FnMut(&Operation)) -> Result<bool, EmulateError> {
        if self.step >= self.n_steps {
            return Ok(false);
        }
        self.step += 1;
        if self.settings.cost == CostModel::Shock && self.step > 1 {
            // The shock moves on where the mesh does not.
            self.weigh(self.step);
        }
        if self.telemetry_due {
            act(&self.call(Meeting::Agree, 4));
        }
        let mut n_rounds = 0;
        let mut act = |operation: &Operation| {
            n_rounds += usize::from(matches!(operation, Operation::Exchange(_)));
            act(operation);
        };
        let compute_ns = self.compute_ns();
        match self.settings.work {
            Kernel::Euler => self.gas_stages(&compute_ns, &mut act),
            _ => self.stencil_stages(&compute_ns, &mut act),
        }
        act(&Operation::Alike {
            phase: Phase::Other,
            time_ns: self.costs.phases.step_ns,
        });
        let mut out = Vec::new();
        self.end_step(&mut out)?;
        out.iter().for_each(&mut act);
        self.telemetry_due = self.settings.options.telemetry.is_some()
            && self.step.is_multiple_of(steps_between_writes(
                self.settings,
                self.run.mesh.len(),
                self.n_ranks,
                n_rounds,
            ));
        Ok(true)
    }

    fn sweeps(&self) -> &Sweeps {
        let priced = (self.settings, &self.costs.memory);
        let make = || Sweeps::new(priced, &self.run.mesh, self.n_ranks);
        self.epoch.sweeps.get_or_init(make)
    }

    fn call(&self, meeting: Meeting, bytes: u64) -> Operation {
        Operation::Collective(Call::of_all(meeting, bytes, self.n_ranks))
    }

    /// The leaves of a step, where objects do not say.
    fn leaves_of(&self, step: u64) -> Option<Cow<'a, [Leaf]>> {
        let recording = match self.history {
            History::Objects => return None,
            History::Still(leaves) => return Some(Cow::Borrowed(leaves)),
            History::Shock(shock) => return Some(Cow::Owned(shock.leaves(step))),
            History::Recorded(recording) => recording,
        };
        let found = self.recorded(step).or(recording.steps.last());
        let found = found.filter(|_| needs_cells(self.settings))?;
        Some(Cow::Borrowed(&found.leaves))
    }

    fn compute_ns(&self) -> Arc<Vec<f64>> {
        let Some(noise) = &self.noise else {
            return Arc::clone(&self.epoch.compute_ns);
        };
        let leaves = self.run.mesh.leaves();
        let mut sums = vec![0.0; self.n_ranks];
        for ((work, leaf), &owner) in self
            .epoch
            .works
            .iter()
            .zip(leaves)
            .zip(self.run.mesh.owners())
        {
            let factor = noise.factor(leaf.packed(), owner, self.step);
            sums[owner as usize] += self.scale * self.costs.block_ns(work) * factor;
        }
        Arc::new(sums)
    }

    /// What follows the stages, into `out`; the epoch of the next step is made where the mesh changed.
    fn end_step(&mut self, out: &mut Vec<Operation>) -> Result<(), EmulateError> {
        let refines = self.run.refines_after(self.step);
        let weighs = refines || self.settings.trigger.is_some();
        if weighs && self.run.balancer.measures() {
            out.push(self.refinement.told(&self.run.mesh, 8));
            let costs = self.observed();
            self.run.balancer.observe(&costs)?;
        }
        if refines {
            self.refinement.asked(&self.run.mesh, self.sweeps(), out);
        }
        let leaves = match refines {
            true => self.leaves_of(self.step + 1),
            false => None,
        };
        let (mut changed, mut adapted) = (false, false);
        let refinement = &self.refinement;
        self.run
            .end_step(self.step, leaves.as_deref(), &mut |event| {
                use colltune_amr::run::Event::{Adapted, Migrated};
                adapted |= matches!(event, Adapted { .. });
                changed |= matches!(event, Adapted { .. } | Migrated { .. });
                refinement.follow(event, out);
            })?;
        self.signal_known = !adapted;
        self.step_times(refines, out);
        if changed {
            self.connect()?;
        }
        Ok(())
    }

    /// miniAMR's statistics of the steps since the last refinement.
    fn step_times(&self, refines: bool, out: &mut Vec<Operation>) {
        let Some((compat, calls)) = self.refinement.compat else {
            return;
        };
        let freq = self.settings.options.refine_freq;
        let scheduled = freq > 0 && self.step.is_multiple_of(freq);
        if !(refines || scheduled || self.step == self.n_steps) {
            return;
        }
        let since = match freq {
            0 => self.step,
            _ if self.step.is_multiple_of(freq) => freq,
            _ => self.step % freq,
        };
        compat.step_times(&vec![[0.0; 5]; since as usize]);
        out.extend(calls.take().into_iter().map(Operation::Collective));
    }

    fn recorded(&self, step: u64) -> Option<&'a RecordedStep> {
        match self.history {
            History::Recorded(recording) => {
                let steps = &recording.steps;
                let place = steps.binary_search_by_key(&step, |recorded| recorded.step);
                Some(&steps[place.ok()?])
            }
            History::Objects | History::Shock(_) | History::Still(_) => None,
        }
    }
}

/// A policy that says how many seconds it took when it was last asked.
fn by_clock<'a>(
    choose: Box<Chooser<'a>>,
    timer: Timer<'a>,
    took_s: &Rc<Cell<Option<f64>>>,
) -> Box<Chooser<'a>> {
    let took_s = Rc::clone(took_s);
    Box::new(move |question: Question| {
        let (owners, seconds) = timed(timer, || choose(question));
        took_s.set(Some(seconds));
        owners
    })
}

/// Whether what cells hold decides where the mesh is fine.
pub fn needs_cells(settings: &Settings) -> bool {
    settings.work == Kernel::Euler
}
