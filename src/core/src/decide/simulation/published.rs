//! Claims about how calls are drawn, one by one: as published, and with which probability in either way.

use std::collections::BTreeMap;

use super::dice;
use super::job::basic_rules;
use super::single::{Single, able, bcast};
use crate::decide::agreed::Possible;
use crate::decide::hopeless::Hopeless;
use crate::decide::rules::{Rules, Telling};
use crate::decide::table::CellTable;
use crate::decide::{Chosen, DEFAULT, Decision};
use crate::model::Model;
use crate::request::Mode;
use crate::settings::{LearnerKind, Settings};

/// The rules of a job before any training.
fn rules(learner: LearnerKind) -> Rules {
    let [rules, _] = basic_rules();
    let mut rules = rules.clone();
    let settings = Settings {
        learner,
        families: None,
        ..rules.terms.settings.clone()
    };
    let library = "openmpi-4.1.4".parse().expect("it is known");
    let model = Model::initial(&settings, library, "none");
    rules.terms.cells = CellTable::new(&model, library);
    rules.terms.settings = settings;
    rules.with(Telling::Needed)
}

/// The first sampled calls, so many at the most, of one communicator's broadcasts, and how many calls ran unsampled.
/// Variants take up to a hundred times as long as others.
fn live(rules: &Rules, number: u64, most: usize) -> (Vec<Chosen>, usize) {
    let mut single = Single::new(rules, able(number), Hopeless::NOTHING);
    let (mut sampled, mut others) = (Vec::new(), 0);
    for _ in 0..2_000 {
        single.now_ns += 10_000;
        let Decision::Chosen(chosen) = single.decide(bcast(40_000)) else {
            continue;
        };
        if !chosen.sampled || sampled.len() == most {
            others += 1;
            continue;
        }
        let time_ns = 10_000 * (1 + dice(1, 2, chosen.variant.into()) % 100);
        sampled.push(chosen);
        single.observe(
            (bcast(40_000), chosen),
            time_ns,
            (Possible::Yes, &Default::default()),
        );
    }
    (sampled, others)
}

#[test]
fn as_published_each_call_draws_from_all_alike_until_the_records_are_used_up() {
    let mut rules = rules(LearnerKind::OmpiCollTune);
    rules.terms.settings.records_per_run = 1_500;
    let (sampled, _) = live(&rules, 1, usize::MAX);
    assert_eq!(sampled.len(), 1_500);
    let indices: Vec<u64> = sampled.iter().map(|chosen| chosen.index).collect();
    assert_eq!(indices, (0..1_500).collect::<Vec<_>>(), "none is left out");
    let mut counts: BTreeMap<u16, u64> = BTreeMap::new();
    for chosen in &sampled {
        *counts.entry(chosen.wish).or_default() += 1;
    }
    let even = 1_500 / counts.len() as u64;
    assert!(
        counts.len() > 5 && counts.contains_key(&DEFAULT),
        "{counts:?}"
    );
    // Slow ones stay: five standard deviations.
    let far = 5 * even.isqrt() + 5;
    assert!(
        counts.values().all(|n| n.abs_diff(even) < far),
        "{counts:?}"
    );
    rules.terms.settings.records_per_run = 64;
    let (few, _) = live(&rules, 1, usize::MAX);
    assert_eq!(few.len(), 64);
}

#[test]
fn as_published_exploiting_runs_the_choice_and_watches_nothing() {
    let mut rules = rules(LearnerKind::OmpiCollTune);
    rules.terms.mode = Mode::Exploit;
    rules.terms.cells.choose(|n_variants| n_variants - 1);
    assert!(!rules.terms.records());
    let mut single = Single::new(&rules, able(1), Hopeless::NOTHING);
    let mut ran = 0;
    for _ in 0..400 {
        if let Decision::Chosen(chosen) = single.decide(bcast(40_000)) {
            assert!(!chosen.sampled && chosen.wish != DEFAULT, "{chosen:?}");
            ran += 1;
        }
    }
    assert!(ran > 300, "{ran}");
}

/// If each draw counts as many times as its probability is in one, what is always possible comes once a draw in the mean.
fn counted(learner: LearnerKind, mode: Mode, variant: Option<u16>) -> (f64, f64) {
    let mut rules = rules(learner);
    rules.terms.mode = mode;
    if mode == Mode::Exploit {
        rules.terms.settings.watch = 0.5;
        rules.terms.cells.choose(|n_variants| n_variants - 1);
    }
    let (mut sum, mut squares, mut n) = (0.0, 0.0, 0.0);
    for number in 1..=300 {
        let (sampled, _) = live(&rules, number, 40);
        for chosen in sampled {
            let probability = chosen.probability.expect("it is known").value();
            let is_it = variant.is_none_or(|variant| variant == chosen.wish);
            let count = if is_it { 1.0 / probability } else { 0.0 };
            sum += count;
            squares += count * count;
            n += 1.0;
        }
    }
    (sum / n, f64::sqrt(squares) / n)
}

#[test]
fn what_a_draw_is_said_to_be_likely_is_how_often_it_comes() {
    for (learner, mode) in [
        (LearnerKind::Colltune, Mode::Explore),
        (LearnerKind::Colltune, Mode::Exploit),
        (LearnerKind::OmpiCollTune, Mode::Explore),
    ] {
        let (mean, deviation) = counted(learner, mode, Some(DEFAULT));
        assert!(
            (mean - 1.0).abs() < 4.0 * deviation,
            "{learner:?} {mode:?}: {mean} +- {deviation}"
        );
        assert!(deviation < 0.1, "{deviation}");
    }
    // Where nothing drops out each of the others is as likely as is said, too.
    let (all, deviation) = counted(LearnerKind::OmpiCollTune, Mode::Explore, None);
    let n_variants = all.round();
    assert!(
        n_variants > 5.0 && (all - n_variants).abs() < 4.0 * deviation,
        "{all}"
    );
}

#[test]
fn one_draw_for_a_whole_run_keeps_its_probability_and_what_is_drawn_before_the_job_has_none() {
    let mut once = rules(LearnerKind::OmpiCollTune);
    once.terms.settings.reproducible = crate::settings::Reproducible::Run;
    let (sampled, _) = live(&once, 1, 10);
    let (every, _) = live(&rules(LearnerKind::OmpiCollTune), 1, 10);
    let [of_run, of_call] = [sampled, every].map(|all| all[0].probability.unwrap().value());
    assert!((of_run - of_call).abs() < 1e-6, "{of_run} {of_call}");
    let mut record = rules(LearnerKind::Colltune);
    record.terms.mode = Mode::Record;
    let (sampled, _) = live(&record, 1, 10);
    assert!(
        sampled
            .iter()
            .all(|one| one.probability.unwrap().value() == 1.0)
    );
    record.draws_before_job = true;
    let (sampled, _) = live(&record, 1, 10);
    assert!(sampled.iter().all(|one| one.probability.is_none()));
}
