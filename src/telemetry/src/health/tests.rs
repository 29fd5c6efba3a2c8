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
            host: format!("host{}", rank / 2).into(),
            ..Place::default()
        })
    };
    place(30).chain(place(60)).collect()
}

fn verdicts(seed: u64, slowness: impl Fn(u32, u64) -> f64) -> Vec<Verdict> {
    let blocks = blocks(seed, slowness);
    verdicts_of(&blocks)
}

fn verdicts_of(blocks: &[Block]) -> Vec<Verdict> {
    let by_pace = Pace::BOTH.map(|pace| inflation(blocks, pace));
    of_inflation(&by_pace, &places()).verdicts
}

/// Runs for `runs`, is stopped for `stops`, and so on, as its blocks see it: the clock stands between steps.
fn stop_again_and_again(blocks: &mut [Block], rank: u32, [runs, stops]: [i64; 2]) {
    // Ranks begin anywhere in their period.
    let mut left = runs / 3 + i64::from(rank) * runs / 7;
    for block in blocks.iter_mut().filter(|block| block.rank == rank) {
        let mut work = block.compute;
        while work > left {
            work -= left;
            left = runs;
            block.compute += stops;
        }
        left -= work;
    }
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

/// Whether stops come twenty times a step, of 2 ms of blocks, or seven times: a run of 60 steps has no more noise than
/// that allows for 1.3.
#[test]
fn a_node_that_is_stopped_again_and_again_is_named_with_its_factor_though_most_of_its_blocks_are_not_slow()
 {
    for factor in [1.3, 2.0, 4.0] {
        for runs in [100_000, 150_000, 300_000] {
            let mut all = blocks(4, |_, _| 1.0);
            let stops = (runs as f64 * (factor - 1.0)) as i64;
            for rank in [4, 5] {
                stop_again_and_again(&mut all, rank, [runs, stops]);
            }
            let found = verdicts_of(&all);
            let [node] = &found[..] else {
                panic!("{factor}, {runs} ns: {found:?}")
            };
            assert_eq!(
                (node.suspect, node.host.as_deref()),
                (Suspect::Node, Some("host2")),
                "{factor}, {runs} ns: {found:?}"
            );
            assert!(
                (node.factor / factor - 1.0).abs() < 0.1,
                "{factor}, {runs} ns: {node:?}"
            );
        }
    }
}

#[test]
fn a_slow_node_that_is_stopped_besides_has_both_in_its_factor() {
    let mut all = blocks(5, |rank, _| if rank / 2 == 1 { 1.3 } else { 1.0 });
    for rank in [2, 3] {
        stop_again_and_again(&mut all, rank, [1_000_000, 1_000_000]);
    }
    let found = verdicts_of(&all);
    let [node] = &found[..] else {
        panic!("{found:?}")
    };
    assert_eq!(node.host.as_deref(), Some("host1"));
    assert!((node.factor / 2.6 - 1.0).abs() < 0.1, "{node:?}");
}

/// A few stalls of one rank that take as long as all its blocks are no pace.
#[test]
fn a_rank_that_stalls_three_times_is_not_slow() {
    let mut all = blocks(6, |_, _| 1.0);
    let of_rank = all.iter_mut().filter(|block| block.rank == 3);
    let mut of_rank: Vec<&mut Block> = of_rank.collect();
    let work: i64 = of_rank.iter().map(|block| block.compute).sum();
    for nth in [40, 200, 390] {
        of_rank[nth].compute += work / 3;
    }
    assert_eq!(verdicts_of(&all), []);
}
