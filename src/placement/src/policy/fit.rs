//! Keeps any policy's placement within the memory of the ranks.

use crate::certificate;
use crate::error::PlacementError;
use crate::problem::{Memory, Problem};

/// Moves blocks away from ranks that they do not fit on, each to the rank that then takes least time among those with
/// room: those that free most memory for least cost, or else the smallest.
///
/// Errors: a block finds no rank with room. That need not mean that no placement fits: filling memory exactly is a
/// problem of its own.
pub(super) fn keep(problem: &Problem, owners: &mut [u32]) -> Result<(), PlacementError> {
    let Some(memory) = problem.memory() else {
        return Ok(());
    };
    let (costs, needs) = (problem.costs(), memory.of_blocks);
    let by_cost = |block: u32| costs[block as usize] / needs[block as usize].max(1) as f64;
    let by_need = |block: u32| needs[block as usize] as f64;
    let before = owners.to_vec();
    move_away(problem, memory, &by_cost, owners).or_else(|_| {
        owners.copy_from_slice(&before);
        move_away(problem, memory, &by_need, owners)
    })
}

/// The same with the blocks that leave chosen by one order: the least first.
fn move_away(
    problem: &Problem,
    memory: Memory,
    order: &dyn Fn(u32) -> f64,
    owners: &mut [u32],
) -> Result<(), PlacementError> {
    let (costs, needs) = (problem.costs(), memory.of_blocks);
    let mut used = certificate::memory_used(problem, owners);
    let over = |used: &[u64], rank: u32| used[rank as usize] > memory.of_ranks[rank as usize];
    let mut blocks: Vec<u32> = (0..owners.len() as u32)
        .filter(|&block| needs[block as usize] > 0 && over(&used, owners[block as usize]))
        .collect();
    blocks.sort_by(|&a, &b| order(a).total_cmp(&order(b)).then(a.cmp(&b)));
    blocks.retain(|&block| {
        let owner = owners[block as usize];
        let leaves = over(&used, owner);
        if leaves {
            used[owner as usize] -= needs[block as usize];
        }
        leaves
    });
    blocks.sort_by(|&a, &b| needs[b as usize].cmp(&needs[a as usize]).then(a.cmp(&b)));
    let most = problem.limits().blocks_per_rank.unwrap_or(u32::MAX);
    let mut times = certificate::times(problem, owners);
    let mut counts = vec![0u32; times.len()];
    owners.iter().for_each(|&owner| counts[owner as usize] += 1);
    for &block in &blocks {
        let owner = owners[block as usize];
        counts[owner as usize] -= 1;
        let time = costs[block as usize] / problem.speed(owner);
        times[owner as usize] = (times[owner as usize] - time).max(0.0);
    }
    for &block in &blocks {
        let need = needs[block as usize];
        let has_room = |&rank: &u32| {
            counts[rank as usize] < most
                && memory.of_ranks[rank as usize].saturating_sub(used[rank as usize]) >= need
        };
        let after = |rank: u32| times[rank as usize] + costs[block as usize] / problem.speed(rank);
        let found = (0..problem.ranks())
            .filter(has_room)
            .min_by(|&a, &b| after(a).total_cmp(&after(b)));
        let rank = found.ok_or(PlacementError::Memory { block, need })?;
        owners[block as usize] = rank;
        used[rank as usize] += need;
        times[rank as usize] = after(rank);
        counts[rank as usize] += 1;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::certificate::{Contiguity, certify};
    use crate::generate::{Distribution, Random, costs};
    use crate::policy::place;

    #[test]
    fn every_policy_keeps_to_the_memory_of_the_ranks() {
        let mut random = Random::new(31);
        for case in 0..40 {
            let ranks = 3 + random.below(20);
            let n = 6 * ranks;
            let draw = costs(Distribution::Exponential, case, n);
            let of_blocks: Vec<u64> = (0..n).map(|_| 1 + random.below(9) as u64).collect();
            // A tenth of the memory stays free; one rank in three has half as much as the others.
            let share = of_blocks.iter().sum::<u64>() as f64 / ranks as f64 * 1.4;
            let of_ranks: Vec<u64> = (0..ranks)
                .map(|rank| (share * if rank % 3 == 0 { 0.5 } else { 1.0 }) as u64 + 9)
                .collect();
            let memory = Memory {
                of_blocks: &of_blocks,
                of_ranks: &of_ranks,
            };
            let before: Vec<u32> = (0..n).map(|_| random.below(ranks) as u32).collect();
            let problem = Problem::new(&draw, ranks as u32)
                .and_then(|p| p.with_memory(memory))
                .and_then(|p| p.with_owners(&before))
                .unwrap();
            let mut broken_without = 0;
            for policy in crate::policy::tests::policies() {
                let plain = Problem::new(&draw, ranks as u32).unwrap();
                let Ok(unaware) = place(&policy, &plain) else {
                    continue;
                };
                let found = place(&policy, &problem).unwrap_or_else(|e| panic!("{policy}: {e}"));
                let found = found.certify(&problem).unwrap();
                assert_eq!(found.memory.unwrap().ranks_over, 0, "case {case}, {policy}");
                let judged = certify(&problem, &unaware.owners).unwrap();
                let judged = judged.memory.unwrap();
                broken_without += u64::from(judged.ranks_over > 0);
            }
            assert!(broken_without > 1, "case {case}: the limits bind");
        }
    }

    #[test]
    fn a_contiguous_optimum_stays_contiguous_where_that_fits() {
        let (costs, of_blocks) = ([1.0; 8], [4, 4, 1, 1, 1, 1, 1, 1]);
        let found = |of_ranks: &[u64]| {
            let memory = Memory {
                of_blocks: &of_blocks,
                of_ranks,
            };
            let problem = Problem::new(&costs, 2)
                .and_then(|p| p.with_memory(memory))
                .unwrap();
            let placed = place(&"contiguous-optimal".parse().unwrap(), &problem).unwrap();
            let judged = placed.certify(&problem).unwrap();
            assert_eq!(judged.memory.unwrap().ranks_over, 0);
            (placed.owners, judged.contiguity)
        };
        // Four and four would be even, but the first rank has no memory for more than the two large ones.
        let (owners, contiguity) = found(&[8, 9]);
        assert_eq!(owners, [0, 0, 1, 1, 1, 1, 1, 1]);
        assert_eq!(contiguity, Contiguity::ContiguousOptimum);
        // Nothing contiguous fits here: a small block goes to where there is room.
        assert_eq!(found(&[6, 9]).1, Contiguity::Scattered);
    }

    #[test]
    fn what_cannot_fit_is_an_error_and_what_does_not_is_certified() {
        let costs = [1.0; 3];
        let problem = Problem::new(&costs, 2).unwrap();
        let with = |of_blocks: &[u64], of_ranks: &[u64]| {
            let memory = Memory {
                of_blocks,
                of_ranks,
            };
            problem.with_memory(memory).map(|_| ())
        };
        assert!(with(&[1, 1, 1], &[2, 2]).is_ok());
        assert!(with(&[1, 1], &[2, 2]).is_err() && with(&[1, 1, 1], &[2]).is_err());
        let all = with(&[2, 2, 1], &[2, 2]).unwrap_err().to_string();
        assert!(all.contains('5') && all.contains('4'), "{all}");
        assert!(
            with(&[3, 1, 0], &[2, 2]).is_err(),
            "no rank holds the first block"
        );
        // Three blocks of 2 on two ranks of 3: enough in sum, and yet they do not fit.
        let memory = Memory {
            of_blocks: &[2, 2, 2],
            of_ranks: &[3, 3],
        };
        let tight = problem.with_memory(memory).unwrap();
        let error = place(&"lpt".parse().unwrap(), &tight).unwrap_err();
        assert!(matches!(error, PlacementError::Memory { .. }), "{error}");
        let found = certify(&tight, &[0, 0, 1]).unwrap().memory.unwrap();
        assert_eq!((found.ranks_over, found.over_max, found.rank), (1, 1, 0));
    }
}
