//! Our own algorithms: schedules of the core, run over the library's point-to-point messages.
//!
//! All messages go over one communicator of ours with the ranks of the world, made at start
//! ([`messages`](crate::messages)). A communicator's members agree on a [`channel`], tags that no other communicator
//! of theirs has, when they first draw such a variant. Programs, which are compiled schedules, are kept with the
//! communicator; memory is kept for each thread. Both grow in the set-up of a variant and size
//! class, where the ranks agree on whether all had room within their limits, so that a repeated call allocates
//! nothing.
//!
//! In the order of a call, of which this rank has its [`View`]: its [`channel`], the program, the lengths of its
//! chunks, the [`scratch`] memory, the [`places`] of everything, and [`run`], whose messages leave at an [`endpoint`].

mod channel;
mod schedules;

pub mod retire;

pub mod endpoint;

pub mod places;

mod run;
pub use run::Overlap;

use std::ffi::c_int;

use colltune_core::algorithm::lengths::{Lengths, PartsBefore};
use colltune_core::algorithm::pattern::Holds;
use colltune_core::algorithm::registry::InPlace;
use colltune_core::catalogue::Scheduled;
use colltune_core::decide::rooms::Class;

use crate::abi;
use crate::arguments::View;
use crate::private::Parent;
use crate::scratch::{self, Demand, Promise, User};
use crate::world::World;
use channel::Channel;
pub use channel::OpenChannel;
use endpoint::Endpoint;
use places::ScheduledCall;
use schedules::{Buffers, Key, Programs};
pub use schedules::{Need, Schedules};

/// Opens the channel of a communicator. Collective at the first call that needs it; the answer is
/// the same on all ranks.
pub fn open(world: &World, parent: Parent, schedules: &mut Schedules) -> bool {
    if matches!(schedules.channel, Channel::Unopened) {
        let _agreement = world.spending.opening();
        schedules.channel = Channel::open(world, parent.comm);
    }
    matches!(schedules.channel, Channel::Open(_))
}

/// Whether all ranks have room for the longest message of a variant's size class: found out once,
/// together, and known from then on, or for this call alone where there is no class. `has_room` says it for this rank.
#[inline]
pub fn settled(
    world: &World,
    parent: Parent,
    schedules: &mut Schedules,
    class: Option<Class>,
    has_room: impl FnOnce(&mut Schedules) -> Option<Need>,
) -> bool {
    let Some(class) = class else {
        let find = |schedules: &mut Schedules| found(has_room(schedules));
        return agree(world, parent, schedules, Roots::This, find) == Found::Room;
    };
    let known = schedules.rooms.known(class);
    known.unwrap_or_else(|| settle(world, parent, schedules, class, has_room))
}

/// What the ranks find out together, from the best to the worst.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Found {
    Room,
    NoRoom,
    /// Not even to note it.
    NoMemory,
}

/// What a rank has found out alone.
fn found(room: Option<Need>) -> (Found, Need) {
    match room {
        Some(need) => (Found::Room, need),
        None => (Found::NoRoom, Need::default()),
    }
}

/// For which calls of a class ranks find it out: with this call's root, or with any.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Roots {
    This,
    Every,
}

/// Whether all ranks have room. What this rank has made is given back where another has none.
#[cold]
fn agree(
    world: &World,
    parent: Parent,
    schedules: &mut Schedules,
    roots: Roots,
    find: impl FnOnce(&mut Schedules) -> (Found, Need),
) -> Found {
    let programs = schedules.programs.mark();
    let room = schedules.room.each_ref().map(Promise::bytes);
    let (found, Need { demand, program }) = find(schedules);
    let Demand {
        bytes,
        requests,
        temporaries,
    } = demand;
    let [bytes, requests, temporaries] = [bytes, requests, temporaries].map(|most| most as u64);
    let mut worst = [found as u64, bytes, requests, temporaries, program];
    let mut heard = world.largest(parent.comm, &mut worst);
    let [mut found, lists @ .., program] = worst;
    // What the others need with this root this rank needs with another one.
    if heard && found == 0 && roots == Roots::Every {
        let [bytes, requests, temporaries] = lists.map(|most| most as usize);
        let demand = Demand {
            bytes,
            requests,
            temporaries,
        };
        found = u64::from(!schedules.has_room_as(Need { demand, program }));
        heard = world.largest(parent.comm, std::slice::from_mut(&mut found));
    }
    let found = match (heard, found) {
        (true, 0) => return Found::Room,
        (_, 2..) => Found::NoMemory,
        _ => Found::NoRoom,
    };
    schedules.programs.return_to(programs);
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
    class: Class,
    has_room: impl FnOnce(&mut Schedules) -> Option<Need>,
) -> bool {
    if schedules.closed {
        return false;
    }
    let noted = schedules.rooms.reserve(class);
    let roots = match schedules.rooms.is_for_every_root(class) {
        true => Roots::Every,
        false => Roots::This,
    };
    let found = agree(world, parent, schedules, roots, |schedules| match noted {
        true => found(has_room(schedules)),
        false => (Found::NoMemory, Need::default()),
    });
    schedules.closed = found == Found::NoMemory;
    if !schedules.closed {
        schedules.rooms.agree(class, found == Found::Room);
    }
    found == Found::Room
}

/// Runs a call that is ready.
pub fn run(
    world: &World,
    schedules: &mut Schedules,
    own: Scheduled,
    view: &View,
) -> Result<(), c_int> {
    schedules.count_call();
    let _under_way = schedules.begin(world);
    let tag = schedules.tag();
    let Schedules {
        channel: Channel::Open(open),
        programs,
        ..
    } = schedules
    else {
        unreachable!("a variant runs only after `open` said so");
    };
    let call = call(world, programs, tag, &open.world_ranks, own, view)?;
    run_call(&call, &mut ())
}

/// Runs a call among some of the communicator's ranks, the view's members, with the tag of its present call.
pub fn run_among(
    world: &World,
    schedules: &mut Schedules,
    world_ranks: &[c_int],
    own: Scheduled,
    view: &View,
    watch: &mut impl Overlap,
) -> Result<(), c_int> {
    let tag = schedules.tag();
    let _under_way = schedules.begin(world);
    let call = call(world, &mut schedules.programs, tag, world_ranks, own, view)?;
    run_call(&call, watch)
}

/// Makes room for a call, and for any other of its root and size class: in place or not, with elements that have to be
/// packed or not. `None` where there is none.
pub fn has_room(
    world: &World,
    schedules: &mut Schedules,
    own: Scheduled,
    view: &View,
) -> Option<Need> {
    let mut need = Need::default();
    for buffers in [Buffers::Separate, Buffers::Shared] {
        if buffers == Buffers::Shared && own.row().in_place != InPlace::Shared {
            continue;
        }
        let (programs, key) = (&mut schedules.programs, Key::new(own, view, buffers));
        if !programs.provide(own, key) {
            return None;
        }
        // Nothing is sent, to whomever.
        let call = call_of(world, programs, (0, &[]), (own, key), view).ok()?;
        need.demand = need.demand.max(call.demand_in_class());
        need.program = need.program.max(call.program.bytes());
    }
    schedules
        .has_room(User::Schedule, need.demand)
        .then_some(need)
}

fn run_call(call: &ScheduledCall, watch: &mut impl Overlap) -> Result<(), c_int> {
    scratch::with(User::Schedule, |scratch| {
        if !scratch.block.provide(call.demand()) {
            return Err(abi::MPI_ERR_NO_MEM as c_int);
        }
        // SAFETY: there is as much room as is demanded; the buffers are the application's, or such
        // as the caller has for them.
        unsafe { call.run(scratch, watch) }
    })
}

#[inline]
fn call<'a>(
    world: &'a World,
    programs: &'a mut Programs,
    tag: c_int,
    world_ranks: &'a [c_int],
    own: Scheduled,
    view: &'a View,
) -> Result<ScheduledCall<'a>, c_int> {
    let key = Key::of(own, view);
    call_of(world, programs, (tag, world_ranks), (own, key), view)
}

/// What such a program makes of a call.
#[inline]
fn call_of<'a>(
    world: &'a World,
    programs: &'a mut Programs,
    (tag, world_ranks): (c_int, &'a [c_int]),
    (own, key): (Scheduled, Key),
    view: &'a View,
) -> Result<ScheduledCall<'a>, c_int> {
    let (members, row) = (view.members, own.row());
    let place = programs.program(own, key);
    if let Some(uneven) = view.uneven {
        let filled = uneven.fill(&mut programs.starts, members.n_ranks);
        filled.ok_or(abi::MPI_ERR_COUNT as c_int)?;
    }
    let program = &programs.all[place].program;
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
    Ok(ScheduledCall {
        endpoint: Endpoint::new(world, tag)?,
        world_ranks,
        program,
        view,
        lengths,
        in_place: row.in_place,
        has_own_counts: view.has_own_counts(),
    })
}
