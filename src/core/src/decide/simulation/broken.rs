//! The simulation checked: edges with one thing wrong, each of which it has to notice.

use super::faults::Faults;
use super::job::{Report, job};
use super::surroundings::Mistake;
use crate::settings::Reproducible;

/// The first of some jobs in which the mistake is noticed.
fn noticed(mistake: Mistake, faults: Faults) -> Option<Report> {
    let jobs = (0..40).map(|seed| {
        let ranks = job(2 + seed as u32 % 7).programs(seed).faults(faults);
        match mistake {
            Mistake::SetUpLate => ranks.reproducible(Reproducible::Run),
            Mistake::OwnSwitch => ranks.on_a_site(),
            _ => ranks,
        }
    });
    jobs.map(|job| job.mistake(mistake).run(4_000))
        .find(Report::is_wrong)
}

/// The same programs without the mistake are right.
fn is_found(mistake: Mistake, faults: Faults) {
    let report = noticed(mistake, faults);
    let report = report.unwrap_or_else(|| panic!("{mistake:?} goes unnoticed"));
    println!("{mistake:?}: {:?}", report.outcome);
    let seed = report.seed;
    let ranks = job(2 + seed as u32 % 7).programs(seed).faults(faults);
    let right = match mistake {
        Mistake::SetUpLate => ranks.reproducible(Reproducible::Run),
        Mistake::OwnSwitch => ranks.on_a_site(),
        _ => ranks,
    };
    right.run(4_000).assert_all_decided_alike();
}

#[test]
fn a_call_that_is_not_counted_for_its_types_size_is_found() {
    let faults = Faults {
        unknown_size: 200_000,
        ..Faults::NONE
    };
    is_found(Mistake::UnknownSizeUncounted, faults);
}

#[test]
fn a_call_that_is_not_counted_for_its_aliased_buffers_is_found() {
    let faults = Faults {
        aliased: 20_000,
        ..Faults::NONE
    };
    is_found(Mistake::AliasedUncounted, faults);
}

#[test]
fn a_refused_call_that_stays_counted_or_agrees_on_something_is_found() {
    let faults = Faults {
        refused: 10_000,
        ..Faults::NONE
    };
    is_found(Mistake::RefusedStaysCounted, faults);
    is_found(Mistake::RefusedAgrees, faults);
}

#[test]
fn default_on_one_rank_alone_is_found() {
    let faults = Faults {
        unfit: 1_000,
        ..Faults::NONE
    };
    is_found(Mistake::DefaultAlone, faults);
}

#[test]
fn ranks_that_go_by_what_they_themselves_can_or_saw_are_found() {
    is_found(Mistake::OwnAbility, Faults::MANY);
    is_found(Mistake::OwnRoom, Faults::MANY);
    is_found(Mistake::OwnTimes, Faults::NONE);
    is_found(Mistake::FailedForgotten, Faults::MANY);
    is_found(Mistake::OwnSwitch, Faults::NONE);
}

#[test]
fn an_agreements_error_that_some_ranks_do_not_look_at_is_found() {
    let faults = Faults {
        disagreeing: 100_000,
        ..Faults::NONE
    };
    is_found(Mistake::ErrorUnseen, faults);
}

#[test]
fn a_set_up_that_comes_late_for_one_choice_per_run_is_found() {
    is_found(Mistake::SetUpLate, Faults::NONE);
}

#[test]
fn decisions_that_outlive_their_communicator_are_found() {
    is_found(Mistake::FreedKept, Faults::NONE);
}
