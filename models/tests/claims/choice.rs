//! Claims about what replaces the default.

use colltune_core::catalogue;
use colltune_core::collective::Collective;
use colltune_core::model::{CellModel, Model};
use colltune_core::settings::Settings;
use colltune_models::belief::Belief;
use colltune_models::choice::{choose, contrast};
use colltune_models::evidence::{Call, Evidence, Shape, reduce};
use colltune_models::{Context, learn};
use rand::{RngExt, SeedableRng};
use statrs::distribution::{ContinuousCDF, Normal};

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

const TUNED: [Collective; 5] = [
    Collective::Allreduce,
    Collective::Bcast,
    Collective::Allgather,
    Collective::Alltoall,
    Collective::Reduce,
];
/// Numbers of sizes, each of a separate cell.
const SIZES: std::ops::Range<u64> = 0..10;

fn of_size(collective: Collective, size: u64) -> Shape {
    Shape {
        collective,
        ..shape(8 << (2 * size))
    }
}

/// A small space with a cell for each of these sizes on each layout.
fn spaced() -> Settings {
    let bounds: Vec<String> = SIZES
        .skip(1)
        .map(|size| (4u64 << (2 * size)).to_string())
        .collect();
    let mut text = String::new();
    for collective in Collective::ALL {
        let (bytes, nodes, ppn) = match TUNED.contains(&collective) {
            true => (format!("0, {}", bounds.join(", ")), "1, 2, 3", "1, 4, 5"),
            false => ("0".to_owned(), "1", "1"),
        };
        let name = collective.name();
        text += &format!("[[space]]\ncollective = \"{name}\"\nbytes = [{bytes}, \"inf\"]\n");
        text += &format!("nodes = [{nodes}, \"inf\"]\nppn = [{ppn}, \"inf\"]\n");
    }
    settings(&text)
}

/// What a model says of a shape.
fn said(model: &Model, shape: Shape) -> &CellModel {
    let (nodes, ppn) = (u64::from(shape.nodes), u64::from(shape.ppn));
    let holds = |entry: &&CellModel| {
        let cell = &entry.cell;
        cell.contains(shape.collective, shape.message_bytes, nodes, ppn)
    };
    model.cells.iter().find(holds).expect("the space has it")
}

/// A cell whose variants all cost the same.
struct Equal {
    truth: Truth,
    names: Vec<String>,
    /// In the catalogue.
    places: Vec<u16>,
}

impl Equal {
    /// With what generation 0 draws there.
    fn new(initial: &Model, shape: Shape) -> Equal {
        let shares = said(initial, shape).variants.iter();
        let names: Vec<String> = shares.map(|share| share.name.clone()).collect();
        let all = catalogue::variants(LIBRARY, shape.collective);
        let place = |name: &String| {
            let mut known = all.iter().map(|variant| variant.name.to_string());
            known.position(|known| known == *name).expect("it is known") as u16
        };
        Equal {
            places: names.iter().map(place).collect(),
            truth: Truth {
                shape,
                costs: vec![1.0; names.len()],
            },
            names,
        }
    }

    /// The probabilities with which a model draws its variants.
    fn shares(&self, model: &Model) -> Vec<f64> {
        let drawn = &said(model, self.truth.shape).variants;
        let share = |name: &String| {
            let own = drawn.iter().find(|share| share.name == *name);
            own.map_or(0.0, |share| share.probability)
        };
        self.names.iter().map(share).collect()
    }
}

#[test]
fn where_all_are_equal_and_any_call_may_stall_five_trainings_take_the_default_from_at_most_two_cells_of_150()
 {
    let settings = spaced();
    let initial = Model::initial(&settings, LIBRARY, "test");
    let shapes = TUNED.map(|collective| SIZES.map(move |size| of_size(collective, size)));
    let cells: Vec<Equal> = shapes
        .into_iter()
        .flatten()
        .map(|shape| Equal::new(&initial, shape))
        .collect();
    let (mut wrong, mut all) = (0, 0);
    for (seed, run_effect) in (1..).zip([0.05, 0.15, 0.3]) {
        let machine = Machine {
            run_effect,
            ..USUAL
        };
        let mut random = rand::rngs::StdRng::seed_from_u64(seed);
        let (mut model, mut before) = (initial.clone(), 0);
        let mut evidence: Vec<Evidence> = Vec::new();
        let mut ever = vec![false; cells.len()];
        for (generation, runs) in (1..).zip([1, 2, 3, 5, 10]) {
            // Each job draws as the last training says.
            for run in before..runs {
                let mut calls = Vec::new();
                for cell in &cells {
                    let shares = cell.shares(&model);
                    let mut of_run = machine.run(run, &cell.truth, &shares, 256, &mut random);
                    for call in &mut of_run {
                        call.variant = cell.places[usize::from(call.variant)];
                        call.time_ns *= if random.random_bool(0.005) { 50.0 } else { 1.0 };
                    }
                    calls.extend(of_run);
                }
                evidence.extend(reduce(calls));
            }
            let context = Context {
                generation,
                seed,
                previous: (generation > 1).then_some(&model),
                runs_before: before,
                ..Context::first(&settings, LIBRARY, "test")
            };
            let learned = learn(&evidence, context).unwrap();
            for (ever, cell) in ever.iter_mut().zip(&cells) {
                *ever |= said(&learned.model, cell.truth.shape).best != cell.names[0];
            }
            (model, before) = (learned.model, runs);
        }
        assert!(evidence.iter().any(|row| row.stalls > 0));
        let here = ever.iter().filter(|ever| **ever).count();
        println!("run effect {run_effect}: {here} of {} cells", ever.len());
        wrong += here;
        all += ever.len();
    }
    assert_eq!(all, 150);
    assert!(wrong <= 2, "{wrong} of {all} cells");
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

/// Ten jobs with many calls of the default and of one variant, and one or two of each other one, whose times are wild,
/// as races inside jobs leave them. Runs differ by 5 %.
fn raced(seed: u64, costs: &[f64]) -> Vec<Evidence> {
    let mut random = rand::rngs::StdRng::seed_from_u64(seed);
    let truth = Truth {
        shape: shape(8),
        costs: costs.to_vec(),
    };
    let others = costs.len() - 2;
    let share = 1.5 / 300.0;
    let often = (1.0 - share * others as f64) / 2.0;
    let mut shares = vec![share; costs.len()];
    shares[..2].fill(often);
    let mut calls = Vec::new();
    for run in 0..10 {
        let mut of_run = USUAL.run(run, &truth, &shares, 300, &mut random);
        for call in of_run.iter_mut().filter(|call| call.variant > 1) {
            call.time_ns *= (0.7 * normal(&mut random)).exp();
        }
        calls.extend(of_run);
    }
    reduce(calls)
}

#[test]
fn wild_times_of_many_variants_that_hardly_ran_do_not_hide_the_one_that_is_faster_in_every_run() {
    let mut costs = vec![1.3; 42];
    (costs[0], costs[1]) = (1.0, 1.0 / 1.29);
    let (mut kept, mut wrong) = (Vec::new(), 0);
    for seed in 0..20 {
        let (beliefs, choices) = decide(&raced(seed, &costs), costs.len(), None);
        if choices[0].best != Some(0) {
            kept.push((seed, beliefs[0].arms[0].data));
        }
        let (_, choices) = decide(&raced(100 + seed, &[1.0; 42]), 42, None);
        wrong += i32::from(choices[0].best.is_some());
    }
    assert!(kept.is_empty(), "{kept:?}");
    assert_eq!(wrong, 0, "of 20 cells in which all are equal");
}

#[test]
fn of_variants_a_third_of_which_stall_the_good_one_replaces_the_default_and_none_that_stalls() {
    // Each third is a tenth faster than the default, but one call in a hundred takes a hundred times as long.
    let stalls = |variant: u16| variant % 3 == 1;
    let costs: Vec<f64> = (0..21u16)
        .map(|variant| match variant {
            0 => 1.0,
            5 => 0.8,
            stalling if stalls(stalling) => 0.9,
            _ => 1.1,
        })
        .collect();
    let (mut stalling, mut good) = (0, 0);
    for seed in 0..20 {
        let mut random = rand::rngs::StdRng::seed_from_u64(seed);
        let truth = Truth {
            shape: shape(64),
            costs: costs.clone(),
        };
        let mut calls = Vec::new();
        for run in 0..10 {
            let mut of_run = USUAL.run(run, &truth, &[1.0 / 21.0; 21], 2000, &mut random);
            for call in of_run.iter_mut().filter(|call| stalls(call.variant)) {
                call.time_ns *= if random.random_bool(0.01) { 100.0 } else { 1.0 };
            }
            calls.extend(of_run);
        }
        let (beliefs, choices) = decide(&reduce(calls), 21, None);
        let chosen = choices[0].best.map(|arm| beliefs[0].arms[arm].variant);
        stalling += i32::from(chosen.is_some_and(stalls));
        good += i32::from(chosen == Some(5));
    }
    assert_eq!((stalling, good), (0, 20));
}

#[test]
fn what_is_not_its_cells_best_replaces_the_default_only_where_it_is_sure_by_itself() {
    let truths = [Truth {
        shape: shape(64),
        costs: vec![1.0, 0.5, 0.7],
    }];
    let (believed, _) = decide(&USUAL.evidence(1, &truths, 10, 600), 3, None);
    // The second arm is so many standard deviations below what would be no gain.
    let second = |deviations: f64| {
        let mut belief = believed[0].clone();
        belief.all_pay = 0.0;
        for arm in &mut belief.arms {
            arm.stalls.provokes = 0.0;
        }
        belief.mean[1] = 0.99f64.ln() - 0.05 * deviations;
        belief.covariance[(1, 1)] = 0.05 * 0.05;
        belief
    };
    // Of a normal distribution 3 % and 0.5 % lie beyond these.
    let (doubtful, sure) = (second(1.881), second(2.576));
    let beliefs = [doubtful.clone(), sure, doubtful.clone(), doubtful];
    let both = vec![true, true];
    // In the last cell it is the best, and 3 % of one of four are within the mean.
    let allowed = [both.clone(), both.clone(), both, vec![false, true]];
    let choices = choose(&beliefs, &allowed, &[None; 4]);
    let best: Vec<Option<usize>> = choices.iter().map(|choice| choice.best).collect();
    assert_eq!(best, [Some(0), Some(0), Some(0), Some(1)], "{choices:?}");
    let replaces: Vec<bool> = choices.iter().map(|choice| choice.replaces[1]).collect();
    assert_eq!(replaces, [false, true, false, true], "{choices:?}");
    assert!(choices.iter().take(3).all(|choice| choice.replaces[0]));
    let reason = &choices[0].reasons[1];
    assert!(reason.contains("97.0 %"), "{reason}");
}

/// Where most calls run a variant that takes a thousandth of the default's time, its stalls are long beside its other calls,
/// and short beside the default's.
#[test]
fn stalls_that_are_short_beside_the_default_cost_a_far_faster_variant_nothing() {
    let mut random = rand::rngs::StdRng::seed_from_u64(8);
    let mut evidence = Vec::new();
    for run in 0..5u32 {
        // In one of the others the typical call is the default's.
        let (calls, share) =
            [(1000, 0.0), (70, 0.4), (70, 0.6), (70, 0.6), (70, 0.6)][run as usize];
        let one = |k: u64| {
            let variant = u16::from(random.random::<f64>() < share);
            let noise = 0.9 + 0.2 * random.random::<f64>();
            let stalls = variant == 1 && random.random::<f64>() < 0.05;
            let is_last = random.random::<f64>() < 0.05;
            let default_ns = if is_last { 4e6 } else { 1e6 };
            let time_ns =
                noise * [default_ns, if stalls { 15e3 } else { 1e3 }][usize::from(variant)];
            Call {
                run,
                shift_ns: (!is_last).then(|| 100.0 + 200.0 * random.random::<f64>()),
                ..call_at(k, variant, time_ns)
            }
        };
        evidence.extend(reduce((0..calls).map(one).collect()));
    }
    assert!(
        evidence
            .iter()
            .any(|row| row.variant == 1 && row.stalls > 0)
    );
    let (beliefs, choices) = decide(&evidence, 2, None);
    assert_eq!(choices[0].best, Some(0), "{:?}", choices[0]);
    let gain = contrast(&beliefs[0], 0);
    assert!(gain.lo > 100.0, "{gain:?}");
}

/// A cell whose only arm was measured, is no faster than the default with this probability, and does not stall.
fn doubtful(believed: &Belief, not_faster: f64) -> Belief {
    let mut belief = believed.clone();
    belief.all_pay = 0.0;
    belief.arms[0].stalls.provokes = 0.0;
    let away = Normal::standard().inverse_cdf(1.0 - not_faster);
    belief.mean[0] = -0.05 * away;
    belief.covariance[(0, 0)] = 0.05 * 0.05;
    belief
}

/// A cell whose second variant takes half the default's time in all of ten jobs.
fn twice_as_fast() -> Belief {
    let truths = [Truth {
        shape: shape(64),
        costs: vec![1.0, 0.5],
    }];
    let (mut believed, _) = decide(&USUAL.evidence(1, &truths, 10, 600), 2, None);
    believed.remove(0)
}

#[test]
fn what_was_chosen_before_goes_once_it_is_likelier_to_lose() {
    let believed = twice_as_fast();
    for (not_faster, stays) in [(0.3, true), (0.5, true), (0.65, false), (0.9, false)] {
        let cell = doubtful(&believed, not_faster);
        let before = [Some(cell.arms[0].variant)];
        let choices = choose(&[cell], &[vec![true]], &before);
        assert_eq!(
            choices[0].best.is_some(),
            stays,
            "{not_faster}: {choices:?}"
        );
        assert_eq!(choices[0].replaces[0], stays, "{not_faster}: {choices:?}");
    }
}

#[test]
fn what_stays_from_before_counts_in_the_mean_that_new_choices_must_keep() {
    let believed = twice_as_fast();
    let sure = believed.clone();
    // Of four new choices one is 3 % likely to be no gain, which is within their mean.
    let fresh = {
        let mut fresh = doubtful(&believed, 0.5);
        fresh.mean[0] = 0.99f64.ln() - 0.05 * 1.881;
        fresh
    };
    let kept = doubtful(&believed, 0.4);
    let beliefs = [sure.clone(), sure.clone(), sure, fresh, kept];
    let allowed = vec![vec![true]; beliefs.len()];
    let chosen = |before: Option<u16>| {
        let mut all = [None; 5];
        all[4] = before;
        let choices = choose(&beliefs, &allowed, &all);
        choices
            .iter()
            .map(|one| one.best.is_some())
            .collect::<Vec<_>>()
    };
    assert_eq!(chosen(None), [true, true, true, true, false]);
    let before = Some(believed.arms[0].variant);
    assert_eq!(chosen(before), [true, true, true, false, true]);
}
