//! Whatever happens to single ranks, all ranks of a communicator decide alike.
//!
//! `COLLTUNE_SEED=n` runs one program alone, as a failure names it; `COLLTUNE_LONG=1` a hundred times as many.

use super::dice;
use super::faults::Faults;
use super::job::{Outcome, basic_rules, job};
use super::surroundings::{End, Tally};
use crate::collective::Collective;
use crate::decide::agreed::Origin;
use crate::decide::call::{SharedCall, SharedDetails};
use crate::decide::rules::Rules;
use crate::decide::{Decider, Decision};
use crate::request::Mode;
use crate::settings::Reproducible;

/// Calls of single ranks in a test.
const CALLS: u64 = 1_000_000;

fn variable(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

fn calls() -> u64 {
    match variable("COLLTUNE_LONG") {
        Some(1) => 100 * CALLS,
        _ => CALLS,
    }
}

/// Runs programs of `each` calls with different seeds, or the one that is asked for.
fn with_seeds(first: u64, programs: u64, mut run: impl FnMut(u64) -> Tally) -> Tally {
    let seeds = match variable("COLLTUNE_SEED") {
        Some(seed) => seed..seed + 1,
        None => first..first + programs,
    };
    let mut all = Tally::default();
    for seed in seeds {
        let tally = run(seed);
        all.calls += tally.calls;
        all.tuned += tally.tuned;
        all.sampled += tally.sampled;
        all.refused += tally.refused;
        all.set_ups += tally.set_ups;
        all.put_off += tally.put_off;
        all.rooms += tally.rooms;
        all.reviews += tally.reviews;
        all.replaced += tally.replaced;
        all.demoted += tally.demoted;
        all.off += tally.off;
        all.epochs += tally.epochs;
        all.failed += tally.failed;
        all.lost += tally.lost;
        all.told += tally.told;
    }
    all
}

/// Ranks of a seed's job: few, mostly.
fn few(seed: u64) -> u32 {
    2 + (dice(seed, 6, 0) % 31) as u32
}

#[test]
fn few_ranks_decide_alike_whatever_happens_to_some() {
    let each = 5_000;
    let tally = with_seeds(1_000, calls() / 2 / each, |seed| {
        let job = job(few(seed)).programs(seed).threads(1 + (seed % 3) as u32);
        let report = job.faults(Faults::MANY).run(each);
        report.assert_all_decided_alike();
        report.tally
    });
    println!("{tally:?}");
    if variable("COLLTUNE_SEED").is_none() {
        assert!(tally.calls >= calls() / 2);
        for (what, least) in [
            (tally.tuned, 20),
            (tally.sampled, 20),
            (tally.refused, 200),
            (tally.set_ups, 200),
            (tally.put_off, 5_000),
            (tally.rooms, 100),
            (tally.reviews, 1_000),
        ] {
            assert!(what * least > tally.calls, "too little of it: {tally:?}");
        }
    }
}

#[test]
fn ranks_whose_communicators_live_for_epochs_decide_alike() {
    let each = 400_000;
    let tally = with_seeds(3_000, 12, |seed| {
        let job = job(2 + seed as u32 % 3).programs(seed).on_a_site();
        let report = job.faults(Faults::MANY).run(each);
        report.assert_all_decided_alike();
        report.tally
    });
    println!("{tally:?}");
    if variable("COLLTUNE_SEED").is_none() {
        assert!(tally.epochs > 100 && tally.refused > 100, "{tally:?}");
    }
}

#[test]
fn a_thousand_ranks_decide_alike_whatever_happens_to_some() {
    let n_ranks = [64, 200, 1000, 1024];
    let faults = [Faults::MANY, Faults::FORSAKEN, Faults::DEADLY];
    let (each, programs) = (CALLS / 8, 12 * (calls() / CALLS));
    let tally = with_seeds(2_000, programs, |seed| {
        let job = job(n_ranks[(seed % 4) as usize]).programs(seed);
        let job = job.threads(1 + (seed / 4 % 2) as u32);
        let report = job.faults(faults[(seed / 4 % 3) as usize]).run(each);
        report.assert_all_decided_alike();
        report.tally
    });
    println!("{tally:?}");
    let of_each = [
        tally.tuned,
        tally.sampled,
        tally.refused,
        tally.set_ups,
        tally.rooms,
        tally.reviews,
        tally.failed,
    ];
    let alone = variable("COLLTUNE_SEED").is_some();
    assert!(alone || of_each.iter().all(|count| *count > 0), "{tally:?}");
}

#[test]
fn what_is_learned_in_a_job_changes_choices_alike() {
    let tally = with_seeds(5_000, 40, |seed| {
        let job = job(2 + (seed % 4) as u32).programs(seed);
        let report = job.faults(Faults::MANY).run(20_000);
        report.assert_all_decided_alike();
        report.tally
    });
    println!("{tally:?}");
    let many = tally.replaced > 20 && tally.demoted > 0 && tally.told > 0;
    assert!(variable("COLLTUNE_SEED").is_some() || many, "{tally:?}");
}

#[test]
fn whoever_cannot_go_on_ends_all_with_one_sentence() {
    let mut ended = 0;
    with_seeds(3_000, 40, |seed| {
        let job = job(few(seed)).programs(seed).faults(Faults::DEADLY);
        let report = job.run(5_000);
        report.assert_all_decided_alike();
        if let Outcome::Ended(End::Impasse(_, impasse)) = &report.outcome {
            ended += 1;
            assert!(impasse.to_string().contains(", call "), "{impasse}");
        }
        report.tally
    });
    assert!(variable("COLLTUNE_SEED").is_some() || ended > 10, "{ended}");
}

#[test]
fn one_choice_holds_from_a_communicators_first_call() {
    with_seeds(4_000, 40, |seed| {
        let job = job(few(seed)).programs(seed).faults(Faults::MANY);
        let report = job.reproducible(Reproducible::Run).run(5_000);
        report.assert_all_decided_alike();
        report.tally
    });
}

#[test]
fn a_job_that_is_switched_off_falls_back_alike_on_all_ranks() {
    let tally = with_seeds(6_000, 60, |seed| {
        let job = job(few(seed)).programs(seed).threads(1 + (seed % 3) as u32);
        let report = job.on_a_site().faults(Faults::MANY).run(10_000);
        report.assert_all_decided_alike();
        report.tally
    });
    println!("{tally:?}");
    let many = tally.off > 100 && tally.reviews > 2 * tally.off;
    assert!(variable("COLLTUNE_SEED").is_some() || many, "{tally:?}");
}

/// Which of many calls alike sets their communicator up, where the library has refused one before.
fn set_up_at(collective: Collective, bytes: u64) -> u64 {
    set_up_by(
        &basic_rules()[0],
        Origin::World,
        SharedCall { collective, bytes },
    )
}

/// The same of any communicator.
fn set_up_by(rules: &Rules, origin: Origin, call: SharedCall) -> u64 {
    let details = || SharedDetails::MOVES;
    let mut decider = Decider::new(origin);
    let _refused = decider.decide(rules, call, &details);
    decider.take_back(call);
    let sets_up = |_: &u64| decider.decide(rules, call, &details) == Decision::SetUp;
    (1..100).find(sets_up).expect("one does")
}

#[test]
fn few_large_calls_set_their_communicator_up_and_of_blocks_fewer() {
    let blocks = [
        Collective::Alltoall,
        Collective::Allgather,
        Collective::Gather,
        Collective::Scatter,
    ];
    for collective in blocks {
        assert_eq!(set_up_at(collective, 394_000), 2, "{collective}");
        assert_eq!(set_up_at(collective, 512 << 10), 1, "{collective}");
        assert_eq!(set_up_at(collective, 150_000), 4, "{collective}");
        assert_eq!(set_up_at(collective, 1 << 10), 8, "{collective}");
        assert_eq!(set_up_at(collective, u64::MAX), 1, "{collective}");
    }
    for collective in [Collective::Allreduce, Collective::Allgatherv] {
        assert_eq!(set_up_at(collective, 394_000), 8, "{collective}");
        assert_eq!(set_up_at(collective, 1 << 20), 4, "{collective}");
        assert_eq!(set_up_at(collective, 4 << 20), 1, "{collective}");
    }
    assert_eq!(set_up_at(Collective::Alltoallv, 0), 8);
}

#[test]
fn where_nothing_is_explored_a_programs_communicators_have_to_last_longer() {
    let call = |bytes| SharedCall {
        collective: Collective::Allreduce,
        bytes,
    };
    let [explored, _] = basic_rules();
    let mut rules = explored.clone();
    let at = |rules: &Rules, bytes| {
        [Origin::World, Origin::Program].map(|origin| set_up_by(rules, origin, call(bytes)))
    };
    assert_eq!(at(&rules, 8), [8, 8]);
    for mode in [Mode::Exploit, Mode::Tables] {
        rules.terms.mode = mode;
        assert_eq!(at(&rules, 8), [8, 64], "{mode:?}");
        assert_eq!(
            at(&rules, 1 << 20),
            [4, 4],
            "of so many bytes each call counts"
        );
    }
    rules.terms.settings.reproducible = Reproducible::Strict;
    assert_eq!(at(&rules, 8), [8, 8], "which was asked for");
}

#[test]
fn ranks_whose_agreements_fail_go_on_alike_with_the_default() {
    let tally = with_seeds(7_000, 40, |seed| {
        let job = job(2 + (seed % 4) as u32).programs(seed);
        let job = match seed % 3 {
            0 => job.on_a_site(),
            _ => job,
        };
        let report = job.faults(Faults::FORSAKEN).run(5_000);
        report.assert_all_decided_alike();
        report.tally
    });
    println!("{tally:?}");
    let many = tally.failed > 20 && tally.lost > 0;
    assert!(variable("COLLTUNE_SEED").is_some() || many, "{tally:?}");
}
