use super::*;
use crate::certificate::{Contiguity, Proof, certify};
use crate::generate::{Distribution, Random, costs};
use crate::policy::{Policy, place};

/// The least makespan of all placements, or of the contiguous ones in the order of the ranks, by trying all.
fn least(problem: &Problem, owners: &mut Vec<u32>, in_order: bool) -> f64 {
    if owners.len() == problem.n_blocks() {
        return certificate::makespan(problem, owners);
    }
    let from = match in_order {
        true => owners.last().copied().unwrap_or(0),
        false => 0,
    };
    let mut best = f64::INFINITY;
    for rank in from..problem.ranks() {
        owners.push(rank);
        best = best.min(least(problem, owners, in_order));
        owners.pop();
    }
    best
}

fn with_policy(name: &str, problem: &Problem) -> Vec<u32> {
    place(&name.parse::<Policy>().unwrap(), problem)
        .unwrap()
        .owners
}

#[test]
fn bound_and_contiguous_optimum_are_what_trying_all_placements_finds() {
    let mut random = Random::new(21);
    let (mut met, mut proved) = (0, 0);
    for case in 0..300 {
        let (n, ranks) = (1 + random.below(7), 1 + random.below(4));
        let draw: Vec<f64> = (0..n).map(|_| (1 + random.below(20)) as f64).collect();
        let speeds: Vec<f64> = (0..ranks)
            .map(|_| [0.25, 0.5, 1.0, 1.3][random.below(4)])
            .collect();
        let problem = Problem::new(&draw, ranks as u32)
            .and_then(|p| p.with_speeds(&speeds))
            .unwrap();
        let best = least(&problem, &mut Vec::new(), false);
        for name in ["contiguous", "lpt", "lpt-swap", "cplx:50", "cplx:100"] {
            let found = certify(&problem, &with_policy(name, &problem)).unwrap();
            assert!(found.makespan >= best, "{name}");
            assert!(found.bound <= best, "case {case}: {} > {best}", found.bound);
            met += u32::from(name == "lpt-swap" && found.makespan == best);
            proved += u32::from(name == "lpt-swap" && found.optimal == Some(Proof::LowerBound));
        }
        let owners = with_policy("contiguous-optimal", &problem);
        let found = certify(&problem, &owners).unwrap();
        assert_eq!(
            found.makespan,
            least(&problem, &mut Vec::new(), true),
            "case {case}"
        );
        if problem.speeds().is_some() {
            assert_eq!(
                found.contiguity,
                Contiguity::ContiguousOptimum,
                "case {case}"
            );
        }
    }
    assert!(met > 230 && proved > 30, "{met} optimal, {proved} proved");
}

#[test]
fn a_slow_node_gets_as_much_less_as_it_is_slower() {
    let draw = costs(Distribution::Exponential, 3, 6400);
    // 32 nodes of 16 ranks, one of them four times as slow.
    let speeds: Vec<f64> = (0..512)
        .map(|rank| if rank / 16 == 5 { 0.25 } else { 1.0 })
        .collect();
    let uniform = Problem::new(&draw, 512).unwrap();
    let problem = uniform.with_speeds(&speeds).unwrap();
    for name in [
        "contiguous-optimal",
        "lpt",
        "lpt-swap",
        "cplx:50",
        "cplx:100",
    ] {
        let unaware = certify(&problem, &with_policy(name, &uniform)).unwrap();
        let aware = certify(&problem, &with_policy(name, &problem)).unwrap();
        assert!(unaware.makespan > 3.0 * unaware.mean, "{name}: {unaware:?}");
        assert!(aware.makespan < 1.2 * aware.mean, "{name}: {aware:?}");
    }
    let of = |name: &str| certificate::makespan(&problem, &with_policy(name, &problem));
    assert!(of("lpt-swap") <= of("lpt") && of("cplx:100") <= of("cplx:50"));
    assert!(
        of("cplx:50") <= of("contiguous-optimal") && of("contiguous-optimal") <= of("contiguous")
    );
}

#[test]
fn equal_speeds_are_no_speeds_and_a_limit_still_binds() {
    let draw = costs(Distribution::Gaussian, 3, 60);
    let uniform = Problem::new(&draw, 8).unwrap();
    let same = uniform.with_speeds(&[1.0; 8]).unwrap();
    assert_eq!(
        with_policy("round-robin", &same),
        with_policy("round-robin", &uniform)
    );
    let limits = crate::problem::Limits {
        blocks_per_rank: Some(8),
        bytes_per_block: 0,
    };
    let speeds = [1.0, 9.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
    let problem = uniform
        .with_speeds(&speeds)
        .and_then(|p| p.with_limits(limits))
        .unwrap();
    for name in [
        "contiguous",
        "contiguous-optimal",
        "lpt",
        "lpt-swap",
        "cplx:50",
    ] {
        let found = certify(&problem, &with_policy(name, &problem)).unwrap();
        assert!(found.blocks_per_rank_max <= 8, "{name}");
    }
}

#[test]
fn who_does_not_heed_speeds_says_so_and_bad_ones_are_refused() {
    let heed = crate::policy::TABLE
        .iter()
        .filter(|row| row.on_uneven_ranks.is_some());
    let names: Vec<&str> = heed.map(|row| row.name).collect();
    assert_eq!(crate::policy::row::HEED_SPEEDS, names.join(", "));
    let draw = [1.0, 2.0, 3.0];
    let uniform = Problem::new(&draw, 2).unwrap();
    for bad in [&[1.0][..], &[1.0, 0.0], &[1.0, f64::NAN], &[1.0, -1.0]] {
        assert!(uniform.with_speeds(bad).is_err(), "{bad:?}");
    }
    let problem = uniform.with_speeds(&[1.0, 0.5]).unwrap();
    for policy in crate::policy::tests::policies() {
        let needs_more = !policy.row().needs.is_empty() || policy.to_string() == "cplx:auto";
        match place(&policy, &problem) {
            Ok(_) => assert!(policy.heeds_speeds(), "{policy}"),
            Err(_) if needs_more => {}
            Err(error) => assert!(
                !policy.heeds_speeds() && error.to_string().contains("unequal speeds; contiguous"),
                "{policy}: {error}"
            ),
        }
    }
}

#[test]
fn ranks_are_matched_with_their_like_alone() {
    let draw = costs(Distribution::Exponential, 7, 120);
    let speeds: Vec<f64> = (0..12).map(|rank| [1.0, 0.5][rank % 2]).collect();
    let before: Vec<u32> = (0..120).map(|block| (block * 7 % 12) as u32).collect();
    let plain = Problem::new(&draw, 12)
        .and_then(|p| p.with_speeds(&speeds))
        .unwrap();
    let problem = plain.with_owners(&before).unwrap();
    let (free, matched) = (with_policy("lpt", &plain), with_policy("lpt", &problem));
    assert_ne!(free, matched);
    assert_eq!(
        certificate::makespan(&problem, &free),
        certificate::makespan(&problem, &matched)
    );
}
