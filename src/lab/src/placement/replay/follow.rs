//! One policy over all steps of a recording.

use std::time::Instant;

use anyhow::ensure;
use colltune_placement::curve::{Curve, LEVEL_MAX, Octant, neighbours};
use colltune_placement::{
    Balancer, Costs, LevelBalance, Limits, Memory, Mesh, PlacementError, Policy, Prices, Problem,
    Smoothing, balance_by_level, certify,
};
use serde::Serialize;

use super::args::{Args, Foresight};
use crate::placement::recorded::{Recording, Step};
use crate::placement::scene::needs_mesh;

/// One policy over all steps.
#[derive(Serialize)]
pub struct Run {
    pub policy: String,
    pub totals: Totals,
    pub steps: Vec<Judged>,
}

#[derive(Serialize, Default)]
pub struct Totals {
    /// The sum of all steps' makespans: the time, if nothing but the costs took any.
    pub makespan: f64,
    /// The sum of all steps' proved bounds.
    pub bound: f64,
    pub gap: f64,
    pub placements: u64,
    pub moved_blocks: u64,
    pub moved_bytes: u64,
    pub time_ms: f64,
}

#[derive(Serialize)]
pub struct Judged {
    pub step: u64,
    pub blocks: usize,
    pub makespan: f64,
    pub bound: f64,
    pub gap: f64,
    /// Whether blocks were placed anew before this step.
    pub placed: bool,
    pub moved_blocks: u64,
    pub moved_bytes: u64,
    pub time_ms: f64,
    pub hash: String,
    /// The mean time of the ranks over that of the slowest one at each level, the coarsest first; where levels are known.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub balance_by_level: Vec<LevelRatio>,
}

#[derive(Serialize)]
pub struct LevelRatio {
    pub level: u8,
    pub ratio: f64,
}

/// What the ranks are like, where that is known.
pub struct Ranks {
    speeds: Option<Vec<f64>>,
    memory: Option<Vec<u64>>,
}

impl Ranks {
    /// Errors: ranks that there are not, or memory of ranks where nothing says what blocks need.
    pub fn new(args: &Args, recording: &Recording) -> anyhow::Result<Ranks> {
        let memory = args.memory.of_ranks(args.ranks)?;
        let is_known = |step: &Step| step.memory.len() == step.blocks.len();
        ensure!(
            memory.is_none() || args.bytes_per_block > 0 || recording.steps.iter().all(is_known),
            "use --rank-memory: nothing says what blocks need; add the column memory, or give --bytes-per-block"
        );
        Ok(Ranks {
            speeds: args.ranks_are.speeds(args.ranks)?,
            memory,
        })
    }
}

/// Places and judges step after step.
pub fn follow(
    args: &Args,
    ranks: &Ranks,
    recording: &Recording,
    policy: &Policy,
) -> Result<Run, PlacementError> {
    let mut follower = Follower::new(args, ranks, recording, policy)?;
    let mut run = Run {
        policy: policy.to_string(),
        totals: Totals::default(),
        steps: Vec::new(),
    };
    for step in &recording.steps {
        let judged = follower.step(step)?;
        run.totals.add(&judged);
        run.steps.push(judged);
    }
    let totals = &mut run.totals;
    totals.gap = match totals.bound > 0.0 {
        true => totals.makespan / totals.bound - 1.0,
        false => 0.0,
    };
    Ok(run)
}

struct Follower<'a> {
    args: &'a Args,
    ranks: &'a Ranks,
    recording: &'a Recording,
    dimensions: u8,
    balancer: Balancer,
    /// Steps that have passed.
    n_steps: u64,
    before: Option<(&'a Step, Vec<u32>)>,
}

impl<'a> Follower<'a> {
    fn new(
        args: &'a Args,
        ranks: &'a Ranks,
        recording: &'a Recording,
        policy: &'a Policy,
    ) -> Result<Self, PlacementError> {
        // Without coordinates the cells that stand for blocks have three.
        let dimensions = recording.root_level.map_or(3, |_| args.scene.dimensions);
        let smoothing = match args.foresight {
            // The last cost alone, whatever came before.
            Foresight::Full | Foresight::None => Smoothing {
                weight: 1.0,
                outlier_factor: f64::INFINITY,
                inheritance: args.inherit.into(),
            },
            Foresight::Smoothed => Smoothing {
                weight: args.weight,
                inheritance: args.inherit.into(),
                ..Smoothing::default()
            },
        };
        let balancer = Balancer::new(policy.clone(), args.mesh_life, 0)
            .with_triggers(args.trigger.clone())
            .with_costs(Costs::new(smoothing, dimensions, &[])?)
            .with_speeds(ranks.speeds.clone())
            .with_limit(args.migration_limit());
        Ok(Follower {
            args,
            ranks,
            recording,
            dimensions,
            balancer,
            n_steps: 0,
            before: None,
        })
    }

    fn step(&mut self, step: &'a Step) -> Result<Judged, PlacementError> {
        let mesh_changed = self
            .before
            .as_ref()
            .is_some_and(|(before, _)| before.blocks != step.blocks);
        self.balancer.adapt(&leaves(step));
        let told = match self.args.foresight {
            Foresight::Full => step.costs.clone(),
            Foresight::None | Foresight::Smoothed => self.balancer.costs(step.costs.len()),
        };
        let carried = self
            .before
            .as_ref()
            .map(|(before, owners)| carried(self.dimensions, before, owners, step));
        let (owners, time_ms) = self.decide(step, &told, carried.as_deref(), mesh_changed)?;
        let judged = self.judge(step, &owners, time_ms, carried.as_deref())?;
        self.balancer.observe(&step.costs)?;
        self.n_steps += 1;
        self.before = Some((step, owners));
        Ok(judged)
    }

    /// The owners of a step, and the time of computing them if they were computed.
    fn decide(
        &mut self,
        step: &Step,
        told: &[f64],
        carried: Option<&[u32]>,
        mesh_changed: bool,
    ) -> Result<(Vec<u32>, Option<f64>), PlacementError> {
        let (args, scene) = (self.args, &self.args.scene);
        let limits = Limits {
            blocks_per_rank: None,
            bytes_per_block: args.bytes_per_block,
        };
        let mut problem = problem(args.ranks, self.ranks, told)?
            .with_ranks_per_node(scene.ranks_per_node)?
            .with_machine(scene.message_time)?
            .with_matching(args.matching.into())
            .with_limits(limits)?;
        let graph;
        if let Some(mesh) = self
            .mesh(step)
            .filter(|_| needs_mesh(self.balancer.policy()))
        {
            graph = neighbours(mesh, scene.message_bytes());
            problem = problem.with_mesh(mesh)?.with_graph(graph.as_graph())?;
        }
        let of_blocks = self.memory(step);
        if let (Some(of_ranks), Some(of_blocks)) = (&self.ranks.memory, &of_blocks) {
            problem = problem.with_memory(Memory {
                of_blocks,
                of_ranks,
            })?;
        }
        let Some(present) = carried else {
            let start = Instant::now();
            let owners = self.balancer.place(&problem)?;
            self.balancer.placed(self.n_steps);
            return Ok((owners, Some(start.elapsed().as_secs_f64() * 1e3)));
        };
        let prices = Prices {
            placing: args.placing,
            per_byte: args.moving,
        };
        let problem = problem.with_owners(present)?;
        let placed = self
            .balancer
            .step(self.n_steps, mesh_changed, problem, prices)?;
        Ok(placed.map_or((present.to_vec(), None), |proposal| {
            (proposal.owners, Some(proposal.seconds * 1e3))
        }))
    }

    fn mesh<'s>(&self, step: &'s Step) -> Option<Mesh<'s>> {
        self.recording.root_level.map(|root_level| Mesh {
            dimensions: self.args.scene.dimensions,
            root_level,
            octants: &step.octants,
        })
    }

    /// What the blocks of a step need, where ranks have a limit.
    fn memory(&self, step: &Step) -> Option<Vec<u64>> {
        self.ranks.memory.as_ref()?;
        Some(match step.memory.len() == step.blocks.len() {
            true => step.memory.clone(),
            false => vec![self.args.bytes_per_block; step.blocks.len()],
        })
    }

    fn judge(
        &self,
        step: &Step,
        owners: &[u32],
        time_ms: Option<f64>,
        carried: Option<&[u32]>,
    ) -> Result<Judged, PlacementError> {
        let mut problem = problem(self.args.ranks, self.ranks, &step.costs)?;
        let certificate = certify(&problem, owners)?;
        if let Some(mesh) = self.mesh(step) {
            problem = problem.with_mesh(mesh)?;
        }
        let levels = balance_by_level(&problem, owners).unwrap_or_default();
        let moved =
            |present: &[u32]| present.iter().zip(owners).filter(|(a, b)| a != b).count() as u64;
        let moved_blocks = carried.map_or(0, moved);
        Ok(Judged {
            step: step.step,
            blocks: step.blocks.len(),
            makespan: certificate.makespan,
            bound: certificate.bound,
            gap: certificate.gap,
            placed: time_ms.is_some(),
            moved_blocks,
            moved_bytes: moved_blocks.saturating_mul(self.args.bytes_per_block),
            time_ms: time_ms.unwrap_or(0.0),
            hash: format!("{:016x}", colltune_placement::hash(owners)),
            balance_by_level: levels
                .into_iter()
                .map(|LevelBalance { level, ratio }| LevelRatio { level, ratio })
                .collect(),
        })
    }
}

/// These costs on these ranks.
fn problem<'c>(
    n_ranks: u32,
    ranks: &'c Ranks,
    costs: &'c [f64],
) -> Result<Problem<'c>, PlacementError> {
    let problem = Problem::new(costs, n_ranks)?;
    match &ranks.speeds {
        Some(speeds) => problem.with_speeds(speeds),
        None => Ok(problem),
    }
}

/// The leaves of a step; without coordinates each block is a separate cell, unrelated to others.
fn leaves(step: &Step) -> Vec<Octant> {
    if !step.octants.is_empty() {
        return step.octants.clone();
    }
    let part = |block: u64, shift: u32| (block >> shift) as u32 & ((1 << LEVEL_MAX) - 1);
    let cell =
        |&block: &u64| Octant::new(part(block, 0), part(block, 21), part(block, 42), LEVEL_MAX);
    step.blocks.iter().map(cell).collect()
}

/// Where the blocks of a step are before anything moves.
///
/// Along the curve, what a block was refined from starts at or before it, and what it was merged from
/// starts where it does: the last block of the step before that starts no later is the one to ask.
fn carried(dimensions: u8, before: &Step, owners: &[u32], step: &Step) -> Vec<u32> {
    let places = |step: &Step| -> Vec<u64> {
        match step.octants.is_empty() {
            true => step.blocks.clone(),
            false => {
                let key = |octant: &Octant| Curve::Hilbert.key(dimensions, *octant);
                step.octants.iter().map(key).collect()
            }
        }
    };
    let known = places(before);
    let owner = |place: u64| {
        let after = known.partition_point(|&start| start <= place);
        owners.get(after.saturating_sub(1)).copied().unwrap_or(0)
    };
    places(step).into_iter().map(owner).collect()
}

impl Totals {
    fn add(&mut self, step: &Judged) {
        self.makespan += step.makespan;
        self.bound += step.bound;
        self.placements += u64::from(step.placed);
        self.moved_blocks += step.moved_blocks;
        self.moved_bytes += step.moved_bytes;
        self.time_ms += step.time_ms;
    }
}
