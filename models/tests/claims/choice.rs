//! Claims about what replaces the default.

use colltune_models::baseline;
use colltune_models::evidence::Evidence;

use crate::generator::*;

fn null(cells: u64) -> Vec<Truth> {
    (0..cells)
        .map(|cell| Truth {
            shape: shape(8 << (cell % 30)),
            costs: vec![1.0; 20],
        })
        .collect()
}

#[test]
fn where_all_are_equal_at_most_one_cell_in_a_hundred_loses_its_default() {
    for run_effect in [0.15, 0.3] {
        let (mut wrong, mut all) = (0, 0);
        for seed in 0..10 {
            let machine = Machine {
                run_effect,
                ..USUAL
            };
            let evidence = machine.evidence(seed, &null(15), 10, 256);
            let mut ever = [false; 15];
            for runs in [1, 2, 3, 5, 10] {
                let so_far: Vec<Evidence> = evidence
                    .iter()
                    .copied()
                    .filter(|row| row.run < runs)
                    .collect();
                let (_, choices) = decide(&so_far, 20, None);
                ever.iter_mut()
                    .zip(&choices)
                    .for_each(|(ever, choice)| *ever |= choice.best.is_some());
            }
            wrong += ever.iter().filter(|ever| **ever).count();
            all += ever.len();
        }
        assert!(
            100 * wrong <= all,
            "run effect {run_effect}: {wrong} of {all} cells"
        );
    }
}

#[test]
fn of_the_replacements_among_faster_slower_and_equal_ones_one_in_a_hundred_is_wrong_and_good_ones_are_found()
 {
    let (mut wrong, mut all, mut found, mut cells) = (0, 0, 0.0, 0);
    for seed in 0..8 {
        let truths = crate::belief::mixed(seed, 30, 20);
        let machine = Machine {
            run_effect: 0.1,
            ..USUAL
        };
        let evidence = machine.evidence(seed, &truths, 10, 60);
        let (beliefs, choices) = decide(&evidence, 20, None);
        for ((belief, choice), truth) in beliefs.iter().zip(&choices).zip(&truths) {
            let cost = |arm: usize| truth.costs[usize::from(belief.arms[arm].variant)];
            for arm in (0..belief.arms.len()).filter(|&arm| choice.replaces[arm]) {
                wrong += i32::from(cost(arm) >= 1.0);
                all += 1;
            }
            let best = truth.costs.iter().copied().fold(1.0, f64::min);
            found += (choice.best.map_or(1.0, cost) / best).ln();
            cells += 1;
        }
    }
    let behind = (found / f64::from(cells)).exp();
    println!("{wrong} wrong of {all}, {behind:.3} of the best");
    assert!(100 * wrong <= all, "{wrong} of {all}");
    assert!(behind < 1.10, "{behind} of the best variant's time");
}

#[test]
fn a_variant_of_which_one_call_in_a_hundred_takes_a_thousand_times_as_long_never_wins() {
    let machine = Machine {
        stalls: Some((1, 0.01, 1000.0)),
        ..USUAL
    };
    for seed in 0..12 {
        let truths = vec![Truth {
            shape: shape(64),
            costs: vec![1.0, 0.9],
        }];
        let evidence = machine.evidence(seed, &truths, 10, 600);
        let (beliefs, choices) = decide(&evidence, 2, None);
        assert_eq!(choices[0].best, None, "seed {seed}: {:?}", beliefs[0].arms);
        assert!(beliefs[0].arms[0].stalls.provokes > 0.9);
    }
    // The same machine without stalls: the gain is taken.
    for seed in 0..12 {
        let evidence = USUAL.evidence(
            seed,
            &[Truth {
                shape: shape(64),
                costs: vec![1.0, 0.8],
            }],
            10,
            600,
        );
        assert_eq!(decide(&evidence, 2, None).1[0].best, Some(0), "seed {seed}");
    }
}

#[test]
fn the_learner_before_took_such_a_variant() {
    use baseline::call::Row;
    let machine = Machine {
        stalls: Some((1, 0.01, 1000.0)),
        ..USUAL
    };
    let mut random = rand::SeedableRng::seed_from_u64(1);
    let truth = Truth {
        shape: shape(64),
        costs: vec![1.0, 0.9],
    };
    let rows = (0..10)
        .flat_map(|run| machine.run(run, &truth, &[0.5, 0.5], 600, &mut random))
        .map(|call| Row {
            job: call.run,
            comm: call.comm,
            call: call.index,
            duration_ns: call.time_ns as u64,
            bytes: call.shape.message_bytes,
            nodes: call.shape.nodes,
            ppn: call.shape.ppn,
            n_ranks: call.shape.n_ranks,
            variant: call.variant,
            collective: call.shape.collective,
        });
    let settings = settings("");
    let context = baseline::Context {
        settings: &settings,
        library: LIBRARY,
        machine: "test",
        generation: 1,
        seed: 1,
    };
    let learned = baseline::learn(rows.collect(), context).unwrap();
    let cell = learned
        .statistics
        .iter()
        .find(|cell| cell.samples() > 0)
        .unwrap();
    assert_ne!(cell.best, "default");
}

#[test]
fn too_few_calls_to_exclude_stalls_are_not_certain() {
    let evidence = USUAL.evidence(
        3,
        &[Truth {
            shape: shape(64),
            costs: vec![1.0, 0.5],
        }],
        5,
        12,
    );
    let (beliefs, choices) = decide(&evidence, 2, None);
    assert_eq!(choices[0].best, None, "{:?}", beliefs[0].arms);
}

#[test]
fn one_run_is_no_proof_of_a_gain_of_a_quarter() {
    let evidence = USUAL.evidence(
        3,
        &[Truth {
            shape: shape(64),
            costs: vec![1.0, 0.8],
        }],
        1,
        4000,
    );
    assert_eq!(decide(&evidence, 2, None).1[0].best, None);
}

#[test]
fn what_was_chosen_goes_back_on_evidence_alone() {
    let little = USUAL.evidence(
        5,
        &[Truth {
            shape: shape(64),
            costs: vec![1.0, 0.97, 1.3],
        }],
        3,
        60,
    );
    assert_eq!(decide(&little, 3, None).1[0].best, None);
    assert_eq!(decide(&little, 3, Some(1)).1[0].best, Some(0));
    let against = USUAL.evidence(
        5,
        &[Truth {
            shape: shape(64),
            costs: vec![1.0, 1.15, 1.3],
        }],
        10,
        600,
    );
    assert_eq!(decide(&against, 3, Some(1)).1[0].best, None);
}

#[test]
fn gains_are_told_without_the_winners_curse() {
    let (mut outside, mut all, mut told, mut true_gain) = (0, 0, 0.0, 0.0);
    for seed in 20..28 {
        let truths = crate::belief::mixed(seed, 30, 20);
        let machine = Machine {
            run_effect: 0.1,
            ..USUAL
        };
        let (beliefs, choices) = decide(&machine.evidence(seed, &truths, 10, 100), 20, None);
        for ((belief, choice), truth) in beliefs.iter().zip(&choices).zip(&truths) {
            let Some(best) = choice.best else { continue };
            let contrast = colltune_models::choice::contrast(belief, best);
            let gain = 1.0 / truth.costs[usize::from(belief.arms[best].variant)];
            outside += i32::from(!(contrast.lo..=contrast.hi).contains(&gain));
            told += contrast.gain.ln();
            true_gain += gain.ln();
            all += 1;
        }
    }
    let share = f64::from(outside) / f64::from(all);
    println!(
        "{share:.3} outside of {all}; told {:.3}, true {:.3}",
        told / f64::from(all),
        true_gain / f64::from(all)
    );
    assert!(share < 0.08, "{share}");
    assert!((told - true_gain).abs() / f64::from(all) < 0.02);
}
