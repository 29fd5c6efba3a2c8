//! Whatever happens to single ranks, all ranks of a communicator decide alike.
//!
//! `COLLTUNE_SEED=n` runs one program alone, as a failure names it; `COLLTUNE_LONG=1` a hundred times as many.

use std::collections::BTreeSet;

use super::dice;
use super::faults::Faults;
use super::job::{Outcome, basic_rules, job};
use super::surroundings::{End, Tally};
use crate::collective::Collective;
use crate::decide::agreed::{Agreed, Membership, Possible};
use crate::decide::call::{SharedCall, SharedDetails};
use crate::decide::hopeless::{Hopeless, KnownHopeless};
use crate::decide::rules::{Rules, Telling};
use crate::decide::{AfterSample, DEFAULT, Decider, Decision, Timing};
use crate::settings::Reproducible;
use crate::variant::Family;

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
        all.rooms += tally.rooms;
        all.reviews += tally.reviews;
        all.replaced += tally.replaced;
        all.demoted += tally.demoted;
        all.asked += tally.asked;
        all.off += tally.off;
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
            (tally.rooms, 100),
            (tally.reviews, 1_000),
        ] {
            assert!(what * least > tally.calls, "too little of it: {tally:?}");
        }
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
    let many = tally.off > 100 && tally.asked > 5 * tally.off;
    assert!(variable("COLLTUNE_SEED").is_some() || many, "{tally:?}");
}

/// Which of many calls alike sets their communicator up, where the library has refused one before.
fn set_up_at(collective: Collective, bytes: u64) -> u64 {
    let [rules, _] = basic_rules();
    let call = SharedCall { collective, bytes };
    let details = || SharedDetails::MOVES;
    let mut decider = Decider::new();
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

/// What a call on a communicator of four ranks on a node comes to.
fn decide(decider: &mut Decider, rules: &Rules, agreed: Agreed, call: SharedCall) -> Decision {
    decide_knowing(decider, rules, (agreed, Hopeless::NOTHING), call)
}

fn decide_knowing(
    decider: &mut Decider,
    rules: &Rules,
    (agreed, hopeless): (Agreed, Hopeless),
    call: SharedCall,
) -> Decision {
    let details = || SharedDetails::MOVES;
    let members = Membership::of([0; 4].into_iter());
    let agreed = (agreed, members, hopeless);
    let mut decision = decider.decide(rules, call, &details);
    loop {
        decision = match decision {
            Decision::SetUp => decider.set_up(rules, Some(agreed), call, &details),
            Decision::Prepare => decider.prepare(rules, call, &details),
            _ => return decision,
        }
    }
}

/// A communicator that has called these in turn, often.
fn called(calls: &[(Collective, u64)]) -> Decider {
    let [rules, _] = basic_rules();
    let agreed = Agreed {
        id: 1,
        native: Possible::Yes,
        own_families: Possible::Yes,
        spent_ppm: 0,
    };
    let mut decider = Decider::new();
    for &(collective, bytes) in calls.iter().cycle().take(400) {
        let call = SharedCall { collective, bytes };
        let _ = decide(&mut decider, rules, agreed, call);
    }
    decider
}

#[test]
fn a_communicator_holds_something_of_the_cells_that_it_calls_alone() {
    let calls = [
        (Collective::Bcast, 1024),
        (Collective::Bcast, 1025),
        (Collective::Allreduce, 8),
        (Collective::Allreduce, 1 << 20),
    ];
    let [one, three] = [&calls[..1], &calls].map(called);
    let held = |collective| {
        let made = |place: &usize| three.model_cell(collective, *place).is_some();
        (0..64).filter(made).count()
    };
    assert_eq!(
        Collective::ALL.map(held).iter().sum::<usize>(),
        3,
        "two sizes share a cell"
    );
    let [one, three] = [one, three].map(|decider| decider.bytes() - Decider::READY_BYTES);
    assert!(
        one > 1000 && (2 * one..5 * one).contains(&three),
        "{one} {three}"
    );
}

/// The first call of a cell that is sampled on a communicator that was made when agreements had cost so many times their
/// share.
fn first_sample(times: u64, number: u64) -> u64 {
    let [rules, _] = basic_rules();
    let agreed = Agreed {
        id: number,
        native: Possible::Yes,
        own_families: Possible::Yes,
        spent_ppm: rules.terms.settings.explore_budget_ppm() * times,
    };
    let call = SharedCall {
        collective: Collective::Bcast,
        bytes: 1024,
    };
    let mut decider = Decider::new();
    let sampled = |_: &u64| match decide(&mut decider, rules, agreed, call) {
        Decision::Chosen(chosen) => chosen.sampled,
        _ => false,
    };
    let due = rules.terms.settings.setup_after;
    (1..10_000).find(sampled).expect("one is") - u64::from(due)
}

#[test]
fn communicators_that_are_made_when_agreements_have_cost_too_much_are_sampled_late() {
    assert_eq!(first_sample(0, 1), 0, "the first call behind the set-up");
    assert_eq!(first_sample(1, 1), 0);
    let mean = |times| {
        (1..=64)
            .map(|number| first_sample(times, number))
            .sum::<u64>()
            / 64
    };
    let [twice, eight] = [2, 8].map(mean);
    assert!((12..=36).contains(&twice), "{twice}");
    assert!((3 * twice..=5 * twice).contains(&eight), "{twice} {eight}");
}

/// What a communicator drew in 4,000 calls of a cell; and behind how many of these draws a variant was slow.
struct Lived {
    drawn: Vec<u16>,
    slow: Option<(usize, u16)>,
    reviews: usize,
}

/// A communicator on which each sample of a variant takes twenty times as long as the default's calls: of `slow`, or of the
/// first that is drawn beside the default. `at_set_up` is what its ranks know to be hopeless then, `known` what they know
/// in reviews.
fn live(number: u64, slow: Option<u16>, at_set_up: Hopeless, known: &KnownHopeless) -> Lived {
    let [rules, _] = basic_rules();
    let call = SharedCall {
        collective: Collective::Bcast,
        bytes: 40_000,
    };
    let agreed = Agreed {
        id: number,
        native: Possible::Yes,
        own_families: Possible::Yes,
        spent_ppm: 0,
    };
    let mut decider = Decider::new();
    let (mut now_ns, mut slow) = (0, slow);
    let (mut of_default, mut of_others) = (0, 0);
    let mut lived = Lived {
        drawn: Vec::new(),
        slow: None,
        reviews: 0,
    };
    for turn in 0..4_000 {
        // A race that finds a loop of two calls draws anew what it had dropped for its mean.
        let usual_ns = 10_000 * (1 + turn % 2) + dice(number, 14, turn) % 5_000;
        now_ns += usual_ns;
        let decision = decide_knowing(&mut decider, rules, (agreed, at_set_up), call);
        let Decision::Chosen(chosen) = decision else {
            continue;
        };
        lived.drawn.push(chosen.wish);
        if !chosen.sampled {
            continue;
        }
        if chosen.variant != DEFAULT && slow.is_none() {
            slow = Some(chosen.variant);
        }
        let is_slow = slow == Some(chosen.variant);
        let time_ns = if is_slow { 20 * 25_000 } else { usual_ns };
        match chosen.variant {
            DEFAULT => of_default += 1,
            variant if is_slow => lived.slow = Some((lived.drawn.len(), variant)),
            _ => of_others += 1,
        }
        decider.begin_sample(call.collective, chosen, now_ns);
        let timing = Timing {
            start_ns: now_ns,
            end_ns: now_ns + time_ns,
            record: None,
        };
        now_ns += time_ns;
        let after = decider.observe(rules, call.collective, &chosen, timing);
        if after == AfterSample::Review {
            // All four ranks say the same.
            let (collective, able) = (call.collective, Possible::Yes);
            let mut words = decider.review(collective, &chosen, now_ns, 0, able, known);
            words.sums.iter_mut().for_each(|sum| *sum *= 4);
            decider.conclude(rules, collective, &chosen, words, known, |_, _| {});
            lived.reviews += 1;
        }
    }
    let drawn = (of_default, of_others);
    assert!(of_default > 0 && of_others > 10, "{number}: {drawn:?}");
    lived
}

#[test]
fn an_arm_whose_first_sample_takes_twenty_times_the_defaults_is_never_drawn_again() {
    for number in 1..=20 {
        let lived = live(number, None, Hopeless::NOTHING, &KnownHopeless::new());
        let (behind, slow) = lived.slow.expect("something is drawn");
        let again = lived.drawn[behind..].iter().find(|wish| **wish == slow);
        assert_eq!(again, None, "communicator {number}");
    }
}

/// What two communicators found, and which variant it was.
fn found_twice(number: u64) -> (KnownHopeless, u16) {
    let known = KnownHopeless::new();
    let first = live(number, None, Hopeless::NOTHING, &known);
    let (_, slow) = first.slow.expect("something is drawn");
    for other in 1_000.. {
        // One alone has banned nothing.
        let second = live(other + number, Some(slow), known.all(), &known);
        if second.slow.is_some() {
            break;
        }
    }
    (known, slow)
}

#[test]
fn what_was_hopeless_on_two_communicators_is_not_drawn_on_those_that_its_ranks_make_later() {
    let mut drawn = 0;
    for number in 1..=10 {
        let (known, slow) = found_twice(number);
        let [unknowing, knowing] = [Hopeless::NOTHING, known.all()]
            .map(|at_set_up| live(100 + number, Some(slow), at_set_up, &KnownHopeless::new()));
        drawn += usize::from(unknowing.drawn.contains(&slow));
        assert!(!knowing.drawn.contains(&slow), "communicator {number}");
    }
    assert!(drawn > 5, "{drawn}");
}

#[test]
fn a_communicator_that_there_was_before_hears_of_it_in_its_next_review() {
    let mut spared = 0;
    for number in 1..=20 {
        let (known, slow) = found_twice(number);
        let [deaf, hears] = [&KnownHopeless::new(), &known]
            .map(|known| live(100 + number, Some(slow), Hopeless::NOTHING, known));
        // What it has tried before it judges by itself.
        let drawn = |lived: &Lived| lived.drawn.contains(&slow);
        spared += usize::from(drawn(&deaf) && !drawn(&hears));
        assert!(drawn(&deaf) || !drawn(&hears), "communicator {number}");
    }
    assert!(spared > 3, "{spared}");
}

/// Samples of 4,000 calls of a cell, and which variants they draw beside the default.
fn sampled(rules: &Rules, call: SharedCall, at_set_up: Hopeless) -> (usize, BTreeSet<u16>) {
    let agreed = Agreed {
        id: 1,
        native: Possible::Yes,
        own_families: Possible::Yes,
        spent_ppm: 0,
    };
    let known = KnownHopeless::new();
    let mut decider = Decider::new();
    let (mut samples, mut drawn) = (0, BTreeSet::new());
    for turn in 1..4_000 {
        let now_ns = 10_000 * turn;
        let decision = decide_knowing(&mut decider, rules, (agreed, at_set_up), call);
        let Decision::Chosen(chosen) = decision else {
            continue;
        };
        if !chosen.sampled {
            continue;
        }
        samples += 1;
        drawn.insert(chosen.variant);
        decider.begin_sample(call.collective, chosen, now_ns);
        let timing = Timing {
            start_ns: now_ns,
            end_ns: now_ns + 5_000,
            record: None,
        };
        if decider.observe(rules, call.collective, &chosen, timing) == AfterSample::Review {
            let (collective, able) = (call.collective, Possible::Yes);
            let words = decider.review(collective, &chosen, now_ns, 0, able, &known);
            decider.conclude(rules, collective, &chosen, words, &known, |_, _| {});
        }
    }
    drawn.remove(&DEFAULT);
    (samples, drawn)
}

#[test]
fn a_cell_of_which_the_default_alone_is_left_is_seldom_sampled() {
    let [rules, _] = basic_rules();
    let mut rules = rules.clone();
    rules.terms.settings.families = Some(vec![Family::Mockup]);
    let rules = rules.with(Telling::Needed);
    let call = SharedCall {
        collective: Collective::Allreduce,
        bytes: 40_000,
    };
    let (usual, drawn) = sampled(&rules, call, Hopeless::NOTHING);
    assert!(!drawn.is_empty(), "there are others");
    let decider = called(&[(call.collective, call.bytes)]);
    let cell = (0..64).find_map(|place| decider.model_cell(call.collective, place));
    let cell = cell.expect("it was made");
    let members = Membership::of([0; 4].into_iter());
    let known = KnownHopeless::new();
    for (variant, _) in rules.weights(cell, members, decider.agreed()) {
        for _ in 0..2 {
            known.add(cell, variant);
        }
    }
    let (few, others) = sampled(&rules, call, known.all());
    assert!(others.is_empty(), "{others:?}");
    assert!(2 * few < usual, "{few} beside {usual}");
}

/// One rank alone has made a call that the library refused.
#[test]
fn a_cell_is_alike_whether_a_rank_made_it_before_a_review_that_changed_what_is_possible_or_behind()
{
    let [rules, _] = basic_rules();
    let agreed = Agreed {
        id: 1,
        native: Possible::Yes,
        own_families: Possible::Yes,
        spent_ppm: 0,
    };
    let [short, long] = [8, 40_000].map(|bytes| SharedCall {
        collective: Collective::Bcast,
        bytes,
    });
    let made = |is_refused_first: bool| {
        let mut decider = called(&[(Collective::Barrier, 0)]);
        if is_refused_first {
            let _ = decide(&mut decider, rules, agreed, long);
            decider.take_back(long);
        }
        let mut now_ns = 0;
        let mut is_reviewed = false;
        while !is_reviewed {
            now_ns += 10_000;
            let Decision::Chosen(chosen) = decide(&mut decider, rules, agreed, short) else {
                continue;
            };
            if !chosen.sampled {
                continue;
            }
            decider.begin_sample(short.collective, chosen, now_ns);
            let timing = Timing {
                start_ns: now_ns,
                end_ns: now_ns + 10_000,
                record: None,
            };
            if decider.observe(rules, short.collective, &chosen, timing) == AfterSample::Review {
                let (collective, known) = (short.collective, KnownHopeless::new());
                let words = decider.review(collective, &chosen, now_ns, 0, Possible::No, &known);
                decider.conclude(rules, short.collective, &chosen, words, &known, |_, _| {});
                is_reviewed = true;
            }
        }
        let _ = decide(&mut decider, rules, agreed, long);
        decider.bytes()
    };
    assert_eq!(made(true), made(false));
}
