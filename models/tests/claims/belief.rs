//! Claims about what is believed.

use colltune_models::evidence::{Call, reduce};
use rand::SeedableRng;

use crate::generator::*;

/// Cells of `n` variants, a third of which are as the default, the others as much slower or faster as it comes.
pub fn mixed(seed: u64, n_cells: u64, n: usize) -> Vec<Truth> {
    let mut random = rand::rngs::StdRng::seed_from_u64(seed);
    let cost = |variant: usize, random: &mut rand::rngs::StdRng| match variant {
        0 => 1.0,
        other if other % 3 == 0 => 1.0,
        _ => (0.25 + 0.4 * normal(random)).exp(),
    };
    (0..n_cells)
        .map(|cell| Truth {
            shape: shape(8 << cell),
            costs: (0..n).map(|variant| cost(variant, &mut random)).collect(),
        })
        .collect()
}

#[test]
fn intervals_of_95_percent_hold_the_truth_in_93_to_97_percent() {
    let (mut inside, mut all) = (0, 0);
    for (run_effect, runs) in [(0.05, 3), (0.15, 5), (0.15, 10), (0.3, 10)] {
        for seed in 0..6 {
            let truths = mixed(seed, 20, 20);
            let machine = Machine {
                run_effect,
                ..USUAL
            };
            let (beliefs, _) = decide(&machine.evidence(100 + seed, &truths, runs, 200), 20, None);
            let (mut here, mut of) = (0, 0);
            for (belief, truth) in beliefs.iter().zip(&truths) {
                for (place, arm) in belief.arms.iter().enumerate() {
                    let away = truth.costs[usize::from(arm.variant)].ln() - belief.mean[place];
                    here += i32::from(away.abs() < 1.96 * belief.covariance[(place, place)].sqrt());
                    of += 1;
                }
            }
            inside += here;
            all += of;
        }
        println!(
            "{run_effect} {runs}: {:.3} so far",
            f64::from(inside) / f64::from(all)
        );
    }
    let coverage = f64::from(inside) / f64::from(all);
    assert!((0.93..=0.97).contains(&coverage), "{coverage}");
}

#[test]
fn intervals_hold_where_the_defaults_of_the_cells_are_better_and_worse_than_all_others_alike() {
    let (mut inside, mut all) = (0, 0);
    for seed in 0..6 {
        let mut random = rand::rngs::StdRng::seed_from_u64(seed);
        let truths: Vec<Truth> = (0..12)
            .map(|cell| {
                // The library takes another algorithm for its default in each cell; the others are much alike.
                let default = 0.4 * normal(&mut random);
                let cost = |_| (default + 0.1 * normal(&mut random)).exp();
                let others = (1..20).map(cost);
                Truth {
                    shape: shape(8 << cell),
                    costs: std::iter::once(1.0)
                        .chain(others.collect::<Vec<_>>())
                        .collect(),
                }
            })
            .collect();
        let machine = Machine {
            run_effect: 0.15,
            ..USUAL
        };
        let (beliefs, _) = decide(&machine.evidence(100 + seed, &truths, 5, 60), 20, None);
        for (belief, truth) in beliefs.iter().zip(&truths) {
            for (place, arm) in belief.arms.iter().enumerate() {
                let away = truth.costs[usize::from(arm.variant)].ln() - belief.mean[place];
                inside += i32::from(away.abs() < 1.96 * belief.covariance[(place, place)].sqrt());
                all += 1;
            }
        }
    }
    let coverage = f64::from(inside) / f64::from(all);
    println!("{coverage:.3}");
    assert!((0.92..=0.98).contains(&coverage), "{coverage}");
}

#[test]
fn a_variant_that_takes_ten_times_as_long_in_each_of_few_calls_does_not_stall() {
    // One call a run, as races inside jobs leave of what is slow.
    let costs = [1.0, 0.7, 10.0];
    let truth = Truth {
        shape: shape(64),
        costs: costs.to_vec(),
    };
    let mut random = rand::rngs::StdRng::seed_from_u64(1);
    let mut calls = Vec::new();
    for run in 0..10 {
        let mut of_run = USUAL.run(run, &truth, &[0.4, 0.4, 0.2], 200, &mut random);
        let mut slow = 0;
        of_run.retain(|call| {
            slow += i32::from(call.variant == 2);
            call.variant != 2 || slow == 1
        });
        calls.extend(of_run);
    }
    let (beliefs, choices) = decide(&reduce(calls), 3, None);
    let slow = &beliefs[0].arms[1];
    let estimate = slow.data.expect("it ran");
    assert!((estimate.mean - costs[2].ln()).abs() < 0.25, "{estimate:?}");
    assert!(slow.stalls.provokes < 0.1, "{:?}", slow.stalls);
    assert_eq!(choices[0].best, Some(0), "nobody else is suspected");
}

#[test]
fn a_gain_of_which_a_part_is_shifted_is_found_though_one_call_in_fifty_is_followed_for_fifty_times_as_long()
 {
    // Variants of the second cell shift much, so those of the first may.
    let cells = [
        ([1.0, 0.85, 0.9, 1.0, 1.0, 1.0, 1.0, 1.0], 0.1),
        ([1.0; 8], 0.4),
    ];
    let mut random = rand::rngs::StdRng::seed_from_u64(11);
    let mut calls = Vec::new();
    for run in 0..10 {
        for ((costs, shift), bytes) in cells.into_iter().zip([8, 256 << 10]) {
            let truth = Truth {
                shape: shape(bytes),
                costs: costs.to_vec(),
            };
            let shifts = [0.0, -1.0, 1.0, 0.0, 0.0, 1.0, -1.0, 0.0].map(|own| shift * own);
            let behind = Behind {
                shifts: &shifts,
                tails: 0.02,
            };
            let mut of_run = USUAL.run(run, &truth, &[0.125; 8], 160, &mut random);
            behind.follow(&mut of_run, &mut random);
            calls.extend(of_run);
        }
    }
    let (beliefs, choices) = decide(&reduce(calls), 8, None);
    let gains = beliefs[0].arms[0].data.expect("it ran");
    assert!((gains.mean - 0.75_f64.ln()).abs() < 0.15, "{gains:?}");
    assert!(gains.variance < 0.06_f64.powi(2), "{gains:?}");
    assert_eq!(choices[0].best, Some(0));
}

#[test]
fn neighbouring_sizes_tell_of_a_cell_that_hardly_ran() {
    let costs = vec![1.0, 0.6, 1.5, 1.2];
    let truths: Vec<Truth> = (0..8)
        .map(|cell| Truth {
            shape: shape(8 << cell),
            costs: costs.clone(),
        })
        .collect();
    let mut evidence = USUAL.evidence(1, &truths, 6, 200);
    evidence.retain(|row| row.shape != truths[4].shape || row.run == 0);
    for row in evidence
        .iter_mut()
        .filter(|row| row.shape == truths[4].shape)
    {
        row.time.n = 2;
    }
    let (beliefs, _) = decide(&evidence, 4, None);
    for (place, cost) in costs[1..].iter().enumerate() {
        let away: f64 = beliefs[4].mean[place] - cost.ln();
        assert!(away.abs() < 0.12, "{place}: {away}");
        assert!(
            beliefs[4].covariance[(place, place)]
                < beliefs[4].arms[place].data.unwrap().variance / 2.0
        );
    }
}

#[test]
fn one_variant_that_met_nobody_leaves_the_others_as_they_were() {
    let truths = vec![Truth {
        shape: shape(64),
        costs: vec![1.0, 0.8, 1.1, 1.0],
    }];
    let mut evidence = USUAL.evidence(1, &truths, 6, 400);
    let with: Vec<_> = evidence.clone();
    evidence.retain(|row| row.variant != 3);
    let without = decide(&evidence, 4, None).0.remove(0);
    let mut apart = with;
    apart
        .iter_mut()
        .filter(|row| row.variant == 3)
        .for_each(|row| row.component = 99);
    let belief = decide(&apart, 4, None).0.remove(0);
    for place in 0..2 {
        let (one, other) = (
            belief.arms[place].data.unwrap(),
            without.arms[place].data.unwrap(),
        );
        assert!(
            (one.variance / other.variance - 1.0).abs() < 0.2,
            "{one:?} {other:?}"
        );
    }
    let lone = belief.arms[2].data.unwrap();
    assert!(
        lone.variance > 25.0 * belief.arms[0].data.unwrap().variance,
        "{lone:?}"
    );
}

/// What lies behind most calls depends on what was drawn in a run.
#[test]
fn a_variant_that_ran_in_runs_with_other_draws_alone_shifts_nothing() {
    let truth = Truth {
        shape: shape(64),
        costs: vec![1.0; 8],
    };
    let mut shifts = [0.0; 8];
    shifts[1] = -0.3;
    let machine = Machine {
        run_effect: 0.02,
        ..USUAL
    };
    let mut random = rand::rngs::StdRng::seed_from_u64(8);
    let uniform = [1.0 / 8.0; 8];
    let raced = [0.35, 0.65, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0];
    let mut evidence = Vec::new();
    for run in 0..20 {
        let (shares, n) = if run < 10 {
            (&uniform[..], 160)
        } else {
            (&raced[..], 200)
        };
        let mut calls = machine.run(run, &truth, shares, n, &mut random);
        let behind = Behind {
            shifts: &shifts,
            tails: 0.0,
        };
        behind.follow(&mut calls, &mut random);
        evidence.extend(reduce(calls));
    }
    let (beliefs, _) = decide(&evidence, 8, None);
    let belief = &beliefs[0];
    for (place, arm) in belief.arms.iter().enumerate() {
        let cost = belief.mean[place].exp();
        let truth = if arm.variant == 1 { 0.7 } else { 1.0 };
        assert!(
            (cost - truth).abs() < 0.06,
            "variant {}: {cost}",
            arm.variant
        );
    }
}

/// What came behind is unknown in a hundred runs, and known in the newest. It varies there as the calls' own time
/// does, so what is by chance in one tells of the other: in that run, and in no other.
#[test]
fn what_comes_behind_the_calls_of_one_run_makes_nobody_surer_of_all_others() {
    let truth = Truth {
        shape: shape(64),
        costs: vec![1.0, 0.9],
    };
    let believed = |newest: u32, part: fn(&mut Call, Option<f64>), share: f64| {
        let mut random = rand::rngs::StdRng::seed_from_u64(5);
        let mut evidence = Vec::new();
        for run in 0..101 {
            let mut calls = USUAL.run(run, &truth, &[0.5, 0.5], 40, &mut random);
            for call in &mut calls {
                let behind_ns = 1e5 + share * call.time_ns;
                part(call, (run == newest).then_some(behind_ns));
            }
            evidence.extend(reduce(calls));
        }
        let (beliefs, _) = decide(&evidence, 2, None);
        beliefs[0].arms[0].data.expect("it ran")
    };
    let shift: fn(&mut Call, Option<f64>) = |call, ns| call.shift_ns = ns;
    let after: fn(&mut Call, Option<f64>) = |call, ns| {
        (call.shift_ns, call.after_ns) = (Some(1e4), ns);
    };
    for (part, share) in [(shift, 1.0), (shift, -1.0), (after, 4.0)] {
        let (unknown, known) = (believed(101, part, share), believed(100, part, share));
        assert!(
            known.variance > 0.99 * unknown.variance,
            "{known:?} {unknown:?}"
        );
        let moved = (known.mean - unknown.mean).abs();
        assert!(moved < 2.0 * known.variance.sqrt(), "{known:?} {unknown:?}");
    }
}

/// A call that takes longer by chance delays the next collective of its ranks, too.
#[test]
fn intervals_hold_where_the_time_in_the_next_collective_rises_with_the_calls_own() {
    let (mut inside, mut all, mut squares) = (0, 0, 0.0);
    for seed in 0..12 {
        let mut random = rand::rngs::StdRng::seed_from_u64(seed);
        let pushed: Vec<f64> = (0..12).map(|_| 0.1 * normal(&mut random)).collect();
        let truth = Truth {
            shape: shape(64),
            costs: vec![1.0; 12],
        };
        let machine = Machine {
            run_effect: 0.01,
            noise: 0.3,
            stalls: None,
        };
        let mut evidence = Vec::new();
        for run in 0..20 {
            let mut calls = machine.run(run, &truth, &[1.0 / 12.0; 12], 240, &mut random);
            let typical_ns = calls.iter().map(|call| call.time_ns).sum::<f64>() / 240.0;
            for call in &mut calls {
                let pushed_ns = (2.0 + pushed[usize::from(call.variant)]) * typical_ns;
                call.shift_ns = Some(1e5);
                call.after_ns = Some(pushed_ns + call.time_ns - typical_ns);
            }
            evidence.extend(reduce(calls));
        }
        let (beliefs, _) = decide(&evidence, 12, None);
        for arm in &beliefs[0].arms {
            let found = arm.data.expect("it ran");
            let truth = 1.0 + pushed[usize::from(arm.variant)] - pushed[0];
            squares += (found.mean - truth.ln()).powi(2) / found.variance;
            inside += i32::from((found.mean - truth.ln()).abs() < 1.96 * found.variance.sqrt());
            all += 1;
        }
    }
    let coverage = f64::from(inside) / f64::from(all);
    let squares = squares / f64::from(all);
    assert!(coverage > 0.93, "{coverage}");
    assert!(
        (0.7..=1.2).contains(&squares),
        "{squares} times what is stated"
    );
}
