//! One epoch: mesh, what the placer knows, what blocks take, and a step of the program.

use colltune_placement::published::Published;

use super::deck::Deck;
use crate::EmulateError;
use crate::axes::{Axes, Network};
use crate::cost::PhaseCosts;
use crate::machine::Machine;
use crate::mesh::shell::Blocks;
use crate::noise::Noise;
use crate::price::Prices;
use crate::program::phoebus::{Exchanges, Neighbourhood, migration};
use crate::program::{Operation, Phase};
use crate::traffic::Locality;

/// What blocks cost, in units of a block without shock.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BlockCosts {
    /// How much more a block with the shock in it takes.
    pub shock: f64,
    /// Spread of a factor that a block has for good, and that the placer learns.
    pub known_cv: f64,
    /// Spread of a factor of each step, which is unknowable.
    pub unknown_cv: f64,
}

impl BlockCosts {
    /// The spread that is known is tied to the one that is not.
    pub fn new(shock: f64, unknown_cv: f64) -> BlockCosts {
        BlockCosts {
            shock,
            known_cv: unknown_cv * 2.0 / 3.0,
            unknown_cv,
        }
    }
}

/// The mesh of an epoch and of the two before it.
pub struct Epoch {
    number: u64,
    blocks: [Blocks; 3],
    neighbourhood: Neighbourhood,
}

/// Kinds of draws, for [`Noise::lognormal`].
const KNOWN: u64 = 1;
const UNKNOWN: u64 = 2;

impl Epoch {
    pub fn new(deck: &Deck, number: u64) -> Epoch {
        let shell = deck.shell();
        let blocks = [0, 1, 2].map(|ago| shell.blocks(deck.radius(number.saturating_sub(ago))));
        Epoch {
            number,
            neighbourhood: Neighbourhood::new(&blocks[0]),
            blocks,
        }
    }

    /// The root grid, which no shock has reached.
    #[cfg(test)]
    pub fn without_shock(deck: &Deck) -> Epoch {
        let blocks = [(); 3].map(|()| deck.shell().blocks(100.0));
        Epoch {
            number: 0,
            neighbourhood: Neighbourhood::new(&blocks[0]),
            blocks,
        }
    }

    /// What blocks take in the epoch `ago` placements before this one, but for what changes from step to step.
    fn lasting(&self, ago: usize, costs: &BlockCosts, noise: &Noise) -> Vec<f64> {
        let blocks = &self.blocks[ago];
        let each = blocks.octants.iter().zip(&blocks.in_shock);
        each.map(|(octant, &in_shock)| {
            let shock = if in_shock { costs.shock } else { 0.0 };
            (1.0 + shock) * noise.lognormal(KNOWN, packed(octant), costs.known_cv)
        })
        .collect()
    }

    /// What each block takes in one step.
    pub fn takes(&self, costs: &BlockCosts, noise: &Noise) -> Vec<f64> {
        let octants = &self.blocks[0].octants;
        let lasting = self.lasting(0, costs, noise).into_iter().zip(octants);
        let step = self.number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        lasting
            .map(|(time, octant)| {
                time * noise.lognormal(UNKNOWN, packed(octant) ^ step, costs.unknown_cv)
            })
            .collect()
    }

    /// What the placer believes at the beginning of the epoch `ago` placements before: what was, an epoch earlier.
    fn believed(&self, ago: usize, costs: &BlockCosts, noise: &Noise) -> Vec<f64> {
        let before = self.lasting(ago + 1, costs, noise);
        self.blocks[ago].inherit(&self.blocks[ago + 1], &before)
    }

    /// What a placer believes in this epoch, and what it believed in the one before.
    pub fn beliefs(&self, costs: &BlockCosts, noise: &Noise) -> [Vec<f64>; 2] {
        [0, 1].map(|ago| self.believed(ago, costs, noise))
    }

    pub fn exchanges(&self, owners: &[u32], n_ranks: usize) -> Exchanges {
        self.neighbourhood.exchanges(owners, n_ranks)
    }

    /// Blocks that exist in both epochs and change their owner, as (from, to).
    fn moves<'a>(&'a self, owners: &'a [Vec<u32>; 2]) -> impl Iterator<Item = (u32, u32)> + 'a {
        let stayed = self.blocks[0].stayed(&self.blocks[1]);
        stayed.map(|(now, then)| (owners[1][then], owners[0][now]))
    }
}

/// The owners under a policy, now and in the epoch before, by what it believes.
///
/// Errors: `Policy` that refuses so many ranks.
pub fn place(
    policy: Published,
    n_ranks: usize,
    beliefs: &[Vec<f64>; 2],
) -> Result<[Vec<u32>; 2], EmulateError> {
    let place = |costs: &[f64]| {
        let owners = policy.place(costs, n_ranks as u32);
        owners.ok_or_else(|| refused(policy, n_ranks))
    };
    Ok([place(&beliefs[0])?, place(&beliefs[1])?])
}

pub fn refused(policy: Published, n_ranks: usize) -> EmulateError {
    EmulateError::Policy {
        policy: format!("published:{policy}"),
        reason: format!("its code refuses {n_ranks} ranks"),
    }
}

/// A block's name: its place on the finest level, and its own.
fn packed(octant: &colltune_placement::Octant) -> u64 {
    colltune_placement::Curve::Morton.key(3, *octant) ^ (u64::from(octant.level) << 58)
}

/// Where a step's time goes, and an epoch's; means over the ranks, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Times {
    pub compute: f64,
    /// Packing, messages and waiting for them, as the paper's own telemetry counts it.
    pub communication: f64,
    /// Of that: waiting for senders who still compute.
    pub late: f64,
    /// Waiting for the last rank of a collective, and the collective.
    pub synchronisation: f64,
    pub rebalance: f64,
}

impl Times {
    pub fn total(&self) -> f64 {
        self.compute + self.communication + self.synchronisation + self.rebalance
    }

    pub fn add(&mut self, other: &Times, weight: f64) {
        self.compute += weight * other.compute;
        self.communication += weight * other.communication;
        self.late += weight * other.late;
        self.synchronisation += weight * other.synchronisation;
        self.rebalance += weight * other.rebalance;
    }
}

/// The ranks and what they run on.
#[derive(Clone)]
pub struct Setting<'a> {
    pub machine: &'a Machine,
    pub n_ranks: usize,
    pub network: Network,
    /// Nanoseconds of a block without shock in a step.
    pub block_ns: f64,
    /// Ranks of this node compute so many times as long.
    pub slow: Option<(usize, f64)>,
}

/// An epoch under one policy: times of a step, with the moving of blocks shared among its steps.
pub struct Run {
    pub times: Times,
    pub locality: Locality,
    pub moved_blocks: usize,
}

impl Setting<'_> {
    /// Runs the step that stands for an epoch.
    ///
    /// Errors: a collective that cannot be priced.
    pub fn run(
        &self,
        epoch: &Epoch,
        takes: &[f64],
        owners: &[Vec<u32>; 2],
        prices: &mut Prices,
        steps: f64,
    ) -> Result<Run, EmulateError> {
        let exchanges = epoch.exchanges(&owners[0], self.n_ranks);
        let mut compute_ns = vec![0.0; self.n_ranks];
        for (time, &owner) in takes.iter().zip(&owners[0]) {
            compute_ns[owner as usize] += time * self.block_ns * self.machine.scale;
        }
        let mut axes = self.axes();
        for operation in exchanges.step(&compute_ns) {
            let time = match &operation {
                Operation::Collective(call) => prices.call_ns(call)?,
                _ => 0.0,
            };
            axes.act(&operation, &mut |_| time);
        }
        debug_assert!(axes.gap() < 1e-9, "phases do not add up: {}", axes.gap());
        let mut times = self.times(&axes);
        let mut moved_blocks = 0;
        if let Some(moves) = migration(self.n_ranks, epoch.moves(owners)) {
            moved_blocks = moves.messages.len();
            let mut axes = self.axes();
            axes.exchange(&moves);
            times.rebalance = 1e-9 * axes.makespan() / steps;
        }
        Ok(Run {
            times,
            locality: exchanges.locality(self.machine.shape.ppn),
            moved_blocks,
        })
    }

    fn axes(&self) -> Axes<'_> {
        let costs = PhaseCosts::default();
        let mut axes = Axes::new(self.machine, self.n_ranks, &costs, self.network);
        if let Some((node, factor)) = self.slow {
            let ppn = self.machine.shape.ppn as usize;
            axes.slow(node * ppn..((node + 1) * ppn).min(self.n_ranks), factor);
        }
        axes
    }

    fn times(&self, axes: &Axes) -> Times {
        let mean = |phases: &[Phase]| {
            let of = |spent: &[f64; Phase::ALL.len()]| {
                phases.iter().map(|&p| spent[p as usize]).sum::<f64>()
            };
            1e-9 * axes.spent.iter().map(of).sum::<f64>() / self.n_ranks as f64
        };
        use Phase::{Collective, Compute, Copy, Late, Pack, Sync, Transit, Unpack};
        Times {
            compute: mean(&[Compute]),
            communication: mean(&[Pack, Copy, Transit, Late, Unpack]),
            late: mean(&[Late]),
            synchronisation: mean(&[Sync, Collective]),
            rebalance: 0.0,
        }
    }
}
