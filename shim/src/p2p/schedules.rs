//! What a communicator keeps for schedules: its channel, what was agreed of room, and compiled programs.

use std::cell::Cell;
use std::collections::HashMap;
use std::ffi::c_int;
use std::rc::Rc;

use colltune_core::algorithm::plan::Plan;
use colltune_core::algorithm::program::Program;
use colltune_core::algorithm::schedule::Case;
use colltune_core::catalogue::Scheduled;
use colltune_core::decide::rooms::Rooms;

use super::channel::{Channel, OpenChannel};
use crate::arguments::{Members, View};
use crate::limits::Reservation;
use crate::scratch::{Demand, Promise, User};
use crate::world::World;

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
    /// Scratch memory of schedules and compositions, and of what runs on the nodes.
    pub(super) room: [Promise; 2],
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
            room: [User::Schedule, User::Node].map(Promise::to),
        }
    }
}

/// Programs that have been compiled.
#[derive(Default)]
pub(super) struct Programs {
    /// Where the blocks of the present call begin, where they are uneven.
    pub(super) starts: Vec<u64>,
    pub(super) all: Vec<Program>,
    place_of: HashMap<Key, usize>,
    recent: Option<(Key, usize)>,
    memory: Reservation,
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
    /// Gives back the channel, the programs and the scratch memory; waits for nobody.
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

    /// Begins a call, which ends where an exception leaves it, too. Behind a longjmp nobody knows which messages are
    /// still to come, so later ones cannot be told from them.
    #[inline]
    pub(super) fn begin(&self, world: &World) -> RunningSchedule {
        if self.under_way.replace(true) {
            world.end_the_job(
                "a longjmp has left an earlier one on this communicator among its messages",
            );
        }
        RunningSchedule(Rc::clone(&self.under_way))
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
        let program = compile(own, key);
        let bytes = self.memory.bytes() + program.bytes();
        let fits = self.memory.resize(bytes);
        if fits {
            self.keep(key, program);
        }
        fits
    }

    /// The place of the program of a case. Where it was not provided, as for a message that is cut otherwise than the
    /// one by which its class was settled, or on a rank whose arguments were wrong then, it is compiled now.
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
        let bytes = self.memory.bytes() + program.bytes();
        self.memory.must_hold(bytes);
        self.keep(key, program)
    }

    fn keep(&mut self, key: Key, program: Program) -> usize {
        self.all.push(program);
        self.place_of.insert(key, self.all.len() - 1);
        self.all.len() - 1
    }

    /// Gives back the programs behind the first so many.
    #[cold]
    pub(super) fn keep_first(&mut self, len: usize) {
        let dropped: u64 = self.all.drain(len..).map(|program| program.bytes()).sum();
        self.place_of.retain(|_, place| *place < len);
        self.recent = None;
        self.memory.resize(self.memory.bytes() - dropped);
    }
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
