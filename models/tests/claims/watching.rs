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
    watched_of_drawn(seed, runs, |run, variant| Some(cost(run, variant)))
}

/// As [`watched`]; a variant without a cost is not drawn in that run.
fn watched_of_drawn(seed: u64, runs: u32, cost: impl Fn(u32, u16) -> Option<f64>) -> Watched {
    let mut random = StdRng::seed_from_u64(seed);
    let mut rows = Vec::new();
    for run in 0..runs {
        let level_ns = 2e4 * (LEVELS * normal(&mut random)).exp();
        for variant in 0..=VARIANTS {
            let Some(cost) = cost(run, variant) else {
                continue;
            };
            let most_often = random.random_range(0..4usize);
            let calls = match variant {
                0 => [20, 60][most_often % 2],
                _ => [2, 5, 20, 60][most_often],
            };
            let of_run = cost * (USUAL.run_effect * normal(&mut random)).exp();
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

/// As a database does that trains behind each of its jobs.
#[test]
fn where_nothing_ever_changes_fewer_than_three_cells_in_a_hundred_are_discounted_by_sixty_trainings()
 {
    let is_ever_discounted = |seed: &u64| {
        let rows = few_variants(*seed, 60);
        (6..=60).any(|runs| {
            let so_far: Vec<&Evidence> = rows.iter().filter(|row| row.run < runs).collect();
            !watch(&so_far).weights.is_empty()
        })
    };
    let discounted = (0..400).filter(is_ever_discounted).count();
    println!("{discounted} of 400");
    // By each of three kinds of series one in a hundred at the most.
    assert!(discounted < 12, "{discounted} of 400");
}

/// Runs of the default and two equal variants.
fn few_variants(seed: u64, runs: u32) -> Vec<Evidence> {
    let mut rows = Vec::new();
    let mut random = StdRng::seed_from_u64(seed);
    for (run, variant) in (0..runs).flat_map(|run| (0..3).map(move |variant| (run, variant))) {
        let mut time = Moments::default();
        let of_run = (USUAL.run_effect * normal(&mut random)).exp();
        for _ in 0..20 {
            time.push(of_run * (USUAL.noise * normal(&mut random)).exp());
        }
        rows.push(Evidence {
            calls: 20,
            level_ns: 2e4,
            time,
            ..Evidence::nothing(run, shape(64), variant)
        });
    }
    rows
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

#[test]
fn a_machine_that_takes_longer_stays_noticed_where_two_of_forty_variants_are_drawn_from_there_on() {
    let cost = |run: u32, variant: u16| match run {
        0..10 => Some(1.0),
        _ => (variant <= 1).then_some(1.3),
    };
    for seed in 0..5 {
        for later in 10..=40 {
            let found = watched_of_drawn(seed, 10 + later, cost);
            let case = format!("seed {seed}, {later} later runs: {found:?}");
            assert!(discounts_all(&found, 8), "{case}");
            assert!((1.15..1.5).contains(&found.drift.exp2()), "{case}");
            assert!(found.changed.is_some_and(|run| run >= 9), "{case}");
        }
    }
}

#[test]
fn one_of_few_variants_that_changes_alone_is_not_taken_for_the_default() {
    for variants in 2..=6 {
        let cost = |run: u32, variant: u16| match variant {
            1 if run >= 10 => Some(2.0),
            _ => (variant <= variants).then_some(1.0),
        };
        let is_alone = |seed: &u64| {
            let found = watched_of_drawn(*seed, 20, cost);
            let mut discounted = found.weights.keys();
            let is_its_own = discounted.all(|(run, variant)| *run < 10 && *variant == 1);
            found.weights.len() >= 9 && is_its_own && found.drift == 0.0
        };
        let alone = (0..20).filter(is_alone).count();
        assert!(alone >= 18, "{alone} of 20 with {variants} variants");
    }
}

/// As runs that exploit are.
#[test]
fn a_default_that_takes_half_the_time_is_noticed_where_one_other_variant_runs_beside_it_from_there_on()
 {
    let cost = |run: u32, variant: u16| match (run, variant) {
        (10.., 0) => Some(0.5),
        (10.., 2..) => None,
        _ => Some(1.0),
    };
    for seed in 0..10 {
        let found = watched_of_drawn(seed, 22, cost);
        assert!(discounts_all(&found, 8), "seed {seed}: {found:?}");
        let rise = found.drift.exp2();
        assert!((0.4..0.6).contains(&rise), "seed {seed}: {rise}");
    }
}

#[test]
fn a_default_of_few_variants_that_takes_twice_as_long_is_told_from_them() {
    for variants in 2..=6 {
        let cost = |run: u32, variant: u16| match variant {
            0 if run >= 10 => Some(2.0),
            _ => (variant <= variants).then_some(1.0),
        };
        let is_noticed = |seed: &u64| {
            let found = watched_of_drawn(*seed, 20, cost);
            (0..=variants).all(|variant| found.weights.contains_key(&(8, variant)))
                && (1.7..2.35).contains(&found.drift.exp2())
        };
        let noticed = (0..20).filter(is_noticed).count();
        assert!(noticed >= 18, "{noticed} of 20 with {variants} variants");
    }
}

#[test]
fn a_small_shift_long_after_a_large_one_is_noticed() {
    let cost = |run: u32, _: u16| match run {
        0..10 => 1.0,
        10..95 => 3.0,
        _ => 3.9,
    };
    for seed in 0..3 {
        let found = watched(seed, 195, cost);
        assert_eq!(found.changed, Some(95), "seed {seed}");
        let rise = found.drift.exp2();
        assert!((1.25..1.35).contains(&rise), "seed {seed}: {rise}");
    }
}
