//! The exact optimum by integer programming, for small cases and as a yardstick.
//!
//! One variable for each pair of block and rank, which is 1 where the block is; each block is on one
//! rank, and the makespan is at least each rank's load. Ranks are interchangeable: the k-th largest
//! block is kept to the first k ranks. LPT with swaps gives the first solution; HiGHS improves it or
//! proves it until the time is over. A limit of blocks per rank is part of the program: optimum and
//! bound are then those within the limit.
//! Source: Huangfu & Hall, "Parallelizing the dual revised simplex method", Math. Prog. Comp. 10, 2018
//! (HiGHS).
//!
//! HiGHS computes in floating point: its proof is good to a relative 1e-6, and for whole costs, where
//! bounds can be rounded up, exact. Within the time limit the result is the same each time.

use highs::{HighsModelStatus, HighsSolutionStatus, RowProblem, Sense};

use super::{Placement, lpt_swap};
use crate::bound::lower_bound;
use crate::certificate::makespan;
use crate::error::PlacementError;
use crate::problem::Problem;

/// Larger programs are refused: HiGHS would find nothing better than LPT with swaps in any time.
const VARIABLES_MAX: usize = 20_000;

/// What the solver can be off by, relative to the makespan.
const TOLERANCE: f64 = 1e-6;

/// The best owners that are found in `seconds`, and what is proved by then.
pub(super) fn place(problem: &Problem, seconds: u32) -> Result<Placement, PlacementError> {
    let first = lpt_swap::place(problem);
    let span = makespan(problem, &first.owners);
    let bound = lower_bound(problem.costs(), problem.ranks(), span);
    if problem.limits().blocks_per_rank.is_none() && span <= bound {
        return Ok(first);
    }
    let variables = problem.n_blocks().saturating_mul(problem.ranks() as usize);
    if variables > VARIABLES_MAX {
        return Err(failed(format!(
            "{} blocks on {} ranks make {variables} variables, more than {VARIABLES_MAX}; lpt-swap has no limit",
            problem.n_blocks(),
            problem.ranks()
        )));
    }
    solve(problem, first, bound, seconds)
}

fn solve(
    problem: &Problem,
    first: Placement,
    bound: f64,
    seconds: u32,
) -> Result<Placement, PlacementError> {
    // Loads are measured in first makespans: the solver's tolerances are absolute.
    let unit = makespan(problem, &first.owners);
    let order = crate::sort::descending_order(problem.costs());
    let limit = problem.limits().blocks_per_rank;
    let mut program = RowProblem::default();
    let highest = program.add_column(1.0, bound / unit..);
    let mut rank_rows = vec![vec![(highest, -1.0)]; problem.ranks() as usize];
    let mut count_rows = vec![Vec::new(); problem.ranks() as usize];
    let mut columns = Vec::new();
    for (k, &block) in order.iter().enumerate() {
        let ranks = (k + 1).min(problem.ranks() as usize);
        let of_block: Vec<highs::Col> = (0..ranks)
            .map(|_| program.add_integer_column(0.0, 0..=1))
            .collect();
        program.add_row(
            1..=1,
            of_block
                .iter()
                .map(|&column| (column, 1.0))
                .collect::<Vec<_>>(),
        );
        for (rank, &column) in of_block.iter().enumerate() {
            rank_rows[rank].push((column, problem.costs()[block as usize] / unit));
            count_rows[rank].push((column, 1.0));
        }
        columns.push(ranks);
    }
    for row in rank_rows {
        program.add_row(..=0, row);
    }
    if let Some(most) = limit {
        for row in count_rows {
            program.add_row(..=most, row);
        }
    }
    let mut model = program.try_optimise(Sense::Minimise).map_err(status)?;
    model.make_quiet();
    model.set_option("threads", 1);
    model.set_option("parallel", "off");
    model.set_option("random_seed", 1);
    model.set_option("time_limit", f64::from(seconds));
    model.set_option("mip_rel_gap", 0.0);
    model.set_option("mip_abs_gap", TOLERANCE / 10.0);
    if let Some(start) = start(problem, &first.owners, &order, limit, unit) {
        model
            .try_set_solution(Some(&start), None, None, None)
            .map_err(status)?;
    }
    let solved = model.try_solve().map_err(status)?;
    let found = match solved.primal_solution_status() {
        HighsSolutionStatus::Feasible => Some(owners(
            problem,
            &order,
            &columns,
            solved.get_solution().columns(),
        )),
        _ => None,
    };
    let is_exact = solved.status() == HighsModelStatus::Optimal;
    let dual = solved
        .double_info_value(c"mip_dual_bound")
        .map_err(status)?
        * unit;
    Ok(judge(problem, first, found, dual, is_exact))
}

/// The first solution as columns, with the ranks in the order in which the program names them: by
/// their largest block. `None` if it breaks the limit.
fn start(
    problem: &Problem,
    owners: &[u32],
    order: &[u32],
    limit: Option<u32>,
    unit: f64,
) -> Option<Vec<f64>> {
    let mut counts = vec![0; problem.ranks() as usize];
    owners.iter().for_each(|&owner| counts[owner as usize] += 1);
    if limit.is_some_and(|most| counts.iter().any(|&count| count > most)) {
        return None;
    }
    let mut columns = vec![makespan(problem, owners) / unit];
    let mut names = vec![None; problem.ranks() as usize];
    let mut named = 0;
    for (k, &block) in order.iter().enumerate() {
        let name = *names[owners[block as usize] as usize].get_or_insert_with(|| {
            named += 1;
            named - 1
        });
        let ranks = (k + 1).min(problem.ranks() as usize);
        columns.extend((0..ranks).map(|rank| f64::from(u8::from(rank == name))));
    }
    Some(columns)
}

/// The owners that a solution means: each block's largest variable.
fn owners(problem: &Problem, order: &[u32], columns: &[usize], values: &[f64]) -> Vec<u32> {
    let mut owners = vec![0; problem.n_blocks()];
    let mut values = &values[1..];
    for (&block, &ranks) in order.iter().zip(columns) {
        let (of_block, rest) = values.split_at(ranks);
        let best = (0..ranks).max_by(|&a, &b| of_block[a].total_cmp(&of_block[b]).then(b.cmp(&a)));
        owners[block as usize] = best.unwrap_or(0) as u32;
        values = rest;
    }
    owners
}

/// The better of two placements, with what is proved about it.
fn judge(
    problem: &Problem,
    first: Placement,
    found: Option<Vec<u32>>,
    dual: f64,
    is_exact: bool,
) -> Placement {
    let limited = problem.limits().blocks_per_rank.is_some();
    let owners = match found {
        Some(found) if limited || makespan(problem, &found) < makespan(problem, &first.owners) => {
            found
        }
        _ => first.owners,
    };
    let span = makespan(problem, &owners);
    let slack = TOLERANCE * span;
    let is_whole = problem.costs().iter().all(|cost| cost.fract() == 0.0);
    let proved = match is_whole {
        true => (dual - slack).ceil(),
        false if is_exact && span <= dual + slack => span,
        false => dual - slack,
    };
    Placement {
        owners,
        proved_bound: proved.is_finite().then(|| proved.min(span)),
    }
}

fn status(status: highs::HighsStatus) -> PlacementError {
    failed(format!("HiGHS answers {status:?}"))
}

fn failed(reason: String) -> PlacementError {
    PlacementError::Policy {
        policy: "ilp",
        reason,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::certificate::certify_with_bound;
    use crate::generate::{Distribution, Random, costs};
    use crate::problem::Limits;

    /// The best makespan by trying every placement, ranks interchangeable.
    fn optimum(
        costs: &[f64],
        loads: &mut Vec<f64>,
        ranks: usize,
        most: u32,
        counts: &mut Vec<u32>,
    ) -> f64 {
        let Some((&first, rest)) = costs.split_first() else {
            return loads.iter().copied().fold(0.0, f64::max);
        };
        let mut best = f64::INFINITY;
        for rank in 0..(loads.len() + 1).min(ranks) {
            if rank == loads.len() {
                loads.push(0.0);
                counts.push(0);
            }
            if counts[rank] < most {
                loads[rank] += first;
                counts[rank] += 1;
                best = best.min(optimum(rest, loads, ranks, most, counts));
                counts[rank] -= 1;
                loads[rank] -= first;
            }
            if counts[rank] == 0 && rank + 1 == loads.len() {
                loads.pop();
                counts.pop();
            }
        }
        best
    }

    #[test]
    fn the_optimum_of_small_cases_is_found_and_proved() {
        let mut random = Random::new(3);
        for case in 0..150 {
            let (n, ranks) = (random.below(10), 1 + random.below(4));
            let draw: Vec<f64> = match case % 3 {
                0 => (0..n).map(|_| random.below(30) as f64).collect(),
                1 => (0..n).map(|_| random.unit()).collect(),
                _ => costs(Distribution::Exponential, case, n),
            };
            let problem = Problem::new(&draw, ranks as u32).unwrap();
            let placement = place(&problem, 20).unwrap();
            let best = optimum(&draw, &mut Vec::new(), ranks, u32::MAX, &mut Vec::new());
            let span = makespan(&problem, &placement.owners);
            assert!(
                (span - best).abs() <= 1e-6 * best,
                "case {case}: {span}, not {best}: {draw:?}"
            );
            let certificate =
                certify_with_bound(&problem, &placement.owners, placement.proved_bound);
            assert!(
                certificate.unwrap().optimal.is_some(),
                "case {case}: {draw:?} on {ranks}"
            );
        }
    }

    #[test]
    fn a_limit_of_blocks_is_kept_at_the_best_makespan() {
        let mut random = Random::new(4);
        for case in 0..40 {
            let (n, ranks) = (2 + random.below(8), 2 + random.below(3));
            let draw: Vec<f64> = (0..n).map(|_| random.below(30) as f64).collect();
            let most = n.div_ceil(ranks) as u32;
            let limits = Limits {
                blocks_per_rank: Some(most),
                bytes_per_block: 0,
            };
            let problem = Problem::new(&draw, ranks as u32)
                .and_then(|p| p.with_limits(limits))
                .unwrap();
            let placement = place(&problem, 20).unwrap();
            let best = optimum(&draw, &mut Vec::new(), ranks, most, &mut Vec::new());
            assert_eq!(
                makespan(&problem, &placement.owners),
                best,
                "case {case}: {draw:?} on {ranks}"
            );
            let certificate = certify_with_bound(&problem, &placement.owners, None).unwrap();
            assert!(certificate.blocks_per_rank_max <= most);
        }
    }

    #[test]
    fn it_is_never_worse_than_lpt_with_swaps() {
        for distribution in Distribution::ALL {
            for (n, ranks) in [(24, 8), (33, 4), (20, 16)] {
                let draw = costs(distribution, 7, n);
                let problem = Problem::new(&draw, ranks).unwrap();
                let swapped = makespan(&problem, &lpt_swap::place(&problem).owners);
                let placement = place(&problem, 2).unwrap();
                let span = makespan(&problem, &placement.owners);
                assert!(span <= swapped);
                assert!(placement.proved_bound.is_none_or(|bound| bound <= span));
            }
        }
    }

    #[test]
    fn degenerate_costs_are_placed_or_refused_with_the_reason() {
        for ranks in [1, 3, 64] {
            for draw in [
                vec![],
                vec![0.0; 9],
                vec![3.25; 200],
                vec![1e9, 1e-9, 1e-9, 1e-9],
            ] {
                let problem = Problem::new(&draw, ranks).unwrap();
                let placement = place(&problem, 2).unwrap();
                assert_eq!(problem.check_owners(&placement.owners), Ok(()));
            }
        }
        let mut random = Random::new(5);
        let wide: Vec<f64> = (0..500).map(|_| 1.0 + random.unit()).collect();
        let error = place(&Problem::new(&wide, 97).unwrap(), 1)
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("48500 variables") && error.contains("lpt-swap"),
            "{error}"
        );
    }

    #[test]
    fn what_is_not_proved_is_not_claimed() {
        let first = || Placement::from(vec![0, 0, 0, 1, 1]);
        let bound = |costs: &[f64], dual: f64, is_exact: bool| {
            let problem = Problem::new(costs, 2).unwrap();
            judge(&problem, first(), None, dual, is_exact).proved_bound
        };
        let whole = [3.0, 3.0, 2.0, 2.0, 2.0];
        assert_eq!(bound(&whole, 5.2, false), Some(6.0), "a whole makespan");
        assert_eq!(bound(&whole, 6.000_001, false), Some(6.0), "the tolerance");
        assert_eq!(bound(&whole, 8.0, true), Some(8.0));
        let broken = [3.5, 3.0, 2.0, 2.0, 2.0];
        let unproved = bound(&broken, 5.2, false).unwrap();
        assert!(unproved < 5.2 && unproved > 5.19);
        assert_eq!(bound(&broken, 8.5, true), Some(8.5));
        assert_eq!(bound(&broken, f64::NEG_INFINITY, false), None);
    }
}
