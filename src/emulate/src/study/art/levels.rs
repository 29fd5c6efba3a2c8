//! ART's step by levels: what each process computes at each level, and whose cells it needs there.
//!
//! A halo is a singular isothermal sphere, whose mass within `r` grows as `r`, and cells are refined by their mass.
//! So a level holds `8^-1/2` times the mass of the level below it, takes half as long a step and `2^-1/2` times its
//! work. A halo reaches a level less for each factor of `2^1.5` in its mass (the mass in its innermost cell goes as
//! `m^2/3 2^-l`). The heaviest reaches the last level.

use std::sync::Arc;

use colltune_amr::telemetry::Freight;
use colltune_placement::curve::{ContactBytes, neighbours};

use super::cosmology::{EVEN, Universe};
use crate::axes::{Axes, Network};
use crate::cost::PhaseCosts;
use crate::machine::Machine;
use crate::outcome::lbr;
use crate::program::{Exchange, Message, Operation, Phase};

/// The paper's root cells.
const ROOT_CELLS: f64 = 256.0 * 256.0 * 256.0;
/// Assumed: a cell's step takes a process of eight threads so long, and a buffer cell has so many variables.
pub const CELL_NS: f64 = 2000.0;
pub const VARIABLES: f64 = 10.0;

/// Cells by level and root unit.
struct Cells(Vec<Vec<f64>>);

impl Cells {
    fn new(universe: &Universe, max: usize) -> Cells {
        let n = universe.work.len();
        let cell = EVEN / ROOT_CELLS;
        let even = EVEN / n as f64;
        let most = universe.work.iter().copied().fold(0.0, f64::max) - even;
        let mut cells = vec![vec![0.0; n]; max + 1];
        cells[0].fill(ROOT_CELLS / n as f64);
        for (root, work) in universe.work.iter().enumerate() {
            let halo = work - even;
            // What rounding leaves is none.
            if halo <= 1e-12 {
                continue;
            }
            let fewer = (most / halo).log2() * 2.0 / 3.0;
            let reach = max - (fewer.max(0.0).floor() as usize).min(max);
            let share = |level: usize| 0.5f64.sqrt().powi(level as i32);
            let all: f64 = (0..=reach).map(share).sum();
            for (level, of_level) in cells.iter_mut().enumerate().take(reach + 1) {
                let steps = f64::from(1 << level);
                of_level[root] += halo * share(level) / all / (steps * cell);
            }
        }
        Cells(cells)
    }
}

/// What an iteration of all levels took.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Iteration {
    pub total_ns: f64,
    /// Load balance ratio by level, percent.
    pub lbr: Vec<f64>,
    /// By level: waiting and unpacking in its exchanges, the mean over the processes; nanoseconds.
    pub comm_ns: Vec<f64>,
}

/// The levels in the order in which they take their steps: each behind two of the next finer one.
pub fn order(max: usize) -> Vec<usize> {
    fn evolve(level: usize, max: usize, order: &mut Vec<usize>) {
        if level < max {
            evolve(level + 1, max, order);
            evolve(level + 1, max, order);
        }
        order.push(level);
    }
    let mut all = Vec::new();
    evolve(0, max, &mut all);
    all
}

/// The steps of all levels on the processes that own the roots: listed once, for any machine.
pub struct Steps {
    n_ranks: usize,
    /// By level.
    levels: Vec<[Operation; 2]>,
}

impl Steps {
    pub fn new(universe: &Universe, max: usize, owners: &[u32], n_ranks: usize) -> Steps {
        let cells = Cells::new(universe, max);
        let of_level = |cells: &Vec<f64>| operations(universe, cells, owners, n_ranks);
        Steps {
            n_ranks,
            levels: cells.0.iter().map(of_level).collect(),
        }
    }

    /// One iteration.
    pub fn run(&self, machine: &Machine) -> Iteration {
        let n_ranks = self.n_ranks;
        let mut axes = Axes::new(machine, n_ranks, &PhaseCosts::default(), Network::Axes);
        let mut comm_ns = vec![0.0; self.levels.len()];
        let waited = |axes: &Axes| -> f64 {
            let of = |spent: &[f64; Phase::ALL.len()]| -> f64 {
                let phases = [Phase::Transit, Phase::Late, Phase::Unpack];
                phases.iter().map(|&phase| spent[phase as usize]).sum()
            };
            axes.spent.iter().map(of).sum::<f64>() / n_ranks as f64
        };
        for level in order(self.levels.len() - 1) {
            let before = waited(&axes);
            for operation in &self.levels[level] {
                axes.act(operation, &mut |_| unreachable!("no collectives here"));
            }
            comm_ns[level] += waited(&axes) - before;
        }
        axes.end();
        let lbr = self.levels.iter().map(|[_, work]| match work {
            Operation::Work { time_ns, .. } => lbr(time_ns),
            _ => 100.0,
        });
        Iteration {
            total_ns: axes.makespan(),
            lbr: lbr.collect(),
            comm_ns,
        }
    }
}

/// A level's step: buffer cells from the owners of adjacent cells of the level, then its cells.
fn operations(
    universe: &Universe,
    cells: &[f64],
    owners: &[u32],
    n_ranks: usize,
) -> [Operation; 2] {
    let contact = ContactBytes {
        face: 1,
        edge: 0,
        corner: 0,
    };
    let graph = neighbours(universe.mesh(), contact);
    let graph = graph.as_graph();
    let mut bytes = std::collections::BTreeMap::new();
    for (root, &of_root) in cells.iter().enumerate() {
        for (other, _) in graph.row(root) {
            let both = of_root.min(cells[other as usize]);
            let (from, to) = (owners[other as usize], owners[root]);
            if from != to && both > 0.0 {
                // The face of a cube of as many cells.
                *bytes.entry((from, to)).or_insert(0.0) += 8.0 * VARIABLES * both.powf(2.0 / 3.0);
            }
        }
    }
    let message = |((from, to), bytes): ((u32, u32), f64)| Message {
        from,
        to,
        bytes: bytes.ceil() as u64,
    };
    let messages = bytes.into_iter().map(message).collect();
    let mut time_ns = vec![0.0; n_ranks];
    for (&n, &owner) in cells.iter().zip(owners) {
        time_ns[owner as usize] += CELL_NS * n;
    }
    [
        Operation::Exchange(Arc::new(Exchange::new(Freight::Ghost, n_ranks, messages))),
        Operation::Work {
            phase: Phase::Compute,
            time_ns: Arc::new(time_ns),
        },
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::preset;

    #[test]
    fn each_level_follows_two_steps_of_the_next_finer_one() {
        assert_eq!(order(0), [0]);
        assert_eq!(order(1), [1, 1, 0]);
        assert_eq!(order(2), [2, 2, 1, 2, 2, 1, 0]);
        assert_eq!(order(3).len(), 15);
        assert_eq!(order(9).iter().filter(|&&level| level == 9).count(), 512);
    }

    #[test]
    fn levels_together_have_the_work_of_their_roots() {
        let universe = Universe::new(4, 1, 1.8, 0.02);
        let cells = Cells::new(&universe, 6);
        for (root, work) in universe.work.iter().enumerate() {
            let steps = (0..=6).map(|level| f64::from(1 << level) * cells.0[level][root]);
            let sum: f64 = steps.sum::<f64>() * EVEN / ROOT_CELLS;
            assert!((sum / work - 1.0).abs() < 1e-6, "{sum} {work}");
        }
        let reached = |level: usize| cells.0[level].iter().filter(|&&n| n > 0.0).count();
        assert!(reached(6) >= 1 && (1..=6).all(|level| reached(level) <= reached(level - 1)));
    }

    #[test]
    fn a_process_alone_waits_for_nobody_and_two_that_share_evenly_do_for_messages() {
        let universe = Universe::new(4, 1, 1.8, 0.02);
        let machine = preset("abe").unwrap();
        let n = universe.work.len();
        let one = Steps::new(&universe, 3, &vec![0; n], 1).run(&machine);
        assert_eq!(one.comm_ns, [0.0; 4]);
        assert_eq!(one.lbr, [100.0; 4]);
        let halves: Vec<u32> = (0..n).map(|i| u32::from(i >= n / 2)).collect();
        let two = Steps::new(&universe, 3, &halves, 2).run(&machine);
        assert!(two.total_ns < one.total_ns);
        // No two halos lie beside each other there, so deeper levels have nothing to send.
        assert!(two.comm_ns[0] > 0.0);
    }
}
