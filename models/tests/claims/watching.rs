//! Claims about what is seen to have changed.

use colltune_models::evidence::{Evidence, Moments};
use colltune_models::watching::{Watched, watch};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::generator::*;

const VARIANTS: u16 = 40;
/// What the levels of runs differ by, as a standard deviation of logarithms.
const LEVELS: f64 = 0.03;

/// What is seen of a cell in so many runs, in which the default has 20 or 60 calls and variants have 2 to 60. What a
/// call takes is `cost` of its run and variant beside the run's level, with what runs and calls differ by.
fn watched(seed: u64, runs: u32, cost: impl Fn(u32, u16) -> f64) -> Watched {
    let mut random = StdRng::seed_from_u64(seed);
    let mut rows = Vec::new();
    for run in 0..runs {
        let level_ns = 2e4 * (LEVELS * normal(&mut random)).exp();
        for variant in 0..=VARIANTS {
            let most_often = random.random_range(0..4usize);
            let calls = match variant {
                0 => [20, 60][most_often % 2],
                _ => [2, 5, 20, 60][most_often],
            };
            let of_run = cost(run, variant) * (USUAL.run_effect * normal(&mut random)).exp();
            let mut time = Moments::default();
            for _ in 0..calls {
                time.push(of_run * (USUAL.noise * normal(&mut random)).exp());
            }
            rows.push(Evidence {
                calls,
                level_ns,
                time,
                ..Evidence::nothing(run, shape(64), variant)
            });
        }
    }
    watch(&rows.iter().collect::<Vec<_>>())
}

/// Whether all variants count less in a run.
fn discounts_all(found: &Watched, run: u32) -> bool {
    let discounts = |variant: u16| {
        let weight = found.weights.get(&(run, variant));
        weight.is_some_and(|weight| *weight < 0.9)
    };
    (0..=VARIANTS).all(discounts)
}

#[test]
fn where_nothing_changes_fewer_than_one_cell_in_a_hundred_is_discounted() {
    let is_discounted = |seed: &u64| !watched(*seed, 10, |_, _| 1.0).weights.is_empty();
    let discounted = (0..1000).filter(is_discounted).count();
    println!("{discounted} of 1000");
    assert!(discounted < 10, "{discounted} of 1000");
}

#[test]
fn a_machine_that_takes_30_percent_longer_is_noticed_within_four_runs() {
    for seed in 0..20 {
        let found = watched(seed, 14, |run, _| if run < 10 { 1.0 } else { 1.3 });
        assert!(discounts_all(&found, 9), "seed {seed}: {found:?}");
        let rise = found.drift.exp2();
        assert!((1.2..1.4).contains(&rise), "seed {seed}: {rise}");
    }
}

#[test]
fn a_default_that_takes_half_as_long_again_is_noticed_within_four_runs() {
    let cost = |run: u32, variant: u16| match variant {
        0 if run >= 10 => 1.5,
        _ => 1.0,
    };
    let is_noticed = |seed: &u64| {
        let found = watched(*seed, 14, cost);
        discounts_all(&found, 9) && (1.25..1.8).contains(&found.drift.exp2())
    };
    let noticed = (0..20).filter(is_noticed).count();
    assert!(noticed >= 18, "{noticed} of 20");
}

#[test]
fn of_a_variant_that_changes_alone_earlier_runs_count_less_and_of_no_other() {
    let cost = |run: u32, variant: u16| match variant {
        7 if run >= 10 => 2.0,
        _ => 1.0,
    };
    let is_alone = |seed: &u64| {
        let found = watched(*seed, 20, cost);
        let mut discounted = found.weights.keys();
        found.weights.len() == 10 && discounted.all(|(run, variant)| *run < 10 && *variant == 7)
    };
    let alone = (0..20).filter(is_alone).count();
    assert!(alone >= 18, "{alone} of 20");
}
