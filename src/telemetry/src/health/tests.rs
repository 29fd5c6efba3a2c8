use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

use super::*;
use crate::rows::Block;

/// Blocks of 8 ranks on 4 nodes over 60 steps; a rank's blocks differ in number and level from another's.
fn blocks(seed: u64, slowness: impl Fn(u32, u64) -> f64) -> Vec<Block> {
    let mut random = StdRng::seed_from_u64(seed);
    let mut blocks = Vec::new();
    for step in 1..=60 {
        for rank in 0..8u32 {
            for n in 0..6 + rank {
                let level = n % 3;
                // Now and then a rank loses its core in the middle of a block.
                let spike = if random.random_bool(0.02) { 5.0 } else { 1.0 };
                let noise = 1.0 + 0.1 * random.random::<f64>();
                let cost = 1e5 * f64::from(1 + level) * noise * spike;
                blocks.push(Block {
                    step,
                    rank,
                    block: u64::from(100 * rank + n),
                    level,
                    compute: (cost * slowness(rank, step)) as i64,
                    ..Block::default()
                });
            }
        }
    }
    blocks
}

fn places() -> Vec<Place> {
    let place = |step: u64| {
        (0..8u32).map(move |rank| Place {
            step,
            rank,
            node: rank / 2,
            core: rank % 2,
            host: format!("host{}", rank / 2),
            ..Place::default()
        })
    };
    place(30).chain(place(60)).collect()
}

fn verdicts(seed: u64, slowness: impl Fn(u32, u64) -> f64) -> Vec<Verdict> {
    let blocks = blocks(seed, slowness);
    let by_pace = [Pace::Mean, Pace::Median].map(|pace| inflation(&blocks, pace));
    of_inflation(&by_pace, &places()).verdicts
}

#[test]
fn a_slow_node_is_named_with_its_factor() {
    for factor in [1.3, 2.0, 4.0] {
        for seed in 0..5 {
            let found = verdicts(seed, |rank, _| if rank / 2 == 2 { factor } else { 1.0 });
            let [node] = &found[..] else {
                panic!("{factor}, seed {seed}: {found:?}");
            };
            assert_eq!(
                (node.suspect, node.host.as_deref()),
                (Suspect::Node, Some("host2"))
            );
            assert!(
                (node.factor / factor - 1.0).abs() < 0.1,
                "{factor}: {node:?}"
            );
        }
    }
}

#[test]
fn a_slow_rank_that_stays_on_its_core_is_its_core() {
    let found = verdicts(1, |rank, _| if rank == 5 { 1.5 } else { 1.0 });
    let [core] = &found[..] else {
        panic!("{found:?}")
    };
    assert_eq!(
        (core.suspect, core.core, &core.ranks[..]),
        (Suspect::Core, Some(1), &[5][..])
    );
    assert!((core.factor / 1.5 - 1.0).abs() < 0.1, "{core:?}");
}

#[test]
fn a_rank_that_is_slow_for_a_while_is_named_with_the_steps() {
    let slow = |rank: u32, step: u64| {
        if rank == 3 && (21..=40).contains(&step) {
            2.0
        } else {
            1.0
        }
    };
    let found = verdicts(2, slow);
    let [span] = &found[..] else {
        panic!("{found:?}")
    };
    assert_eq!(
        (span.suspect, &span.ranks[..]),
        (Suspect::Transient, &[3][..])
    );
    let [first, last] = span.steps;
    assert!(
        first.abs_diff(21) <= 2 && last.abs_diff(40) <= 2,
        "{span:?}"
    );
    assert!((span.factor / 2.0 - 1.0).abs() < 0.1, "{span:?}");
}

#[test]
fn healthy_runs_give_no_alarm() {
    for seed in 0..100 {
        let found = verdicts(seed, |_, _| 1.0);
        assert!(found.is_empty(), "seed {seed}: {found:?}");
    }
}

#[test]
fn more_blocks_and_finer_ones_are_no_sickness() {
    let blocks = blocks(3, |_, _| 1.0);
    for (rank, steps) in inflation(&blocks, Pace::Mean) {
        let values: Vec<f64> = steps.values().copied().collect();
        let middle = median(&values);
        assert!((middle - 1.0).abs() < 0.1, "rank {rank}: {middle}");
    }
}

/// Stopped for a third of the time, a rank's blocks take as long as ever, but for the few that are stopped.
#[test]
fn a_rank_that_is_stopped_again_and_again_is_slow_though_most_of_its_blocks_are_not() {
    let mut all = blocks(4, |_, _| 1.0);
    let of_rank = all.iter_mut().filter(|block| block.rank == 6);
    of_rank.step_by(6).for_each(|block| block.compute *= 7);
    let by_pace = [Pace::Mean, Pace::Median].map(|pace| inflation(&all, pace));
    let found = of_inflation(&by_pace, &places()).verdicts;
    let [rank] = &found[..] else {
        panic!("{found:?}")
    };
    assert_eq!(rank.ranks, [6], "{rank:?}");
    assert!(rank.factor > 1.3, "{rank:?}");
}
