//! One thread of one rank, which takes its calls through its deciders as the shim does.

mod message;
mod resume;

use std::collections::HashMap;

use super::dice;
use super::fabric::{Fabric, Operation, Step};
use super::script::{Deed, Message};
use super::surroundings::{End, Mistake, Shape, Surroundings};
use crate::account::Cause;
use crate::catalogue::Unmet;
use crate::collective::Collective;
use crate::decide::agreed::{Ability, Origin, Possible};
use crate::decide::call::SharedCall;
use crate::decide::impasse::Reason;
use crate::decide::rooms::{Class, Rooms};
use crate::decide::{
    AfterSample, Chosen, DEFAULT, Decider, Decision, GapPart, Measured, Switch, Timing,
};
use crate::settings::Reproducible;
use message::{of_rank, shared};

pub enum Progress {
    Waits,
    Finished,
}

pub struct Agent {
    pub rank: u32,
    number: u32,
    acts: Vec<u32>,
    next: usize,
    seats: HashMap<u32, Seat>,
    awaited: Option<Awaited>,
    /// Whether the present call has been refused once.
    was_refused: bool,
    clock_ns: u64,
    /// Where the last sample was, and when it ended, until the next call.
    gap: Option<(u32, Collective, usize, u64)>,
    words: Vec<u64>,
    own_words: Vec<u64>,
}

/// A rank's place in a communicator.
struct Seat {
    member: u32,
    position: u64,
    decider: Decider,
    rooms: Rooms,
}

/// What an agent is about to do behind the operation in which it waits.
enum Awaited {
    SetUp(SharedCall),
    Room(SharedCall, Chosen, Class),
    Call(SharedCall, Option<Chosen>),
    Review(SharedCall, Reviewed, Behind),
    Measure(SharedCall, Measured),
    Split,
}

/// What is reviewed, and how many of the words are to be the largest.
struct Reviewed {
    collective: Collective,
    chosen: Chosen,
    n_largest: usize,
}

/// Where a review stands.
#[derive(Clone, Copy)]
enum Behind {
    /// Behind the sampled call.
    Sample,
    /// Before the call that follows one that was left.
    LeftSample,
}

/// What an agent does next.
enum Next {
    Enter(Operation, Awaited),
    Done,
}

impl Agent {
    pub fn new(rank: u32, number: u32, acts: Vec<u32>) -> Agent {
        Agent {
            rank,
            number,
            acts,
            next: 0,
            seats: HashMap::new(),
            awaited: None,
            was_refused: false,
            clock_ns: 0,
            gap: None,
            words: Vec::new(),
            own_words: Vec::new(),
        }
    }

    /// Goes on until it waits in an operation, from which the fabric may free it at once.
    pub fn advance(
        &mut self,
        job: &mut Surroundings,
        fabric: &mut Fabric,
        free: &mut Vec<u32>,
    ) -> Result<Progress, End> {
        loop {
            let Some(&act) = self.acts.get(self.next) else {
                return Ok(Progress::Finished);
            };
            let comm = job.comm(act);
            let next = match self.awaited.take() {
                None => self.begin(job, act)?,
                Some(awaited) => {
                    let seat = self.seats.get_mut(&comm).expect("it is in there");
                    fabric.leave(comm, seat.position, &mut self.words);
                    seat.position += 1;
                    self.resume(job, act, awaited)?
                }
            };
            match next {
                Next::Done => {
                    self.next += 1;
                    self.was_refused = false;
                }
                Next::Enter(operation, awaited) => {
                    let seat = &self.seats[&comm];
                    let message = match &job.script.acts[act as usize].deed {
                        Deed::Call(message) => Some(message),
                        Deed::Split | Deed::Free => None,
                    };
                    let step = Step {
                        comm,
                        position: seat.position,
                        member: seat.member,
                        agent: self.number,
                        operation,
                        collective: message.map(|message| message.collective),
                        root: message.map_or(0, |message| message.root),
                        words: &self.own_words,
                    };
                    self.awaited = Some(awaited);
                    fabric.enter(step, self.rank, free).map_err(End::Mismatch)?;
                    return Ok(Progress::Waits);
                }
            }
        }
    }

    fn begin(&mut self, job: &mut Surroundings, act: u32) -> Result<Next, End> {
        let comm = job.comm(act);
        let spec = &job.script.comms[comm as usize];
        let rank = self.rank;
        self.close_gap(act);
        self.seats.entry(comm).or_insert_with(|| Seat {
            member: spec
                .members
                .iter()
                .position(|member| *member == rank)
                .expect("it acts there") as u32,
            position: 0,
            // Some are seen to be none of ours at once, some in the set-up.
            decider: match spec.is_foreign && comm.is_multiple_of(2) {
                true => Decider::aside(),
                false => Decider::new(match comm {
                    0 => Origin::World,
                    _ => Origin::Program,
                }),
            },
            rooms: Rooms::default(),
        });
        self.own_words.clear();
        match &job.script.acts[act as usize].deed {
            Deed::Split => Ok(Next::Enter(Operation::Split, Awaited::Split)),
            Deed::Free => {
                self.free(job, comm);
                Ok(Next::Done)
            }
            Deed::Call(message) => {
                let message = *message;
                self.call(job, act, &message)
            }
        }
    }

    /// Behind a sample any call says how long it was until then; some ranks do not know it.
    fn close_gap(&mut self, act: u32) {
        let Some((comm, collective, place, since_ns)) = self.gap.take() else {
            return;
        };
        self.clock_ns += 100 + dice(since_ns, act.into(), self.rank.into()) % 10_000;
        if let Some(seat) = self.seats.get_mut(&comm) {
            let ns = self.clock_ns - since_ns;
            for part in [GapPart::Shift, GapPart::After] {
                seat.decider.close_gap(collective, place, part, ns);
            }
        }
    }

    /// The handle of a freed communicator is the next one's, and so is what was kept under it.
    fn free(&mut self, job: &Surroundings, comm: u32) {
        let gone = self.seats.remove(&comm).expect("it was used");
        let kept = job.mistake == Some(Mistake::FreedKept) && self.rank.is_multiple_of(2);
        let next = self.acts[self.next + 1..].iter();
        let mut next = next.map(|&act| job.comm(act));
        let unused = next.find(|next| !self.seats.contains_key(next));
        if let Some(unused) = unused.filter(|_| kept) {
            let members = &job.script.comms[unused as usize].members;
            let member = members.iter().position(|member| *member == self.rank);
            let seat = Seat {
                member: member.expect("it acts there") as u32,
                position: 0,
                ..gone
            };
            self.seats.insert(unused, seat);
        }
    }

    fn call(&mut self, job: &mut Surroundings, act: u32, message: &Message) -> Result<Next, End> {
        let Message {
            collective,
            count,
            type_bytes,
            details,
            ..
        } = *message;
        let Surroundings { fate, mistake, .. } = *job;
        let comm = job.comm(act);
        let rules = &job.rules;
        let seat = self.seats.get_mut(&comm).expect("it was made");
        if !self.was_refused && fate.is_refused(self.rank, act.into()) {
            self.was_refused = true;
            job.tally.refused += 1;
            let is_late = fate.is_refused_late(self.rank, act.into());
            let count = if is_late { count as i64 } else { -1 };
            let call = seat
                .decider
                .sized(shared(collective, count, Some(type_bytes)));
            let mut decision = seat.decider.decide(rules, call, &|| details);
            if decision == Decision::NextEpoch {
                let _pair = seat.decider.next_epoch(self.clock_ns);
                decision = seat.decider.decide(rules, call, &|| details);
            }
            let decision = match decision {
                Decision::Prepare if is_late => seat.decider.prepare(rules, call, &|| details),
                decision => decision,
            };
            match mistake {
                // It was not counted.
                _ if matches!(decision, Decision::Unobserved(_)) => {}
                Some(Mistake::RefusedStaysCounted) => {}
                Some(Mistake::RefusedAgrees) => return self.follow(job, act, call, decision),
                _ => seat.decider.take_back(call),
            }
        }
        let (count, rank) = (count as i64, self.rank);
        let blocks = of_rank(message, job.fate.seed, rank);
        let can_differ = !collective.is_reduction() && count == 0;
        let is_unknown = can_differ && fate.is_unknown(rank, act.into());
        let is_aliased = collective.is_reduction() && fate.is_aliased(rank, act.into());
        let call = shared(collective, count, (!is_unknown).then_some(type_bytes));
        let call = match mistake {
            Some(Mistake::OwnBlocksAtOnce) if collective.agrees_on_size() => SharedCall {
                bytes: blocks.mean,
                ..call
            },
            _ => seat.decider.sized(call),
        };
        job.tally.calls += 1;
        if seat.decider.wants_blocks(collective) {
            seat.decider.see_blocks(collective, blocks);
        }
        let uncounted = match mistake {
            Some(Mistake::UnknownSizeUncounted) => is_unknown,
            Some(Mistake::AliasedUncounted) => is_aliased,
            _ => false,
        };
        let decision = match uncounted {
            true => Decision::Default,
            false => seat.decider.decide(rules, call, &|| details),
        };
        self.follow(job, act, call, decision)
    }

    /// Does what was decided, as far as this rank can without the others.
    fn follow(
        &mut self,
        job: &mut Surroundings,
        act: u32,
        call: SharedCall,
        mut decision: Decision,
    ) -> Result<Next, End> {
        let comm = job.comm(act);
        let details = job.details(act);
        loop {
            let spec = &job.script.comms[comm as usize];
            let rules = &job.rules;
            let seat = self.seats.get_mut(&comm).expect("it was made");
            decision = match decision {
                Decision::Default => return self.run(job, act, call, None),
                Decision::SetUp
                    if job.mistake == Some(Mistake::SetUpLate)
                        && seat.decider.calls() < rules.terms.settings.setup_after.into() =>
                {
                    Decision::Default
                }
                Decision::SetUp if spec.is_foreign => {
                    seat.decider
                        .set_up(rules, Err(Cause::Agreement), call, &|| details)
                }
                Decision::SetUp => {
                    let [native, own_families] = job.fate.is_unable(self.rank, comm.into());
                    let number = match seat.member {
                        0 => {
                            job.numbered[self.rank as usize] += 1;
                            (u64::from(self.rank) << 32) + job.numbered[self.rank as usize]
                        }
                        _ => 0,
                    };
                    let ability = Ability {
                        number,
                        native: Possible::unless(native, Cause::Threads),
                        own_families: Possible::unless(own_families, Cause::Device),
                        spent_ppm: self.spent_ppm(job),
                        pays: self.pays(job),
                    };
                    job.tally.set_ups += 1;
                    self.own_words.clear();
                    self.own_words.extend(ability.words());
                    self.own_words
                        .extend(job.hopeless[self.rank as usize].all().0);
                    self.own_words
                        .push((job.switch(self.rank, act) == Switch::Off).into());
                    return Ok(Next::Enter(Operation::SetUp, Awaited::SetUp(call)));
                }
                Decision::Unobserved(_) if job.mistake == Some(Mistake::LeftForgotten) => {
                    Decision::Default
                }
                Decision::Unobserved(left) => {
                    let timing = Timing {
                        start_ns: left.start_ns,
                        end_ns: self.clock_ns,
                        record: Some(left.chosen.index as usize),
                    };
                    let (collective, chosen) = (left.collective, left.chosen);
                    let after = seat.decider.observe(rules, collective, &chosen, timing);
                    if after == AfterSample::Review {
                        let reviewed = (collective, chosen);
                        return Ok(self.review(job, act, call, reviewed, Behind::LeftSample));
                    }
                    seat.decider.decide(rules, call, &|| details)
                }
                Decision::Prepare if job.fate.has_no_memory(self.rank, act.into()) => {
                    return Err(self.impasse(comm, call.collective, Reason::NoMemory));
                }
                Decision::Prepare => seat.decider.prepare(rules, call, &|| details),
                Decision::NextEpoch => {
                    job.tally.epochs += 1;
                    let _pair = seat.decider.next_epoch(self.clock_ns);
                    if job.mistake == Some(Mistake::OwnEpochs) && self.rank == 1 {
                        let _pair = seat.decider.next_epoch(self.clock_ns);
                    }
                    seat.decider.decide(rules, call, &|| details)
                }
                Decision::NoMemory => {
                    return Err(self.impasse(comm, call.collective, Reason::NoMemory));
                }
                Decision::Measure(measured) => {
                    job.tally.measured += 1;
                    if let Deed::Call(message) = &job.script.acts[act as usize].deed {
                        let blocks = of_rank(message, job.fate.seed, self.rank);
                        seat.decider.see_blocks(call.collective, blocks);
                    }
                    let words = seat.decider.block_words(measured);
                    self.own_words.clear();
                    self.own_words.extend(words);
                    let awaited = Awaited::Measure(call, measured);
                    return Ok(Next::Enter(Operation::Measure, awaited));
                }
                Decision::Chosen(chosen) => return self.make_ready(job, act, call, chosen),
            };
        }
    }

    fn make_ready(
        &mut self,
        job: &mut Surroundings,
        act: u32,
        call: SharedCall,
        chosen: Chosen,
    ) -> Result<Next, End> {
        let comm = job.comm(act);
        let seat = self.seats.get_mut(&comm).expect("it was made");
        if chosen.variant == DEFAULT {
            return self.run(job, act, call, Some(chosen));
        }
        let class = Class {
            variant: chosen.variant + 1000 * call.collective.index() as u16,
            root: match job.rules.variant(call.collective, chosen.variant).own {
                Some(own) if !own.depends_on_root() => 0,
                _ => job.root(act),
            },
            bytes: call.bytes,
            any_root_is_alike: true,
        };
        match seat.rooms.known(class) {
            Some(true) => self.run(job, act, call, Some(chosen)),
            Some(false) => {
                let chosen = seat.decider.fall_back(call.collective, chosen);
                self.run(job, act, call, Some(chosen))
            }
            None => {
                job.tally.rooms += 1;
                let lacks = job.fate.has_no_room(self.rank, act.into());
                self.own_words.clear();
                self.own_words.push(lacks.into());
                let operation = Operation::Room {
                    variant: chosen.variant,
                };
                Ok(Next::Enter(operation, Awaited::Room(call, chosen, class)))
            }
        }
    }

    /// The call itself.
    fn run(
        &mut self,
        job: &mut Surroundings,
        act: u32,
        call: SharedCall,
        chosen: Option<Chosen>,
    ) -> Result<Next, End> {
        let comm = job.comm(act);
        let mut variant = chosen.map_or(DEFAULT, |chosen| chosen.variant);
        let is_own = job.rules.variant(call.collective, variant).own.is_some();
        if is_own && job.fate.is_unfit(self.rank, act.into()) {
            if job.mistake != Some(Mistake::DefaultAlone) {
                let names = &job.rules.names[call.collective.index()];
                let variant = names[usize::from(variant)].clone();
                return Err(self.impasse(comm, call.collective, Reason::Arguments { variant }));
            }
            variant = DEFAULT;
        }
        let sampled = chosen.is_some_and(|chosen| chosen.sampled);
        let is_forgotten =
            job.mistake == Some(Mistake::FailedForgotten) && job.fate.fails(self.rank, act.into());
        if let Some(chosen) = chosen.filter(|_| sampled && !is_forgotten) {
            let seat = self.seats.get_mut(&comm).expect("it was made");
            let now_ns = self.clock_ns;
            seat.decider.begin_sample(call.collective, chosen, now_ns);
        }
        job.tally.tuned += u64::from(variant != DEFAULT);
        job.tally.sampled += u64::from(sampled);
        self.compare(job, act, call, variant)?;
        self.own_words.clear();
        let operation = Operation::Call {
            act,
            variant,
            sampled,
        };
        self.clock_ns += dice(job.fate.seed, 11, self.clock_ns ^ u64::from(self.rank)) % 5_000;
        Ok(Next::Enter(operation, Awaited::Call(call, chosen)))
    }

    /// Where one choice holds for the run, calls of one shape run one variant; where the order of operands is fixed
    /// reductions keep it; where ranks could agree no more they all run `default`.
    fn compare(
        &self,
        job: &mut Surroundings,
        act: u32,
        call: SharedCall,
        variant: u16,
    ) -> Result<(), End> {
        let comm = job.comm(act);
        let is_forsaken = job.forsaken.contains(&comm);
        if is_forsaken && variant != DEFAULT {
            return Err(End::RunsOn(comm, variant));
        }
        let details = job.details(act);
        if variant != DEFAULT && job.rules.has_fixed_order(call.collective) {
            let facts = self.seats[&comm].decider.facts(&job.rules, call, &details);
            let unmet = job.rules.unmet(call.collective, variant, &facts);
            if unmet == Some(Unmet::Order) {
                return Err(End::OutOfOrder(comm, variant));
            }
        }
        if job.rules.terms.settings.reproducible != Reproducible::Run {
            return Ok(());
        }
        let shape = Shape {
            comm,
            collective: call.collective,
            bytes: call.bytes,
            root: job.root(act),
            count: details.count,
            flags: [
                details.commutative,
                details.builtin_op,
                details.in_place,
                details.equal_blocks,
                details.plain_elements,
            ],
            lost: [is_forsaken, job.without_own.contains(&comm)],
        };
        let before = *job.ran.entry(shape).or_insert(variant);
        match before == variant {
            true => Ok(()),
            false => Err(End::Irreproducible(shape, [before, variant])),
        }
    }
}
