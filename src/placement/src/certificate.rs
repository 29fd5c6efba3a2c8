//! How good a placement is, computed from the owners alone: every policy is judged by one function.

use xxhash_rust::xxh3::Xxh3;

use crate::bound::lower_bound_of;
use crate::error::PlacementError;
use crate::problem::Problem;

/// Two sums of the same costs in different orders may differ by this, relatively; a makespan that
/// exceeds its bound by no more is called optimal.
pub const ROUNDING: f64 = 1e-12;

/// What a placement is worth, and what is proved about it.
///
/// Units: `makespan`, `mean` and `bound` are in the unit of the costs.
#[derive(Debug, Clone, PartialEq)]
pub struct Certificate {
    /// The time of the rank that takes longest: its load over its speed.
    pub makespan: f64,
    /// The sum of all costs over that of all speeds: the time of each rank, if blocks could be cut.
    pub mean: f64,
    /// No placement has a smaller makespan.
    pub bound: f64,
    /// `makespan / bound - 1`, at least 0; 0 for blocks that cost nothing.
    pub gap: f64,
    /// Why no placement is better, where that is proved.
    pub optimal: Option<Proof>,
    pub contiguity: Contiguity,
    /// The most blocks on one rank.
    pub blocks_per_rank_max: u32,
    pub locality: Locality,
    /// What moves from the present owners, where those are known.
    pub migration: Option<Migration>,
    /// Whether the blocks fit, where that is known.
    pub memory: Option<MemoryUse>,
}

/// Why a makespan cannot be improved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Proof {
    /// It equals the lower bound that follows from the costs.
    LowerBound,
    /// It equals a bound that the policy itself has proved, such as an integer program's.
    Policy,
}

/// Whether each rank has one interval of the curve, in the order of the ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Contiguity {
    /// Some rank has blocks that are not neighbours on the curve.
    Scattered,
    Contiguous,
    /// Contiguous, and no contiguous placement within the same limits has a smaller makespan.
    ContiguousOptimum,
}

/// Messages of one exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Traffic {
    pub messages: u64,
    pub bytes: u64,
}

/// How far the messages go: over the neighbour graph, or, without one, one message without bytes
/// for each two consecutive blocks of the curve.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Locality {
    pub same_rank: Traffic,
    pub same_node: Traffic,
    pub remote: Traffic,
    /// Per block, from each to the next on the curve: 0 on the same rank, 1 on an adjacent rank, 2
    /// on the same node, 3 elsewhere. The score that the CPLX study prints; lower is better.
    pub curve_score: f64,
}

/// What has to move.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Migration {
    pub blocks: u64,
    pub bytes: u64,
}

/// How the blocks of a placement fit on their ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MemoryUse {
    /// Ranks whose blocks need more than the rank has: 0 if the placement is allowed.
    pub ranks_over: u64,
    /// How much more, at most.
    pub over_max: u64,
    /// The rank of which that is true, or 0.
    pub rank: u32,
}

/// Judges `owners`, whoever chose them.
///
/// Errors: an owner that is no rank, or a wrong number of owners. A limit that is exceeded is no
/// error here: compare [`Certificate::blocks_per_rank_max`].
pub fn certify(problem: &Problem, owners: &[u32]) -> Result<Certificate, PlacementError> {
    certify_with_bound(problem, owners, None)
}

/// Like [`certify`], with a lower bound that a policy has proved by other means.
pub fn certify_with_bound(
    problem: &Problem,
    owners: &[u32],
    proved: Option<f64>,
) -> Result<Certificate, PlacementError> {
    problem.check_owners(owners)?;
    let makespan = makespan(problem, owners);
    let from_costs = lower_bound_of(problem, makespan);
    let bound = from_costs.max(proved.unwrap_or(0.0));
    let meets = |bound: f64| makespan <= bound * (1.0 + ROUNDING);
    let optimal = match (meets(from_costs), meets(bound)) {
        (true, _) => Some(Proof::LowerBound),
        (false, true) => Some(Proof::Policy),
        (false, false) => None,
    };
    Ok(Certificate {
        makespan,
        mean: problem.total() / problem.total_speed(),
        bound,
        gap: if bound > 0.0 {
            (makespan / bound - 1.0).max(0.0)
        } else {
            0.0
        },
        optimal,
        contiguity: contiguity(problem, owners, makespan),
        blocks_per_rank_max: blocks_per_rank_max(problem, owners),
        locality: locality(problem, owners),
        migration: problem
            .owners()
            .map(|before| migration(problem, before, owners)),
        memory: problem
            .memory()
            .map(|memory| memory_use(memory.of_ranks, &memory_used(problem, owners))),
    })
}

/// The load of each rank: the costs of its blocks, added in curve order.
pub fn loads(problem: &Problem, owners: &[u32]) -> Vec<f64> {
    let mut loads = vec![0.0; problem.ranks() as usize];
    for (&owner, cost) in owners.iter().zip(problem.costs()) {
        loads[owner as usize] += cost;
    }
    loads
}

/// The time of each rank: its load over its speed.
pub fn times(problem: &Problem, owners: &[u32]) -> Vec<f64> {
    let mut times = loads(problem, owners);
    if let Some(speeds) = problem.speeds() {
        times
            .iter_mut()
            .zip(speeds)
            .for_each(|(time, speed)| *time /= speed);
    }
    times
}

/// The time of the rank that takes longest.
pub fn makespan(problem: &Problem, owners: &[u32]) -> f64 {
    times(problem, owners).into_iter().fold(0.0, f64::max)
}

/// The name of an assignment: xxh3-64 of the owners as little-endian 32-bit numbers in curve order.
pub fn hash(owners: &[u32]) -> u64 {
    let mut state = Xxh3::new();
    for part in owners.chunks(1024) {
        let bytes: Vec<u8> = part.iter().flat_map(|owner| owner.to_le_bytes()).collect();
        state.update(&bytes);
    }
    state.digest()
}

/// The most blocks on one rank.
pub fn blocks_per_rank_max(problem: &Problem, owners: &[u32]) -> u32 {
    let mut counts = vec![0u32; problem.ranks() as usize];
    owners.iter().for_each(|&owner| counts[owner as usize] += 1);
    counts.into_iter().max().unwrap_or(0)
}

fn contiguity(problem: &Problem, owners: &[u32], makespan: f64) -> Contiguity {
    if !owners.is_sorted() {
        Contiguity::Scattered
    } else if fits_below(problem, makespan) {
        Contiguity::Contiguous
    } else {
        Contiguity::ContiguousOptimum
    }
}

/// Whether the ranks, in their order and with their speeds, can be filled so that all times are below `ceiling`.
///
/// Filling each rank as far as it goes is optimal: sums in curve order never shrink when a block is
/// added at either end, rounding included, so starting later never ends earlier.
fn fits_below(problem: &Problem, ceiling: f64) -> bool {
    let most = problem.limits().blocks_per_rank.unwrap_or(u32::MAX);
    let mut rest = problem.costs();
    for rank in 0..problem.ranks() {
        let (mut load, mut blocks) = (0.0, 0);
        let mut room = problem.memory_of_rank(rank).unwrap_or(u64::MAX);
        while let Some((cost, others)) = rest.split_first()
            && let need = problem.memory_of_block(problem.n_blocks() - rest.len())
            && need <= room
            && (load + cost) / problem.speed(rank) < ceiling
            && blocks < most
        {
            (load, blocks, rest) = (load + cost, blocks + 1, others);
            room -= need;
        }
    }
    rest.is_empty()
}

/// The messages of one exchange that go between nodes, [`Locality::remote`] alone, where the blocks of owner `i` are on
/// node `nodes[i]`: no division for each message.
pub(crate) fn remote_traffic(problem: &Problem, owners: &[u32], nodes: &[u32]) -> Traffic {
    let node = |block: usize| nodes[owners[block] as usize];
    let mut remote = Traffic::default();
    match problem.graph() {
        Some(graph) => {
            for block in 0..owners.len() {
                let here = node(block);
                for (neighbour, bytes) in graph.row(block) {
                    let leaves = here != node(neighbour as usize);
                    remote.messages += u64::from(leaves);
                    let bytes = if leaves { bytes } else { 0 };
                    remote.bytes = remote.bytes.saturating_add(bytes);
                }
            }
        }
        None => {
            let nodes_in_order = owners.iter().map(|&owner| nodes[owner as usize]);
            let next = nodes_in_order.clone().skip(1);
            let leaves = nodes_in_order.zip(next).filter(|(a, b)| a != b);
            remote.messages = leaves.count() as u64;
        }
    }
    remote
}

/// How far the messages of one exchange go.
pub fn locality(problem: &Problem, owners: &[u32]) -> Locality {
    let mut locality = Locality::default();
    let mut count = |a: u32, b: u32, bytes: u64| {
        let traffic = if a == b {
            &mut locality.same_rank
        } else if problem.node(a) == problem.node(b) {
            &mut locality.same_node
        } else {
            &mut locality.remote
        };
        traffic.messages += 1;
        traffic.bytes = traffic.bytes.saturating_add(bytes);
    };
    match problem.graph() {
        Some(graph) => {
            for (block, &owner) in owners.iter().enumerate() {
                for (neighbour, bytes) in graph.row(block) {
                    count(owner, owners[neighbour as usize], bytes);
                }
            }
        }
        None => owners
            .windows(2)
            .for_each(|pair| count(pair[0], pair[1], 0)),
    }
    let step = |a: u32, b: u32| match a.abs_diff(b) {
        distance @ (0 | 1) => u64::from(distance),
        _ if problem.node(a) == problem.node(b) => 2,
        _ => 3,
    };
    let steps: u64 = owners.windows(2).map(|pair| step(pair[0], pair[1])).sum();
    locality.curve_score = steps as f64 / owners.len().max(1) as f64;
    locality
}

/// What the blocks of each rank need of memory; zeros where that is not known.
pub fn memory_used(problem: &Problem, owners: &[u32]) -> Vec<u64> {
    let mut used = vec![0; problem.ranks() as usize];
    if let Some(memory) = problem.memory() {
        for (&owner, need) in owners.iter().zip(memory.of_blocks) {
            used[owner as usize] += need;
        }
    }
    used
}

fn memory_use(has: &[u64], used: &[u64]) -> MemoryUse {
    let mut found = MemoryUse::default();
    for ((rank, used), has) in (0u32..).zip(used).zip(has) {
        let over = used.saturating_sub(*has);
        found.ranks_over += u64::from(over > 0);
        if over > found.over_max {
            (found.over_max, found.rank) = (over, rank);
        }
    }
    found
}

fn migration(problem: &Problem, before: &[u32], after: &[u32]) -> Migration {
    let blocks = before.iter().zip(after).filter(|(b, a)| b != a).count() as u64;
    Migration {
        blocks,
        bytes: blocks.saturating_mul(problem.limits().bytes_per_block),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::{Graph, Limits};

    #[test]
    fn every_figure_of_a_small_placement_is_right() {
        let costs = [1.0, 2.0, 3.0, 4.0, 5.0];
        let graph = Graph {
            offsets: &[0, 1, 3, 4, 5, 5],
            neighbours: &[1, 0, 4, 3, 2],
            bytes: &[10, 10, 20, 30, 40],
        };
        let limits = Limits {
            blocks_per_rank: None,
            bytes_per_block: 1000,
        };
        let problem = Problem::new(&costs, 4)
            .and_then(|p| p.with_ranks_per_node(2))
            .and_then(|p| p.with_graph(graph))
            .and_then(|p| p.with_limits(limits))
            .and_then(|p| p.with_owners(&[0, 0, 0, 3, 3]))
            .unwrap();
        let found = certify(&problem, &[0, 0, 1, 3, 3]).unwrap();
        assert_eq!(loads(&problem, &[0, 0, 1, 3, 3]), [3.0, 3.0, 0.0, 9.0]);
        assert_eq!((found.makespan, found.mean, found.bound), (9.0, 3.75, 5.0));
        assert!((found.gap - 0.8).abs() < 1e-15);
        assert_eq!(
            (found.optimal, found.contiguity),
            (None, Contiguity::Contiguous)
        );
        assert_eq!(found.blocks_per_rank_max, 2);
        let traffic = |messages, bytes| Traffic { messages, bytes };
        assert_eq!(found.locality.same_rank, traffic(2, 20));
        assert_eq!(found.locality.same_node, traffic(0, 0));
        assert_eq!(found.locality.remote, traffic(3, 90));
        let nodes = [0, 0, 1, 1];
        let remote = remote_traffic(&problem, &[0, 0, 1, 3, 3], &nodes);
        assert_eq!(remote, traffic(3, 90));
        // Steps 0, 1, 3 (other node, not adjacent), 0 over five blocks.
        assert_eq!(found.locality.curve_score, 0.8);
        let migration = Migration {
            blocks: 1,
            bytes: 1000,
        };
        assert_eq!(found.migration, Some(migration));
    }

    #[test]
    fn optimality_is_proved_where_it_holds_and_only_there() {
        let costs = [3.0, 3.0, 2.0, 2.0, 2.0];
        let problem = Problem::new(&costs, 2).unwrap();
        let best = certify(&problem, &[0, 0, 1, 1, 1]).unwrap();
        assert_eq!(best.optimal, Some(Proof::LowerBound));
        assert_eq!(best.contiguity, Contiguity::ContiguousOptimum);
        let worse = certify(&problem, &[0, 1, 1, 1, 0]).unwrap();
        assert_eq!(
            (worse.optimal, worse.contiguity),
            (None, Contiguity::Scattered)
        );
        let claimed = certify_with_bound(&problem, &[0, 1, 1, 1, 0], Some(worse.makespan));
        assert_eq!(claimed.unwrap().optimal, Some(Proof::Policy));
        assert!(certify(&problem, &[0, 0, 0, 0]).is_err());
        assert!(certify(&problem, &[0, 0, 0, 0, 2]).is_err());
    }

    #[test]
    fn a_limit_belongs_to_the_contiguous_optimum() {
        let costs = [1.0, 1.0, 1.0, 9.0];
        let problem = Problem::new(&costs, 2).unwrap();
        let uneven = certify(&problem, &[0, 0, 1, 1]).unwrap();
        assert_eq!(uneven.contiguity, Contiguity::Contiguous);
        let limits = Limits {
            blocks_per_rank: Some(2),
            bytes_per_block: 0,
        };
        let limited = problem.with_limits(limits).unwrap();
        let forced = certify(&limited, &[0, 0, 1, 1]).unwrap();
        assert_eq!(forced.contiguity, Contiguity::ContiguousOptimum);
    }

    #[test]
    fn nothing_to_place_and_nothing_to_do_are_optimal() {
        for costs in [&[][..], &[0.0, 0.0]] {
            let problem = Problem::new(costs, 3).unwrap();
            let found = certify(&problem, &vec![1; costs.len()]).unwrap();
            let remote = remote_traffic(&problem, &vec![1; costs.len()], &[0, 1, 2]);
            assert_eq!(remote, found.locality.remote);
            assert_eq!((found.makespan, found.bound, found.gap), (0.0, 0.0, 0.0));
            assert_eq!(found.optimal, Some(Proof::LowerBound));
        }
    }

    #[test]
    fn the_hash_is_that_of_the_bytes_in_one_piece() {
        let owners: Vec<u32> = (0..5000u32)
            .map(|i| i.wrapping_mul(2_654_435_761))
            .collect();
        let bytes: Vec<u8> = owners.iter().flat_map(|o| o.to_le_bytes()).collect();
        assert_eq!(hash(&owners), xxhash_rust::xxh3::xxh3_64(&bytes));
        // The published test vector of the empty input.
        assert_eq!(hash(&[]), 0x2d06_8005_38d3_94c2);
    }
}
