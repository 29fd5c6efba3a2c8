//! When and how one run places anew: its policy, what blocks cost on which ranks, its triggers, and what they have to
//! remember from step to step. The mini-app, the emulator, `colltune-lab placement replay` and the C interface all decide here.

use std::time::Instant;

use crate::bound::lower_bound_of;
use crate::certificate::makespan;
use crate::cost::{Costs, Smoothing};
use crate::curve::Octant;
use crate::error::PlacementError;
use crate::migrate::{MigrationLimit, limit_migration};
use crate::policy::{Policy, place};
use crate::problem::Problem;
use crate::speeds::RankSpeeds;
use crate::trigger::{MeshLife, Prospect, Situation, Trigger};

/// What a run decides by, step after step. Ranks with the same input decide the same.
#[derive(Clone)]
pub struct Balancer<P = Policy> {
    policy: P,
    triggers: Vec<Trigger>,
    /// Without them all blocks cost the same.
    costs: Option<Costs>,
    speeds: RankSpeeds,
    limit: MigrationLimit,
    life: MeshLife,
    placed_at: u64,
    mesh_since: u64,
    /// Seconds that placing took when it was last asked for.
    placing: f64,
    /// What was not worth it on this mesh: a makespan over the ideal one, and seconds of moving.
    refused: [f64; 2],
    /// Whether blocks are to be placed anew whatever the triggers say.
    demanded: bool,
}

/// Measured loads differ by as much from step to step: for less no policy is asked again on the same mesh.
const NOISE: f64 = 1.01;

/// How loaded the ranks are, in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Loads {
    /// Of the rank that takes longest.
    pub makespan: f64,
    /// What each rank would take if the work could be cut anywhere.
    pub ideal: f64,
    /// What no placement is known to beat; at least `ideal`.
    pub least: f64,
}

impl Loads {
    /// Of these owners of a problem's blocks.
    pub fn new(problem: &Problem, owners: &[u32]) -> Loads {
        let makespan = makespan(problem, owners);
        Loads {
            makespan,
            ideal: problem.total() / problem.total_speed(),
            least: lower_bound_of(problem, makespan),
        }
    }
}

/// What a policy answers, within the limit of what may move, and the time that it took.
pub struct Proposal {
    pub owners: Vec<u32>,
    pub seconds: f64,
}

/// What a placement takes, in the unit of the costs: computing it, and moving a byte.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Prices {
    pub placing: f64,
    pub per_byte: f64,
}

/// Whose blocks are balanced. The decision is the provided function's; the others say what a run knows.
pub trait Balanced {
    type Policy;
    type Error;

    fn balancer(&mut self) -> &mut Balancer<Self::Policy>;

    /// What the ranks take now; asked for where a trigger weighs loads.
    fn loads(&mut self, step: u64) -> Result<Loads, Self::Error>;

    /// A policy is about to be asked: costs are shared.
    fn observe(&mut self, step: u64) -> Result<(), Self::Error>;

    /// What the ranks take by the shared costs, of these owners or else the present ones.
    fn loads_of(&mut self, step: u64, owners: Option<&[u32]>) -> Result<Loads, Self::Error>;

    /// Asks the policy.
    fn propose(&mut self, step: u64) -> Result<Proposal, Self::Error>;

    /// The time that placing and moving to the proposal's owners take.
    fn prices(&mut self, proposal: &Proposal) -> [f64; 2];

    /// Decides after `step`, or before the next one: gives new owners where blocks are placed anew.
    fn balance_after(
        &mut self,
        step: u64,
        mesh_changed: bool,
    ) -> Result<Option<Proposal>, Self::Error> {
        if mesh_changed {
            self.balancer().mesh_changed(step);
        }
        let loads = match self.balancer().weighs_loads() {
            true => self.loads(step)?,
            false => Loads::default(),
        };
        let due = self.balancer().is_due(step, mesh_changed, loads);
        if !due && !self.balancer().promises(step, loads) {
            return Ok(None);
        }
        self.observe(step)?;
        // What was just observed may have brought another policy.
        if due || self.balancer().is_demanded() {
            let proposal = self.propose(step)?;
            self.balancer().placed(step);
            return Ok(Some(proposal));
        }
        let now = self.loads_of(step, None)?;
        if !self.balancer().promises(step, now) {
            self.balancer().refuse(now);
            return Ok(None);
        }
        let proposal = self.propose(step)?;
        let then = self.loads_of(step, Some(&proposal.owners))?.makespan;
        let took = self.prices(&proposal);
        if !self.balancer().pays(step, now, then, took) {
            return Ok(None);
        }
        self.balancer().placed(step);
        Ok(Some(proposal))
    }
}

impl<P> Balancer<P> {
    /// Of a run that begins, or goes on, after `step`, with a mesh that is expected to live for so many steps. Blocks
    /// cost the same, and no trigger asks for another placement.
    pub fn new(policy: P, mesh_life: f64, step: u64) -> Self {
        Balancer {
            policy,
            triggers: Vec::new(),
            costs: None,
            speeds: RankSpeeds::default(),
            limit: MigrationLimit::default(),
            life: MeshLife::new(mesh_life, Smoothing::default().weight),
            placed_at: step,
            mesh_since: step,
            placing: 0.0,
            refused: [0.0; 2],
            demanded: false,
        }
    }

    /// Any of these triggers may ask.
    pub fn with_triggers(self, triggers: Vec<Trigger>) -> Self {
        Balancer { triggers, ..self }
    }

    pub fn with_costs(self, costs: Costs) -> Self {
        let costs = Some(costs);
        Balancer { costs, ..self }
    }

    pub fn with_speeds(mut self, speeds: Option<Vec<f64>>) -> Self {
        self.speeds = RankSpeeds::known(speeds);
        self
    }

    pub fn with_limit(self, limit: MigrationLimit) -> Self {
        Balancer { limit, ..self }
    }

    pub fn policy(&self) -> &P {
        &self.policy
    }

    /// Blocks are placed by `policy` from now on, whenever a trigger asks. What was not worth it with the policy before
    /// may be with this one.
    pub fn use_policy(&mut self, policy: P) {
        self.policy = policy;
        self.placing = 0.0;
        self.refused = [0.0; 2];
    }

    /// Any of these triggers may ask from now on.
    pub fn use_triggers(&mut self, triggers: Vec<Trigger>) {
        self.triggers = triggers;
        self.refused = [0.0; 2];
    }

    /// Blocks are placed anew at the next opportunity, whatever the triggers say: whoever compares policies must not
    /// measure one of them on the placement of another.
    pub fn demand(&mut self) {
        self.demanded = true;
    }

    pub fn is_demanded(&self) -> bool {
        self.demanded
    }

    pub fn triggers(&self) -> &[Trigger] {
        &self.triggers
    }

    /// Whether it needs loads; other triggers decide by steps and the mesh.
    fn weighs_loads(&self) -> bool {
        let weighs =
            |trigger: &Trigger| matches!(trigger, Trigger::Imbalance(_) | Trigger::BreakEven);
        self.triggers.iter().any(weighs)
    }

    /// Whether costs are measured.
    pub fn measures(&self) -> bool {
        self.costs.is_some()
    }

    /// What each of `n` leaves costs.
    pub fn costs(&self, n: usize) -> Vec<f64> {
        let equal = || vec![1.0; n];
        self.costs.as_ref().map_or_else(equal, Costs::costs)
    }

    /// How fast each rank is, where any is slower or faster than most.
    pub fn speeds(&self) -> Option<&[f64]> {
        self.speeds.of_ranks()
    }

    /// Takes the costs of all leaves.
    pub fn observe(&mut self, costs: &[f64]) -> Result<(), PlacementError> {
        self.costs
            .as_mut()
            .map_or(Ok(()), |known| known.observe(costs))
    }

    /// Takes the seconds of all leaves on their owners, and of the same reference work on each rank. A slow rank takes
    /// longer for the same block, so its times are multiplied by its speed: costs are those on a rank of speed 1.
    pub fn observe_on(
        &mut self,
        owners: &[u32],
        times: &[f64],
        references: &[f64],
    ) -> Result<(), PlacementError> {
        self.speeds.compare(references);
        let cost = |(time, &owner): (&f64, &u32)| time * self.speeds.of(owner);
        let costs: Vec<f64> = times.iter().zip(owners).map(cost).collect();
        self.observe(&costs)
    }

    /// Costs follow the mesh to these leaves.
    pub fn adapt(&mut self, octants: &[Octant]) {
        if let Some(costs) = &mut self.costs {
            costs.adapt(octants);
        }
    }

    /// The mesh has changed in `step`, and with it what is possible.
    fn mesh_changed(&mut self, step: u64) {
        self.life.ended(step.saturating_sub(self.mesh_since));
        self.mesh_since = step;
        self.refused = [0.0; 2];
    }

    /// Blocks have been placed in `step`.
    pub fn placed(&mut self, step: u64) {
        self.placed_at = step;
        self.demanded = false;
    }

    /// Whether an answer is asked for after `step` that need not be judged.
    fn is_due(&self, step: u64, mesh_changed: bool, loads: Loads) -> bool {
        if self.demanded {
            return true;
        }
        let situation = Situation {
            steps_since_placed: step.saturating_sub(self.placed_at),
            mesh_changed,
            makespan: loads.makespan,
            mean: loads.ideal,
        };
        let mut triggers = self.triggers.iter();
        triggers.any(|trigger| trigger.is_due(&situation))
    }

    /// Whether, with `break-even`, the best that these loads allow would pay, so that a policy is to be asked and its
    /// answer [judged](Balancer::pays).
    fn promises(&self, step: u64, loads: Loads) -> bool {
        let [refused, migrating] = self.refused;
        let prospect = Prospect {
            makespan: loads.least.max(NOISE * refused * loads.ideal),
            steps_left: self.steps_left(step),
            placing: self.placing,
            migrating,
        };
        self.triggers.contains(&Trigger::BreakEven) && prospect.gain(loads.makespan) > 0.0
    }

    /// That no placement is better than these loads say is remembered until the mesh changes.
    fn refuse(&mut self, loads: Loads) {
        if loads.ideal > 0.0 {
            self.refused[0] = self.refused[0].max(loads.least / loads.ideal);
        }
    }

    /// Whether going to a placement of this makespan is worth it after `step`: placing took so long, and moving will.
    /// A refusal is remembered.
    fn pays(&mut self, step: u64, loads: Loads, makespan: f64, took: [f64; 2]) -> bool {
        let [placing, migrating] = took;
        self.placing = placing;
        let prospect = Prospect {
            makespan,
            steps_left: self.steps_left(step),
            placing,
            migrating,
        };
        let pays = prospect.gain(loads.makespan) > 0.0;
        if !pays {
            let least = makespan.max(loads.least);
            self.refuse(Loads { least, ..loads });
            self.refused[1] = migrating;
        }
        pays
    }

    fn steps_left(&self, step: u64) -> f64 {
        self.life.steps_left(step.saturating_sub(self.mesh_since))
    }
}

impl Balancer {
    /// The policy's owners of a problem: matched to the present ones, and within the limit, where it has such.
    pub fn place(&self, problem: &Problem) -> Result<Vec<u32>, PlacementError> {
        let owners = place(&self.policy, problem)?.owners;
        match problem.owners() {
            Some(_) => limit_migration(problem, &owners, &self.limit),
            None => Ok(owners),
        }
    }

    /// Decides as [`Balanced::balance_after`] does where one place knows all: `problem` has the present owners.
    pub fn step(
        &mut self,
        step: u64,
        mesh_changed: bool,
        problem: Problem,
        prices: Prices,
    ) -> Result<Option<Proposal>, PlacementError> {
        if problem.owners().is_none() {
            return Err(PlacementError::Needs {
                policy: "of a balancer",
                need: "the present owners",
            });
        }
        let mut known = KnownProblem {
            balancer: self,
            problem,
            prices,
        };
        known.balance_after(step, mesh_changed)
    }
}

/// A problem that one place knows, with its present owners.
struct KnownProblem<'b, 'p> {
    balancer: &'b mut Balancer,
    problem: Problem<'p>,
    prices: Prices,
}

impl Balanced for KnownProblem<'_, '_> {
    type Policy = Policy;
    type Error = PlacementError;

    fn balancer(&mut self) -> &mut Balancer {
        self.balancer
    }

    fn loads(&mut self, step: u64) -> Result<Loads, PlacementError> {
        self.loads_of(step, None)
    }

    fn observe(&mut self, _: u64) -> Result<(), PlacementError> {
        Ok(())
    }

    fn loads_of(&mut self, _: u64, owners: Option<&[u32]>) -> Result<Loads, PlacementError> {
        let owners = owners.or(self.problem.owners());
        Ok(Loads::new(&self.problem, owners.unwrap_or_default()))
    }

    fn propose(&mut self, _: u64) -> Result<Proposal, PlacementError> {
        let start = Instant::now();
        let owners = self.balancer.place(&self.problem)?;
        Ok(Proposal {
            owners,
            seconds: start.elapsed().as_secs_f64(),
        })
    }

    fn prices(&mut self, proposal: &Proposal) -> [f64; 2] {
        let present = self.problem.owners().unwrap_or_default().iter();
        let moved = present
            .zip(&proposal.owners)
            .filter(|(a, b)| a != b)
            .count();
        let bytes = moved as f64 * self.problem.limits().bytes_per_block as f64;
        [self.prices.placing, bytes * self.prices.per_byte]
    }
}

#[cfg(test)]
mod tests;
