//! Claims about what other ways to choose would have cost, by simulation.

use colltune_models::evaluation::{Estimated, Trial, evaluate};
use colltune_models::probabilities::{Bounds, bounded};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::generator::normal;

const VARIANTS: usize = 8;
const RUNS: u32 = 30;
const CALLS: usize = 300;
const NOISE: f64 = 0.3;
const LEVELS: f64 = 0.2;

fn pick(shares: &[f64], random: &mut StdRng) -> usize {
    let mut left: f64 = random.random();
    let found = shares.iter().position(|share| {
        left -= share;
        left < 0.0
    });
    found.unwrap_or(shares.len() - 1)
}

/// Calls of one cell in three batches of runs. Behind each batch the draws follow the means so far, as published. One call
/// in a hundred stalls.
fn draw(cell: usize, costs: &[f64], random: &mut StdRng) -> Vec<Trial> {
    let mut trials: Vec<Trial> = Vec::new();
    let mut shares = vec![1.0 / VARIANTS as f64; VARIANTS];
    for run in 0..RUNS {
        if run > 0 && run % 10 == 0 {
            let mean = |variant: usize| {
                let own = trials
                    .iter()
                    .filter(|one| usize::from(one.variant) == variant);
                let (n, sum) =
                    own.fold((1e-9, 1e-9), |all, one| (all.0 + 1.0, all.1 + one.time_ns));
                n / sum
            };
            let weights: Vec<f64> = (0..VARIANTS).map(mean).collect();
            let bounds = Bounds {
                min: 0.03,
                max: 1.0,
            };
            shares = bounded(&weights, bounds).probabilities;
        }
        let level = (LEVELS * normal(random) - LEVELS * LEVELS / 2.0).exp();
        for _ in 0..CALLS {
            let variant = pick(&shares, random);
            let noise = (NOISE * normal(random) - NOISE * NOISE / 2.0).exp();
            let stall = if random.random::<f64>() < 0.01 {
                5.0
            } else {
                1.0
            };
            trials.push(Trial {
                run,
                cell,
                variant: variant as u16,
                probability: shares[variant],
                time_ns: 1e4 * level * costs[variant] * noise * stall,
            });
        }
    }
    trials
}

/// What a call of a variant takes in the mean, by the costs.
fn truth(cost: f64) -> f64 {
    1e4 * cost * (0.99 + 0.01 * 5.0)
}

fn holds(found: Option<Estimated>, truth: f64) -> bool {
    found.is_some_and(|found| (found.low..=found.high).contains(&truth))
}

/// In what share of so many cells the intervals hold the truth: of the time of a call, and of its ratio to the default's.
fn coverage(target: impl Fn(usize) -> Vec<f64>, n_cells: usize) -> [f64; 2] {
    let mut random = StdRng::seed_from_u64(11);
    let mut held = [0; 2];
    for cell in 0..n_cells {
        let costs: Vec<f64> = (0..VARIANTS)
            .map(|_| (0.7 * normal(&mut random)).exp())
            .collect();
        let trials = draw(cell, &costs, &mut random);
        let shares = target(cell);
        let found = evaluate(
            &trials,
            |one| shares[usize::from(one.variant)],
            |one| f64::from(u8::from(one.variant == 0)),
        );
        let expected: f64 = shares
            .iter()
            .zip(&costs)
            .map(|(share, cost)| share * cost)
            .sum();
        let of_cell = &found.cells[&cell];
        held[0] += usize::from(holds(of_cell.time_ns, truth(expected)));
        held[1] += usize::from(holds(of_cell.ratio, expected / costs[0]));
    }
    held.map(|held| held as f64 / n_cells as f64)
}

#[test]
fn the_intervals_of_95_percent_of_cells_hold_the_truth() {
    let one = |cell: usize| {
        let mut shares = vec![0.0; VARIANTS];
        shares[1 + cell % (VARIANTS - 1)] = 1.0;
        shares
    };
    let several = |_| {
        let mut shares = vec![0.03; VARIANTS];
        shares[2] = 1.0 - 0.03 * (VARIANTS - 1) as f64;
        shares
    };
    for (what, found) in [
        ("one", coverage(one, 400)),
        ("several", coverage(several, 400)),
    ] {
        println!("{what}: {found:?}");
        // 400 cells: 95 % +- 1.1 % at one standard deviation.
        for share in found {
            assert!((0.92..=0.985).contains(&share), "{what}: {found:?}");
        }
    }
}

#[test]
fn plain_means_are_wrong_where_draws_follow_the_runs_and_counts_put_that_right() {
    // In slow runs a variant is drawn nine times in ten, in fast runs once; it is no slower than the other.
    let mut random = StdRng::seed_from_u64(3);
    let mut trials = Vec::new();
    for run in 0..40 {
        let (level, share) = if run % 2 == 0 { (4.0, 0.9) } else { (1.0, 0.1) };
        for _ in 0..200 {
            let is_one = random.random::<f64>() < share;
            trials.push(Trial {
                run,
                cell: 0,
                variant: is_one.into(),
                probability: if is_one { share } else { 1.0 - share },
                time_ns: 1e4 * level * (0.2 * normal(&mut random)).exp(),
            });
        }
    }
    let mean = |variant: u16| {
        let own: Vec<f64> = trials
            .iter()
            .filter(|one| one.variant == variant)
            .map(|one| one.time_ns)
            .collect();
        own.iter().sum::<f64>() / own.len() as f64
    };
    assert!(mean(1) / mean(0) > 2.0);
    let found = evaluate(
        &trials,
        |one| f64::from(u8::from(one.variant == 1)),
        |one| f64::from(u8::from(one.variant == 0)),
    );
    let ratio = found.ratio.expect("there are runs enough");
    assert!(
        ratio.low < 1.0 && 1.0 < ratio.high && ratio.high < 1.2,
        "{ratio:?}"
    );
    assert_eq!((found.judged, found.calls), (1, 8000));
}

#[test]
fn what_one_run_alone_tells_has_no_interval_and_is_in_no_total() {
    let trial = |run, cell, variant: u16| Trial {
        run,
        cell,
        variant,
        probability: 0.5,
        time_ns: 1e4,
    };
    let mut trials: Vec<Trial> = (0..4)
        .flat_map(|run| [trial(run, 0, 0), trial(run, 0, 1)])
        .collect();
    trials.extend([trial(0, 1, 0), trial(0, 1, 1)]);
    let found = evaluate(
        &trials,
        |one| f64::from(u8::from(one.variant == 1)),
        |one| f64::from(u8::from(one.variant == 0)),
    );
    assert_eq!(found.cells[&1].ratio, None);
    assert_eq!((found.judged, found.calls), (1, 8));
    let ratio = found.ratio.expect("of the other cell");
    assert!((ratio.value - 1.0).abs() < 1e-12);
    let nothing = evaluate(&trials, |_| 0.0, |_| 1.0);
    assert_eq!((nothing.judged, nothing.ratio), (0, None));
}
