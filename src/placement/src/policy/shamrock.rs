//! The patch distributions of Shamrock: none, round robin, from a level on, and by a model.
//!
//! A block that nothing refined is the base grid. The base grid is decomposed once, equally many roots to each rank
//! along the Hilbert curve. A refined block (a patch) is at home where its root is. The policies differ in which
//! patches leave home, and for where. Source: Beckingsale et al., LNCS 7587, 2013, sections 4, 6 and 7.

use super::contiguous;
use super::least_loaded::Tournament;
use super::units::roots;
use crate::problem::{Link, Problem};

/// Nothing is distributed: each block is computed where its root is. Needs a mesh.
pub(super) fn none(problem: &Problem) -> Vec<u32> {
    let mesh = problem.mesh().expect("a need in the table");
    let roots = roots(mesh);
    roots.owners(&contiguous::by_count(roots.len(), problem.ranks()))
}

/// Everything is dealt out in curve order.
pub(super) fn round_robin(problem: &Problem) -> Vec<u32> {
    let ranks = problem.ranks();
    (0..problem.n_blocks() as u32).map(|b| b % ranks).collect()
}

/// Blocks that are refined `level` times or more are dealt out in curve order, the others stay at
/// home: 0 is round robin, a level that does not occur is none. Needs a mesh.
pub(super) fn from_level(problem: &Problem, level: u32) -> Vec<u32> {
    let mesh = problem.mesh().expect("a need in the table");
    let mut owners = none(problem);
    let refined = |block: &usize| u32::from(mesh.octants[*block].level - mesh.root_level) >= level;
    let dealt = (0..owners.len()).filter(refined);
    for (block, rank) in dealt.zip((0..problem.ranks()).cycle()) {
        owners[block] = rank;
    }
    owners
}

/// Each patch goes where work and messages would be done first. Needs a mesh and the machine.
///
/// Equation (2) of the source: patch `q` goes to the rank `p` with the least `t_p + t_{q,p}`, where
/// `t_p` is what `p` has already. Equation (1) gives `t_{q,p}` as the time to compute the patch and
/// the time to send it to `p`; it is printed as their product, which is no time: here it is their
/// sum. Latency and bandwidth are those between the patch's home and `p`, and nothing is sent at
/// home. What is sent is what the block exchanges with its neighbours; without a graph, the block.
/// The base grid stays at home; patches are placed level by level, in curve order.
pub(super) fn by_model(problem: &Problem) -> Vec<u32> {
    let mesh = problem.mesh().expect("a need in the table");
    let home = none(problem);
    let mut owners = home.clone();
    let mut work = vec![0.0; problem.ranks() as usize];
    let mut patches: Vec<(u8, u32)> = Vec::new();
    for (block, octant) in (0u32..).zip(mesh.octants) {
        match octant.level > mesh.root_level {
            true => patches.push((octant.level, block)),
            false => work[home[block as usize] as usize] += problem.costs()[block as usize],
        }
    }
    patches.sort_unstable();
    let mut ranks = Tournament::new(&work);
    for (_, block) in patches {
        let (home, bytes) = (home[block as usize], bytes(problem, block));
        let rank = first_to_finish(problem, &ranks, home, bytes);
        owners[block as usize] = rank;
        let time = problem.costs()[block as usize] + sending(problem, home, rank, bytes);
        ranks.set(rank, ranks.load(rank) + time);
    }
    owners
}

fn bytes(problem: &Problem, block: u32) -> u64 {
    match problem.graph() {
        Some(graph) => graph
            .row(block as usize)
            .map(|(_, bytes)| bytes)
            .fold(0, u64::saturating_add),
        None => problem.limits().bytes_per_block,
    }
}

/// The time to send `bytes` from one rank to another.
fn sending(problem: &Problem, from: u32, to: u32, bytes: u64) -> f64 {
    let machine = problem.machine().expect("a need in the table");
    let over = |link: Link| link.latency + bytes as f64 * link.per_byte;
    if from == to {
        0.0
    } else if problem.node(from) == problem.node(to) {
        over(machine.same_node)
    } else {
        over(machine.remote)
    }
}

/// The rank on which a patch of `home` is finished first; home first of equals, then its node.
fn first_to_finish(problem: &Problem, ranks: &Tournament, home: u32, bytes: u64) -> u32 {
    let node = problem.node(home);
    let from = node * problem.ranks_per_node();
    let to = from
        .saturating_add(problem.ranks_per_node())
        .min(problem.ranks());
    let least = ranks.least();
    let elsewhere = match problem.node(least) == node {
        false => [Some(least), None],
        true => [ranks.least_of(0..from), ranks.least_of(to..problem.ranks())],
    };
    // Sending takes equally long to all ranks of the node but home, and to all ranks elsewhere.
    let candidates = [ranks.least_of(from..to), elsewhere[0], elsewhere[1]];
    let finish = |rank: u32| ranks.load(rank) + sending(problem, home, rank, bytes);
    candidates
        .into_iter()
        .flatten()
        .fold(home, |best, rank| match finish(rank) < finish(best) {
            true => rank,
            false => best,
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::certificate::{certify, makespan};
    use crate::generate::{Distribution, Refined, octree};
    use crate::problem::{Limits, Machine};

    fn case() -> Refined {
        Refined::new(octree(8, 3, 2, 5, 1200), Distribution::Exponential, 5)
    }

    fn problem(case: &Refined, latency: f64) -> Problem<'_> {
        let link = |factor: f64| Link {
            latency: factor * latency,
            per_byte: 0.0,
        };
        let machine = Machine {
            same_node: link(1.0),
            remote: link(10.0),
        };
        case.without_graph(24)
            .with_ranks_per_node(7)
            .and_then(|p| p.with_machine(machine))
            .and_then(|p| {
                p.with_limits(Limits {
                    blocks_per_rank: None,
                    bytes_per_block: 8,
                })
            })
            .unwrap()
    }

    #[test]
    fn a_threshold_lies_between_round_robin_and_none() {
        let case = case();
        let problem = problem(&case, 1.0);
        assert_eq!(from_level(&problem, 0), round_robin(&problem));
        assert_eq!(from_level(&problem, 22), none(&problem));
        let owners = from_level(&problem, 2);
        for ((octant, owner), home) in case.mesh.octants.iter().zip(&owners).zip(none(&problem)) {
            assert!(octant.level >= 4 || *owner == home, "level 1 stays at home");
        }
        let levels = [0, 2, 22].map(|level| {
            let certificate = certify(&problem, &from_level(&problem, level)).unwrap();
            certificate.locality.same_rank.messages
        });
        assert!(levels.is_sorted(), "{levels:?}");
    }

    #[test]
    fn none_keeps_everything_that_a_root_became_on_one_rank() {
        let case = case();
        let problem = problem(&case, 1.0);
        let mut owner_of = std::collections::HashMap::new();
        for (octant, owner) in case.mesh.octants.iter().zip(none(&problem)) {
            assert_eq!(*owner_of.entry(octant.ancestor(2)).or_insert(owner), owner);
        }
        assert_eq!(owner_of.len(), 64);
    }

    #[test]
    fn the_model_weighs_work_against_messages() {
        let case = case();
        let free = problem(&case, 0.0);
        let dear = problem(&case, 1e9);
        assert_eq!(by_model(&dear), none(&dear), "nothing is worth a message");
        let balanced = certify(&free, &by_model(&free)).unwrap();
        assert!(balanced.makespan <= balanced.mean + 100.0, "{balanced:?}");
        let between = problem(&case, 30.0);
        let spans = [&free, &between, &dear].map(|p| makespan(p, &by_model(p)));
        assert!(spans.is_sorted() && spans[0] < spans[2], "{spans:?}");
    }

    #[test]
    fn the_model_finds_what_trying_every_rank_finds() {
        let case = case();
        for latency in [0.0, 3.0, 100.0] {
            let problem = problem(&case, latency);
            let (home, owners) = (none(&problem), by_model(&problem));
            let mut work = [0.0; 24];
            let mut order: Vec<usize> = (0..case.costs.len()).collect();
            order.sort_by_key(|&block| case.mesh.octants[block].level);
            for block in order {
                let time = |rank: u32| case.costs[block] + sending(&problem, home[block], rank, 8);
                let finish = |rank: u32| work[rank as usize] + time(rank);
                let least = (0..24).map(finish).fold(f64::INFINITY, f64::min);
                let is_patch = case.mesh.octants[block].level > 2;
                assert!(
                    !is_patch || finish(owners[block]) <= least + 1e-9,
                    "block {block}"
                );
                work[owners[block] as usize] += time(owners[block]);
            }
        }
    }
}
