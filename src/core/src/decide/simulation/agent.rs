//! One thread of one rank, which takes its calls through its deciders as the shim does.

use std::collections::HashMap;

use super::dice;
use super::fabric::{Fabric, Mismatch, Operation, Step};
use super::faults::Fate;
use super::script::{Deed, Message, Script};
use crate::collective::{Collective, MessageSize};
use crate::decide::agreed::{ABILITY_WORDS, Ability, Agreed, Membership, Possible};
use crate::decide::call::{SharedCall, SharedDetails};
use crate::decide::impasse::{Impasse, Reason};
use crate::decide::rooms::{Class, Rooms};
use crate::decide::rules::Rules;
use crate::decide::{
    AfterSample, Choice, Chosen, DEFAULT, Decider, Decision, Heeded, Switch, Timing, Words,
};
use crate::record::CallTimes;
use crate::select::mix;
use crate::settings::Reproducible;

/// What an edge may get wrong: each has been a fault of the shim, or lies near.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mistake {
    /// A call of a type whose size nobody knows is not counted.
    UnknownSizeUncounted,
    /// A call with one buffer for both sides is not counted, though the library lets it pass.
    AliasedUncounted,
    /// A call that the library refused on this rank stays counted.
    RefusedStaysCounted,
    /// A call that the library is about to refuse enters what the others have to agree on.
    RefusedAgrees,
    /// `default` runs where a variant cannot take this rank's arguments.
    DefaultAlone,
    /// What this rank can do decides, not what all can.
    OwnAbility,
    /// Whether this rank has room decides.
    OwnRoom,
    /// This rank's times decide.
    OwnTimes,
    /// A sampled call that failed on this rank is not taken into account.
    FailedForgotten,
    /// The set-up comes late where one choice is to hold for the run.
    SetUpLate,
    /// A communicator's decisions outlive it, and go on with the next one of its handle.
    FreedKept,
    /// Whether this rank knows that the job was switched off decides.
    OwnSwitch,
}

/// What all agents of a job share.
pub struct Surroundings {
    pub rules: Rules,
    pub script: Script,
    pub fate: Fate,
    pub mistake: Option<Mistake>,
    pub ppn: u32,
    /// By rank, the communicators that it numbered.
    pub numbered: Vec<u64>,
    pub tally: Tally,
    /// What calls of one shape ran on a communicator.
    pub ran: HashMap<Shape, u16>,
    /// What ranks heard in a review of a communicator.
    pub heard: HashMap<(u32, u64), u64>,
    /// From this act on rank 0 sees that the job was switched off.
    pub off_from: Option<u32>,
    /// The ranks that have heard of it.
    pub knows_off: Vec<bool>,
}

/// What a choice may depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Shape {
    comm: u32,
    collective: Collective,
    bytes: u64,
    root: u32,
    count: Option<u64>,
    flags: [bool; 5],
}

/// What happened in a job, to show that something did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    pub calls: u64,
    pub tuned: u64,
    pub sampled: u64,
    pub refused: u64,
    pub set_ups: u64,
    pub rooms: u64,
    pub reviews: u64,
    /// Reviews in which the choice of a cell changed, and those that left one that was watched.
    pub replaced: u64,
    pub demoted: u64,
    /// How often ranks asked each other whether the job was switched off, and heard that it was.
    pub asked: u64,
    pub off: u64,
}

/// Why a job did not come to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// A rank said why it cannot go on: this ends all of them with one sentence, as MPI_Abort does.
    Impasse(u32, Impasse),
    Mismatch(Mismatch),
    /// A call of one shape did not run what such calls ran before, though one choice was to hold.
    Irreproducible(Shape, [u16; 2]),
    /// Ranks heard different times of one sample, in an operation of a communicator.
    HeardOtherwise(u32, u64),
}

impl Surroundings {
    /// What a rank knows when it comes to an act.
    fn switch(&self, rank: u32, act: u32) -> Switch {
        let sees = rank == 0 && self.off_from.is_some_and(|from| act >= from);
        match sees || self.knows_off[rank as usize] {
            true => Switch::Off,
            false => Switch::On,
        }
    }
}

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
    Heed(SharedCall, Heeded),
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
            let comm = job.script.acts[act as usize].comm;
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
        let comm = job.script.acts[act as usize].comm;
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
                false => Decider::new(),
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
            let shift_ns = self.clock_ns - since_ns;
            seat.decider.close_gap(collective, place, shift_ns);
        }
    }

    /// The handle of a freed communicator is the next one's, and so is what was kept under it.
    fn free(&mut self, job: &Surroundings, comm: u32) {
        let gone = self.seats.remove(&comm).expect("it was used");
        let kept = job.mistake == Some(Mistake::FreedKept) && self.rank.is_multiple_of(2);
        let next = self.acts[self.next + 1..].iter();
        let mut next = next.map(|&act| job.script.acts[act as usize].comm);
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
        let comm = job.script.acts[act as usize].comm;
        let rules = &job.rules;
        let seat = self.seats.get_mut(&comm).expect("it was made");
        if !self.was_refused && fate.is_refused(self.rank, act.into()) {
            self.was_refused = true;
            job.tally.refused += 1;
            let call = shared(collective, -1, Some(type_bytes));
            let decision = seat.decider.decide(rules, call, &|| details);
            match mistake {
                // It was not counted.
                _ if matches!(decision, Decision::Unobserved(_)) => {}
                Some(Mistake::RefusedStaysCounted) => {}
                Some(Mistake::RefusedAgrees) => return self.follow(job, act, call, decision),
                _ => seat.decider.take_back(call),
            }
        }
        let (count, rank) = (count as i64, self.rank);
        let can_differ = !collective.is_reduction() && count == 0;
        let is_unknown = can_differ && fate.is_unknown(rank, act.into());
        let is_aliased = collective.is_reduction() && fate.is_aliased(rank, act.into());
        let call = shared(collective, count, (!is_unknown).then_some(type_bytes));
        job.tally.calls += 1;
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
        let comm = job.script.acts[act as usize].comm;
        let details = details(job, act);
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
                    seat.decider.set_up(rules, None, call, &|| details)
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
                        native: (!native).into(),
                        own_families: (!own_families).into(),
                        spent_ppm: self.spent_ppm(job),
                    };
                    job.tally.set_ups += 1;
                    self.own_words.clear();
                    self.own_words.extend(ability.words());
                    self.own_words
                        .push((job.switch(self.rank, act) == Switch::Off).into());
                    return Ok(Next::Enter(Operation::SetUp, Awaited::SetUp(call)));
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
                        return Ok(self.review(job, comm, call, reviewed, Behind::LeftSample));
                    }
                    seat.decider.decide(rules, call, &|| details)
                }
                Decision::Prepare if job.fate.has_no_memory(self.rank, act.into()) => {
                    return Err(self.impasse(comm, call.collective, Reason::NoMemory));
                }
                Decision::Prepare => seat.decider.prepare(rules, call, &|| details),
                Decision::NoMemory => {
                    return Err(self.impasse(comm, call.collective, Reason::NoMemory));
                }
                Decision::Heed(heeded) => {
                    let switch = job.switch(self.rank, act);
                    job.tally.asked += 1;
                    let words = seat.decider.heed_words(heeded, switch, self.clock_ns);
                    self.own_words.clear();
                    self.own_words.extend(words);
                    return Ok(Next::Enter(Operation::Heed, Awaited::Heed(call, heeded)));
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
        let comm = job.script.acts[act as usize].comm;
        let seat = self.seats.get_mut(&comm).expect("it was made");
        if chosen.variant == DEFAULT {
            return self.run(job, act, call, Some(chosen));
        }
        let class = Class {
            variant: chosen.variant + 1000 * call.collective.index() as u16,
            root: root(job, act),
            bytes: call.bytes,
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
        let comm = job.script.acts[act as usize].comm;
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

    /// Where one choice holds for the run, calls of one shape run one variant.
    fn compare(
        &self,
        job: &mut Surroundings,
        act: u32,
        call: SharedCall,
        variant: u16,
    ) -> Result<(), End> {
        if job.rules.terms.settings.reproducible != Reproducible::Run {
            return Ok(());
        }
        let details = details(job, act);
        let shape = Shape {
            comm: job.script.acts[act as usize].comm,
            collective: call.collective,
            bytes: call.bytes,
            root: root(job, act),
            count: details.count,
            flags: [
                details.commutative,
                details.builtin_op,
                details.in_place,
                details.equal_blocks,
                details.plain_elements,
            ],
        };
        let before = *job.ran.entry(shape).or_insert(variant);
        match before == variant {
            true => Ok(()),
            false => Err(End::Irreproducible(shape, [before, variant])),
        }
    }

    fn resume(&mut self, job: &mut Surroundings, act: u32, awaited: Awaited) -> Result<Next, End> {
        let comm = job.script.acts[act as usize].comm;
        let details = details(job, act);
        let rules = &job.rules;
        let mistake = job.mistake;
        // Whoever makes this mistake looks at what it gave, not at what came of it.
        let is_deaf = |to| mistake == Some(to);
        let seat = self.seats.get_mut(&comm).expect("it was made");
        match awaited {
            Awaited::Split => Ok(Next::Done),
            Awaited::SetUp(call) => {
                let (mut words, mut off) = ([0; ABILITY_WORDS], self.words[ABILITY_WORDS]);
                words.copy_from_slice(&self.words[..ABILITY_WORDS]);
                if is_deaf(Mistake::OwnAbility) {
                    words[1..].copy_from_slice(&self.own_words[1..ABILITY_WORDS]);
                }
                if is_deaf(Mistake::OwnSwitch) {
                    off = self.own_words[ABILITY_WORDS];
                }
                let nodes = job.script.comms[comm as usize].members.iter();
                let members = Membership::of(nodes.map(|rank| rank / job.ppn));
                let agreed = (off == 0).then(|| (Agreed::of(words), members));
                job.knows_off[self.rank as usize] |= off != 0;
                let decision = seat.decider.set_up(rules, agreed, call, &|| details);
                self.follow(job, act, call, decision)
            }
            Awaited::Heed(call, heeded) => {
                let words = match is_deaf(Mistake::OwnSwitch) {
                    true => &self.own_words,
                    false => &self.words,
                };
                let words = [words[0], words[1]];
                let is_off = Decider::heard(words) == Switch::Off;
                job.tally.off += u64::from(is_off);
                job.knows_off[self.rank as usize] |= is_off;
                let now_ns = self.clock_ns;
                let decision = seat
                    .decider
                    .heed(rules, heeded, words, now_ns, (call, &|| details));
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
                        Ok(self.review(job, comm, call, reviewed, Behind::Sample))
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
                let words = Words {
                    largest: largest.to_vec(),
                    sums: sums.to_vec(),
                };
                let mut heard = 0;
                let hear = |record: usize, times: CallTimes| {
                    let shift_ns = times.shift_ns.unwrap_or(u64::MAX);
                    let words = [times.time_ns, shift_ns, times.slowest_ns, times.work_ns];
                    heard = words.into_iter().fold(mix(heard, record as u64), mix);
                };
                let before = seat.decider.choice(collective, &chosen);
                let choice = seat
                    .decider
                    .conclude(rules, collective, &chosen, words, hear);
                let after = seat.decider.choice(collective, &chosen);
                job.tally.demoted += u64::from(choice == Choice::Demoted);
                job.tally.replaced += u64::from(before != after);
                let review = (comm, seat.position);
                if *job.heard.entry(review).or_insert(heard) != heard {
                    return Err(End::HeardOtherwise(comm, seat.position));
                }
                match behind {
                    Behind::Sample => Ok(Next::Done),
                    Behind::LeftSample => {
                        let decision = seat.decider.decide(rules, call, &|| details);
                        self.follow(job, act, call, decision)
                    }
                }
            }
        }
    }

    /// What agreements have cost this rank, which has been on communicators that others have not: in one job of four more
    /// than its share.
    fn spent_ppm(&self, job: &Surroundings) -> u64 {
        let bound = [1_000, 10_000, 20_000, 200_000][(job.fate.seed % 4) as usize];
        dice(job.fate.seed, 12, self.clock_ns ^ u64::from(self.rank)) % bound
    }

    fn review(
        &mut self,
        job: &mut Surroundings,
        comm: u32,
        call: SharedCall,
        (collective, chosen): (Collective, Chosen),
        behind: Behind,
    ) -> Next {
        job.tally.reviews += 1;
        let spent_ppm = self.spent_ppm(job);
        let seat = self.seats.get_mut(&comm).expect("it was made");
        let told =
            seat.decider
                .review(collective, &chosen, self.clock_ns, spent_ppm, Possible::Yes);
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
        let comm = job.script.acts[act as usize].comm;
        let goes_on =
            next.is_some_and(|next| next.comm == comm && matches!(next.deed, Deed::Call(_)));
        goes_on && job.fate.is_left(self.rank, act.into())
    }

    fn impasse(&self, comm: u32, collective: Collective, reason: Reason) -> End {
        End::Impasse(
            self.rank,
            self.seats[&comm].decider.impasse(collective, reason),
        )
    }
}

/// Variants differ by more than the noise, so that reviews find out.
fn duration_ns(seed: u64, start_ns: u64, chosen: Option<Chosen>) -> u64 {
    let variant = chosen.map_or(DEFAULT, |chosen| chosen.variant);
    let usual = 2_000 << (dice(seed, 13, variant.into()) % 5);
    usual + dice(seed, 12, start_ns) % usual
}

fn shared(collective: Collective, count: i64, type_bytes: Option<u64>) -> SharedCall {
    match collective.size() {
        MessageSize::Nothing => SharedCall::without_size(collective),
        MessageSize::Message | MessageSize::Block => {
            SharedCall::of_elements(collective, count, type_bytes)
        }
    }
}

fn details(job: &Surroundings, act: u32) -> SharedDetails {
    match &job.script.acts[act as usize].deed {
        Deed::Call(message) => message.details,
        Deed::Split | Deed::Free => SharedDetails::MOVES,
    }
}

fn root(job: &Surroundings, act: u32) -> u32 {
    match &job.script.acts[act as usize].deed {
        Deed::Call(message) => message.root,
        Deed::Split | Deed::Free => 0,
    }
}
