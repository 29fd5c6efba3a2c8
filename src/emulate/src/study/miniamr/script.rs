//! A run's operations, listed once and then run with other costs.

use std::sync::Arc;

use colltune_amr::compat::Compat;
use colltune_amr::deck;
use colltune_amr::run::MeshRun;
use colltune_amr::settings::{Settings, Work as Kernel};

use super::matrix::Matrix;
use super::tally::{Section, Tally, computes};
use crate::EmulateError;
use crate::axes::{Axes, Network};
use crate::cost::{Costs, PhaseCosts};
use crate::machine::Machine;
use crate::mesh::settings;
use crate::price::{Choices, Prices};
use crate::program::{Calls, Given, History, Operation, Phase, Program};

/// Stages of a step, and how often sums are checked in them: never in the last.
const STAGES: usize = 20;
const CHECK_FREQ: usize = 10;
/// An update of a cell's variable: six additions and a division at the 475.4 Mflop/s that the paper counted in it.
const CELL_NS: f64 = 7.0 / 0.4754;
/// Its share in a sum: one addition.
const SUM_CELL_NS: f64 = CELL_NS / 7.0;
/// Assumed work of refinement, before it is scaled: of a value that is split or joined, and of a byte that moves.
const REFINE_VALUE_NS: f64 = 1.0;
const MIGRATE_BYTE_NS: f64 = 0.25;
/// Runs begin so many of the deck's forty steps on: the sphere has hit the block, and the four have set out.
const BEGUN: f64 = 15.0;

/// A deck, and the number of blocks a rank by which its depth is set.
#[derive(Clone, Copy, Debug)]
pub struct Deck {
    pub name: &'static str,
    pub blocks_per_rank: f64,
    pub on_ranks: usize,
}

/// The two numbers that are set: how many times what is assumed of a byte that is packed, unpacked or copied, and of
/// refinement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scales {
    pub handling: f64,
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

impl Scales {
    /// What is assumed.
    pub const ASSUMED: Scales = Scales {
        handling: 1.0,
        refine: 1.0,
    };
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

/// A listed run. Between two refinements mesh and owners stand still: of the steps there, one is listed for all.
pub struct Script {
    n_ranks: usize,
    operations: Vec<(Section, Operation)>,
    /// Steps for which each listed one stands.
    n_alike: u64,
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

/// Steps between two refinements: miniAMR's own default.
pub const REFINE_FREQ: u64 = 5;

/// The words of a deck on one root block for each rank.
pub fn line(name: &str, n_ranks: usize, depth: u32, steps: u64, more: &str) -> String {
    let [x, y, z] = grid(n_ranks);
    format!(
        "--deck {name} --compat --placement rcb --npx {x} --npy {y} --npz {z} --num_refine {depth} --num_tsteps {steps} \
         --refine_freq {REFINE_FREQ} --stages_per_ts {STAGES} --checksum_freq {CHECK_FREQ} {more}"
    )
}

/// The run of a line, with steps in which nothing moves further than half a finest cell: miniAMR's own rule where it
/// runs for a time, and about what an explicit code as CTH may do.
fn settings_of(line: &str, n_ranks: usize) -> Result<Settings, EmulateError> {
    let read = |more: &str| {
        let program = std::iter::once("colltune-amr".to_owned());
        let words = line.split_whitespace().chain(more.split_whitespace());
        let words = deck::expand(program.chain(words.map(str::to_owned)));
        settings(&words.map_err(EmulateError::Mesh)?[1..], n_ranks, n_ranks)
    };
    let as_given = read("")?;
    let cells = as_given.shape.cells;
    let half_cells = std::array::from_fn(|d| {
        let blocks = u64::from(as_given.grid.roots[d]) << (as_given.grid.depth + 1);
        (blocks * cells[d] as u64) as f64
    });
    let step = as_given.objects.time_step(half_cells);
    let time = step * as_given.n_steps.unwrap_or(1) as f64;
    let mut settings = read(&format!("--time {time}"))?;
    settings.objects.advance(BEGUN);
    Ok(settings)
}

/// Leaves of a deck's mesh, a rank.
///
/// Errors: the program's.
pub fn blocks_per_rank(name: &str, n_ranks: usize, depth: u32) -> Result<f64, EmulateError> {
    let settings = settings_of(&line(name, n_ranks, depth, 1, ""), n_ranks)?;
    let mut run = MeshRun::new(&settings, n_ranks);
    run.start(None, &mut |_| {})?;
    Ok(run.mesh.len() as f64 / n_ranks as f64)
}

/// The depth of refinement with which a deck has as many blocks as the paper's, or nearly; `less` levels fewer.
pub fn depth(deck: &Deck, less: u32) -> Result<u32, EmulateError> {
    let mut best = (f64::INFINITY, 0);
    for depth in 1..=6 {
        let found = blocks_per_rank(deck.name, deck.on_ranks, depth)?;
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
        let mut costs = Costs::uniform(Kernel::Seven, CELL_NS);
        costs.phases.sum_cell_ns = SUM_CELL_NS;
        costs.phases.refine_value_ns = REFINE_VALUE_NS;
        let mut program = Program::new(Given {
            settings: &settings,
            n_ranks,
            costs: &costs,
            scale: 1.0,
            noise: None,
            history: History::Objects,
            choose: None,
            timer: None,
            compat: Some((&compat, &calls)),
        })?;
        let values = settings.shape.n_vars * settings.shape.interior_cells();
        let mut tally = Tally::new(8 * values as u64);
        let (mut operations, mut blocks, mut n_listed) = (Vec::new(), 0.0, 0.0);
        let n_alike = settings.options.refine_freq;
        for step in 0..settings.n_steps.unwrap_or(0) {
            let is_listed = step.is_multiple_of(n_alike);
            if is_listed {
                blocks += program.mesh().len() as f64;
                n_listed += 1.0;
            }
            let mut n_computed = 0;
            program.next_step(&mut |operation| {
                // No sums follow the last stage, so what comes then is refinement.
                let section = match n_computed < STAGES {
                    true => Section::Stages,
                    false => Section::Refinement,
                };
                n_computed += usize::from(computes(operation));
                if section == Section::Refinement || is_listed {
                    tally.add(section, operation);
                    operations.push((section, operation.clone()));
                }
            })?;
            if (step + 1).is_multiple_of(n_alike) {
                tally.end_epoch();
            }
        }
        let per_stage = STAGES as f64 * n_listed * n_ranks as f64;
        Ok(Script {
            n_ranks,
            operations,
            n_alike,
            blocks_per_rank: blocks / n_listed / n_ranks as f64,
            ghosts: Matrix::new(n_ranks, &tally.ghosts),
            moves: Matrix::new(n_ranks, &tally.moves),
            moved_blocks: tally.moved_blocks,
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
        let handled = handled(machine, scales.handling);
        let mut axes = Axes::new(&handled, self.n_ranks, &handling, Network::Events);
        let mut prices = Prices::new(machine, Choices::default());
        let mut spent = Spent::default();
        let (mut before, mut section) = ([0.0; Phase::ALL.len()], Section::Stages);
        for (of, operation) in &self.operations {
            if *of != section {
                let now = means(&axes);
                spent.add(section, self.times(section), [&before, &now]);
                (before, section) = (now, *of);
            }
            let time = match operation {
                Operation::Collective(call) => prices.call_ns(call)?,
                _ => 0.0,
            };
            let scaled = scaled(operation, scales);
            axes.act(scaled.as_ref().unwrap_or(operation), &mut |_| time);
        }
        axes.end();
        spent.add(section, self.times(section), [&before, &means(&axes)]);
        Ok(spent)
    }

    /// How often a listed section comes.
    fn times(&self, section: Section) -> f64 {
        match section {
            Section::Stages => self.n_alike as f64,
            Section::Refinement => 1.0,
        }
    }
}

/// The machine with so many times what is assumed of its handling of bytes.
fn handled(machine: &Machine, scale: f64) -> Machine {
    let mut machine = machine.clone();
    if let Some(app) = &mut machine.app {
        app.pack_byte_ns *= scale;
        app.unpack_byte_ns *= scale;
        app.copy_byte_ns *= scale;
    }
    machine
}

/// Work of refinement with its cost; none for what has no scale.
fn scaled(operation: &Operation, scales: Scales) -> Option<Operation> {
    let Operation::Work {
        phase: Phase::Refine,
        time_ns,
    } = operation
    else {
        return None;
    };
    let time_ns = time_ns.iter().map(|time| scales.refine * time).collect();
    Some(Operation::Work {
        phase: Phase::Refine,
        time_ns: Arc::new(time_ns),
    })
}

type Phases = [f64; Phase::ALL.len()];

fn means(axes: &Axes) -> Phases {
    let n = axes.n_ranks() as f64;
    std::array::from_fn(|phase| axes.spent.iter().map(|spent| spent[phase]).sum::<f64>() / n)
}

impl Spent {
    fn add(&mut self, section: Section, times: f64, [before, now]: [&Phases; 2]) {
        for phase in Phase::ALL {
            let time = times * (now[phase as usize] - before[phase as usize]);
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
    use crate::machine::preset;

    #[test]
    fn ranks_make_a_grid_of_as_many() {
        for n in [1usize, 2, 16, 128, 131_072] {
            assert_eq!(grid(n).iter().product::<usize>(), n);
        }
        assert_eq!(grid(128), [8, 4, 4]);
    }

    #[test]
    fn a_step_has_the_reductions_that_the_paper_counts_nearly_and_stands_for_those_to_the_refinement()
     {
        let line = line("four-spheres", 16, 1, 10, "");
        let script = Script::record(&line, 16).unwrap();
        let reductions = script.operations.iter().filter(|(section, operation)| {
            *section == Section::Stages && matches!(operation, Operation::Collective(_))
        });
        // Two listed steps of 64, where the paper has 62.
        assert_eq!(reductions.count(), 2 * 64);
        assert!(script.messages_per_rank > 0.0 && script.message_bytes > 0.0);
        let spent = script
            .replay(&preset("gemini").unwrap(), Scales::ASSUMED)
            .unwrap();
        let cells = 16.0 * script.blocks_per_rank * 512.0 * 32.0;
        let [updates, sums] = [20.0, 2.0].map(|times| 10.0 * times * cells / 16.0);
        let computed = updates * CELL_NS + sums * SUM_CELL_NS;
        assert!((spent.compute / computed - 1.0).abs() < 1e-9, "{spent:?}");
    }

    #[test]
    fn nothing_moves_further_than_half_a_finest_cell_in_a_step() {
        for (ranks, depth) in [(16, 2), (128, 3)] {
            let line = line("four-spheres", ranks, depth, 20, "");
            let settings = settings_of(&line, ranks).unwrap();
            let step = settings.options.time.unwrap() / 20.0;
            let cells = f64::from(grid(ranks)[0] as u32 * 8 * (1 << depth));
            let speed = settings.objects.as_slice()[0].velocity[0].abs();
            assert!((step * speed * cells - 0.5).abs() < 1e-9);
        }
    }
}
