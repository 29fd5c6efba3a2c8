use super::*;
use crate::certificate::{Contiguity, certify};
use crate::generate::{Distribution, Random, costs};
use crate::policy::{Policy, lpt, place};
use crate::problem::Matching;

fn moved(before: &[u32], after: &[u32]) -> usize {
    before.iter().zip(after).filter(|(b, a)| b != a).count()
}

/// Present owners that LPT found for costs that were a little different.
fn drifted(random: &mut Random, costs: &[f64], ranks: u32) -> Vec<u32> {
    let earlier: Vec<f64> = costs
        .iter()
        .map(|cost| cost * (0.95 + 0.1 * random.unit()))
        .collect();
    lpt::place(&Problem::new(&earlier, ranks).unwrap())
}

#[test]
fn a_renumbering_is_undone_exactly_on_any_number_of_ranks() {
    let mut random = Random::new(2);
    for ranks in [1, 2, 7, 64, 128, 129, 1000] {
        let draw = costs(Distribution::Exponential, 1, 8 * ranks);
        let present = lpt::place(&Problem::new(&draw, ranks as u32).unwrap());
        let mut names: Vec<u32> = (0..ranks as u32).collect();
        for i in (1..ranks).rev() {
            names.swap(i, random.below(i + 1));
        }
        let renamed: Vec<u32> = present.iter().map(|&owner| names[owner as usize]).collect();
        let problem = Problem::new(&draw, ranks as u32)
            .and_then(|p| p.with_owners(&present))
            .unwrap();
        assert_eq!(
            match_owners(&problem, &renamed).unwrap(),
            present,
            "{ranks} ranks"
        );
    }
}

#[test]
fn the_makespan_stays_and_neither_remote_messages_nor_moves_grow() {
    let mut random = Random::new(6);
    let (mut without, mut with) = (0, 0);
    for case in 0..300 {
        let ranks = 1 + random.below(if case % 10 == 0 { 400 } else { 40 }) as u32;
        let n = random.below(6 * ranks as usize);
        let draw = costs(Distribution::ALL[case as usize % 3], case, n);
        let present: Vec<u32> = match case % 2 {
            0 => drifted(&mut random, &draw, ranks),
            _ => (0..n)
                .map(|_| random.below(ranks as usize) as u32)
                .collect(),
        };
        let problem = Problem::new(&draw, ranks)
            .and_then(|p| p.with_ranks_per_node(1 + random.below(9) as u32))
            .and_then(|p| p.with_owners(&present))
            .unwrap();
        let proposed = lpt::place(&problem);
        let matched = match_owners(&problem, &proposed).unwrap();
        let (a, b) = (
            certify(&problem, &proposed).unwrap(),
            certify(&problem, &matched).unwrap(),
        );
        assert_eq!((a.makespan, a.bound), (b.makespan, b.bound), "case {case}");
        assert_eq!(a.blocks_per_rank_max, b.blocks_per_rank_max);
        let (near, far) = (a.locality.remote.messages, b.locality.remote.messages);
        assert_eq!(a.locality.same_rank, b.locality.same_rank, "case {case}");
        assert!(
            far as f64 <= 1.01 * near as f64,
            "case {case}: {far} after {near}"
        );
        assert!(
            moved(&present, &matched) <= moved(&present, &proposed),
            "case {case}"
        );
        if case % 2 == 0 {
            without += moved(&present, &proposed);
            with += moved(&present, &matched);
        }
    }
    // LPT deals out blocks anew whenever costs change a little: even the best renumbering keeps a block or two a rank.
    assert!(
        10 * with < 9 * without,
        "{with} of {without} moves are left"
    );
}

#[test]
fn no_permutation_of_few_ranks_and_nodes_keeps_more() {
    /// The most blocks that stay, over every renumbering that exchanges whole nodes and ranks inside them.
    fn most(
        present: &[u32],
        proposed: &[u32],
        per_node: u32,
        names: &mut Vec<u32>,
        ranks: u32,
    ) -> usize {
        if names.len() == ranks as usize {
            let kept = present.iter().zip(proposed);
            return kept.filter(|(b, p)| names[**p as usize] == **b).count();
        }
        let part = names.len() as u32;
        let mut best = 0;
        for slot in (0..ranks)
            .filter(|slot| !names.contains(slot))
            .collect::<Vec<_>>()
        {
            let mate =
                (!part.is_multiple_of(per_node)).then(|| names[(part - part % per_node) as usize]);
            let other = names.iter().zip(0u32..).any(|(name, part)| {
                name / per_node == slot / per_node
                    && part / per_node != names.len() as u32 / per_node
            });
            if mate.is_some_and(|mate| mate / per_node != slot / per_node) || other {
                continue;
            }
            names.push(slot);
            best = best.max(most(present, proposed, per_node, names, ranks));
            names.pop();
        }
        best
    }
    let mut random = Random::new(12);
    for case in 0..200 {
        let per_node = [1, 2, 3][case % 3];
        let n = 4 + random.below(14);
        let draw = vec![1.0; n];
        let mut draw_owners = || -> Vec<u32> { (0..n).map(|_| random.below(6) as u32).collect() };
        let (present, proposed) = (draw_owners(), draw_owners());
        let problem = Problem::new(&draw, 6)
            .and_then(|p| p.with_ranks_per_node(per_node))
            .and_then(|p| p.with_owners(&present))
            .unwrap();
        let overlaps = overlaps(&problem, &present, &proposed);
        let rank_of = match per_node {
            1 => among_alike(&problem, &overlaps, &Farther::new(&problem, &proposed)).unwrap(),
            _ => node_by_node(&problem, &overlaps),
        };
        let after: Vec<u32> = proposed
            .iter()
            .map(|&part| rank_of[part as usize])
            .collect();
        let kept = n - moved(&present, &after);
        let best = most(&present, &proposed, per_node, &mut Vec::new(), 6);
        assert_eq!(
            kept, best,
            "case {case}: {present:?} {proposed:?} {per_node}"
        );
    }
}

#[test]
fn a_policy_is_matched_as_the_problem_says() {
    let draw = costs(Distribution::Exponential, 5, 200);
    let before = Problem::new(&draw, 20).unwrap();
    let lpt: Policy = "lpt".parse().unwrap();
    let present: Vec<u32> = place(&lpt, &before)
        .unwrap()
        .owners
        .iter()
        .map(|owner| 19 - owner)
        .collect();
    let problem = before.with_owners(&present).unwrap();
    let moves = |policy: &Policy, matching| {
        let placed = place(policy, &problem.with_matching(matching)).unwrap();
        moved(&present, &placed.owners)
    };
    assert!(moves(&lpt, Matching::Off) > 100);
    assert_eq!(moves(&lpt, Matching::KeepOrder), 0);
    let contiguous: Policy = "contiguous".parse().unwrap();
    let order = |matching| {
        let placed = place(&contiguous, &problem.with_matching(matching)).unwrap();
        placed.certify(&problem).unwrap().contiguity
    };
    assert_ne!(order(Matching::KeepOrder), Contiguity::Scattered);
    assert_eq!(order(Matching::Free), Contiguity::Scattered);
    assert!(moves(&contiguous, Matching::Free) < moves(&contiguous, Matching::KeepOrder));
}

#[test]
fn without_present_owners_there_is_nothing_to_match() {
    let draw = [1.0, 2.0];
    let problem = Problem::new(&draw, 2).unwrap();
    let error = match_owners(&problem, &[0, 1]).unwrap_err().to_string();
    assert!(error.contains("the present owners"), "{error}");
}
