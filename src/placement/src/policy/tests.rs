//! What every policy in the table keeps to.

use super::*;
use crate::curve::neighbours;
use crate::error::PlacementError;
use crate::generate::{Distribution, MESSAGE_BYTES, Random, costs, octree};
use crate::problem::{Limits, Link, Machine, Problem};

/// Each policy of the table with arguments that it takes.
pub(crate) fn policies() -> Vec<Policy> {
    // The integer program refuses what is too large, and takes its time; published code refuses what it does: their own
    // tests try them.
    let rows = TABLE
        .iter()
        .filter(|row| !["ilp", "published"].contains(&row.name));
    rows.flat_map(|row| {
        row.syntax
            .examples()
            .iter()
            .map(move |e| format!("{}{e}", row.name))
    })
    .map(|name| name.parse().expect("an example of the syntax"))
    .collect()
}

/// Calls `judge` with a problem that has all a policy can need.
fn with_everything(costs: &[f64], ranks: u32, judge: impl FnOnce(Problem)) {
    let n = costs.len();
    let mesh = octree(n as u64, 3, 1, 21, n.max(8));
    let mesh = crate::problem::Mesh {
        octants: &mesh.octants[..n],
        ..mesh.as_mesh()
    };
    let graph = neighbours(mesh, MESSAGE_BYTES);
    let before: Vec<u32> = (0..n as u32).map(|b| b % ranks).collect();
    let link = |latency| Link {
        latency,
        per_byte: 1e-9,
    };
    let machine = Machine {
        same_node: link(1e-6),
        remote: link(1e-5),
    };
    let problem = Problem::new(costs, ranks)
        .and_then(|p| p.with_ranks_per_node(3))
        .and_then(|p| p.with_mesh(mesh))
        .and_then(|p| p.with_graph(graph.as_graph()))
        .and_then(|p| p.with_owners(&before))
        .and_then(|p| p.with_machine(machine))
        .unwrap();
    judge(problem);
}

fn check(costs: &[f64], ranks: u32) {
    with_everything(costs, ranks, |problem| check_problem(&problem));
}

fn check_problem(problem: &Problem) {
    for policy in policies() {
        let placement =
            place(&policy, problem).unwrap_or_else(|e| panic!("{policy}: failed to {e}"));
        let certificate = placement.certify(problem).unwrap();
        assert!(
            certificate.bound <= certificate.makespan * (1.0 + 1e-9),
            "{policy}"
        );
        let again = place(&policy, problem).unwrap();
        assert_eq!(placement, again, "{policy} differs from call to call");
    }
}

#[test]
fn degenerate_costs_are_placed_by_every_policy() {
    for ranks in [1, 2, 3, 7, 64, 97] {
        for n in [0, 1, 2, 5, 96, 97, 98, 194, 500] {
            check(&vec![0.0; n], ranks);
            check(&vec![3.25; n], ranks);
            let mut one_huge = vec![1e-9; n];
            if n > 0 {
                one_huge[n / 2] = 1e9;
            }
            check(&one_huge, ranks);
            let mut random = Random::new(n as u64);
            let wide: Vec<f64> = (0..n)
                .map(|_| 10f64.powf(18.0 * random.unit() - 9.0))
                .collect();
            check(&wide, ranks);
        }
    }
}

#[test]
fn published_costs_are_placed_by_every_policy() {
    for distribution in Distribution::ALL {
        for (ranks, n) in [(64, 96), (1000, 1500), (100, 830)] {
            check(&costs(distribution, 1, n), ranks);
        }
    }
}

#[test]
fn a_policy_without_what_it_needs_says_what() {
    let problem = Problem::new(&[1.0, 2.0], 2).unwrap();
    for policy in policies().iter().filter(|p| !p.row().needs.is_empty()) {
        let error = place(policy, &problem).unwrap_err();
        assert!(
            matches!(error, PlacementError::Needs { .. }),
            "{policy}: {error}"
        );
    }
}

#[test]
fn the_limit_of_blocks_per_rank_binds_every_policy() {
    for (ranks, n, most) in [(7, 40, 6), (7, 42, 6), (64, 96, 2), (5, 3, 1)] {
        let mut draw = costs(Distribution::Exponential, 3, n);
        draw[0] = 1e6;
        let limits = Limits {
            blocks_per_rank: Some(most),
            bytes_per_block: 0,
        };
        with_everything(&draw, ranks, |problem| {
            let problem = problem.with_limits(limits).unwrap();
            for policy in policies() {
                let found = place(&policy, &problem).unwrap().certify(&problem).unwrap();
                assert!(
                    found.blocks_per_rank_max <= most,
                    "{policy} on {ranks} ranks"
                );
            }
        });
    }
}
