//! Claims about one communicator of four ranks on a node, which are all alike: a single decider stands for them.

use std::collections::BTreeSet;

use super::dice;
use super::job::basic_rules;
use crate::account::Cause;
use crate::collective::Collective;
use crate::decide::agreed::{Agreed, Membership, Origin, Possible};
use crate::decide::call::{SharedCall, SharedDetails};
use crate::decide::hopeless::{Hopeless, KnownHopeless};
use crate::decide::rules::{Rules, Telling};
use crate::decide::{AfterSample, Chosen, DEFAULT, Decider, Decision, OwnState, Switch, Timing};
use crate::variant::Family;

const N_RANKS: u64 = 4;

pub(super) fn members() -> Membership {
    Membership::of([0; N_RANKS as usize].into_iter())
}

/// A communicator of this number, whose ranks can do everything.
pub(super) fn able(id: u64) -> Agreed {
    Agreed {
        id,
        native: Possible::Yes,
        own_families: Possible::Yes,
        spent_ppm: 0,
        pays: Possible::Yes,
    }
}

pub(super) const fn bcast(bytes: u64) -> SharedCall {
    SharedCall {
        collective: Collective::Bcast,
        bytes,
    }
}

pub(super) struct Single<'a> {
    rules: &'a Rules,
    /// What the ranks agree on in the set-up, and know to be hopeless then.
    agreed: Agreed,
    at_set_up: Hopeless,
    decider: Decider,
    pub(super) now_ns: u64,
}

/// A sampled call.
pub(super) struct Ran {
    chosen: Chosen,
    is_reviewed: bool,
}

impl Single<'_> {
    pub(super) fn new(rules: &Rules, agreed: Agreed, at_set_up: Hopeless) -> Single<'_> {
        Single {
            rules,
            agreed,
            at_set_up,
            decider: Decider::new(Origin::World),
            now_ns: 0,
        }
    }

    /// What a call comes to.
    pub(super) fn decide(&mut self, call: SharedCall) -> Decision {
        let details = || SharedDetails::MOVES;
        let (rules, agreed) = (self.rules, (self.agreed, members(), self.at_set_up));
        let mut decision = self.decider.decide(rules, call, &details);
        loop {
            decision = match decision {
                Decision::SetUp => self.decider.set_up(rules, Ok(agreed), call, &details),
                Decision::Prepare => self.decider.prepare(rules, call, &details),
                Decision::NextEpoch => {
                    let _pair = self.decider.next_epoch(self.now_ns);
                    self.decider.decide(rules, call, &details)
                }
                _ => return decision,
            }
        }
    }

    /// A sampled call has taken so long, and is reviewed where that is due; what the ranks can do and know then.
    pub(super) fn observe(
        &mut self,
        (call, chosen): (SharedCall, Chosen),
        time_ns: u64,
        (own_families, known): (Possible, &KnownHopeless),
    ) -> Ran {
        let (decider, collective) = (&mut self.decider, call.collective);
        let start_ns = self.now_ns;
        self.now_ns += time_ns;
        let timing = Timing {
            start_ns,
            end_ns: self.now_ns,
            record: None,
        };
        decider.begin_sample(collective, chosen, start_ns);
        let after = decider.observe(self.rules, collective, &chosen, timing);
        let is_reviewed = after == AfterSample::Review;
        if is_reviewed {
            let own = OwnState {
                now_ns: self.now_ns,
                spent_ppm: 0,
                own_families,
                switch: Switch::On,
            };
            let mut words = decider.review(collective, &chosen, own, known);
            words.sums.iter_mut().for_each(|sum| *sum *= N_RANKS);
            decider.conclude(self.rules, collective, &chosen, words, known, |_, _| {});
        }
        Ran {
            chosen,
            is_reviewed,
        }
    }
}

/// A communicator that has called these in turn, often.
fn called(calls: &[(Collective, u64)]) -> Decider {
    let [rules, _] = basic_rules();
    let mut single = Single::new(rules, able(1), Hopeless::NOTHING);
    for &(collective, bytes) in calls.iter().cycle().take(400) {
        let _ = single.decide(SharedCall { collective, bytes });
    }
    single.decider
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
        spent_ppm: rules.terms.settings.explore_budget_ppm() * times,
        ..able(number)
    };
    let mut single = Single::new(rules, agreed, Hopeless::NOTHING);
    let sampled = |_: &u64| match single.decide(bcast(1024)) {
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
}

/// A communicator on which each sample of a variant takes twenty times as long as the default's calls: of `slow`, or of the
/// first that is drawn beside the default. `at_set_up` is what its ranks know to be hopeless then, `known` what they know
/// in reviews.
fn live(number: u64, slow: Option<u16>, at_set_up: Hopeless, known: &KnownHopeless) -> Lived {
    let [rules, _] = basic_rules();
    let mut single = Single::new(rules, able(number), at_set_up);
    let mut slow = slow;
    let (mut of_default, mut of_others) = (0, 0);
    let mut lived = Lived {
        drawn: Vec::new(),
        slow: None,
    };
    for turn in 0..4_000 {
        // A race that finds a loop of two calls draws anew what it had dropped for its mean.
        let usual_ns = 10_000 * (1 + turn % 2) + dice(number, 14, turn) % 5_000;
        single.now_ns += usual_ns;
        let Decision::Chosen(chosen) = single.decide(bcast(40_000)) else {
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
        let sampled = (bcast(40_000), chosen);
        single.observe(sampled, time_ns, (Possible::Yes, known));
    }
    let drawn = (of_default, of_others);
    assert!(of_default > 0 && of_others > 10, "{number}: {drawn:?}");
    lived
}

#[test]
fn an_arm_whose_first_sample_takes_twenty_times_the_defaults_is_never_drawn_again() {
    for number in 1..=20 {
        let lived = live(number, None, Hopeless::NOTHING, &KnownHopeless::default());
        let (behind, slow) = lived.slow.expect("something is drawn");
        let again = lived.drawn[behind..].iter().find(|wish| **wish == slow);
        assert_eq!(again, None, "communicator {number}");
    }
}

/// The place in the model of the cell of a call.
fn cell_of(call: SharedCall) -> u32 {
    let decider = called(&[(call.collective, call.bytes)]);
    let cell = (0..64).find_map(|place| decider.model_cell(call.collective, place));
    cell.expect("it was made")
}

/// What two communicators found, and which variant it was.
fn found_twice(number: u64) -> (KnownHopeless, u16) {
    let (known, cell) = (KnownHopeless::default(), cell_of(bcast(40_000)));
    let first = live(number, None, Hopeless::NOTHING, &known);
    let (_, slow) = first.slow.expect("something is drawn");
    let is_known = || known.all().has(cell, slow);
    assert!(
        !is_known(),
        "one alone bans nothing, however often it looks"
    );
    let draws = |other: u64| {
        let lived = live(other + number, Some(slow), known.all(), &known);
        lived.slow.is_some()
    };
    assert!((1_000..1_020).any(draws), "the next ones draw it, too");
    assert!(is_known());
    (known, slow)
}

#[test]
fn what_was_hopeless_on_two_communicators_is_not_drawn_on_those_that_its_ranks_make_later() {
    let mut drawn = 0;
    for number in 1..=10 {
        let (known, slow) = found_twice(number);
        let [unknowing, knowing] = [Hopeless::NOTHING, known.all()]
            .map(|at_set_up| live(100 + number, Some(slow), at_set_up, &Default::default()));
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
        let [deaf, hears] = [&KnownHopeless::default(), &known]
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
    let known = KnownHopeless::default();
    let mut single = Single::new(rules, able(1), at_set_up);
    let (mut samples, mut drawn) = (0, BTreeSet::new());
    for _ in 0..4_000 {
        single.now_ns += 5_000;
        if let Decision::Chosen(chosen) = single.decide(call)
            && chosen.sampled
        {
            let ran = single.observe((call, chosen), 5_000, (Possible::Yes, &known));
            samples += 1;
            drawn.insert(ran.chosen.variant);
        }
    }
    drawn.remove(&DEFAULT);
    (samples, drawn)
}

#[test]
fn a_cell_of_which_the_default_alone_is_left_is_seldom_sampled() {
    let [rules, _] = basic_rules();
    let mut rules = rules.clone();
    rules.terms.settings.families = Some(vec![Family::Node]);
    let rules = rules.with(Telling::Needed);
    // Of a cell whose variants all have a word of their own.
    let known_of = |collective: Collective| {
        let call = SharedCall {
            collective,
            bytes: 40_000,
        };
        let (known, cell) = (KnownHopeless::default(), cell_of(call));
        let mut others = rules.weights(cell, members(), able(1), &mut Default::default());
        others.retain(|(variant, _)| *variant != DEFAULT);
        for (variant, _) in &others {
            (1..=2).for_each(|comm| known.add(cell, *variant, comm));
        }
        let mut all = others.iter();
        let is_kept = all.all(|(variant, _)| known.all().has(cell, *variant));
        let (usual, drawn) = sampled(&rules, call, Hopeless::NOTHING);
        (is_kept && !drawn.is_empty()).then_some((call, known, usual))
    };
    let sized = [
        Collective::Bcast,
        Collective::Allreduce,
        Collective::Allgather,
        Collective::Reduce,
    ];
    let found = sized.into_iter().find_map(known_of);
    let (call, known, usual) = found.expect("there is such a cell");
    let (few, others) = sampled(&rules, call, known.all());
    assert!(others.is_empty(), "{others:?}");
    assert!(2 * few < usual, "{call:?}: {few} beside {usual}");
}

/// One rank alone has made a call that the library refused.
#[test]
fn a_cell_is_alike_whether_a_rank_made_it_before_a_review_that_changed_what_is_possible_or_behind()
{
    let [rules, _] = basic_rules();
    let made = |is_refused_first: bool| {
        let known = KnownHopeless::default();
        let mut single = Single::new(rules, able(1), Hopeless::NOTHING);
        for _ in 0..400 {
            let _ = single.decide(SharedCall::without_size(Collective::Barrier));
        }
        if is_refused_first {
            let _ = single.decide(bcast(40_000));
            single.decider.take_back(bcast(40_000));
        }
        let mut is_reviewed = false;
        while !is_reviewed {
            if let Decision::Chosen(chosen) = single.decide(bcast(8))
                && chosen.sampled
            {
                let ran = single.observe(
                    (bcast(8), chosen),
                    10_000,
                    (Possible::No(Cause::Device), &known),
                );
                is_reviewed = ran.is_reviewed;
            }
        }
        let _ = single.decide(bcast(40_000));
        single.decider.bytes()
    };
    assert_eq!(made(true), made(false));
}
