//! What a communicator keeps for schedules: its channel, what was agreed of room, and compiled programs.

use std::cell::Cell;
use std::collections::HashMap;
use std::ffi::c_int;
use std::rc::Rc;

use colltune_core::algorithm::plan::Plan;
use colltune_core::algorithm::program::{Operation, Program};
use colltune_core::algorithm::registry::InPlace;
use colltune_core::algorithm::schedule::{Case, Step};
use colltune_core::catalogue::Scheduled;
use colltune_core::decide::rooms::Rooms;

use super::channel::{Channel, OpenChannel};
use crate::arguments::{Members, View};
use crate::limits::Reservation;
use crate::scratch::{Demand, Promise, USERS, User};
use crate::world::World;

/// What a rank's calls of a class need of a schedule: scratch memory, and a program of so many bytes.
#[derive(Clone, Copy, Default)]
pub struct Need {
    pub demand: Demand,
    pub program: u64,
}

/// What hangs on a communicator for our own algorithms.
pub struct Schedules {
    pub(super) channel: Channel,
    /// Calls so far; the same on all ranks.
    pub(super) calls: u32,
    /// What was agreed of room, by the variant's place in the trace's header.
    pub(super) rooms: Rooms,
    /// Whether a rank had no memory left to note what is agreed; then nothing more is.
    pub(super) closed: bool,
    pub(super) programs: Programs,
    /// Whether a call is under way; still so behind one that was left by a longjmp.
    under_way: Rc<Cell<bool>>,
    /// Scratch memory of schedules, of what runs on the nodes, and of padded blocks.
    pub(super) room: [Promise; USERS],
}

impl Default for Schedules {
    fn default() -> Schedules {
        Schedules {
            channel: Channel::default(),
            calls: 0,
            rooms: Rooms::default(),
            closed: false,
            programs: Programs::default(),
            under_way: Rc::default(),
            room: [User::Schedule, User::Node, User::Padded].map(Promise::to),
        }
    }
}

/// Programs that have been compiled. Each is a function of its key alone, so one that was dropped is compiled again when
/// it is wanted: the ranks need not agree on what they keep.
#[derive(Default)]
pub(super) struct Programs {
    /// Where the blocks of the present call begin, where they are uneven.
    pub(super) starts: Vec<u64>,
    pub(super) all: Vec<Kept>,
    place_of: HashMap<Key, usize>,
    recent: Option<(Key, usize)>,
    /// How often another program than the recent one was wanted.
    uses: u64,
    /// Of all programs.
    bytes: u64,
    /// Of the longest that was provided.
    longest: u64,
    /// At least as much as they take, and as one program takes of any message of a class that was agreed on.
    memory: Reservation,
}

/// A program, and which use of any was its last.
pub(super) struct Kept {
    pub(super) program: Program,
    key: Key,
    used: u64,
}

/// What programs there were at some time.
#[derive(Clone, Copy)]
pub(super) struct Mark {
    len: usize,
    longest: u64,
    held: u64,
}

/// What a program depends on, beside the communicator.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Key {
    /// The place of the row.
    pub(super) row: usize,
    pub(super) case: Case,
    pub(super) buffers: Buffers,
}

/// Whether a schedule's input and output are one piece of memory.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Buffers {
    Separate,
    Shared,
}

impl Key {
    /// That of a call.
    #[inline]
    pub(super) fn of(own: Scheduled, view: &View) -> Key {
        let shares = own.row().in_place == InPlace::Shared && view.is_in_place();
        let buffers = match shares {
            true => Buffers::Shared,
            false => Buffers::Separate,
        };
        Key::new(own, view, buffers)
    }

    #[inline]
    pub(super) fn new(own: Scheduled, view: &View, buffers: Buffers) -> Key {
        let Members { rank, n_ranks } = view.members;
        let row = own.row();
        Key {
            row: own.place(),
            case: row.case(rank, n_ranks, view.root, own.values, view.bytes),
            buffers,
        }
    }
}

/// A call with messages.
pub(super) struct RunningSchedule(Rc<Cell<bool>>);

impl Drop for RunningSchedule {
    #[inline]
    fn drop(&mut self) {
        self.0.set(false);
    }
}

impl Schedules {
    /// Gives back the channel, the programs and the scratch memory, without waiting.
    pub fn free(&mut self) {
        self.channel.free();
        *self = Schedules::default();
    }

    /// The channel, once [`open`] said so.
    pub fn channel(&self) -> &OpenChannel {
        let Channel::Open(open) = &self.channel else {
            unreachable!("a variant runs only after `ready` said so");
        };
        open
    }

    /// Counts a call, whose messages get a tag of their own.
    pub fn count_call(&mut self) {
        self.calls = self.calls.wrapping_add(1);
    }

    /// Whether the present call is one in so many.
    pub fn is_one_in(&self, calls: u32) -> bool {
        self.calls.is_multiple_of(calls)
    }

    /// Begins a call, which ends where an exception leaves it, too. Behind a longjmp it is unknown which messages are
    /// still to come, so later ones cannot be kept apart from them.
    #[inline]
    pub(super) fn begin(&self, world: &World) -> RunningSchedule {
        if self.under_way.replace(true) {
            world.end_the_job(
                "a longjmp has left an earlier one on this communicator among its messages",
            );
        }
        RunningSchedule(Rc::clone(&self.under_way))
    }

    /// Compiles the program of a call, unless it is there.
    pub fn compile(&mut self, own: Scheduled, view: &View) {
        self.programs.program(own, Key::of(own, view));
    }

    /// The tag of the present call.
    pub fn tag(&self) -> c_int {
        self.channel().tag(self.calls)
    }
}

impl Schedules {
    /// Makes room for a user's calls that need so much, or up to twice as many bytes: so much longer are the longest
    /// messages of a class.
    pub fn has_room(&mut self, user: User, demand: Demand) -> bool {
        let bytes = demand.bytes.saturating_mul(2).saturating_add(1 << 12);
        self.room[user as usize].raise(Demand { bytes, ..demand })
    }

    /// Makes as much room for schedules as the rank does that needs the most.
    pub(super) fn has_room_as(&mut self, most: Need) -> bool {
        self.programs.expect(most.program) && self.has_room(User::Schedule, most.demand)
    }
}

impl Programs {
    /// The place of the program of a case, if it has been compiled.
    #[inline]
    pub(super) fn find(&mut self, key: Key) -> Option<usize> {
        if let Some((recent, place)) = self.recent
            && recent == key
        {
            return Some(place);
        }
        let place = *self.place_of.get(&key)?;
        self.uses += 1;
        self.all[place].used = self.uses;
        self.recent = Some((key, place));
        Some(place)
    }

    /// Compiles the program of a case, unless it is there. False where this rank has no room for it.
    #[cold]
    pub(super) fn provide(&mut self, own: Scheduled, key: Key) -> bool {
        if self.find(key).is_some() {
            return true;
        }
        let listed = self.all.try_reserve(1).is_ok() && self.place_of.try_reserve(1).is_ok();
        let starts = key.case.n_ranks + 1;
        if !listed || self.starts.try_reserve(starts).is_err() {
            return false;
        }
        let before = self.memory.bytes();
        // Of what takes too much memory in any case not even that much is taken for a moment.
        if !self.hold(least_bytes(own, key)) {
            return false;
        }
        let program = compile(own, key);
        // The longest message of a class has up to twice as many segments.
        let fits =
            self.hold(program.bytes()) && self.memory.resize(self.with_twice(program.bytes()));
        if fits {
            self.longest = self.longest.max(program.bytes());
            self.keep(key, program);
        } else {
            self.memory.resize(before);
        }
        fits
    }

    /// What there is and twice the longest, of which one has so many bytes.
    fn with_twice(&self, bytes: u64) -> u64 {
        let longest = self.longest.max(bytes);
        self.memory.bytes().max(longest.saturating_mul(2))
    }

    /// Holds what so many bytes more need; never less than before.
    fn hold(&mut self, more: u64) -> bool {
        let bytes = self.memory.bytes().max(self.bytes.saturating_add(more));
        self.memory.resize(bytes)
    }

    /// Makes room for a program of so many bytes that comes later.
    fn expect(&mut self, bytes: u64) -> bool {
        self.longest = self.longest.max(bytes);
        self.memory.resize(self.with_twice(bytes))
    }

    /// The place of the program of a case. Where it was not provided it is compiled now: for another root than those by
    /// which its class was settled, for a message that is cut otherwise, or where this rank's arguments were wrong then.
    #[inline]
    pub(super) fn program(&mut self, own: Scheduled, key: Key) -> usize {
        match self.find(key) {
            Some(place) => place,
            None => self.compile_late(own, key),
        }
    }

    #[cold]
    fn compile_late(&mut self, own: Scheduled, key: Key) -> usize {
        let program = compile(own, key);
        while !self.hold(program.bytes()) {
            if !self.drop_least_recent() {
                // What a call runs that the ranks have agreed on cannot be refused.
                self.memory.must_hold(program.bytes());
                break;
            }
        }
        self.keep(key, program)
    }

    fn keep(&mut self, key: Key, program: Program) -> usize {
        self.bytes += program.bytes();
        self.uses += 1;
        self.all.push(Kept {
            program,
            key,
            used: self.uses,
        });
        self.place_of.insert(key, self.all.len() - 1);
        self.all.len() - 1
    }

    /// Drops the program whose last use is the longest ago. False where there is none. Finding it takes less than to
    /// compile the one that needs its room.
    fn drop_least_recent(&mut self) -> bool {
        let places = 0..self.all.len();
        let Some(place) = places.min_by_key(|&place| self.all[place].used) else {
            return false;
        };
        let dropped = self.all.swap_remove(place);
        self.place_of.remove(&dropped.key);
        if let Some(moved) = self.all.get(place) {
            self.place_of.insert(moved.key, place);
        }
        self.bytes -= dropped.program.bytes();
        self.recent = None;
        true
    }

    pub(super) fn mark(&self) -> Mark {
        Mark {
            len: self.all.len(),
            longest: self.longest,
            held: self.memory.bytes(),
        }
    }

    /// Gives back what was provided since then.
    #[cold]
    pub(super) fn return_to(&mut self, mark: Mark) {
        let len = mark.len.min(self.all.len());
        let dropped = self.all.drain(len..);
        let dropped: u64 = dropped.map(|kept| kept.program.bytes()).sum();
        self.place_of.retain(|_, place| *place < len);
        self.recent = None;
        self.bytes -= dropped;
        self.longest = mark.longest;
        self.memory.resize(mark.held.max(self.bytes));
    }
}

/// What a program takes at the least: an operation for each message.
fn least_bytes(own: Scheduled, key: Key) -> u64 {
    let schedule = (own.row().schedule)(key.case);
    let is_message = |step: &Step| matches!(step, Step::Send { .. } | Step::Receive { .. });
    let messages = schedule.steps.filter(is_message).count();
    (messages * size_of::<Operation>()) as u64
}

fn compile(own: Scheduled, key: Key) -> Program {
    let (row, case) = (own.row(), key.case);
    let schedule = (row.schedule)(case);
    let plan = match key.buffers {
        Buffers::Separate => Plan::new(schedule),
        Buffers::Shared => Plan::in_place(schedule, row.pattern, case.rank, case.root),
    };
    Program::new(&plan, row.pattern.blocks(case.n_ranks))
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use colltune_core::catalogue::{self, Own};
    use colltune_core::collective::Collective;

    use super::*;
    use crate::limits;

    fn chain() -> Scheduled {
        let library = "openmpi-4.1.4".parse().expect("it is known");
        let name = "p2p:chain:segsize=4KiB";
        let chain = catalogue::find(library, Collective::Bcast, name).expect("it exists");
        match chain.own {
            Some(Own::Schedule(own)) => own,
            _ => unreachable!("it is a schedule"),
        }
    }

    const N_RANKS: usize = 1024;
    const MAX: u64 = 1 << 20;

    /// Broadcasts of many lengths from one root after another, of which the ranks agree on each root and size class.
    #[test]
    fn programs_of_all_roots_and_lengths_stay_within_the_limit() {
        let _account = limits::alone_with(MAX);
        let (own, mut programs) = (chain(), Programs::default());
        let mut agreed = HashMap::new();
        let (mut random, mut run, mut refused) = (1u64, 0, 0);
        for call in 0..600usize {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let bytes = (64 << 10) + (random >> 33) % ((4 << 20) - (64 << 10));
            let root = call % 40;
            let case = own.row().case(3, N_RANKS, root, own.values, bytes);
            let key = Key {
                row: own.place(),
                case,
                buffers: Buffers::Separate,
            };
            let class = (root, bytes.ilog2());
            let ready = *agreed
                .entry(class)
                .or_insert_with(|| programs.provide(own, key));
            if ready {
                let place = programs.program(own, key);
                let program = &programs.all[place].program;
                assert_eq!(program.chunks as usize, case.segments);
                run += 1;
            } else {
                refused += 1;
            }
            assert!(
                limits::held() <= MAX,
                "call {call}: {} bytes",
                limits::held()
            );
            let bytes = programs.all.iter().map(|kept| kept.program.bytes());
            assert!(
                bytes.sum::<u64>() <= limits::held(),
                "all are in the account"
            );
        }
        assert!(run > 50 && refused > 50, "{run} {refused}");
        drop(programs);
        assert_eq!(limits::held(), 0);
    }

    #[test]
    fn what_calls_go_on_using_is_kept_and_what_was_used_last_the_longest_ago_is_dropped() {
        let _account = limits::alone_with(MAX);
        let (own, mut programs) = (chain(), Programs::default());
        let key = |root| Key {
            row: own.place(),
            case: own.row().case(3, N_RANKS, root, own.values, 1 << 20),
            buffers: Buffers::Separate,
        };
        let kept = |programs: &Programs, root| programs.place_of.contains_key(&key(root));
        let mut dropped = 0;
        for root in 1..60 {
            let often = programs.program(own, key(0));
            assert!(programs.all[often].key == key(0));
            programs.program(own, key(root));
            assert!(kept(&programs, 0), "root {root}");
            // Of the others those are there that came last.
            let there: Vec<usize> = (1..=root).filter(|&root| kept(&programs, root)).collect();
            let first = root + 1 - there.len();
            assert_eq!(there, (first..=root).collect::<Vec<_>>());
            assert_eq!(programs.all.len(), there.len() + 1);
            for (place, kept) in programs.all.iter().enumerate() {
                assert_eq!(programs.place_of[&kept.key], place);
            }
            assert!(limits::held() <= MAX);
            dropped = first - 1;
        }
        assert!(dropped > 10, "{dropped}");
    }

    #[test]
    fn what_is_given_back_leaves_the_account_as_it_was() {
        let _account = limits::alone_with(MAX);
        let (own, mut programs) = (chain(), Programs::default());
        let key = |bytes| Key {
            row: own.place(),
            case: own.row().case(3, N_RANKS, 0, own.values, bytes),
            buffers: Buffers::Separate,
        };
        assert!(programs.provide(own, key(64 << 10)));
        let (held, mark) = (limits::held(), programs.mark());
        assert!(programs.provide(own, key(1 << 20)));
        assert!(limits::held() > held);
        programs.return_to(mark);
        assert_eq!((limits::held(), programs.all.len()), (held, 1));
        assert!(programs.find(key(1 << 20)).is_none() && programs.find(key(64 << 10)).is_some());
    }
}
