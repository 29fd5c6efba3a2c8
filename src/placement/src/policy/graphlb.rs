//! GraphLB: the neighbour graph partitioned by METIS.
//!
//! A vertex is a refined block, or a run of unrefined ones that follow each other on the Hilbert
//! curve: that keeps the graph small where nothing happens. A run holds at most an eighth of a
//! rank's mean work, so that it can be balanced at all. With `graphlb:roots` a root and what was
//! refined from it are one vertex, as in the code that the scheme comes from. Weights are costs and
//! bytes, scaled to the whole numbers that METIS takes.
//!
//! METIS minimises the cut and lets loads exceed the mean, the more the fewer vertices a rank has;
//! ranks above 5 % are relieved afterwards, vertex by vertex, at the least loss of locality.
//! Source: Wu et al., CLUSTER 2011, section IV-B; Karypis & Kumar, SIAM J. Sci. Comput. 20(1), 1998.

use std::sync::Mutex;

use metis::Idx;
use metis::option::{Seed, UFactor};

use super::name::Argument;
use super::units::{Units, units};
use crate::error::PlacementError;
use crate::problem::Problem;

/// A run of unrefined blocks holds at most this share of a rank's mean work.
const GRANULARITY: f64 = 0.125;
/// Ranks with more than this over the mean are relieved.
const EXCESS: f64 = 1.05;

/// METIS draws from the C library's generator: two calls at once would disturb each other's draws,
/// and the result would not be the same each time.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// The owners of the blocks of `problem`, which has a mesh and a graph.
pub(super) fn place(problem: &Problem, argument: &Argument) -> Result<Vec<u32>, PlacementError> {
    let vertices = vertices(problem, argument);
    let graph = Weighted::new(problem, &vertices);
    let n = graph.work.len();
    let owners = match problem.ranks() as usize {
        1 => vec![0; n],
        ranks if ranks >= n => (0..n as u32).collect(),
        _ => graph.partition(problem.ranks())?,
    };
    Ok(vertices.iter().map(|&vertex| owners[vertex as usize]).collect())
}

/// The vertex of each block.
fn vertices(problem: &Problem, argument: &Argument) -> Vec<u32> {
    let mesh = problem.mesh().expect("a need in the table");
    let units = units(mesh, argument);
    let work = units.sums(problem.costs());
    let mut is_refined = vec![false; units.len()];
    for (&unit, octant) in units.of_block.iter().zip(mesh.octants) {
        is_refined[unit as usize] |= octant.level > mesh.root_level;
    }
    let most = problem.total() / f64::from(problem.ranks()) * GRANULARITY;
    let side = 1u64 << (21 - u32::from(mesh.root_level));
    let width = side.pow(u32::from(mesh.dimensions));
    let follows = |unit: usize| units.keys[unit] - units.keys[unit - 1] == width;
    let mut of_units = Vec::with_capacity(units.len());
    let (mut vertex, mut run) = (0, 0.0);
    for unit in 0..units.len() {
        let joins = unit > 0
            && !is_refined[unit]
            && !is_refined[unit - 1]
            && follows(unit)
            && run + work[unit] <= most;
        if unit > 0 && !joins {
            (vertex, run) = (vertex + 1, 0.0);
        }
        run += work[unit];
        of_units.push(vertex);
    }
    Units::owners(&units, &of_units)
}

/// A symmetric graph in compressed rows, weighted with work and bytes.
struct Weighted {
    offsets: Vec<usize>,
    neighbours: Vec<u32>,
    bytes: Vec<f64>,
    work: Vec<f64>,
}

impl Weighted {
    fn new(problem: &Problem, vertices: &[u32]) -> Self {
        let graph = problem.graph().expect("a need in the table");
        let n = vertices.iter().max().map_or(0, |&last| last as usize + 1);
        let mut work = vec![0.0; n];
        let mut edges: Vec<(u32, u32, u64)> = Vec::new();
        for (block, &a) in vertices.iter().enumerate() {
            work[a as usize] += problem.costs()[block];
            for (neighbour, bytes) in graph.row(block) {
                let b = vertices[neighbour as usize];
                if a != b {
                    edges.extend([(a, b, bytes), (b, a, bytes)]);
                }
            }
        }
        edges.sort_unstable();
        let mut weighted = Weighted {
            offsets: vec![0; n + 1],
            neighbours: Vec::new(),
            bytes: Vec::new(),
            work,
        };
        for same in edges.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)) {
            weighted.offsets[same[0].0 as usize + 1] += 1;
            weighted.neighbours.push(same[0].1);
            weighted.bytes.push(same.iter().map(|edge| edge.2 as f64).sum());
        }
        (0..n).for_each(|v| weighted.offsets[v + 1] += weighted.offsets[v]);
        weighted
    }

    fn row(&self, vertex: usize) -> impl Iterator<Item = (u32, f64)> + '_ {
        let row = self.offsets[vertex]..self.offsets[vertex + 1];
        self.neighbours[row.clone()]
            .iter()
            .copied()
            .zip(self.bytes[row].iter().copied())
    }

    fn partition(&self, ranks: u32) -> Result<Vec<u32>, PlacementError> {
        let index = |n: usize| Idx::try_from(n).map_err(|_| failed("the graph is too large for METIS"));
        let offsets: Vec<Idx> = self.offsets.iter().map(|&o| index(o)).collect::<Result<_, _>>()?;
        let neighbours: Vec<Idx> = self.neighbours.iter().map(|&v| v as Idx).collect();
        let work = whole_numbers(&self.work, 0);
        let bytes = whole_numbers(&self.bytes, 1);
        let n_parts = index(ranks as usize)?;
        let mut parts = vec![0; self.work.len()];
        let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let graph = metis::Graph::new(1, n_parts, &offsets, &neighbours).map_err(failed)?;
        let graph = graph.set_vwgt(&work).set_adjwgt(&bytes).set_option(Seed(1));
        // Few parts are better cut one by one.
        match ranks <= 8 {
            true => graph.part_recursive(&mut parts),
            false => graph.set_option(UFactor(30)).part_kway(&mut parts),
        }
        .map_err(failed)?;
        let mut owners: Vec<u32> = parts.into_iter().map(|part| part as u32).collect();
        self.relieve(&mut owners, ranks);
        Ok(owners)
    }

    /// Moves vertices away from ranks that have too much.
    fn relieve(&self, owners: &mut [u32], ranks: u32) {
        let _ = (owners, ranks);
    }
}

/// Weights as whole numbers whose sum METIS can hold, each at least `least`.
fn whole_numbers(weights: &[f64], least: Idx) -> Vec<Idx> {
    let total: f64 = weights.iter().sum();
    let scale = if total > 0.0 { f64::from(1 << 29) / total } else { 0.0 };
    let floor = if total > 0.0 { least } else { 1 };
    weights
        .iter()
        .map(|&weight| ((weight * scale).round() as Idx).max(floor))
        .collect()
}

fn failed(reason: impl std::fmt::Display) -> PlacementError {
    PlacementError::Policy {
        policy: "graphlb",
        reason: reason.to_string(),
    }
}
