//! The exact contiguous optimum: no placement of intervals of the curve has a smaller makespan.
//!
//! Whether loads up to a ceiling suffice is decided by filling each rank as far as it goes. One pass tries eight
//! ceilings side by side, which costs hardly more than one since each waits for its own additions. It remembers for
//! each the largest load that occurred and the smallest that was refused. The optimum is between them, both are sums
//! that really occur, and the search ends when they meet: it is exact in 64-bit floats, where a load is the sum of
//! its blocks in curve order. Source: Pinar & Aykanat, "Fast optimal load balancing algorithms for 1D partitioning",
//! JPDC 64(8), 2004, whose exact bisection this is, by eight instead of two.

use super::Placement;
use super::row::Argument;
use super::uneven;
use crate::error::PlacementError;
use crate::problem::Problem;

pub(super) fn run(problem: &Problem, argument: &Argument) -> Result<Placement, PlacementError> {
    match problem.memory() {
        None => Ok(place(problem, most(problem, argument)?).into()),
        Some(_) => run_on_uneven_ranks(problem, argument),
    }
}

/// The same where ranks have unequal speeds.
pub(super) fn run_on_uneven_ranks(
    problem: &Problem,
    argument: &Argument,
) -> Result<Placement, PlacementError> {
    Ok(uneven::contiguous_optimal(problem, most(problem, argument)?).into())
}

/// How many blocks may be on a rank.
fn most(problem: &Problem, argument: &Argument) -> Result<u32, PlacementError> {
    let (blocks, ranks) = (problem.n_blocks(), problem.ranks());
    let limit = problem.limits().blocks_per_rank.unwrap_or(u32::MAX);
    let most = match argument {
        Argument::Max(most) => limit.min(*most),
        _ => limit,
    };
    if u64::from(most) * u64::from(ranks) < blocks as u64 {
        return Err(PlacementError::LimitTooTight {
            blocks,
            ranks,
            blocks_per_rank: most,
        });
    }
    Ok(most)
}

/// The owners of the blocks, at most `most` of them on a rank, which is room enough.
pub fn place(problem: &Problem, most: u32) -> Vec<u32> {
    let ceiling = optimum(problem, most);
    even_cuts(problem, most, ceiling).unwrap_or_else(|| filled(problem.costs(), ceiling, most))
}

/// The smallest makespan of a contiguous placement with at most `most` blocks on a rank.
pub fn optimum(problem: &Problem, most: u32) -> f64 {
    let costs = problem.costs();
    let largest = costs.iter().copied().fold(0.0, f64::max);
    let mean = problem.total() / f64::from(problem.ranks());
    // The mean is rounded, and so is each load: the margin keeps it below every possible optimum.
    let margin = 1.0 - 4.0 * f64::EPSILON * (costs.len() as f64 + 1.0);
    let mut low = largest.max(mean * margin);
    let mut high = upper_bound(costs, problem.ranks(), most, mean + largest);
    while low < high {
        for lane in probes(costs, low, high, most) {
            match lane.ranks <= f64::from(problem.ranks()) {
                true => high = high.min(lane.highest),
                false => low = low.max(lane.refused),
            }
        }
    }
    high
}

const LANES: usize = 8;

/// What one ceiling led to.
#[derive(Debug, Clone, Copy)]
struct Lane {
    ranks: f64,
    /// The largest load.
    highest: f64,
    /// The smallest load that would have exceeded the ceiling.
    refused: f64,
}

/// One pass with eight ceilings: the lower end itself and more, evenly up to the upper end, which is known to suffice.
fn probes(costs: &[f64], low: f64, high: f64, most: u32) -> [Lane; LANES] {
    let share = |i: usize| i as f64 / LANES as f64;
    let ceilings = std::array::from_fn(|i| low + (high - low) * share(i));
    match most as usize >= costs.len() {
        true => probe::<false>(costs, ceilings, most),
        false => probe::<true>(costs, ceilings, most),
    }
}

/// Fills ranks up to each of the ceilings, none of which is below the largest cost.
fn probe<const LIMITED: bool>(costs: &[f64], ceilings: [f64; LANES], most: u32) -> [Lane; LANES] {
    let most = f64::from(most);
    let mut load = [f64::INFINITY; LANES];
    let mut blocks = [0.0; LANES];
    let mut ranks = [0.0; LANES];
    let mut highest = [0.0f64; LANES];
    let mut refused = [f64::INFINITY; LANES];
    for &cost in costs {
        // Selections instead of branches: the compiler does two lanes in one instruction.
        for i in 0..LANES {
            let longer = load[i] + cost;
            let mut ends = longer > ceilings[i];
            let exceeded = if ends { longer } else { f64::INFINITY };
            refused[i] = if exceeded < refused[i] {
                exceeded
            } else {
                refused[i]
            };
            if LIMITED {
                ends |= blocks[i] >= most;
                blocks[i] = if ends { 1.0 } else { blocks[i] + 1.0 };
            }
            load[i] = if ends { cost } else { longer };
            ranks[i] += if ends { 1.0 } else { 0.0 };
            highest[i] = if load[i] > highest[i] {
                load[i]
            } else {
                highest[i]
            };
        }
    }
    std::array::from_fn(|i| Lane {
        ranks: ranks[i],
        highest: highest[i],
        refused: refused[i],
    })
}

/// The makespan of some contiguous placement.
fn upper_bound(costs: &[f64], ranks: u32, most: u32, mean_and_largest: f64) -> f64 {
    let lanes = match (most as usize) < costs.len() {
        // With a limit, equal counts are one that is surely allowed.
        true => return by_count_makespan(costs, ranks),
        false => mean_and_largest * (1.0 + 4.0 * f64::EPSILON * (costs.len() as f64 + 1.0)),
    };
    lanes.min(by_count_makespan(costs, ranks))
}

fn by_count_makespan(costs: &[f64], ranks: u32) -> f64 {
    let n = costs.len() as u64;
    let start = |rank: u64| (rank * n).div_ceil(u64::from(ranks)) as usize;
    (0..u64::from(ranks))
        .map(|rank| costs[start(rank)..start(rank + 1)].iter().sum())
        .fold(0.0, f64::max)
}

/// Fills each rank as far as `ceiling` and `most` allow.
fn filled(costs: &[f64], ceiling: f64, most: u32) -> Vec<u32> {
    let (mut rank, mut load, mut blocks) = (0, 0.0, 0);
    let owner = |&cost: &f64| {
        if blocks > 0 && (load + cost > ceiling || blocks == most) {
            (rank, load, blocks) = (rank + 1, 0.0, 0);
        }
        (load, blocks) = (load + cost, blocks + 1);
        rank
    };
    costs.iter().map(owner).collect()
}

/// Cuts as even as the ceiling allows: filling alone would leave the last ranks idle.
///
/// Each rank ends where its load comes closest to the mean of what is left, but not before the rest
/// fits on the ranks that follow. `None` if rounding makes the sums from the right disagree.
fn even_cuts(problem: &Problem, most: u32, ceiling: f64) -> Option<Vec<u32>> {
    let (costs, ranks) = (problem.costs(), problem.ranks() as usize);
    let earliest = earliest_ends(costs, ranks, ceiling, most)?;
    let mut owners = vec![0; costs.len()];
    let (mut start, mut left) = (0usize, problem.total());
    for (rank, &earliest) in earliest.iter().enumerate() {
        let aim = left / (ranks - rank) as f64;
        let (mut end, mut load) = (start, 0.0);
        let furthest = costs.len().min(start.saturating_add(most as usize));
        while end < furthest {
            let longer = load + costs[end];
            let closer = longer - aim <= aim - load;
            if longer > ceiling || !(closer || end < earliest) {
                break;
            }
            (load, end) = (longer, end + 1);
        }
        if end < earliest {
            return None;
        }
        owners[start..end].fill(rank as u32);
        (start, left) = (end, (left - load).max(0.0));
    }
    (start == costs.len()).then_some(owners)
}

/// Where each rank has to end at least for the rest to fit on those that follow.
fn earliest_ends(costs: &[f64], ranks: usize, ceiling: f64, most: u32) -> Option<Vec<usize>> {
    let mut ends = vec![0; ranks];
    let mut end = costs.len();
    for rank in (0..ranks).rev() {
        ends[rank] = end;
        let (mut load, mut blocks) = (0.0, 0);
        while end > 0 && blocks < most && load + costs[end - 1] <= ceiling {
            (load, blocks, end) = (load + costs[end - 1], blocks + 1, end - 1);
        }
    }
    (end == 0).then_some(ends)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::certificate::{Contiguity, certify, makespan};
    use crate::generate::{Distribution, Random, costs};

    /// The optimum by dynamic programming over every cut.
    fn brute_force(costs: &[f64], ranks: usize, most: usize) -> f64 {
        let n = costs.len();
        let mut best = vec![f64::INFINITY; n + 1];
        best[0] = 0.0;
        for _ in 0..ranks {
            let mut next = best.clone();
            for (start, &so_far) in best[..n].iter().enumerate() {
                let mut load = 0.0;
                for end in start + 1..=n.min(start.saturating_add(most)) {
                    load += costs[end - 1];
                    next[end] = f64::min(next[end], so_far.max(load));
                }
            }
            best = next;
        }
        best[n]
    }

    #[test]
    fn it_equals_brute_force_on_ten_thousand_cases() {
        let mut random = Random::new(2026);
        for case in 0..10_000u64 {
            let (n, ranks) = (random.below(61), 1 + random.below(20));
            let draw: Vec<f64> = match case % 6 {
                0 => costs(Distribution::Gaussian, case, n),
                1 => (0..n).map(|_| random.unit()).collect(),
                2 => (0..n).map(|_| random.below(3) as f64).collect(),
                3 => (0..n).map(|_| 0.1 * random.below(10) as f64).collect(),
                4 => (0..n)
                    .map(|_| 10f64.powf(18.0 * random.unit() - 9.0))
                    .collect(),
                _ => vec![0.1; n],
            };
            let most = match case % 3 {
                0 => n.div_ceil(ranks).max(1) + random.below(3),
                _ => usize::MAX,
            };
            let problem = Problem::new(&draw, ranks as u32).unwrap();
            let limit = most.min(u32::MAX as usize) as u32;
            let owners = place(&problem, limit);
            let found = makespan(&problem, &owners);
            assert_eq!(
                found,
                brute_force(&draw, ranks, most),
                "case {case}: {draw:?} on {ranks}, at most {most}"
            );
            assert!(owners.is_sorted());
            let largest = owners.chunk_by(|a, b| a == b).map(<[u32]>::len).max();
            assert!(largest.unwrap_or(0) <= most);
        }
    }

    #[test]
    fn many_blocks_per_rank_are_exact_as_well() {
        let mut random = Random::new(3);
        for case in 0..60 {
            let (n, ranks) = (300 + random.below(700), 1 + random.below(12));
            let draw: Vec<f64> = match case % 3 {
                0 => costs(Distribution::PowerLaw, case, n),
                1 => (0..n).map(|_| random.unit()).collect(),
                _ => (0..n)
                    .map(|_| 10f64.powf(18.0 * random.unit() - 9.0))
                    .collect(),
            };
            let most = n.div_ceil(ranks) + random.below(20);
            let problem = Problem::new(&draw, ranks as u32).unwrap();
            let found = makespan(&problem, &place(&problem, most as u32));
            assert_eq!(found, brute_force(&draw, ranks, most), "case {case}");
        }
    }

    #[test]
    fn the_certificate_proves_it_without_knowing_the_policy() {
        for distribution in Distribution::ALL {
            for (ranks, n) in [(512, 768), (1000, 8300), (4096, 6144)] {
                let draw = costs(distribution, 4, n);
                let problem = Problem::new(&draw, ranks).unwrap();
                let owners = place(&problem, u32::MAX);
                let found = certify(&problem, &owners).unwrap();
                assert_eq!(found.contiguity, Contiguity::ContiguousOptimum);
                assert_eq!(owners.last(), Some(&(ranks - 1)), "no rank is left idle");
            }
        }
    }

    #[test]
    fn a_limit_that_leaves_no_room_is_an_error() {
        let problem = Problem::new(&[1.0; 9], 2).unwrap();
        assert!(run(&problem, &Argument::Max(4)).is_err());
        assert!(run(&problem, &Argument::Max(5)).is_ok());
    }
}
