//! A run's operations, listed once and then run with other costs.

use std::sync::Arc;

use colltune_amr::compat::Compat;
use colltune_amr::deck;
use colltune_amr::run::MeshRun;
use colltune_amr::settings::{Settings, Work as Kernel};

use super::matrix::Matrix;
use super::tally::{Section, Tally, computes};
use crate::EmulateError;
use crate::axes::{Axes, Meeting, Network};
use crate::cost::{Costs, PhaseCosts};
use crate::machine::Machine;
use crate::mesh::settings;
use crate::price::{Choices, Prices};
use crate::program::{Calls, Given, History, Operation, Phase, Program};

/// Stages of a step, and how often sums are checked in them: never in the last.
const STAGES: usize = 20;
const CHECK_FREQ: usize = 10;
/// Assumed work of refinement, before it is scaled: of a value that is split or joined, and of a byte that moves.
const REFINE_VALUE_NS: f64 = 1.0;
const MIGRATE_BYTE_NS: f64 = 0.25;

/// A deck, and the number of blocks a rank by which its depth is set.
#[derive(Clone, Copy, Debug)]
pub struct Deck {
    pub name: &'static str,
    pub blocks_per_rank: f64,
    pub on_ranks: usize,
}

/// The two numbers that are set.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scales {
    pub cell_ns: f64,
    pub refine: f64,
}

/// Where the time went: nanoseconds, means over the ranks.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spent {
    pub compute: f64,
    /// Reductions of the sums, with waiting for the last.
    pub sums: f64,
    pub comm: f64,
    pub refine: f64,
}

impl Spent {
    pub fn total(&self) -> f64 {
        self.compute + self.sums + self.comm + self.refine
    }

    /// Calculation, communication and refinement, percent.
    pub fn shares(&self) -> [f64; 3] {
        [self.compute + self.sums, self.comm, self.refine].map(|part| 100.0 * part / self.total())
    }
}

/// A listed run.
pub struct Script {
    n_ranks: usize,
    operations: Vec<(Section, Operation)>,
    pub blocks_per_rank: f64,
    /// Of ghosts, in one stage of the last step.
    pub ghosts: Matrix,
    /// Of blocks, in the last refinement that moved any.
    pub moves: Matrix,
    pub moved_blocks: u64,
    /// Ghost messages of a stage, a rank, and bytes of one: means over the run.
    pub messages_per_rank: f64,
    pub message_bytes: f64,
}

/// Ranks as a grid, as near to a cube as powers of two come.
pub fn grid(n_ranks: usize) -> [usize; 3] {
    let mut grid = [1; 3];
    for i in 0..n_ranks.ilog2() as usize {
        grid[i % 3] *= 2;
    }
    grid
}

/// The words of a deck on one root block for each rank.
pub fn line(name: &str, n_ranks: usize, depth: u32, steps: u64, freq: u64, more: &str) -> String {
    let [x, y, z] = grid(n_ranks);
    format!(
        "--deck {name} --compat --placement rcb --npx {x} --npy {y} --npz {z} --num_refine {depth} --num_tsteps {steps} \
         --refine_freq {freq} --stages_per_ts {STAGES} --checksum_freq {CHECK_FREQ} {more}"
    )
}

fn settings_of(line: &str, n_ranks: usize) -> Result<Settings, EmulateError> {
    let program = std::iter::once("colltune-amr".to_owned());
    let words = program.chain(line.split_whitespace().map(str::to_owned));
    let words = deck::expand(words).map_err(EmulateError::Mesh)?;
    settings(&words[1..], n_ranks, n_ranks)
}

/// The depth of refinement with which a deck has as many blocks as the paper's, or nearly; `less` levels fewer.
pub fn depth(deck: &Deck, less: u32) -> Result<u32, EmulateError> {
    let mut best = (f64::INFINITY, 0);
    for depth in 1..=6 {
        let settings = settings_of(
            &line(deck.name, deck.on_ranks, depth, 1, 1, ""),
            deck.on_ranks,
        )?;
        let mut run = MeshRun::new(&settings, deck.on_ranks);
        run.start(None, &mut |_| {})?;
        let found = run.mesh.len() as f64 / deck.on_ranks as f64;
        let off = (found / deck.blocks_per_rank).ln().abs();
        if off < best.0 {
            best = (off, depth);
        } else if found > deck.blocks_per_rank {
            break;
        }
    }
    Ok(best.1.saturating_sub(less).max(1))
}

impl Script {
    /// Lists a run from its first step to its last.
    ///
    /// Errors: the program's.
    pub fn record(line: &str, n_ranks: usize) -> Result<Script, EmulateError> {
        let settings = settings_of(line, n_ranks)?;
        let calls = Calls::new(n_ranks);
        let compat = Compat::start(&calls, &settings);
        let mut costs = Costs::uniform(Kernel::Seven, 1.0);
        costs.phases.refine_value_ns = REFINE_VALUE_NS;
        let mut program = Program::new(Given {
            settings: &settings,
            n_ranks,
            costs: &costs,
            scale: 1.0,
            noise: None,
            history: History::Objects,
            choose: None,
            compat: Some((&compat, &calls)),
        })?;
        let values = settings.shape.n_vars * settings.shape.interior_cells();
        let mut tally = Tally::new(8 * values as u64);
        let (mut operations, mut blocks, mut n_steps) = (Vec::new(), 0.0, 0.0);
        loop {
            blocks += program.mesh().len() as f64;
            let mut n_computed = 0;
            let goes_on = program.next_step(&mut |operation| {
                // No sums follow the last stage, so what comes then is refinement.
                let section = match n_computed < STAGES {
                    true => Section::Stages,
                    false => Section::Refinement,
                };
                n_computed += usize::from(computes(operation));
                tally.add(section, operation);
                operations.push((section, operation.clone()));
            })?;
            if !goes_on {
                break;
            }
            n_steps += 1.0;
            tally.end_step();
        }
        // The step that was not there any more was counted, too.
        blocks -= program.mesh().len() as f64;
        let per_stage = STAGES as f64 * n_steps * n_ranks as f64;
        Ok(Script {
            n_ranks,
            operations,
            blocks_per_rank: blocks / n_steps / n_ranks as f64,
            ghosts: Matrix::new(n_ranks, &tally.ghosts),
            moves: Matrix::new(n_ranks, &tally.moves),
            moved_blocks: tally.moved_bytes / tally.block_bytes,
            messages_per_rank: tally.n_messages / per_stage,
            message_bytes: tally.message_bytes / tally.n_messages.max(1.0),
        })
    }

    /// Runs it on a machine with these costs.
    ///
    /// Errors: a collective's that has no price.
    pub fn replay(&self, machine: &Machine, scales: Scales) -> Result<Spent, EmulateError> {
        let handling = PhaseCosts {
            migrate_byte_ns: scales.refine * MIGRATE_BYTE_NS,
            ..PhaseCosts::default()
        };
        let mut axes = Axes::new(machine, self.n_ranks, &handling, Network::Events);
        let mut prices = Prices::new(machine, Choices::default());
        let mut spent = Spent::default();
        let (mut before, mut section) = ([0.0; Phase::ALL.len()], Section::Stages);
        for (of, operation) in &self.operations {
            if *of != section {
                let now = means(&axes);
                spent.add(section, &before, &now);
                (before, section) = (now, *of);
            }
            let time = match operation {
                Operation::Collective(call) => prices.call_ns(call)?,
                _ => 0.0,
            };
            let scaled = scaled(operation, scales);
            axes.act(scaled.as_ref().unwrap_or(operation), &mut |_| {
                Meeting::Gate(time)
            });
        }
        axes.end();
        spent.add(section, &before, &means(&axes));
        Ok(spent)
    }
}

/// Work with its cost; none for what has no scale.
fn scaled(operation: &Operation, scales: Scales) -> Option<Operation> {
    let Operation::Work { phase, time_ns } = operation else {
        return None;
    };
    let factor = match phase {
        Phase::Compute => scales.cell_ns,
        Phase::Refine => scales.refine,
        _ => return None,
    };
    let time_ns = Arc::new(time_ns.iter().map(|time| factor * time).collect());
    Some(Operation::Work {
        phase: *phase,
        time_ns,
    })
}

type Phases = [f64; Phase::ALL.len()];

fn means(axes: &Axes) -> Phases {
    let n = axes.n_ranks() as f64;
    std::array::from_fn(|phase| axes.spent.iter().map(|spent| spent[phase]).sum::<f64>() / n)
}

impl Spent {
    fn add(&mut self, section: Section, before: &Phases, now: &Phases) {
        for phase in Phase::ALL {
            let time = now[phase as usize] - before[phase as usize];
            let to = match (section, phase) {
                (Section::Refinement, _) => &mut self.refine,
                (_, Phase::Compute | Phase::Sum | Phase::Other) => &mut self.compute,
                (_, Phase::Sync | Phase::Collective) => &mut self.sums,
                _ => &mut self.comm,
            };
            *to += time;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_make_a_grid_of_as_many() {
        for n in [1usize, 2, 16, 128, 131_072] {
            assert_eq!(grid(n).iter().product::<usize>(), n);
        }
        assert_eq!(grid(128), [8, 4, 4]);
    }

    #[test]
    fn a_stage_has_the_reductions_that_the_paper_counts_nearly() {
        let line = line("four-spheres", 16, 1, 2, 2, "");
        let script = Script::record(&line, 16).unwrap();
        let reductions = script.operations.iter().filter(|(section, operation)| {
            *section == Section::Stages && matches!(operation, Operation::Collective(_))
        });
        // Two steps of 64, where the paper has 62.
        assert_eq!(reductions.count(), 2 * 64);
        assert!(script.messages_per_rank > 0.0 && script.message_bytes > 0.0);
    }
}
