//! How much may move: keeps a new placement near the present one.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::certificate;
use crate::error::PlacementError;
use crate::problem::Problem;

/// What a migration may do; the tightest of the limits binds.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct MigrationLimit {
    /// The share of the blocks that stay where they are, from 0 to 1.
    pub keep_fraction: f64,
    pub blocks_max: Option<u64>,
    pub bytes_max: Option<u64>,
}

impl MigrationLimit {
    /// How many blocks may move.
    fn blocks(&self, problem: &Problem) -> u64 {
        let n = problem.n_blocks() as u64;
        let kept = (self.keep_fraction * n as f64).ceil() as u64;
        let by_bytes = self
            .bytes_max
            .and_then(|max| max.checked_div(problem.limits().bytes_per_block));
        (n - kept.min(n))
            .min(self.blocks_max.unwrap_or(n))
            .min(by_bytes.unwrap_or(n))
    }
}

/// Goes from the present owners towards `proposed` as far as the limit allows.
///
/// If not all moves are allowed, blocks leave the most loaded rank first, the dearest block first,
/// and only for ranks that do not become as loaded; the makespan is never above the present one.
/// Errors: no present owners, or a keep fraction outside 0..=1.
pub fn limit_migration(
    problem: &Problem,
    proposed: &[u32],
    limit: &MigrationLimit,
) -> Result<Vec<u32>, PlacementError> {
    problem.check_owners(proposed)?;
    let before = problem.owners().ok_or(PlacementError::Value {
        what: "a migration limit",
        value: limit.keep_fraction,
        reason: "means nothing without the present owners",
    })?;
    if !(0.0..=1.0).contains(&limit.keep_fraction) {
        return Err(PlacementError::Value {
            what: "the keep fraction",
            value: limit.keep_fraction,
            reason: "is not in 0..=1",
        });
    }
    let allowed = limit.blocks(problem);
    let moves = before.iter().zip(proposed).filter(|(b, p)| b != p).count() as u64;
    match moves <= allowed {
        true => Ok(proposed.to_vec()),
        false => Ok(most_useful(problem, before, proposed, allowed)),
    }
}

fn most_useful(problem: &Problem, before: &[u32], proposed: &[u32], allowed: u64) -> Vec<u32> {
    let costs = problem.costs();
    let most = problem.limits().blocks_per_rank.unwrap_or(u32::MAX);
    let mut owners = before.to_vec();
    let mut loads = certificate::times(problem, before);
    let time = |block: usize, rank: usize| costs[block] / problem.speed(rank as u32);
    let mut counts = vec![0u32; loads.len()];
    before.iter().for_each(|&owner| counts[owner as usize] += 1);
    let mut used = certificate::memory_used(problem, before);
    // What wants to leave each rank, the dearest last.
    let mut leaving = vec![Vec::new(); loads.len()];
    for (block, (&from, to)) in before.iter().zip(proposed).enumerate() {
        if from != *to {
            leaving[from as usize].push(block);
        }
    }
    for blocks in &mut leaving {
        blocks.sort_by(|&a, &b| costs[a].total_cmp(&costs[b]).then(b.cmp(&a)));
    }
    // Loads are not negative, so their bits order like they do.
    let entry = |load: f64, rank: usize| (load.to_bits(), Reverse(rank));
    let mut heap: BinaryHeap<_> = (0..loads.len())
        .map(|rank| entry(loads[rank], rank))
        .collect();
    let fits = |used: &[u64], block: usize, rank: usize| {
        let has = problem.memory_of_rank(rank as u32).unwrap_or(u64::MAX);
        used[rank].saturating_add(problem.memory_of_block(block)) <= has
    };
    let mut left = allowed;
    while left > 0
        && let Some((load, Reverse(from))) = heap.pop()
    {
        if f64::from_bits(load) != loads[from] {
            heap.push(entry(loads[from], from));
            continue;
        }
        // A block that no rank can take now will not be asked for again: loads elsewhere grow.
        while let Some(block) = leaving[from].pop() {
            let to = proposed[block] as usize;
            if loads[to] + time(block, to) < loads[from]
                && counts[to] < most
                && fits(&used, block, to)
            {
                used[from] -= problem.memory_of_block(block);
                used[to] += problem.memory_of_block(block);
                (counts[from], counts[to]) = (counts[from] - 1, counts[to] + 1);
                loads[to] += time(block, to);
                loads[from] = (loads[from] - time(block, from)).max(0.0);
                owners[block] = to as u32;
                left -= 1;
                heap.push(entry(loads[from], from));
                break;
            }
        }
    }
    owners
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::certificate::{certify, makespan};
    use crate::generate::{Distribution, Random, costs};
    use crate::policy::lpt;
    use crate::problem::Limits;

    #[test]
    fn the_limits_hold_and_the_makespan_never_rises() {
        let mut random = Random::new(5);
        for case in 0..300 {
            let (n, ranks) = (1 + random.below(200), 1 + random.below(20) as u32);
            let draw = costs(Distribution::Exponential, case, n);
            let before: Vec<u32> = (0..n)
                .map(|_| random.below(ranks as usize) as u32)
                .collect();
            let limits = Limits {
                blocks_per_rank: None,
                bytes_per_block: 100,
            };
            let problem = Problem::new(&draw, ranks)
                .and_then(|p| p.with_owners(&before))
                .and_then(|p| p.with_limits(limits))
                .unwrap();
            let proposed = lpt::place(&problem);
            let keep_fraction = [0.0, 0.5, 0.9, 1.0][case as usize % 4];
            let limit = MigrationLimit {
                keep_fraction,
                blocks_max: Some(random.below(n + 1) as u64),
                bytes_max: Some(100 * random.below(n + 1) as u64),
            };
            let owners = limit_migration(&problem, &proposed, &limit).unwrap();
            let moved = certify(&problem, &owners).unwrap().migration.unwrap();
            assert!(
                moved.blocks <= limit.blocks_max.unwrap()
                    && moved.bytes <= limit.bytes_max.unwrap()
            );
            assert!(moved.blocks as f64 <= (1.0 - keep_fraction) * n as f64 + 1e-9);
            let bound = makespan(&problem, &before).max(makespan(&problem, &proposed));
            assert!(makespan(&problem, &owners) <= bound * (1.0 + 1e-12));
        }
    }

    #[test]
    fn few_moves_already_help_where_one_rank_has_too_much() {
        let draw = [1.0; 40];
        let before = [0; 40];
        let problem = Problem::new(&draw, 4)
            .and_then(|p| p.with_owners(&before))
            .unwrap();
        let proposed = lpt::place(&problem);
        let limit = MigrationLimit {
            blocks_max: Some(15),
            ..MigrationLimit::default()
        };
        let owners = limit_migration(&problem, &proposed, &limit).unwrap();
        assert_eq!(makespan(&problem, &owners), 25.0);
        let free = limit_migration(&problem, &proposed, &MigrationLimit::default()).unwrap();
        assert_eq!(free, proposed);
    }

    #[test]
    fn a_limit_without_owners_or_out_of_range_is_an_error() {
        let draw = [1.0; 4];
        let problem = Problem::new(&draw, 2).unwrap();
        assert!(limit_migration(&problem, &[0, 0, 1, 1], &MigrationLimit::default()).is_err());
        let problem = problem.with_owners(&[0, 0, 0, 0]).unwrap();
        for keep_fraction in [-0.1, 1.1, f64::NAN] {
            let limit = MigrationLimit {
                keep_fraction,
                ..MigrationLimit::default()
            };
            assert!(limit_migration(&problem, &[0, 0, 1, 1], &limit).is_err());
        }
    }
}
