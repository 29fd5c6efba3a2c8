//! Our own algorithms: schedules of the core, run over the library's point-to-point messages.
//!
//! All messages go over one communicator of ours with the ranks of the world, made at start
//! ([`messages`](crate::messages)). A communicator's members agree on a [`channel`], tags that no other communicator of theirs has,
//! when they first draw such a variant. Programs, which are compiled schedules, are kept with the
//! communicator; memory is kept for each thread. Both grow in the set-up of a variant and size
//! class, where the ranks agree on whether all had room, so that a repeated call allocates nothing.
//!
//! In the order of a call: its [`channel`], its [`arguments`](crate::arguments) as this rank sees them, the
//! program, the lengths of its chunks, the [`scratch`] memory, the [`places`] of everything, and [`run`]. Where
//! each rank knows its own counts alone it is an [`exchange`] of the application's own blocks.

mod channel;

pub mod places;

mod run;
pub use run::Watch;

mod exchange;

pub mod retire;

use std::cell::Cell;
use std::collections::HashMap;
use std::ffi::c_int;
use std::rc::Rc;

use colltune_core::algorithm::lengths::{Before, Lengths};
use colltune_core::algorithm::pattern::{Holds, Pattern};
use colltune_core::algorithm::plan::Plan;
use colltune_core::algorithm::program::Program;
use colltune_core::algorithm::registry::InPlace;
use colltune_core::algorithm::schedule::Case;
use colltune_core::catalogue::Scheduled;
use colltune_core::collective::Collective;

use crate::abi;
use crate::arguments::{Agreement, Arguments, Input, Members, Output};
use crate::own_call::OwnCall;
use crate::private::{self, Parent};
use crate::scratch::{self, User};
use crate::world::World;
use channel::Channel;
pub use channel::OpenChannel;
use places::Job;

/// More operations than this are not kept on one communicator: they can be compiled again.
const OPERATIONS_MAX: usize = 1 << 20;

/// What hangs on a communicator for our own algorithms.
#[derive(Default)]
pub struct Schedules {
    channel: Channel,
    /// Calls so far; the same on all ranks.
    calls: u32,
    /// By the variant's place in the trace's header, with the last root that it had.
    classes: Vec<Classes>,
    /// The same of other roots.
    other_roots: HashMap<(usize, c_int), Classes>,
    programs: Programs,
    /// Whether a call is under way; still so behind one that was left by a longjmp.
    under_way: Rc<Cell<bool>>,
}

/// Programs that have been compiled.
#[derive(Default)]
struct Programs {
    /// Where the blocks of the present call begin, where they are uneven.
    starts: Vec<u64>,
    all: Vec<Program>,
    place_of: HashMap<Key, usize>,
    recent: Option<(Key, usize)>,
    operations: usize,
}

/// Who runs a schedule: all ranks of a communicator, or some of them.
#[derive(Clone, Copy)]
pub struct Group<'a> {
    pub rank: usize,
    /// For each rank of the group its rank in the world.
    pub world_ranks: &'a [c_int],
}

/// The size classes of a variant that the members have agreed on with one root, as bits.
#[derive(Clone, Copy, Default)]
struct Classes {
    root: c_int,
    ready: u64,
    failed: u64,
}

/// What a program depends on, beside the communicator.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Key {
    /// The place of the row.
    row: usize,
    case: Case,
    buffers: Buffers,
}

/// Whether a schedule's input and output are one piece of memory.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Buffers {
    Apart,
    Shared,
}

/// A call with messages.
struct RunningSchedule(Rc<Cell<bool>>);

impl Drop for RunningSchedule {
    #[inline]
    fn drop(&mut self) {
        self.0.set(false);
    }
}

impl Schedules {
    /// Gives the channel back and forgets the programs; waits for nobody.
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
    fn begin(&self, world: &World) -> RunningSchedule {
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

impl Programs {
    /// The place of the program of a case; compiled when it is first needed.
    fn program(&mut self, own: Scheduled, case: Case, buffers: Buffers) -> usize {
        let row = own.place();
        let key = Key { row, case, buffers };
        if let Some((recent, place)) = self.recent
            && recent == key
        {
            return place;
        }
        let place = match self.place_of.get(&key) {
            Some(place) => *place,
            None => self.compile(own, key),
        };
        self.recent = Some((key, place));
        place
    }

    #[cold]
    fn compile(&mut self, own: Scheduled, key: Key) -> usize {
        let row = own.row();
        let case = key.case;
        let schedule = (row.schedule)(case);
        let plan = match key.buffers {
            Buffers::Apart => Plan::new(schedule),
            Buffers::Shared => Plan::in_place(schedule, row.pattern, case.rank, case.root),
        };
        let program = Program::new(&plan, row.pattern.blocks(case.n_ranks));
        if self.operations > OPERATIONS_MAX {
            self.all.clear();
            self.place_of.clear();
            self.operations = 0;
        }
        self.operations += program.operations.len();
        self.all.push(program);
        self.place_of.insert(key, self.all.len() - 1);
        self.all.len() - 1
    }
}

/// The size class of a message: the number of its bits.
fn class(bytes: u64) -> u32 {
    u64::BITS - bytes.leading_zeros()
}

/// The bytes of the whole message: every rank counts them alike.
pub fn total_bytes(collective: Collective, bytes: u64, n_ranks: u32) -> u64 {
    // The message of a reduction is the whole vector, of however many blocks.
    let blocks = match Pattern::of(collective) {
        Some(pattern) if !pattern.is_reduction() => pattern.blocks(n_ranks as usize),
        _ => 1,
    };
    // Of uneven blocks the size is the mean, cut to whole bytes.
    let cut = u64::from(collective == Collective::Allgatherv);
    bytes.saturating_add(cut).saturating_mul(blocks as u64)
}

/// Opens the channel of a communicator. Collective at the first call that needs it; the answer is
/// the same on all ranks.
pub fn open(world: &World, parent: Parent, schedules: &mut Schedules) -> bool {
    if matches!(schedules.channel, Channel::Unopened) {
        schedules.channel = Channel::open(world, parent.comm);
    }
    matches!(schedules.channel, Channel::Open(_))
}

/// Sees to it that a call can be run. Collective at the first call of a variant and size class;
/// the answer is the same on all ranks.
pub fn ready(
    world: &World,
    parent: Parent,
    schedules: &mut Schedules,
    call: &OwnCall<Scheduled>,
) -> bool {
    if exchange::runs(call.collective) {
        return open(world, parent, schedules);
    }
    open(world, parent, schedules)
        && settled(
            world,
            parent,
            schedules,
            (call.variant, call.bytes),
            &call.arguments,
            |schedules| {
                let OpenChannel {
                    rank, world_ranks, ..
                } = schedules.channel();
                let (rank, world_ranks) = (*rank, world_ranks.clone());
                let group = Group {
                    rank,
                    world_ranks: &world_ranks,
                };
                has_room_among(world, schedules, group, call)
            },
        )
}

/// Whether all ranks have room for the longest message of a variant's size class: found out once,
/// together, and known from then on. `has_room` says it for this rank.
#[inline]
pub fn settled(
    world: &World,
    parent: Parent,
    schedules: &mut Schedules,
    (variant, bytes): (u16, u64),
    arguments: &Arguments,
    has_room: impl FnOnce(&mut Schedules) -> bool,
) -> bool {
    let bit = 1u64 << (class(bytes) & 63);
    let place = usize::from(variant);
    let Agreement::Class { root } = arguments.agreement(world) else {
        return agree(world, parent, schedules, has_room);
    };
    match schedules.classes.get(place) {
        Some(classes) if classes.root == root && classes.ready & bit != 0 => return true,
        _ => {}
    }
    settle(world, parent, schedules, (place, root), bit, has_room)
}

/// Whether all ranks have room.
#[cold]
fn agree(
    world: &World,
    parent: Parent,
    schedules: &mut Schedules,
    has_room: impl FnOnce(&mut Schedules) -> bool,
) -> bool {
    let mut failed = [u64::from(!has_room(schedules))];
    world.largest(parent.comm, &mut failed) && failed[0] == 0
}

/// Makes room for calls that need `demand` bytes, or up to twice as much: so much longer are the
/// longest messages of a class.
pub fn has_room(demand: usize) -> bool {
    let room = demand.saturating_mul(2).saturating_add(1 << 12);
    scratch::with(User::Schedule, |scratch| scratch.block.reserve(room))
}

/// All ranks make room, or none uses the variant for the class.
#[cold]
fn settle(
    world: &World,
    parent: Parent,
    schedules: &mut Schedules,
    (place, root): (usize, c_int),
    bit: u64,
    has_room: impl FnOnce(&mut Schedules) -> bool,
) -> bool {
    let Schedules {
        classes: all,
        other_roots,
        ..
    } = schedules;
    if all.len() <= place {
        all.resize(place + 1, Classes::default());
    }
    if all[place].root != root {
        let fresh = Classes {
            root,
            ..Classes::default()
        };
        let known = other_roots.remove(&(place, root)).unwrap_or(fresh);
        let last = std::mem::replace(&mut all[place], known);
        other_roots.insert((place, last.root), last);
    }
    let classes = all[place];
    if (classes.ready | classes.failed) & bit != 0 {
        return classes.ready & bit != 0;
    }
    let agreed = agree(world, parent, schedules, has_room);
    let classes = &mut schedules.classes[place];
    if agreed {
        classes.ready |= bit;
    } else {
        classes.failed |= bit;
    }
    agreed
}

/// Runs a call that is ready. `default` runs where an argument is wrong, so that the library says so.
pub fn run(
    world: &World,
    parent: Parent,
    schedules: &mut Schedules,
    call: &OwnCall<Scheduled>,
    default: impl Fn() -> c_int,
) -> c_int {
    schedules.count_call();
    let under_way = schedules.begin(world);
    let result = if exchange::runs(call.collective) {
        exchange::run(world, schedules, call)
    } else {
        with_job(world, schedules, call, |job| run_job(job, &mut ()))
    };
    drop(under_way);
    match result {
        None => default(),
        Some(Ok(())) => abi::SUCCESS,
        Some(Err(code)) => private::report(world, parent.comm, code),
    }
}

/// Runs a call among some of the communicator's ranks, with the tag of its present call. `None`
/// where an argument is wrong.
pub fn run_among(
    world: &World,
    schedules: &mut Schedules,
    group: Group,
    call: &OwnCall<Scheduled>,
    watch: &mut impl Watch,
) -> Option<Result<(), c_int>> {
    let tag = schedules.tag();
    let _under_way = schedules.begin(world);
    let work = |job: &Job| run_job(job, watch);
    with_job_among(world, &mut schedules.programs, tag, group, call, work)
}

/// Whether there is room for a call among some of the communicator's ranks, and for any other of its
/// root and size class: in place or not, with elements that have to be packed or not.
pub fn has_room_among(
    world: &World,
    schedules: &mut Schedules,
    group: Group,
    call: &OwnCall<Scheduled>,
) -> bool {
    let mut demand = 0;
    for buffers in [Buffers::Apart, Buffers::Shared] {
        if buffers == Buffers::Shared && call.own.row().in_place != InPlace::Shared {
            continue;
        }
        let work = |job: &Job| demand = demand.max(job.demand_in_class());
        let programs = &mut schedules.programs;
        // Wrong arguments are no want of room: the library will report them.
        if with_job_and(world, programs, (0, Some(buffers)), group, call, work).is_none() {
            return true;
        }
    }
    has_room(demand)
}

fn run_job(job: &Job, watch: &mut impl Watch) -> Result<(), c_int> {
    scratch::with(User::Schedule, |scratch| {
        if !scratch.block.reserve(job.demand()) {
            return Err(abi::MPI_ERR_NO_MEM as c_int);
        }
        // SAFETY: there is as much room as is demanded; the buffers are the application's, or such
        // as the caller has for them.
        unsafe { job.run(scratch, watch) }
    })
}

/// `None` where an argument is wrong.
#[inline]
fn with_job<T>(
    world: &World,
    schedules: &mut Schedules,
    call: &OwnCall<Scheduled>,
    work: impl FnOnce(&Job) -> T,
) -> Option<T> {
    let tag = schedules.tag();
    let Channel::Open(open) = &schedules.channel else {
        return None;
    };
    let group = Group {
        rank: open.rank,
        world_ranks: &open.world_ranks,
    };
    with_job_among(world, &mut schedules.programs, tag, group, call, work)
}

#[inline]
fn with_job_among<T>(
    world: &World,
    programs: &mut Programs,
    tag: c_int,
    group: Group,
    call: &OwnCall<Scheduled>,
    work: impl FnOnce(&Job) -> T,
) -> Option<T> {
    with_job_and(world, programs, (tag, None), group, call, work)
}

/// The same with a program for such buffers, instead of the call's own.
#[inline]
fn with_job_and<T>(
    world: &World,
    programs: &mut Programs,
    (tag, buffers): (c_int, Option<Buffers>),
    group: Group,
    call: &OwnCall<Scheduled>,
    work: impl FnOnce(&Job) -> T,
) -> Option<T> {
    let members = Members {
        rank: group.rank,
        n_ranks: group.world_ranks.len(),
    };
    let view = call
        .arguments
        .view(world, call.collective, call.bytes, members)?;
    let row = call.own.row();
    let case = row.case(
        members.rank,
        members.n_ranks,
        view.root,
        call.own.values,
        call.bytes,
    );
    let buffers = buffers.unwrap_or(match (view.input, row.in_place) {
        (Input::InOutput { .. }, InPlace::Shared) => Buffers::Shared,
        (Input::User(_), InPlace::Shared) if matches!(view.output, Output::InInput) => {
            Buffers::Shared
        }
        _ => Buffers::Apart,
    });
    let place = programs.program(call.own, case, buffers);
    if let Some(uneven) = view.uneven {
        uneven.fill(&mut programs.starts, members.n_ranks)?;
    }
    let program = &programs.all[place];
    let (parts, chunks) = (program.parts_per_block, program.chunks);
    let lengths = match view.uneven {
        None => Lengths::new(view.block, parts, chunks),
        Some(_) => {
            let before = |holds| match holds {
                Holds::OwnBlock => members.rank as u64 * u64::from(parts),
                Holds::Message | Holds::Nothing => 0,
            };
            let before = Before {
                input: before(row.pattern.input(members.rank, view.root)),
                output: before(row.pattern.output(members.rank, view.root)),
            };
            Lengths::uneven(&programs.starts, parts, chunks, before)
        }
    };
    Some(work(&Job {
        world,
        comm: world.messages.comm()?,
        tag,
        world_ranks: group.world_ranks,
        members,
        program,
        view,
        lengths,
        in_place: row.in_place,
    }))
}
