//! What an agent does behind an operation in which it waited, and its reviews.

use super::{Agent, Awaited, Behind, Next, Reviewed};
use crate::account::Cause;
use crate::collective::Collective;
use crate::decide::agreed::{ABILITY_WORDS, Agreed, Membership, Possible};
use crate::decide::call::SharedCall;
use crate::decide::hopeless::{HOPELESS_WORDS, Hopeless};
use crate::decide::impasse::Reason;
use crate::decide::simulation::dice;
use crate::decide::simulation::fabric::Operation;
use crate::decide::simulation::script::Deed;
use crate::decide::simulation::surroundings::{End, Mistake, Surroundings};
use crate::decide::times::{OFF, TOLD};
use crate::decide::{AfterSample, Choice, Chosen, DEFAULT, OwnState, Timing, Words};
use crate::record::CallTimes;
use crate::select::mix;

impl Agent {
    pub(super) fn resume(
        &mut self,
        job: &mut Surroundings,
        act: u32,
        awaited: Awaited,
    ) -> Result<Next, End> {
        let comm = job.comm(act);
        let details = job.details(act);
        let rules = &job.rules;
        let mistake = job.mistake;
        // Whoever makes this mistake looks at what it gave, not at what came of it.
        let is_deaf = |to| mistake == Some(to);
        let seat = self.seats.get_mut(&comm).expect("it was made");
        let agrees = matches!(
            awaited,
            Awaited::SetUp(_) | Awaited::Measure(..) | Awaited::Review(..)
        );
        let mut fails = agrees && job.fate.ends_in_an_error(comm, seat.position);
        if fails {
            job.tally.failed += 1;
            job.forsaken.insert(comm);
            fails = !(is_deaf(Mistake::ErrorUnseen) && self.rank.is_multiple_of(2));
        }
        match awaited {
            Awaited::Split => Ok(Next::Done),
            Awaited::SetUp(call) if fails => {
                let decision = seat
                    .decider
                    .set_up(rules, Err(Cause::Agreement), call, &|| details);
                self.follow(job, act, call, decision)
            }
            Awaited::Measure(call, _) if fails => {
                seat.decider.stand_aside(Cause::Agreement);
                self.run(job, act, call, None)
            }
            Awaited::Review(call, _, behind) if fails => {
                seat.decider.stand_aside(Cause::Agreement);
                self.go_on(job, act, call, behind)
            }
            Awaited::SetUp(call) => {
                let [all, own] = [&self.words, &self.own_words];
                let (mut words, mut hopeless) = ([0; ABILITY_WORDS], [0; HOPELESS_WORDS]);
                words.copy_from_slice(&all[..ABILITY_WORDS]);
                let mut off = all[ABILITY_WORDS + HOPELESS_WORDS];
                if is_deaf(Mistake::OwnAbility) {
                    words[1..].copy_from_slice(&own[1..ABILITY_WORDS]);
                }
                if is_deaf(Mistake::OwnPays) {
                    words[ABILITY_WORDS - 1] = own[ABILITY_WORDS - 1];
                }
                if is_deaf(Mistake::OwnSwitch) {
                    off = own[ABILITY_WORDS + HOPELESS_WORDS];
                }
                let known = match is_deaf(Mistake::OwnHopeless) {
                    true => own,
                    false => all,
                };
                hopeless.copy_from_slice(&known[ABILITY_WORDS..][..HOPELESS_WORDS]);
                let is_told = hopeless[..] != own[ABILITY_WORDS..][..HOPELESS_WORDS];
                let hopeless = Hopeless(hopeless);
                if off == 0 {
                    job.tally.told += u64::from(is_told);
                    job.hopeless[self.rank as usize].learn(&hopeless);
                }
                let nodes = job.script.comms[comm as usize].members.iter();
                let members = Membership::of(nodes.map(|rank| rank / job.ppn));
                let agreed = match off {
                    0 => Ok((Agreed::of(words), members, hopeless)),
                    _ => Err(Cause::Switch),
                };
                job.knows_off[self.rank as usize] |= off != 0;
                let decision = seat.decider.set_up(rules, agreed, call, &|| details);
                let is_put_off = off == 0 && seat.decider.membership().is_none();
                job.tally.put_off += u64::from(is_put_off);
                self.follow(job, act, call, decision)
            }
            Awaited::Measure(call, measured) => {
                let words = match is_deaf(Mistake::OwnBlocks) {
                    true => &self.own_words,
                    false => &self.words,
                };
                let words = [words[0], words[1]];
                let decision = seat
                    .decider
                    .measure(rules, measured, words, (call, &|| details));
                self.follow(job, act, call, decision)
            }
            Awaited::Room(call, mut chosen, class) => {
                let words = match is_deaf(Mistake::OwnRoom) {
                    true => &self.own_words,
                    false => &self.words,
                };
                let is_ready = words[0] == 0;
                seat.rooms.agree(class, is_ready);
                if !is_ready {
                    chosen = seat.decider.fall_back(call.collective, chosen);
                }
                self.run(job, act, call, Some(chosen))
            }
            Awaited::Call(call, chosen) => {
                let start_ns = self.clock_ns;
                self.clock_ns += duration_ns(job.fate.seed, start_ns, chosen);
                let Some(chosen) = chosen.filter(|chosen| chosen.sampled) else {
                    return Ok(Next::Done);
                };
                if (mistake == Some(Mistake::FailedForgotten)
                    && job.fate.fails(self.rank, act.into()))
                    || self.leaves(job, act)
                {
                    return Ok(Next::Done);
                }
                let seat = self.seats.get_mut(&comm).expect("it was made");
                let timing = Timing {
                    start_ns,
                    end_ns: self.clock_ns,
                    record: Some(chosen.index as usize),
                };
                let after = seat
                    .decider
                    .observe(rules, call.collective, &chosen, timing);
                match after {
                    AfterSample::Nothing => {
                        let knows = !job.fate.is_left(self.rank, act.into());
                        let gap = (comm, call.collective, chosen.place, self.clock_ns);
                        self.gap = knows.then_some(gap);
                        Ok(Next::Done)
                    }
                    AfterSample::Review => {
                        let reviewed = (call.collective, chosen);
                        Ok(self.review(job, act, call, reviewed, Behind::Sample))
                    }
                }
            }
            Awaited::Review(call, reviewed, behind) => {
                let Reviewed {
                    collective,
                    chosen,
                    n_largest,
                } = reviewed;
                let words = match is_deaf(Mistake::OwnTimes) {
                    true => self.own_words.clone(),
                    false => self.words.clone(),
                };
                let (largest, sums) = words.split_at(n_largest);
                let mut words = Words {
                    largest: largest.to_vec(),
                    sums: sums.to_vec(),
                };
                if is_deaf(Mistake::OwnHopelessInReviews) {
                    words.largest[TOLD] = self.own_words[TOLD];
                }
                if is_deaf(Mistake::OwnSwitch) {
                    words.largest[OFF] = self.own_words[OFF];
                }
                let mut heard = 0;
                let hear = |record: usize, times: CallTimes| {
                    let (words, after_ns) = times.words();
                    let words = words.into_iter().chain([after_ns]);
                    heard = words.fold(mix(heard, record as u64), mix);
                };
                let known = &job.hopeless[self.rank as usize];
                let own_before = seat.decider.agreed().own_families;
                let before = seat.decider.choice(collective, &chosen);
                let choice = seat
                    .decider
                    .conclude(rules, collective, &chosen, words, known, hear);
                let after = seat.decider.choice(collective, &chosen);
                let is_off = choice == Choice::SwitchedOff;
                job.tally.demoted += u64::from(choice == Choice::Demoted);
                job.tally.off += u64::from(is_off);
                job.knows_off[self.rank as usize] |= is_off;
                job.tally.replaced += u64::from(before != after);
                if seat.decider.agreed().own_families != own_before {
                    job.tally.lost += 1;
                    job.without_own.insert(comm);
                }
                let review = (comm, seat.position);
                if *job.heard.entry(review).or_insert(heard) != heard {
                    return Err(End::HeardOtherwise(comm, seat.position));
                }
                self.go_on(job, act, call, behind)
            }
        }
    }

    /// What comes behind a review.
    fn go_on(
        &mut self,
        job: &mut Surroundings,
        act: u32,
        call: SharedCall,
        behind: Behind,
    ) -> Result<Next, End> {
        match behind {
            Behind::Sample => Ok(Next::Done),
            Behind::LeftSample => {
                let details = job.details(act);
                let seat = self.seats.get_mut(&job.comm(act)).expect("it was made");
                let decision = seat.decider.decide(&job.rules, call, &|| details);
                self.follow(job, act, call, decision)
            }
        }
    }

    /// What agreements have cost this rank, which has been on communicators that others have not: in one job of four more
    /// than its share.
    pub(super) fn spent_ppm(&self, job: &Surroundings) -> u64 {
        let bound = [1_000, 10_000, 20_000, 200_000][(job.fate.seed % 4) as usize];
        dice(job.fate.seed, 12, self.clock_ns ^ u64::from(self.rank)) % bound
    }

    /// Whether it can pay for what a communicator needs: in one job of six it cannot now and then.
    pub(super) fn pays(&self, job: &Surroundings) -> Possible {
        let seed = job.fate.seed;
        let roll = dice(seed, 13, self.clock_ns ^ u64::from(self.rank));
        let can = !seed.is_multiple_of(6) || !roll.is_multiple_of(20);
        Possible::unless(!can, Cause::Unpaid)
    }

    pub(super) fn review(
        &mut self,
        job: &mut Surroundings,
        act: u32,
        call: SharedCall,
        (collective, chosen): (Collective, Chosen),
        behind: Behind,
    ) -> Next {
        job.tally.reviews += 1;
        let (comm, switch) = (job.comm(act), job.switch(self.rank, act));
        let spent_ppm = self.spent_ppm(job);
        let seat = self.seats.get_mut(&comm).expect("it was made");
        let place = (comm, seat.position);
        let loses = job.fate.loses_own_families(self.rank, place);
        let own = OwnState {
            now_ns: self.clock_ns,
            spent_ppm,
            own_families: Possible::unless(loses, Cause::Device),
            switch,
        };
        let known = &job.hopeless[self.rank as usize];
        let told = seat.decider.review(collective, &chosen, own, known);
        let (largest, sums) = (told.largest.len(), told.sums.len());
        self.own_words = [told.largest, told.sums].concat();
        let reviewed = Reviewed {
            collective,
            chosen,
            n_largest: largest,
        };
        let awaited = Awaited::Review(call, reviewed, behind);
        Next::Enter(Operation::Review { largest, sums }, awaited)
    }

    /// Whether the program leaves a sampled call by an exception. The others may have to wait for this rank's next
    /// call on the communicator, so that had better be what it makes next.
    fn leaves(&self, job: &Surroundings, act: u32) -> bool {
        let next = self.acts.get(self.next + 1);
        let next = next.map(|&next| &job.script.acts[next as usize]);
        let comm = job.comm(act);
        let goes_on =
            next.is_some_and(|next| next.comm == comm && matches!(next.deed, Deed::Call(_)));
        goes_on && job.fate.is_left(self.rank, act.into())
    }

    pub(super) fn impasse(&self, comm: u32, collective: Collective, reason: Reason) -> End {
        End::Impasse(
            self.rank,
            self.seats[&comm].decider.impasse(collective, reason),
        )
    }
}

/// Variants differ by more than the noise, so that reviews find out.
fn duration_ns(seed: u64, start_ns: u64, chosen: Option<Chosen>) -> u64 {
    let variant = chosen.map_or(DEFAULT, |chosen| chosen.variant);
    let usual = 500 << (dice(seed, 13, variant.into()) % 8);
    usual + dice(seed, 12, start_ns) % usual
}
