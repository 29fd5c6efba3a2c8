//! What a run with its cells knows of its loads, asks its policy, and moves.

use std::time::Instant;

use colltune_placement::{Balanced, Balancer, Loads, PlacementError, Problem, Proposal};

use super::adapt::{Adaptive, Event};
use super::epoch::STEPS_MIN;
use super::owners::chosen;
use super::state::Run;
use crate::checksum::Broken;
use crate::measured::{gather, reference_s};
use crate::mesh::Mesh;
use crate::placement::Question;
use crate::placement::library::Told;
use crate::ranks::Op;
use crate::refine::Mark;
use crate::settings::{PlacementName, Settings};
use crate::telemetry::Phase;

impl Balanced for Run<'_> {
    type Policy = PlacementName;
    type Error = Broken;

    fn balancer(&mut self) -> &mut Balancer<PlacementName> {
        &mut self.balancer
    }

    /// Since costs were last exchanged, or by these costs where that is now.
    fn loads(&mut self, step: u64) -> Result<Loads, Broken> {
        if !self.balancer.measures() || self.steps_observed == 0 {
            return self.loads_of(step, None);
        }
        // Of the slow rank, what others would take, unless the policy knows that it is slow.
        let rank = self.ranks.rank();
        let of_rank = |speeds: Option<&[f64]>| speeds.map_or(1.0, |speeds| speeds[rank]);
        let speed = of_rank(self.balancer.speeds());
        let heeded = self.speeds();
        let per_step = speed / self.steps_observed as f64;
        let work: f64 = self.block_times.iter().sum::<f64>() * per_step;
        let largest = self.block_times.iter().copied().fold(0.0, f64::max) * per_step;
        // Whole nanoseconds: every rank has to find the same sum.
        let whole = |seconds: f64| (seconds * 1e9) as i64;
        let mut most = [whole(work / of_rank(heeded)), whole(largest)];
        self.ranks.allreduce_i64(&mut most, Op::Max);
        let mut sum = [whole(work)];
        self.ranks.allreduce_i64(&mut sum, Op::Sum);
        let n_ranks = self.ranks.n_ranks() as f64;
        let (all, fastest) = heeded.map_or((n_ranks, 1.0), |speeds| {
            (
                speeds.iter().sum(),
                speeds.iter().copied().fold(0.0, f64::max),
            )
        });
        let ideal = 1e-9 * sum[0] as f64 / all;
        Ok(Loads {
            makespan: 1e-9 * most[0] as f64,
            ideal,
            least: ideal.max(1e-9 * most[1] as f64 / fastest),
        })
    }

    /// Tells all ranks what the blocks have cost per step since this was last asked. With levers an epoch may end.
    fn observe(&mut self, step: u64) -> Result<(), Broken> {
        self.turn_epoch(step, STEPS_MIN);
        if !self.balancer.measures() || self.steps_observed == 0 {
            return Ok(());
        }
        let mut times: Vec<(usize, f64)> = self
            .own_leaves
            .iter()
            .zip(&self.block_times)
            .map(|(&i, time)| (i, time / self.steps_observed as f64))
            .collect();
        times.sort_unstable_by_key(|&(i, _)| i);
        let times: Vec<f64> = times.into_iter().map(|(_, time)| time).collect();
        self.block_times.fill(0.0);
        self.steps_observed = 0;
        let reference_s = reference_s(self.slowness);
        let (times, references) = gather(self.ranks, &self.mesh, &times, reference_s);
        let owners = self.mesh.owners();
        let observed = self.balancer.observe_on(owners, &times, &references);
        observed.map_err(|error| broken(step, &error))
    }

    fn loads_of(&mut self, step: u64, owners: Option<&[u32]>) -> Result<Loads, Broken> {
        let (costs, speeds) = (self.costs(), self.speeds());
        let loads = || -> Result<Loads, PlacementError> {
            let mut problem = Problem::new(&costs, self.ranks.n_ranks() as u32)?;
            if let Some(speeds) = speeds {
                problem = problem.with_speeds(speeds)?;
            }
            Ok(Loads::new(&problem, owners.unwrap_or(self.mesh.owners())))
        };
        loads().map_err(|error| broken(step, &error))
    }

    fn propose(&mut self, step: u64) -> Result<Proposal, Broken> {
        let start = Instant::now();
        Ok(Proposal {
            owners: self.owners_to_be(step)?,
            seconds: start.elapsed().as_secs_f64(),
        })
    }

    fn prices(&mut self, proposal: &Proposal) -> [f64; 2] {
        let mut placing = [proposal.seconds];
        // Each rank has placed, and the slowest one is waited for.
        self.ranks.allreduce_f64(&mut placing, Op::Max);
        let bytes = self.blocks.field.bytes_per_block();
        let (topology, before) = (self.topology.as_ref(), self.mesh.owners());
        let migrating = topology.map_or(0.0, |t| t.migration_s(before, &proposal.owners, bytes));
        [placing[0], migrating]
    }
}

impl Adaptive for Run<'_> {
    fn settings(&self) -> &Settings {
        self.settings
    }

    fn mesh(&self) -> &Mesh {
        &self.mesh
    }

    fn n_ranks(&self) -> usize {
        self.ranks.n_ranks()
    }

    fn n_changes(&self) -> u64 {
        self.count.splits + self.count.joins
    }

    /// Under `--compat` ranks call each other as miniAMR's do.
    fn hear(&self, event: Event) {
        let Some(compat) = &self.compat else { return };
        match event {
            Event::Levels(mesh) => compat.levels(mesh),
            Event::Loads(mesh) => compat.loads(mesh),
            Event::Moved => compat.moved(),
            Event::Marked { mesh, marks, wants } => {
                compat.pass(mesh, wants);
                compat.gather_families(mesh, marks);
            }
            Event::Placed {
                mesh,
                owners,
                limited,
            } => compat.balance(self.settings, self.balancer.policy(), mesh, owners, limited),
            Event::Refined { mesh, .. } => {
                compat.groups_and_partners(mesh, &self.plan.n_partners());
            }
            Event::Adapted { .. } | Event::Migrated { .. } => {}
        }
    }

    fn wanted(&mut self, step: u64) -> Vec<Mark> {
        self.marks_wanted(step)
    }

    fn n_passes(&self, step: u64) -> u8 {
        match step {
            0 => self.settings.options.num_refine,
            _ => self.settings.passes,
        }
    }

    fn apply(&mut self, step: u64, marks: &[Mark]) -> Result<(), Broken> {
        self.split_and_join(step, marks)
    }

    /// Errors: a policy that fails, on every rank alike.
    fn ask(&mut self, step: u64) -> Result<Vec<u32>, Broken> {
        let start = Instant::now();
        let _place = self.clock().during(Phase::Place);
        let costs = self.costs();
        let question = Question {
            mesh: &self.mesh,
            costs: &costs,
            n_ranks: self.ranks.n_ranks(),
        };
        let told = Told {
            topology: self.topology.as_ref(),
            speeds: self.speeds(),
        };
        let placed = chosen(self.settings, self.balancer.policy(), question, told);
        self.times.place += start.elapsed().as_secs_f64();
        placed.map_err(|error| broken(step, &error))
    }

    fn migrate(&mut self, owners: Vec<u32>) {
        let start = Instant::now();
        let _migrate = self.clock().during(Phase::Migrate);
        let moved = self.blocks.migrate(self.ranks, &self.mesh, &owners);
        self.count.moved.n_blocks += moved.n_blocks;
        self.count.moved.n_bytes += moved.n_bytes;
        self.mesh.place_on(owners);
        self.times.migrate += start.elapsed().as_secs_f64();
    }

    fn connect(&mut self) {
        self.connect_blocks();
    }

    fn check(&self, step: u64) -> Result<(), Broken> {
        self.check_mesh(step)
    }
}

impl Run<'_> {
    /// The speeds that the policy uses, where they differ.
    fn speeds(&self) -> Option<&[f64]> {
        let speeds = self.balancer.speeds();
        speeds.filter(|_| self.balancer.policy().heeds_speeds())
    }
}

fn broken(step: u64, error: &PlacementError) -> Broken {
    let what = error.to_string();
    Broken::Placement { step, what }
}
