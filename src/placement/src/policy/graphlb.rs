//! GraphLB: the neighbour graph partitioned by METIS.
//!
//! A vertex is a refined block, or a run of unrefined ones that follow each other on the Hilbert
//! curve: that keeps the graph small where nothing happens. A run holds at most an eighth of a
//! rank's mean work, so that it can be balanced at all. With `graphlb:roots` a root and what was
//! refined from it are one vertex, as in the code that the scheme comes from. Weights are costs and
//! bytes, scaled to the whole numbers that METIS takes.
//!
//! A vertex heavier than a rank's share of what is left gets a rank to itself before METIS is asked.
//! METIS minimises the cut and lets loads exceed the mean, the more the fewer vertices a rank has;
//! ranks above 5 % are relieved afterwards, vertex by vertex, at the least loss of locality. `graphlb:raw` is METIS
//! alone: single blocks, nothing set aside and nothing relieved. There it cuts in two, and each half in two again, which
//! is its own recursive bisection but for halves without blocks: it says on standard output that it cannot cut those.
//! Source: Wu et al., CLUSTER 2011, section IV-B; Karypis & Kumar, SIAM J. Sci. Comput. 20(1), 1998.

use std::ops::Range;
use std::sync::Mutex;

use metis::Idx;
use metis::option::Seed;

use super::least_loaded::Tournament;
use super::row::Argument;
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
    if *argument == Argument::Raw {
        return raw(problem);
    }
    let vertices = vertices(problem, argument);
    let graph = Weighted::new(problem, &vertices);
    let n = graph.work.len();
    let owners = match problem.ranks() as usize {
        1 => vec![0; n],
        ranks if ranks >= n => (0..n as u32).collect(),
        _ => graph.partition(problem.ranks())?,
    };
    Ok(vertices
        .iter()
        .map(|&vertex| owners[vertex as usize])
        .collect())
}

/// What METIS answers to the graph of single blocks, whatever their loads come to.
fn raw(problem: &Problem) -> Result<Vec<u32>, PlacementError> {
    let blocks: Vec<u32> = (0..problem.n_blocks() as u32).collect();
    match problem.ranks() as usize {
        1 => return Ok(vec![0; blocks.len()]),
        ranks if ranks >= blocks.len() => return Ok(blocks),
        _ => {}
    }
    let mut owners = vec![0; blocks.len()];
    Weighted::new(problem, &blocks).bisect(&blocks, 0..problem.ranks(), &mut owners)?;
    Ok(owners)
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

/// Into which parts METIS cuts.
#[derive(Clone, Copy)]
enum Cut {
    /// So many of equal work.
    Evenly(u32),
    /// Two, of which the first has this share of the work.
    InTwo(f32),
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
            weighted
                .bytes
                .push(same.iter().map(|edge| edge.2 as f64).sum());
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

    /// The rank of each vertex. A vertex with more than the mean work of the ranks that are left has a
    /// rank to itself; METIS sees the rest.
    fn partition(&self, ranks: u32) -> Result<Vec<u32>, PlacementError> {
        let mut owners = vec![u32::MAX; self.work.len()];
        let alone = self.heavy(ranks);
        let rest = ranks - alone.len() as u32;
        for (&vertex, rank) in alone.iter().zip(rest..) {
            owners[vertex as usize] = rank;
        }
        let vertices: Vec<u32> = (0..owners.len() as u32)
            .filter(|&v| owners[v as usize] == u32::MAX)
            .collect();
        let parts = match rest {
            1 => vec![0; vertices.len()],
            rest if rest as usize >= vertices.len() => (0..vertices.len() as Idx).collect(),
            rest => self.ask_metis(&vertices, Cut::Evenly(rest))?,
        };
        for (&vertex, part) in vertices.iter().zip(parts) {
            owners[vertex as usize] = part as u32;
        }
        self.relieve(&mut owners, ranks);
        Ok(owners)
    }

    /// The vertices that get a rank to themselves, the heaviest first; one rank at least is left.
    fn heavy(&self, ranks: u32) -> Vec<u32> {
        let order = crate::sort::descending_order(&self.work);
        let mut left: f64 = self.work.iter().sum();
        let is_heavy = |&(taken, vertex): &(usize, u32)| {
            let work = self.work[vertex as usize];
            let heavy =
                taken + 1 < ranks as usize && work * (f64::from(ranks) - taken as f64) >= left;
            left -= work;
            heavy
        };
        let counted = order.into_iter().enumerate();
        counted
            .take_while(is_heavy)
            .map(|(_, vertex)| vertex)
            .collect()
    }

    /// Gives `vertices` to `ranks`, which are halved until there is one, or one vertex.
    fn bisect(
        &self,
        vertices: &[u32],
        ranks: Range<u32>,
        owners: &mut [u32],
    ) -> Result<(), PlacementError> {
        if vertices.len() < 2 || ranks.len() < 2 {
            for &vertex in vertices {
                owners[vertex as usize] = ranks.start;
            }
            return Ok(());
        }
        let middle = ranks.start + ranks.len() as u32 / 2;
        let share = f64::from(middle - ranks.start) / ranks.len() as f64;
        let parts = self.ask_metis(vertices, Cut::InTwo(share as f32))?;
        let half = |wanted: Idx| -> Vec<u32> {
            let of_part = vertices.iter().zip(&parts);
            let of_part = of_part.filter(|(_, part)| **part == wanted);
            of_part.map(|(&vertex, _)| vertex).collect()
        };
        self.bisect(&half(0), ranks.start..middle, owners)?;
        self.bisect(&half(1), middle..ranks.end, owners)
    }

    fn ask_metis(&self, vertices: &[u32], cut: Cut) -> Result<Vec<Idx>, PlacementError> {
        let mut number = vec![Idx::MAX; self.work.len()];
        for (&vertex, i) in vertices.iter().zip(0..) {
            number[vertex as usize] = i;
        }
        let (mut offsets, mut neighbours, mut bytes) = (vec![0], Vec::new(), Vec::new());
        for &vertex in vertices {
            for (other, weight) in self
                .row(vertex as usize)
                .filter(|&(v, _)| number[v as usize] != Idx::MAX)
            {
                neighbours.push(number[other as usize]);
                bytes.push(weight);
            }
            let entries = Idx::try_from(neighbours.len());
            offsets.push(entries.map_err(|_| failed("the graph is too large for METIS"))?);
        }
        // Vertices without work count as a hundredth of the mean: no part may consist of them alone.
        let work: Vec<f64> = vertices.iter().map(|&v| self.work[v as usize]).collect();
        let least = work.iter().sum::<f64>() / work.len() as f64 / 100.0;
        let work = whole_numbers(&work.iter().map(|w| w.max(least)).collect::<Vec<_>>());
        let bytes = whole_numbers(&bytes);
        let mut parts = vec![0; vertices.len()];
        let _alone = ONE_AT_A_TIME
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        let (n_parts, share) = match cut {
            Cut::Evenly(ranks) => (ranks as Idx, 0.5),
            Cut::InTwo(share) => (2, share),
        };
        let shares = [share, 1.0 - share];
        let graph = metis::Graph::new(1, n_parts, &offsets, &neighbours).map_err(failed)?;
        let graph = graph.set_vwgt(&work).set_adjwgt(&bytes).set_option(Seed(1));
        // Few parts are better cut one by one.
        match cut {
            Cut::InTwo(_) => graph.set_tpwgts(&shares).part_recursive(&mut parts),
            Cut::Evenly(ranks) if ranks <= 8 => graph.part_recursive(&mut parts),
            Cut::Evenly(_) => graph.part_kway(&mut parts),
        }
        .map_err(failed)?;
        Ok(parts)
    }

    /// Moves vertices away from ranks that have too much, the most loaded rank first.
    fn relieve(&self, owners: &mut [u32], ranks: u32) {
        let mut loads = vec![0.0; ranks as usize];
        let mut vertices = vec![Vec::new(); ranks as usize];
        for (vertex, &owner) in owners.iter().enumerate() {
            loads[owner as usize] += self.work[vertex];
            vertices[owner as usize].push(vertex as u32);
        }
        let ceiling = EXCESS * self.work.iter().sum::<f64>() / f64::from(ranks);
        let mut tournament = Tournament::new(&loads);
        for rank in crate::sort::descending_order(&loads) {
            while loads[rank as usize] > ceiling && vertices[rank as usize].len() > 1 {
                let least = tournament.least();
                let Some((place, to)) = self.best_move(
                    &vertices[rank as usize],
                    rank,
                    owners,
                    &loads,
                    ceiling,
                    least,
                ) else {
                    break;
                };
                let vertex = vertices[rank as usize].swap_remove(place);
                owners[vertex as usize] = to;
                vertices[to as usize].push(vertex);
                for (at, change) in [
                    (rank, -self.work[vertex as usize]),
                    (to, self.work[vertex as usize]),
                ] {
                    loads[at as usize] += change;
                    tournament.set(at, loads[at as usize]);
                }
            }
        }
    }

    /// Which vertex of `rank` goes where: to a rank with neighbours of it and room, at the least loss of
    /// bytes that stay at home; otherwise to the least loaded rank, if that ends below this one.
    fn best_move(
        &self,
        vertices: &[u32],
        rank: u32,
        owners: &[u32],
        loads: &[f64],
        ceiling: f64,
        least: u32,
    ) -> Option<(usize, u32)> {
        let mut best: Option<(bool, f64, usize, u32)> = None;
        let mut near: Vec<(u32, f64)> = Vec::new();
        for (place, &vertex) in vertices.iter().enumerate() {
            near.clear();
            near.push((least, 0.0));
            let mut lost = 0.0;
            for (other, bytes) in self.row(vertex as usize) {
                let owner = owners[other as usize];
                match near.iter_mut().find(|(r, _)| *r == owner) {
                    _ if owner == rank => lost += bytes,
                    Some((_, sum)) => *sum += bytes,
                    None => near.push((owner, bytes)),
                }
            }
            for &(to, won) in &near {
                let load = loads[to as usize] + self.work[vertex as usize];
                let (fits, gain) = (load <= ceiling, won - lost);
                let better = best.is_none_or(|(f, g, ..)| (fits, gain) > (f, g));
                if to != rank
                    && (fits || load < loads[rank as usize])
                    && self.work[vertex as usize] > 0.0
                    && better
                {
                    best = Some((fits, gain, place, to));
                }
            }
        }
        best.map(|(_, _, place, to)| (place, to))
    }
}

/// Weights as whole numbers from 1 whose sum METIS can hold.
fn whole_numbers(weights: &[f64]) -> Vec<Idx> {
    let total: f64 = weights.iter().sum();
    let scale = if total > 0.0 {
        f64::from(1 << 29) / total
    } else {
        0.0
    };
    let whole = |&weight: &f64| ((weight * scale).round() as Idx).max(1);
    weights.iter().map(whole).collect()
}

fn failed(reason: impl std::fmt::Display) -> PlacementError {
    PlacementError::Policy {
        policy: "graphlb",
        reason: reason.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::certificate::certify;
    use crate::generate::{Distribution, Refined, octree};
    use crate::policy::sfclb;

    #[test]
    fn fewer_bytes_are_cut_than_along_the_curve_and_loads_stay_near_the_mean() {
        for (seed, ranks) in [(1, 16), (2, 64), (3, 200)] {
            let case = Refined::new(octree(seed, 3, 2, 6, 1600), Distribution::Gaussian, seed);
            let problem = case.problem(ranks);
            let cut = |owners: &[u32]| certify(&problem, owners).unwrap().locality.remote.bytes;
            let owners = place(&problem, &Argument::None).unwrap();
            assert!(
                cut(&owners) <= cut(&sfclb::place(&problem, &Argument::None)),
                "{ranks} ranks"
            );
            let certificate = certify(&problem, &owners).unwrap();
            assert!(
                certificate.makespan <= 1.1 * certificate.mean,
                "{certificate:?}"
            );
        }
    }

    /// Owners of a mesh with one block that outweighs most of the others together.
    fn of_one_heavy_block(argument: &Argument, ranks: u32) -> Vec<u32> {
        let mut case = Refined::new(octree(8, 3, 2, 5, 300), Distribution::Exponential, 8);
        case.costs[100] = 2.0 * case.costs.iter().sum::<f64>();
        place(&case.problem(ranks), argument).unwrap()
    }

    #[test]
    fn metis_is_given_no_graph_without_vertices_of_which_it_would_complain_on_standard_output() {
        // What C prints passes the test's own capture by: a separate process shows it.
        const ASKED: &str = "METIS_IN_A_PROCESS_OF_ITS_OWN";
        if std::env::var_os(ASKED).is_some() {
            for ranks in [5, 24, 64, 250] {
                for argument in [Argument::Raw, Argument::None, Argument::Roots] {
                    of_one_heavy_block(&argument, ranks);
                }
            }
            return;
        }
        let (_, module) = module_path!().split_once("::").unwrap();
        let name = "metis_is_given_no_graph_without_vertices_of_which_it_would_complain_on_standard_output";
        let child = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", &format!("{module}::{name}")])
            .env(ASKED, "1")
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&child.stdout);
        assert!(
            child.status.success() && said.contains("1 passed"),
            "{said}"
        );
        assert!(!said.contains("***"), "{said}");
    }

    #[test]
    fn metis_alone_leaves_ranks_idle_beside_a_block_that_has_the_work_of_many() {
        let owners = of_one_heavy_block(&Argument::Raw, 24);
        assert!(owners.iter().all(|&owner| owner < 24));
        let of_heaviest = owners.iter().filter(|&&owner| owner == owners[100]);
        assert_eq!(of_heaviest.count(), 1);
        let mut used = owners.clone();
        used.sort_unstable();
        used.dedup();
        assert!(used.len() > 2, "{used:?}");
    }

    #[test]
    fn raw_is_an_answer_of_its_own_and_the_same_each_time() {
        let case = Refined::new(octree(3, 3, 2, 6, 1600), Distribution::Exponential, 3);
        let problem = case.problem(64);
        let raw = place(&problem, &Argument::Raw).unwrap();
        assert!(raw.len() == case.costs.len() && raw.iter().all(|&owner| owner < 64));
        assert_eq!(raw, place(&problem, &Argument::Raw).unwrap());
        assert_ne!(raw, place(&problem, &Argument::None).unwrap());
    }

    #[test]
    fn unrefined_blocks_are_joined_along_the_curve_and_refined_ones_are_not() {
        let mut case = Refined::new(octree(4, 3, 4, 6, 4200), Distribution::Exponential, 4);
        case.costs.fill(1.0);
        let (problem, mesh) = (case.problem(8), &case.mesh);
        let vertices = vertices(&problem, &Argument::None);
        let n = *vertices.last().unwrap() as usize + 1;
        assert!(
            n < mesh.octants.len() / 2,
            "{n} vertices of {} blocks",
            mesh.octants.len()
        );
        for (pair, octants) in vertices.windows(2).zip(mesh.octants.windows(2)) {
            assert!(pair[0] <= pair[1], "blocks stand along the curve");
            assert!(pair[0] != pair[1] || octants.iter().all(|octant| octant.level == 4));
        }
        let owners = place(&problem, &Argument::None).unwrap();
        for (blocks, owners) in vertices.windows(2).zip(owners.windows(2)) {
            assert!(blocks[0] != blocks[1] || owners[0] == owners[1]);
        }
    }

    #[test]
    fn two_threads_at_once_get_what_one_gets() {
        let case = Refined::new(octree(5, 3, 2, 6, 1000), Distribution::PowerLaw, 5);
        let problem = case.problem(40);
        let alone = place(&problem, &Argument::None).unwrap();
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| assert_eq!(place(&problem, &Argument::None).unwrap(), alone));
            }
        });
    }

    #[test]
    fn overfull_ranks_are_relieved_until_none_is_far_above_the_mean() {
        let case = Refined::new(octree(6, 3, 2, 6, 1600), Distribution::Exponential, 6);
        let problem = case.problem(64);
        let blocks: Vec<u32> = (0..case.costs.len() as u32).collect();
        let weighted = Weighted::new(&problem, &blocks);
        let mut owners = vec![0; blocks.len()];
        weighted.relieve(&mut owners, 64);
        let certificate = certify(&problem, &owners).unwrap();
        assert!(
            certificate.makespan <= EXCESS * certificate.mean + 1e-6,
            "{certificate:?}"
        );
    }
}
