//! The simulation checked: edges with one thing wrong, each of which it has to notice.

use super::faults::Faults;
use super::job::{Report, job};
use super::surroundings::Mistake;
use crate::settings::Reproducible;

/// One of some jobs of few ranks notices the mistake.
fn is_found(mistake: Mistake, faults: Faults) {
    is_found_among(|seed| 2 + seed as u32 % 7, 4_000, mistake, faults);
}

/// One of some jobs notices the mistake, and without it the same program is right. How many ranks it has goes by the
/// seed; `calls` are those of single ranks.
fn is_found_among(n_ranks: impl Fn(u64) -> u32, calls: u64, mistake: Mistake, faults: Faults) {
    let right = |seed: u64| {
        let ranks = job(n_ranks(seed)).programs(seed).faults(faults);
        match mistake {
            Mistake::SetUpLate => ranks.reproducible(Reproducible::Run),
            Mistake::OwnSwitch | Mistake::OwnEpochs => ranks.on_a_site(),
            _ => ranks,
        }
    };
    let mut reports = (0..40).map(|seed| right(seed).mistake(mistake).run(calls));
    let report = reports.find(Report::is_wrong);
    let report = report.unwrap_or_else(|| panic!("{mistake:?} goes unnoticed"));
    println!("{mistake:?}: {:?}", report.outcome);
    right(report.seed).run(calls).assert_all_decided_alike();
}

#[test]
fn a_call_that_is_not_counted_for_its_types_size_is_found() {
    let faults = Faults {
        unknown_size: 200_000,
        ..Faults::default()
    };
    is_found(Mistake::UnknownSizeUncounted, faults);
}

#[test]
fn a_call_that_is_not_counted_for_its_aliased_buffers_is_found() {
    let faults = Faults {
        aliased: 20_000,
        ..Faults::default()
    };
    is_found(Mistake::AliasedUncounted, faults);
}

#[test]
fn a_refused_call_that_stays_counted_or_agrees_on_something_is_found() {
    let faults = Faults {
        refused: 10_000,
        ..Faults::default()
    };
    is_found(Mistake::RefusedStaysCounted, faults);
    is_found(Mistake::RefusedAgrees, faults);
}

#[test]
fn default_on_one_rank_alone_is_found() {
    let faults = Faults {
        unfit: 1_000,
        ..Faults::default()
    };
    is_found(Mistake::DefaultAlone, faults);
}

#[test]
fn ranks_that_go_by_what_they_themselves_can_or_saw_are_found() {
    is_found(Mistake::OwnAbility, Faults::MANY);
    is_found(Mistake::OwnPays, Faults::default());
    is_found(Mistake::OwnRoom, Faults::MANY);
    is_found(Mistake::OwnTimes, Faults::default());
    is_found(Mistake::FailedForgotten, Faults::MANY);
    is_found(Mistake::OwnSwitch, Faults::default());
    is_found(Mistake::OwnBlocks, Faults::default());
    is_found(Mistake::OwnBlocksAtOnce, Faults::default());
    is_found_among(
        |seed| 2 + seed as u32 % 3,
        400_000,
        Mistake::OwnEpochs,
        Faults::default(),
    );
}

#[test]
fn ranks_that_leave_out_what_they_themselves_know_to_be_hopeless_are_found() {
    let n_ranks = |seed: u64| 2 + seed as u32 % 7;
    for mistake in [Mistake::OwnHopeless, Mistake::OwnHopelessInReviews] {
        is_found_among(n_ranks, 300_000, mistake, Faults::default());
    }
}

#[test]
fn an_agreements_error_that_some_ranks_do_not_look_at_is_found() {
    let faults = Faults {
        disagreeing: 100_000,
        ..Faults::default()
    };
    is_found(Mistake::ErrorUnseen, faults);
}

#[test]
fn a_sampled_call_that_was_left_and_is_never_observed_is_found() {
    let faults = Faults {
        left: 100_000,
        ..Faults::default()
    };
    is_found(Mistake::LeftForgotten, faults);
}

#[test]
fn what_single_ranks_of_two_hundred_do_alone_is_found() {
    let faults = Faults {
        failing: 1_000,
        left: 1_000,
        ..Faults::default()
    };
    for mistake in [
        Mistake::OwnTimes,
        Mistake::FailedForgotten,
        Mistake::LeftForgotten,
    ] {
        is_found_among(|_| 200, 40_000, mistake, faults);
    }
}

#[test]
fn a_set_up_that_comes_late_for_one_choice_per_run_is_found() {
    is_found(Mistake::SetUpLate, Faults::default());
}

#[test]
fn decisions_that_outlive_their_communicator_are_found() {
    is_found(Mistake::FreedKept, Faults::default());
}
