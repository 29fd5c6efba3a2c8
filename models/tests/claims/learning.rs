//! Claims about a whole training.

use std::collections::BTreeMap;
use std::time::Instant;

use colltune_core::catalogue;
use colltune_core::collective::Collective;
use colltune_core::model::{Model, Source};
use colltune_core::prior::place::Place;
use colltune_core::prior::simulated::{self, Simulated};
use colltune_core::select::mix;
use colltune_core::settings::Settings;
use colltune_core::space::Cell;
use colltune_models::evidence::{COPY, Evidence, Moments, Reduced, reduce_with_copies};
use colltune_models::predict::XgBoost;
use colltune_models::statistics::CellStatistics;
use colltune_models::{Context, Control, Learned, learn};
use rand::SeedableRng;

use crate::generator::*;

/// What `calibrate` leaves where it found one variant to be a hundred times as slow as another in the cell of a shape.
fn slow_by_simulation(variant: &str, bytes: u64) -> Simulated {
    let model = Model::initial(&settings(""), LIBRARY, "test");
    let is_there = |cell: &Cell| cell.contains(Collective::Allreduce, bytes, 2, 4);
    let entry = model.cells.iter().find(|entry| is_there(&entry.cell));
    let found = serde_json::json!({
        "schema": simulated::SCHEMA,
        "library": LIBRARY.to_string(),
        "places": [{
            "collective": "allreduce",
            "place": Place::of(&entry.expect("a cell").cell),
            "slower": { variant: 100.0 },
        }],
    });
    Simulated::from_json(&found.to_string(), LIBRARY).expect("its layout")
}

/// The variants that generation 0 draws in the cell of a shape, by place in the catalogue.
fn drawn(settings: &Settings, bytes: u64) -> Vec<usize> {
    let model = Model::initial(settings, LIBRARY, "test");
    let entry = model
        .cells
        .iter()
        .find(|entry| entry.cell.contains(Collective::Allreduce, bytes, 2, 4))
        .unwrap();
    let all = catalogue::variants(LIBRARY, Collective::Allreduce);
    let place = |name: &str| {
        all.iter()
            .position(|variant| variant.name.to_string() == name)
            .unwrap()
    };
    entry
        .variants
        .iter()
        .map(|share| place(&share.name))
        .collect()
}

/// Evidence in which the variants of generation 0 cost 1, but for those given.
fn runs(
    settings: &Settings,
    bytes: u64,
    special: &[(usize, f64)],
    n_runs: u32,
    n_calls: u64,
) -> Vec<Evidence> {
    let drawn = drawn(settings, bytes);
    let mut costs = vec![1.0; drawn.len()];
    for &(index, cost) in special {
        costs[index] = cost;
    }
    // Each size has luck of its own, else what is chance in one would be confirmed by all.
    let mut evidence = USUAL.evidence(
        1 + u64::from(bytes.ilog2()),
        &[Truth {
            shape: shape(bytes),
            costs,
        }],
        n_runs,
        n_calls,
    );
    evidence
        .iter_mut()
        .for_each(|row| row.variant = drawn[usize::from(row.variant)] as u16);
    evidence
}

fn of_shape(cells: &[CellStatistics], bytes: u64) -> &CellStatistics {
    cells
        .iter()
        .find(|cell| cell.cell.contains(Collective::Allreduce, bytes, 2, 4))
        .unwrap()
}

#[test]
fn what_is_published_sums_to_one_by_the_readers_own_rule_whatever_exploring_may_take() {
    for total in ["0.0", "0.001", "0.15", "0.5", "1.0"] {
        let settings = settings(&format!("explore_total = {total}"));
        for calls in [20, 200, 2000] {
            let mut evidence = runs(&settings, 64, &[(1, 0.7), (3, 5.0)], 5, calls);
            evidence.extend(runs(&settings, 1 << 16, &[], 5, calls));
            let learned = trained(&evidence, &settings);
            assert_eq!(learned.model.check(LIBRARY), Ok(()));
            for entry in &learned.model.cells {
                let sum: f64 = entry.variants.iter().map(|share| share.probability).sum();
                assert!((sum - 1.0).abs() < 1e-9, "{total} {calls}: {sum}");
                assert!(
                    total != "0.0" || entry.source == Source::Prior || entry.variants.len() == 1
                );
            }
        }
    }
}

/// The cells that were predicted, none of which replaces the default.
fn predicted(learned: &Learned) -> Vec<&CellStatistics> {
    let predicted: Vec<&CellStatistics> = learned
        .statistics
        .iter()
        .filter(|cell| cell.source == Source::Predicted)
        .collect();
    assert!(predicted.len() > 2);
    for cell in &predicted {
        assert_eq!(
            (cell.best.as_str(), cell.gain),
            ("default", 1.0),
            "{}",
            cell.cell
        );
        assert!(
            cell.variants
                .iter()
                .all(|variant| !variant.replaces_default)
        );
    }
    let mut entries = learned.model.cells.iter();
    assert!(entries.all(|entry| entry.source != Source::Predicted || entry.best == "default"));
    predicted
}

#[test]
fn predicted_cells_draw_what_is_promising_but_never_replace_the_default() {
    let settings = settings("");
    let learned = trained(&runs(&settings, 64, &[(1, 0.3)], 10, 2000), &settings);
    let promising = name(drawn(&settings, 64)[1]);
    assert_eq!(of_shape(&learned.statistics, 64).best, promising);
    for cell in predicted(&learned) {
        let mut known = cell
            .variants
            .iter()
            .filter(|variant| variant.name == promising);
        let mean = 1.0 / cell.variants.len() as f64;
        assert!(
            known.all(|variant| variant.probability > 2.0 * mean),
            "{}",
            cell.cell
        );
    }
}

#[test]
fn predicted_cells_never_replace_the_default_whoever_predicts() {
    let usual = settings("");
    // Of five cells each variant has points enough for trees.
    let evidence: Vec<Evidence> = (0..5u64)
        .flat_map(|size| runs(&usual, 64 << (2 * size), &[(1, 0.3)], 10, 1000))
        .collect();
    let promising = name(drawn(&usual, 64)[1]);
    for predictor in ["gp", "xgboost"] {
        if predictor == "xgboost"
            && let Err(reason) = XgBoost::loaded()
        {
            println!("without {predictor}: {reason}");
            continue;
        }
        let settings = settings(&format!("predictor = \"{predictor}\""));
        let learned = trained(&evidence, &settings);
        assert_eq!(learned.model.check(LIBRARY), Ok(()));
        // It is tempted: each of them expects a gain somewhere.
        let gains = predicted(&learned).into_iter().filter_map(|cell| {
            let contrast = cell.variant(&promising)?.contrast?;
            Some(contrast.gain)
        });
        let most = gains.fold(0.0, f64::max);
        println!("{predictor}: a gain of up to {most:.2} is expected");
        assert!(most > 1.5, "{predictor}: {most}");
    }
}

#[test]
fn open_cells_keep_a_tenth_for_the_default_and_draw_nothing_that_is_dominated() {
    let settings = settings("");
    let learned = trained(
        &runs(&settings, 64, &[(1, 0.8), (2, 0.75), (3, 9.0)], 2, 300),
        &settings,
    );
    let cell = of_shape(&learned.statistics, 64);
    let share = |index: usize| {
        cell.variant(&name(drawn(&settings, 64)[index]))
            .unwrap()
            .probability
    };
    assert!(cell.settled.is_empty() && share(0) >= 0.0999, "{cell:?}");
    assert_eq!(share(3), 0.0);
    assert!(share(1) + share(2) > 0.4, "{} {}", share(1), share(2));
}

#[test]
fn a_choice_says_on_how_many_ranks_it_was_measured() {
    let settings = settings("");
    let learned = trained(&runs(&settings, 64, &[(2, 0.5)], 3, 300), &settings);
    let entries = &learned.model.cells;
    let chosen = entries.iter().filter(|entry| entry.best != "default");
    assert!(chosen.count() > 0);
    for entry in entries {
        let expected = (entry.best != "default").then_some(shape(64).n_ranks);
        assert_eq!(entry.measured_ranks, expected, "{}", entry.cell);
    }
}

#[test]
fn a_cell_of_the_default_alone_trains_replaces_nothing_and_draws_nothing_else() {
    let settings = Settings::from_toml("families = []").unwrap();
    assert_eq!(drawn(&settings, 64), [0]);
    for n_runs in [1, 2, 10] {
        let learned = trained(&runs(&settings, 64, &[], n_runs, 200), &settings);
        assert_eq!(learned.model.check(LIBRARY), Ok(()));
        let cell = of_shape(&learned.statistics, 64);
        assert_eq!(cell.source, Source::Measured);
        assert_eq!((cell.best.as_str(), cell.gain), ("default", 1.0));
        let names: Vec<&str> = cell.variants.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names, ["default"]);
        assert!(!cell.variants[0].replaces_default);
        for entry in &learned.model.cells {
            let drawn: Vec<(&str, f64)> = entry
                .variants
                .iter()
                .map(|share| (share.name.as_str(), share.probability))
                .collect();
            assert_eq!(drawn, [("default", 1.0)], "{}", entry.cell);
        }
    }
}

#[test]
fn what_a_wrong_prior_speaks_against_is_drawn_a_little_and_where_it_is_the_fastest_most() {
    let wide = Settings::from_toml("families = [\"native\", \"p2p\"]").unwrap();
    let disfavoured = *drawn(&wide, 64).last().expect("something is drawn");
    let narrow = Settings {
        simulated: BTreeMap::from([(LIBRARY, slow_by_simulation(&name(disfavoured), 64))]),
        ..wide
    };
    let kept = drawn(&narrow, 64);
    assert!(!kept.contains(&disfavoured));
    let evidence = |variants: &[usize], n_runs: u32| {
        let cost = |place: &usize| if *place == disfavoured { 0.5 } else { 1.0 };
        let truth = Truth {
            shape: shape(64),
            costs: variants.iter().map(cost).collect(),
        };
        let mut evidence = USUAL.evidence(7, &[truth], n_runs, 2000);
        evidence
            .iter_mut()
            .for_each(|row| row.variant = variants[usize::from(row.variant)] as u16);
        evidence
    };
    let share = |cells: &[CellStatistics]| {
        let variant = of_shape(cells, 64).variant(&name(disfavoured));
        variant.map_or(0.0, |variant| variant.probability)
    };
    let first = trained(&evidence(&kept, 1), &narrow);
    let little = share(&first.statistics);
    assert!(0.0 < little && little < 0.01, "{little}");
    // Jobs drew it, and it takes half of the default's time.
    let context = Context {
        settings: &narrow,
        library: LIBRARY,
        machine: "test",
        generation: 2,
        seed: 1,
        previous: Some(&first.model),
        runs_before: 0,
        copies: &[],
        spent: None,
        vetoes: &[],
    };
    let sampled: Vec<usize> = kept.iter().copied().chain([disfavoured]).collect();
    let second = learn(&evidence(&sampled, 10), context).unwrap();
    let cell = of_shape(&second.statistics, 64);
    assert_eq!(cell.best, name(disfavoured));
    assert!(share(&second.statistics) > 0.9, "{cell:?}");
}

#[test]
fn what_the_site_switched_off_makes_nothing_else_hopeless() {
    let all = settings("");
    let place = drawn(&all, 64)[1];
    let evidence = runs(&all, 64, &[(1, 0.08)], 5, 1000);
    let without = settings(&format!("exclude = [\"{}\"]", name(place)));
    let learned = trained(&evidence, &without);
    let cell = of_shape(&learned.statistics, 64);
    assert_eq!(cell.variant(&name(place)).unwrap().probability, 0.0);
    assert!(!cell.variant(&name(place)).unwrap().replaces_default);
    // The others are as good as the default, so none of them is dominated by what may not run.
    let entry = learned
        .model
        .cells
        .iter()
        .find(|entry| entry.cell == cell.cell)
        .unwrap();
    assert!(
        entry.variants.len() > 1 || !cell.settled.is_empty(),
        "{entry:?}"
    );
    assert_eq!(cell.best, "default");
}

#[test]
fn a_new_variant_reopens_a_settled_cell() {
    let narrow = settings("exclude = [\"native:ring\"]");
    let evidence = runs(&narrow, 64, &[(1, 0.6)], 10, 4000);
    let first = trained(&evidence, &narrow);
    assert!(
        !of_shape(&first.statistics, 64).settled.is_empty(),
        "{:?}",
        of_shape(&first.statistics, 64)
    );
    let wide = settings("");
    let context = Context {
        settings: &wide,
        library: LIBRARY,
        machine: "test",
        generation: 2,
        seed: 1,
        previous: Some(&first.model),
        runs_before: 9,
        copies: &[],
        spent: None,
        vetoes: &[],
    };
    let second = learn(&evidence, context).unwrap();
    let cell = of_shape(&second.statistics, 64);
    let new = cell.variant("native:ring").unwrap();
    assert_eq!(new.samples, 0);
    assert!(
        new.probability > 0.004 && cell.settled.is_empty(),
        "{new:?} {}",
        cell.settled
    );
}

#[test]
fn where_nothing_is_to_gain_exploring_ends_after_three_jobs_and_it_is_said_why() {
    let settings = settings("");
    let sizes: Vec<u64> = (0..8).map(|size| 64 << (2 * size)).collect();
    let evidence: Vec<Evidence> = sizes
        .iter()
        .flat_map(|&bytes| runs(&settings, bytes, &[], 3, 2000))
        .collect();
    let learned = trained(&evidence, &settings);
    let settled = sizes
        .iter()
        .filter(|bytes| !of_shape(&learned.statistics, **bytes).settled.is_empty())
        .count();
    assert!(settled >= 7, "{settled} of 8");
    for cell in learned
        .statistics
        .iter()
        .filter(|cell| !cell.settled.is_empty())
    {
        let entry = learned
            .model
            .cells
            .iter()
            .find(|entry| entry.cell == cell.cell)
            .unwrap();
        assert!(entry.variants[0].name == "default" && entry.variants[0].probability > 0.98);
    }
    // Waiting for late ranks bounds what can be gained, whatever the noise.
    let mut waiting = runs(&settings, 64, &[], 3, 100);
    waiting.iter_mut().for_each(|row| row.work = 0.005);
    let learned = trained(&waiting, &settings);
    let cell = of_shape(&learned.statistics, 64);
    assert!(
        cell.settled.contains("waiting") && cell.waiting > 0.99,
        "{}",
        cell.settled
    );
    assert!(!learned.nothing_to_gain.is_empty());
}

#[test]
fn a_program_is_told_that_nothing_is_to_gain_after_three_jobs_though_no_cell_is_certain() {
    let settings = settings("");
    let sizes: Vec<u64> = (0..8).map(|size| 64 << (2 * size)).collect();
    let of = |faster: f64| {
        let evidence: Vec<Evidence> = sizes
            .iter()
            .flat_map(|&bytes| runs(&settings, bytes, &[(1, faster)], 3, 256))
            .collect();
        trained(&evidence, &settings)
    };
    let (equal, gain) = (of(1.0), of(0.6));
    assert!(!equal.nothing_to_gain.is_empty());
    for cell in &equal.statistics {
        if cell.source == Source::Measured {
            assert!(!cell.settled.is_empty() && cell.variants[0].probability > 0.98);
        }
    }
    assert!(gain.nothing_to_gain.is_empty());
}

/// Evidence of eight cells of one collective on runs that differ by so much; the variant at place 1 costs `faster`.
fn program(
    settings: &Settings,
    run_effect: f64,
    n_runs: u32,
    faster: f64,
    seed: u64,
) -> Vec<Evidence> {
    let machine = Machine {
        run_effect,
        ..USUAL
    };
    let of_size = |size: u64| {
        let bytes = 64 << (2 * size);
        let drawn = drawn(settings, bytes);
        let mut costs = vec![1.0; drawn.len()];
        costs[1] = faster;
        let truth = Truth {
            shape: shape(bytes),
            costs,
        };
        let mut evidence = machine.evidence(100 * seed + size, &[truth], n_runs, 256);
        evidence
            .iter_mut()
            .for_each(|row| row.variant = drawn[usize::from(row.variant)] as u16);
        evidence
    };
    (0..8).flat_map(of_size).collect()
}

#[test]
fn what_was_given_up_is_open_again_where_a_cell_is_new_or_the_default_has_changed() {
    let settings = settings("");
    let given_up = program(&settings, 0.05, 10, 1.0, 1);
    assert!(!trained(&given_up, &settings).nothing_to_gain.is_empty());
    let mut with_new = given_up.clone();
    let new = runs(&settings, 1 << 22, &[], 1, 256);
    // One run in which messages of this size take as long as all others.
    with_new.extend(new.into_iter().map(|row| Evidence {
        level_ns: 100.0 * row.level_ns,
        ..row
    }));
    assert_eq!(trained(&with_new, &settings).nothing_to_gain, "");
    // From the eighth run on only the default runs, and takes twice as long.
    let mut slower = given_up;
    slower.retain(|row| row.run < 8 || row.variant == 0);
    for row in &mut slower {
        // Levels that are known to a few percent.
        row.level_ns =
            2e4 * (1.0 + 0.02 * f64::from(row.run % 3)) * if row.run < 8 { 1.0 } else { 2.0 };
    }
    let mut steady = slower.clone();
    steady
        .iter_mut()
        .filter(|row| row.run >= 8)
        .for_each(|row| row.level_ns /= 2.0);
    assert!(!trained(&steady, &settings).nothing_to_gain.is_empty());
    assert_eq!(trained(&slower, &settings).nothing_to_gain, "");
}

#[test]
fn a_cell_in_which_the_default_was_never_timed_is_not_given_up() {
    let settings = settings("");
    let mut evidence = program(&settings, 0.05, 10, 1.0, 1);
    assert!(!trained(&evidence, &settings).nothing_to_gain.is_empty());
    // Where most of the time goes, in runs of few calls.
    let without = runs(&settings, 1 << 22, &[], 10, 64);
    evidence.extend(without.into_iter().filter_map(|row| {
        (row.variant != 0).then_some(Evidence {
            level_ns: 100.0 * row.level_ns,
            ..row
        })
    }));
    assert_eq!(trained(&evidence, &settings).nothing_to_gain, "");
}

#[test]
fn what_runs_before_a_shift_said_is_forgotten_within_four_runs() {
    let settings = settings("");
    let mut evidence = runs(&settings, 64, &[(1, 0.4)], 14, 600);
    // From the tenth run on the default is a tenth faster than what was chosen.
    for row in evidence
        .iter_mut()
        .filter(|row| row.run >= 10 && row.variant == 0)
    {
        row.time.mean *= 0.36;
        row.time.m2 *= 0.36 * 0.36;
    }
    let chosen = Model {
        generation: 1,
        ..trained(
            &evidence
                .iter()
                .copied()
                .filter(|row| row.run < 10)
                .collect::<Vec<_>>(),
            &settings,
        )
        .model
    };
    let context = Context {
        settings: &settings,
        library: LIBRARY,
        machine: "test",
        generation: 2,
        seed: 1,
        previous: Some(&chosen),
        runs_before: 13,
        copies: &[],
        spent: None,
        vetoes: &[],
    };
    let learned = learn(&evidence, context).unwrap();
    assert_eq!(of_shape(&learned.statistics, 64).best, "default");
}

#[test]
fn a_default_that_became_faster_than_the_choice_is_noticed_and_taken_back() {
    let settings = settings("");
    let mut evidence = runs(&settings, 64, &[(1, 0.7)], 20, 1500);
    // From the tenth run on a new library's default needs half of the time.
    for row in evidence
        .iter_mut()
        .filter(|row| row.run >= 10 && row.variant == 0)
    {
        row.time.mean *= 0.5;
        row.time.m2 *= 0.25;
    }
    let before = trained(
        &evidence
            .iter()
            .copied()
            .filter(|row| row.run < 10)
            .collect::<Vec<_>>(),
        &settings,
    );
    assert_eq!(
        of_shape(&before.statistics, 64).best,
        name(drawn(&settings, 64)[1])
    );
    let context = Context {
        settings: &settings,
        library: LIBRARY,
        machine: "test",
        generation: 2,
        seed: 1,
        previous: Some(&before.model),
        runs_before: 10,
        copies: &[],
        spent: None,
        vetoes: &[],
    };
    let learned = learn(&evidence, context).unwrap();
    let cell = of_shape(&learned.statistics, 64);
    assert_eq!(cell.best, "default");
    assert!(cell.drift < -0.5, "{}", cell.drift);
}

/// Lets the calls of a row shift so much into what follows, with a tenth of noise.
fn shifts(row: &mut Evidence, shift: f64) {
    let n = row.time.n;
    let m2 = 0.01 * n as f64;
    row.shift = Moments { n, mean: shift, m2 };
    row.total = Moments {
        n,
        mean: row.time.mean + shift,
        m2: row.time.m2 + m2,
    };
}

#[test]
fn what_comes_behind_the_call_counts_where_it_is_well_measured() {
    let settings = settings("");
    let mut evidence = runs(&settings, 64, &[(1, 0.75), (2, 0.85)], 10, 3000);
    let drawn = drawn(&settings, 64);
    for row in &mut evidence {
        // The second shifts a half of a call's time into the next operation.
        let shift = if usize::from(row.variant) == drawn[1] {
            0.5
        } else {
            0.0
        };
        shifts(row, shift);
    }
    let learned = trained(&evidence, &settings);
    let cell = of_shape(&learned.statistics, 64);
    assert_eq!(cell.best, name(drawn[2]));
    assert!(!cell.variant(&name(drawn[1])).unwrap().replaces_default);
}

/// As behind a bcast whose root leaves at once: the default takes 1 and has others wait for 0.8 of that in what follows.
#[test]
fn what_takes_less_than_the_default_shifts_is_ranked_by_its_cost() {
    let settings = settings("");
    // By variant its time, and what it shifts: costs of 0.2, 0.3 and 0.7 beside the default's 1.7.
    let truth = [(0.2, 0.1), (0.25, 0.15), (0.5, 0.3)];
    let costs: Vec<(usize, f64)> = (1..).zip(truth.map(|(time, _)| time)).collect();
    let mut evidence = runs(&settings, 64, &costs, 10, 3000);
    let drawn = drawn(&settings, 64);
    for row in &mut evidence {
        let place = drawn
            .iter()
            .position(|one| *one == usize::from(row.variant));
        let shift = match place {
            Some(place @ 1..=3) => truth[place - 1].1,
            _ => 0.8,
        };
        shifts(row, shift);
    }
    let learned = trained(&evidence, &settings);
    let cell = of_shape(&learned.statistics, 64);
    assert_eq!(cell.best, name(drawn[1]));
    let gains: Vec<f64> = (1..=3)
        .map(|place| {
            cell.variant(&name(drawn[place]))
                .unwrap()
                .contrast
                .unwrap()
                .gain
        })
        .collect();
    assert!(gains.is_sorted_by(|a, b| a > b), "{gains:?}");
    assert!((3.0..12.0).contains(&gains[0]), "{gains:?}");
    // And its cost is published, not its time.
    let logs = evidence.iter().filter(|row| row.variant == 0);
    let logs: Vec<f64> = logs
        .map(|row| (row.level_ns * row.time.mean).ln())
        .collect();
    let time_ns = (logs.iter().sum::<f64>() / logs.len() as f64).exp();
    let cost_ns = |name: &str| cell.variant(name).unwrap().time_ns.median.unwrap();
    let default = cost_ns("default") / time_ns;
    assert!((1.5..1.9).contains(&default), "{default}");
    let best = cost_ns(&cell.best) / time_ns;
    assert!((best * cell.gain / default - 1.0).abs() < 0.01, "{best}");
}

#[test]
fn one_data_set_gives_one_generation_in_any_order_and_on_any_number_of_threads() {
    let settings = settings("");
    let evidence = runs(&settings, 64, &[(1, 0.7)], 6, 400);
    let text = |evidence: &[Evidence]| {
        let learned = trained(evidence, &settings);
        (
            learned.model.to_json(),
            serde_json::to_string(&learned.statistics).unwrap(),
        )
    };
    let one = text(&evidence);
    let reversed: Vec<Evidence> = evidence.iter().rev().copied().collect();
    let alone = rayon::ThreadPoolBuilder::new()
        .num_threads(1)
        .build()
        .unwrap();
    assert_eq!(alone.install(|| text(&reversed)), one);
}

#[test]
fn a_million_rows_train() {
    let settings = settings("");
    let few = runs(&settings, 64, &[(1, 0.7)], 10, 2000);
    let mut evidence = Vec::new();
    for collective in [Collective::Allreduce, Collective::Bcast, Collective::Reduce] {
        for size in 0..11u64 {
            for copy in 0..1_000_000 / (33 * few.len() as u64) {
                let shift = move |row: &Evidence| {
                    let mut row = *row;
                    row.shape.collective = collective;
                    row.shape.message_bytes = 8 << (2 * size);
                    row.run += 10 * copy as u32;
                    row
                };
                evidence.extend(few.iter().map(shift));
            }
        }
    }
    let started = Instant::now();
    let learned = trained(&evidence, &settings);
    println!("{} rows: {:?}", evidence.len(), started.elapsed());
    assert!(
        learned
            .statistics
            .iter()
            .filter(|cell| cell.source == Source::Measured)
            .count()
            >= 30
    );
}

#[test]
fn without_evidence_nothing_is_known() {
    let learned = trained(&[], &Settings::default());
    assert_eq!(learned.model.check(LIBRARY), Ok(()));
    assert!(learned.statistics.is_empty() && learned.nothing_to_gain.is_empty());
    assert!(
        learned
            .model
            .cells
            .iter()
            .all(|entry| entry.source == Source::Prior && entry.best == "default")
    );
}

/// What a training says of a copy of the default in forty cells, where the calls of the copy's half take so many times as
/// long as the other half's.
fn control(seed: u64, run_effect: f64, copy_takes: f64) -> Control {
    let settings = settings("");
    let machine = Machine {
        run_effect,
        ..USUAL
    };
    let mut random = rand::rngs::StdRng::seed_from_u64(seed);
    let mut calls = Vec::new();
    for (run, size) in (0..10).flat_map(|run| (0..12).map(move |size| (run, size))) {
        let truth = Truth {
            shape: shape(8 << (2 * size)),
            costs: vec![1.0; 4],
        };
        let mut of_run = machine.run(run, &truth, &[0.4, 0.2, 0.2, 0.2], 120, &mut random);
        for call in of_run.iter_mut().filter(|call| call.variant == 0) {
            let is_copy = mix(call.comm, call.index) & 1 == 1;
            call.time_ns *= if is_copy { copy_takes } else { 1.0 };
        }
        calls.extend(of_run);
    }
    let Reduced { evidence, copies } = reduce_with_copies(calls);
    let context = Context {
        copies: &copies,
        ..Context::first(&settings, LIBRARY, "test")
    };
    learn(&evidence, context).unwrap().control
}

#[test]
fn a_copy_of_the_default_wins_by_chance_in_a_hundredth_of_the_cells_and_everywhere_where_it_is_faster()
 {
    let (mut won, mut cells) = (0, 0);
    for (seed, run_effect) in (0..8).flat_map(|seed| [(seed, 0.05), (seed, 0.3)]) {
        let found = control(seed, run_effect, 1.0);
        assert!(found.cells >= 8, "{found:?}");
        won += found.won;
        cells += found.cells;
    }
    println!("{won} of {cells}");
    assert!(100 * won <= cells, "{won} of {cells}");
    let cheated = control(1, 0.05, 0.8);
    assert_eq!(cheated.won, cheated.cells, "{cheated:?}");
    // Without copies that is unknown.
    let nothing = trained(&runs(&settings(""), 64, &[], 5, 100), &settings(""));
    assert_eq!(nothing.control, Control::default());
}

#[test]
fn what_the_rest_of_the_calls_say_and_what_the_copy_says_is_what_all_of_them_say() {
    let calls = USUAL.run(
        0,
        &Truth {
            shape: shape(64),
            costs: vec![1.0, 1.2],
        },
        &[0.5, 0.5],
        300,
        &mut rand::rngs::StdRng::seed_from_u64(3),
    );
    let Reduced { evidence, copies } = reduce_with_copies(calls);
    let [all, copy] = [evidence[0], copies[0]];
    let rest = all.without(&copy);
    assert_eq!((all.variant, copy.variant), (0, COPY));
    assert_eq!(rest.calls + copy.calls, all.calls);
    assert!(rest.calls.abs_diff(copy.calls) < 50, "{rest:?} {copy:?}");
    let mut joined = rest.time;
    let (n, m) = (rest.time.n as f64, copy.time.n as f64);
    joined.n += copy.time.n;
    joined.mean = (n * rest.time.mean + m * copy.time.mean) / (n + m);
    joined.m2 += copy.time.m2 + n * m / (n + m) * (rest.time.mean - copy.time.mean).powi(2);
    assert_eq!(joined.n, all.time.n);
    assert!((joined.mean - all.time.mean).abs() < 1e-12, "{joined:?}");
    assert!((joined.m2 - all.time.m2).abs() < 1e-9, "{joined:?}");
    assert!(copy.shift.n == 0 && (rest.work - all.work).abs() < 0.2);
}
