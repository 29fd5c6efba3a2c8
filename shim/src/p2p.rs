//! Our own algorithms: schedules of the core, run over the library's point-to-point messages.
//!
//! All messages go over one communicator of ours with the ranks of the world, made at start
//! ([`messages`](crate::messages)). A communicator's members agree on a [`channel`], tags that no other communicator of theirs has,
//! when they first draw such a variant. Programs, which are compiled schedules, are kept with the
//! communicator; memory is kept for each thread. Both grow in the set-up of a variant and size
//! class, where the ranks agree on whether all had room within their limits, so that a repeated call allocates
//! nothing.
//!
//! In the order of a call: its [`channel`], its [`arguments`](crate::arguments) as this rank sees them, the
//! program, the lengths of its chunks, the [`scratch`] memory, the [`places`] of everything, and [`run`]. Where
//! each rank knows its own counts alone it is an [`exchange`] of the application's own blocks.

mod channel;
mod schedules;

pub mod places;

mod run;
pub use run::Watch;

mod exchange;

pub mod retire;

use std::ffi::c_int;

use colltune_core::algorithm::lengths::{Lengths, PartsBefore};
use colltune_core::algorithm::pattern::Holds;
use colltune_core::algorithm::registry::InPlace;
use colltune_core::algorithm::schedule::Case;
use colltune_core::catalogue::Scheduled;

use crate::abi;
use crate::arguments::{Agreement, Arguments, Input, Members, Output, View};
use crate::own_call::OwnCall;
use crate::private::{self, Parent};
use crate::scratch::{self, Demand, Promise, User};
use crate::world::World;
use channel::Channel;
pub use channel::OpenChannel;
use places::Job;
use schedules::{Buffers, Key, Programs};
pub use schedules::{Group, Schedules};

/// The size class of a message: the number of its bits.
fn class(bytes: u64) -> u32 {
    u64::BITS - bytes.leading_zeros()
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
    open(world, parent, schedules)
        && settled(
            world,
            parent,
            schedules,
            (call.variant, call.bytes),
            &call.arguments,
            |schedules| {
                if exchange::runs(call.collective) {
                    return exchange::has_room(schedules, call);
                }
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
        let find = |schedules: &mut Schedules| Found::of(has_room(schedules));
        return agree(world, parent, schedules, find) == Found::Room;
    };
    match schedules.classes.get(place) {
        Some(classes) if classes.root == root && classes.ready & bit != 0 => return true,
        _ => {}
    }
    settle(world, parent, schedules, (place, root), bit, has_room)
}

/// What the ranks find out together, from the best to the worst.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Found {
    Room,
    NoRoom,
    /// Not even to note it.
    NoMemory,
}

impl Found {
    fn of(has_room: bool) -> Found {
        match has_room {
            true => Found::Room,
            false => Found::NoRoom,
        }
    }
}

/// Whether all ranks have room. What this rank has made is given back where another has none.
#[cold]
fn agree(
    world: &World,
    parent: Parent,
    schedules: &mut Schedules,
    find: impl FnOnce(&mut Schedules) -> Found,
) -> Found {
    let n_programs = schedules.programs.all.len();
    let room = schedules.room.each_ref().map(Promise::bytes);
    let mut worst = [find(schedules) as u64];
    let found = match (world.largest(parent.comm, &mut worst), worst[0]) {
        (true, 0) => return Found::Room,
        (_, 2..) => Found::NoMemory,
        _ => Found::NoRoom,
    };
    schedules.programs.keep_first(n_programs);
    for (promise, bytes) in schedules.room.iter_mut().zip(room) {
        promise.lower(bytes);
    }
    found
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
    if schedules.closed {
        return false;
    }
    let noted = schedules.bring_up(place, root).is_some();
    let known = schedules.classes_with(place, root).unwrap_or_default();
    if (known.ready | known.failed) & bit != 0 {
        return known.ready & bit != 0;
    }
    let found = agree(world, parent, schedules, |schedules| match noted {
        true => Found::of(has_room(schedules)),
        false => Found::NoMemory,
    });
    schedules.closed = found == Found::NoMemory;
    if let Some(classes) = schedules.bring_up(place, root) {
        match found {
            Found::Room => classes.ready |= bit,
            _ => classes.failed |= bit,
        }
    }
    found == Found::Room
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
    let mut demand = Demand::default();
    for buffers in [Buffers::Apart, Buffers::Shared] {
        if buffers == Buffers::Shared && call.own.row().in_place != InPlace::Shared {
            continue;
        }
        let programs = &mut schedules.programs;
        // Wrong arguments are no want of room: the library will report them.
        let Some((view, case)) = case_of(world, group, call) else {
            return true;
        };
        let row = call.own.place();
        if !programs.provide(call.own, Key { row, case, buffers }) {
            return false;
        }
        let work = |job: &Job| demand = demand.max(job.demand_in_class());
        let of_key = (0, Key { row, case, buffers });
        if with_program(world, programs, of_key, (group, view), call, work).is_none() {
            return true;
        }
    }
    schedules.has_room(User::Schedule, demand)
}

fn run_job(job: &Job, watch: &mut impl Watch) -> Result<(), c_int> {
    scratch::with(User::Schedule, |scratch| {
        if !scratch.block.provide(job.demand()) {
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
    let (view, case) = case_of(world, group, call)?;
    let in_place = call.own.row().in_place;
    let buffers = match (view.input, in_place) {
        (Input::InOutput { .. }, InPlace::Shared) => Buffers::Shared,
        (Input::User(_), InPlace::Shared) if matches!(view.output, Output::InInput) => {
            Buffers::Shared
        }
        _ => Buffers::Apart,
    };
    let row = call.own.place();
    let of_key = (tag, Key { row, case, buffers });
    with_program(world, programs, of_key, (group, view), call, work)
}

/// The call as this rank sees it, and what its program depends on.
#[inline]
fn case_of(world: &World, group: Group, call: &OwnCall<Scheduled>) -> Option<(View, Case)> {
    let members = group.members();
    let view = call
        .arguments
        .view(world, call.collective, call.bytes, members)?;
    let Members { rank, n_ranks } = members;
    let (row, values) = (call.own.row(), call.own.values);
    let case = row.case(rank, n_ranks, view.root, values, call.bytes);
    Some((view, case))
}

/// Works on the job that such a program makes of a call.
#[inline]
fn with_program<T>(
    world: &World,
    programs: &mut Programs,
    (tag, key): (c_int, Key),
    (group, view): (Group, View),
    call: &OwnCall<Scheduled>,
    work: impl FnOnce(&Job) -> T,
) -> Option<T> {
    let (members, row) = (group.members(), call.own.row());
    let place = programs.program(call.own, key);
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
            let before = PartsBefore {
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
