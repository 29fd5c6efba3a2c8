//! Claims about the learner as published.

use colltune_core::catalogue;
use colltune_core::collective::Collective;
use colltune_core::model::{CellModel, Model, Source};
use colltune_core::settings::{LearnerKind, Settings};
use colltune_models::evidence::{Evidence, Shape, reduce};
use colltune_models::predict::XgBoost;
use colltune_models::{Context, Learned, learn};
use colltune_tests::skip;
use rand::SeedableRng;
use rand::rngs::StdRng;

use crate::generator::{LIBRARY, Truth, USUAL, name, shape, trained};

fn settings(extra: &str) -> Settings {
    Settings::from_toml(&format!("learner = \"ompicolltune\"\n{extra}")).unwrap()
}

/// Whether these claims can be put to the test.
fn is_there() -> bool {
    XgBoost::loaded()
        .map_err(|reason| skip::<()>(&reason))
        .is_ok()
}

fn entry(model: &Model, at: Shape) -> &CellModel {
    let (nodes, ppn) = (at.nodes.into(), at.ppn.into());
    let holds = |one: &&CellModel| {
        one.cell
            .contains(at.collective, at.message_bytes, nodes, ppn)
    };
    model.cells.iter().find(holds).expect("the space has it")
}

/// The places in the catalogue of what a cell draws before any training, the default first.
fn drawn(settings: &Settings, at: Shape) -> Vec<u16> {
    let model = Model::initial(settings, LIBRARY, "test");
    let all = catalogue::variants(LIBRARY, at.collective);
    let place = |name: &str| all.iter().position(|one| one.name.to_string() == name);
    let names = entry(&model, at).variants.iter();
    let places: Vec<u16> = names
        .map(|share| place(&share.name).expect("it is known") as u16)
        .collect();
    assert_eq!(places[0], 0);
    places
}

/// Four runs in which what is drawn in a cell takes these times beside one unit; those without a time are not run.
fn runs(settings: &Settings, at: Shape, costs: impl Fn(usize) -> Option<f64>) -> Vec<Evidence> {
    let drawn = drawn(settings, at);
    let (places, costs): (Vec<u16>, Vec<f64>) = (0..drawn.len())
        .filter_map(|one| Some((drawn[one], costs(one)?)))
        .unzip();
    let even = vec![1.0 / costs.len() as f64; costs.len()];
    let truth = Truth { shape: at, costs };
    let mut random = StdRng::seed_from_u64(at.message_bytes + u64::from(at.nodes) * 1000);
    let mut calls = Vec::new();
    for run in 0..4 {
        calls.extend(USUAL.run(run, &truth, &even, 600, &mut random));
    }
    for call in &mut calls {
        call.variant = places[usize::from(call.variant)];
        // Levels of runs are not what this is about.
        call.time_ns = call.time_ns.max(1.0);
    }
    reduce(calls)
}

fn on(bytes: u64, nodes: u32) -> Shape {
    Shape {
        nodes,
        n_ranks: nodes * 4,
        ..shape(bytes)
    }
}

fn share(entry: &CellModel, variant: u16) -> f64 {
    let name = name(variant.into());
    let shares = entry.variants.iter();
    let found = shares.filter(|share| share.name == name);
    found.map(|share| share.probability).sum()
}

fn sound(learned: &Learned) {
    assert_eq!(learned.model.check(LIBRARY), Ok(()));
    assert_eq!(learned.model.learner, LearnerKind::OmpiCollTune);
}

#[test]
fn before_any_training_all_of_the_librarys_own_are_drawn_alike_and_the_default_is_one_of_them() {
    let model = Model::initial(&settings(""), LIBRARY, "test");
    assert_eq!(model.learner, LearnerKind::OmpiCollTune);
    for one in &model.cells {
        let even = 1.0 / one.variants.len() as f64;
        assert_eq!(one.variants[0].name, "default");
        for share in &one.variants {
            assert!((share.probability - even).abs() < 1e-12, "{}", one.cell);
            let is_own = share.name.starts_with("native:") || share.name == "default";
            assert!(is_own, "{}", share.name);
        }
    }
    let read = Model::from_json(&model.to_json(), LIBRARY);
    assert_eq!(read, Ok(model));
}

#[test]
fn the_slowest_stays_at_the_least_the_fastest_is_drawn_most_and_is_the_choice() {
    if !is_there() {
        return;
    }
    let settings = settings("");
    let at = on(64, 2);
    let drawn = drawn(&settings, at);
    let last = drawn.len() - 1;
    let cost = |one: usize| match one {
        2 => 0.5,
        one if one == last => 40.0,
        _ => 1.0,
    };
    let learned = trained(&runs(&settings, at, |one| Some(cost(one))), &settings);
    sound(&learned);
    let found = entry(&learned.model, at);
    assert_eq!(found.source, Source::Measured);
    assert_eq!(found.variants.len(), drawn.len(), "nothing is left out");
    assert_eq!(share(found, drawn[last]), 0.03);
    assert!(found.variants.iter().all(|share| share.probability >= 0.03));
    assert_eq!(found.best, name(drawn[2].into()));
    let most = share(found, drawn[2]);
    let others = share(found, drawn[1]);
    assert!((1.6..2.4).contains(&(most / others)), "{most} {others}");
    assert!((1.6..2.4).contains(&found.gain), "{}", found.gain);
    assert_eq!(learned.notes, [""; 0]);
}

#[test]
fn a_most_holds_the_fastest_and_a_least_that_cannot_hold_is_said_once_and_lowered() {
    if !is_there() {
        return;
    }
    let at = on(64, 2);
    let capped = settings("probability_max = 0.25");
    let cost = |one: usize| Some(if one == 2 { 0.01 } else { 1.0 });
    let learned = trained(&runs(&capped, at, cost), &capped);
    let best = drawn(&capped, at)[2];
    let held = share(entry(&learned.model, at), best);
    assert!((held - 0.25).abs() < 1e-4, "{held}");
    let tight = settings("probability_min = 0.4");
    let learned = trained(&runs(&tight, at, cost), &tight);
    sound(&learned);
    let found = entry(&learned.model, at);
    assert_eq!(found.best, name(best.into()));
    let least = 0.5 / found.variants.len() as f64;
    for share in &found.variants {
        assert!(share.probability > least - 1e-5, "{}", share.name);
    }
    let [note] = &learned.notes[..] else {
        panic!("{:?}", learned.notes);
    };
    assert!(
        note.contains("probability_min = 0.4") && note.contains("cells"),
        "{note}"
    );
}

#[test]
fn cells_without_data_get_a_choice_of_their_own_by_size_and_nodes() {
    if !is_there() {
        return;
    }
    let settings = settings("");
    let mut evidence = Vec::new();
    for nodes in [2, 8] {
        // What is fast for short messages is slow for long ones.
        for (bytes, fast) in [(8, 1), (64, 1), (512, 1), (65_536, 2), (262_144, 2)] {
            let cost = |one: usize| Some(if one == fast { 0.4 } else { 1.0 });
            evidence.extend(runs(&settings, on(bytes, nodes), cost));
        }
    }
    let learned = trained(&evidence, &settings);
    sound(&learned);
    let drawn = drawn(&settings, on(64, 2));
    for (bytes, fast) in [(16, 1), (256, 1), (131_072, 2), (1 << 20, 2)] {
        for nodes in [3, 4, 16] {
            let found = entry(&learned.model, on(bytes, nodes));
            assert_eq!(found.source, Source::Predicted, "{}", found.cell);
            assert_eq!(found.best, name(drawn[fast].into()), "{}", found.cell);
            assert!(found.gain > 1.3, "{} {}", found.cell, found.gain);
        }
    }
    // Of a collective without a call nothing is known.
    let mut others = learned.model.cells.iter();
    assert!(others.all(|one| {
        one.cell.collective == Collective::Allreduce
            || (one.source == Source::Prior && one.best == "default")
    }));
    let mut predicted = learned.statistics.iter();
    assert!(predicted.any(|one| {
        one.source == Source::Predicted && one.variants.iter().any(|of| one.may_stand(of))
    }));
}

#[test]
fn what_was_timed_in_few_cells_is_drawn_as_the_mean_and_is_no_choice() {
    if !is_there() {
        return;
    }
    let settings = settings("");
    let mut evidence = Vec::new();
    for bytes in [8, 64, 4096] {
        let cost = |one: usize| match one {
            // Where it is fast it was run, and nowhere else.
            3 => (bytes == 8).then_some(0.01),
            _ => Some(1.0),
        };
        evidence.extend(runs(&settings, on(bytes, 2), cost));
    }
    let learned = trained(&evidence, &settings);
    sound(&learned);
    let drawn = drawn(&settings, on(4096, 2));
    for bytes in [8, 4096] {
        let found = entry(&learned.model, on(bytes, 2));
        assert_ne!(found.best, name(drawn[3].into()));
        let even = 1.0 / found.variants.len() as f64;
        let own = share(found, drawn[3]);
        assert!((0.7 * even..1.4 * even).contains(&own), "{own}");
    }
    let [note] = &learned.notes[..] else {
        panic!("{:?}", learned.notes);
    };
    assert!(
        note.contains(&name(drawn[3].into())) && note.contains("too few"),
        "{note}"
    );
}

#[test]
fn what_ran_few_of_a_cells_calls_is_no_choice_however_fast_it_was() {
    if !is_there() {
        return;
    }
    let settings = settings("");
    let at = on(64, 2);
    let mut evidence = runs(&settings, at, |one| Some(if one == 1 { 0.8 } else { 1.0 }));
    let drawn = drawn(&settings, at);
    // Most of its draws fell back to the default.
    for row in evidence.iter_mut().filter(|row| row.variant == drawn[2]) {
        let n = 1;
        (row.calls, row.time.n, row.time.mean) = (n, n, 0.1 * row.time.mean);
        row.work = row.time.mean;
    }
    let learned = trained(&evidence, &settings);
    sound(&learned);
    let found = entry(&learned.model, at);
    assert_eq!(found.best, name(drawn[1].into()));
}

#[test]
fn one_data_set_gives_one_model_in_any_order_and_none_gives_the_first_draws() {
    if !is_there() {
        return;
    }
    let settings = settings("");
    let mut evidence = Vec::new();
    for bytes in [8, 4096] {
        evidence.extend(runs(&settings, on(bytes, 2), |one| Some(1.0 + one as f64)));
    }
    let one = trained(&evidence, &settings);
    evidence.reverse();
    assert_eq!(trained(&evidence, &settings).model, one.model);
    let context = Context::first(&settings, LIBRARY, "test");
    let nothing = learn(&[], context).unwrap();
    assert!(nothing.statistics.is_empty());
    let first = Model::initial(&settings, LIBRARY, "test");
    let at = on(8, 2);
    assert_eq!(
        entry(&nothing.model, at).variants,
        entry(&first, at).variants
    );
}
