//! One call over the nodes: where its data lies on this rank, and how much room it needs.

use std::ffi::c_int;

use colltune_core::algorithm::lengths::Lengths;
use colltune_core::algorithm::program::Program;
use colltune_core::algorithm::registry::InPlace;
use colltune_core::catalogue::{Crossing, OnNodes};
use colltune_core::collective::Collective;
use colltune_core::node::between::longest_share;
use colltune_core::node::layout::{CELL, Cut};

use super::barrier;
use super::collect::Layout;
use super::elements::{Elements, Holed, Sum};
use super::memory::{NodeMemory, Nodes};
use super::part::{Part, packed_unit};
use super::patience::{after_call, asks_after};
use super::phases::{Between, Phases, or_give_up};
use super::segment::Segment;
use super::team::Team;
use super::transfers;
use crate::abi;
use crate::arguments::{Input, Memory, Output, Unit, View};
use crate::own_call::OwnCall;
use crate::p2p::places::{Job, Places};
use crate::p2p::{self, Group, Schedules};
use crate::private::{self, Parent};
use crate::scratch::{self, ALIGN, Demand, Scratch, User};
use crate::world::World;

/// No messages: what a node does is not told by a program.
static NOTHING: Program = Program {
    parts_per_block: 1,
    chunks: 0,
    temporaries: Vec::new(),
    operations: Vec::new(),
    spans: Vec::new(),
    staged_chunks: Vec::new(),
    final_at: Vec::new(),
};

/// Runs a call that is ready.
#[inline]
pub fn run(
    world: &World,
    parent: Parent,
    (schedules, node): (&mut Schedules, &mut NodeMemory),
    call: &OwnCall<OnNodes>,
    default: impl Fn() -> c_int,
) -> c_int {
    schedules.count_call();
    let NodeMemory::Open(nodes) = node else {
        unreachable!("a variant runs only after `ready` said so");
    };
    let result = run_open(world, schedules, nodes, call);
    let always = asks_after(call.own, call.collective, call.bytes);
    after_call(world, schedules, always);
    match result {
        None => default(),
        Some(Ok(())) => abi::SUCCESS,
        Some(Err(code)) => private::report(world, parent.comm, code),
    }
}

#[inline]
fn run_open(
    world: &World,
    schedules: &mut Schedules,
    nodes: &mut Nodes,
    call: &OwnCall<OnNodes>,
) -> Option<Result<(), c_int>> {
    let members = nodes.team.members(schedules.channel().rank);
    let view = match call.collective {
        Collective::Barrier => None,
        _ => Some(
            call.arguments
                .view(world, call.collective, call.bytes, members)?,
        ),
    };
    let begun = nodes.segment.as_ref().map(|segment| segment.begin(world));
    let under_way = match begun.transpose() {
        Ok(under_way) => under_way,
        Err(class) => return Some(Err(class)),
    };
    let result = run_begun(world, schedules, nodes, call, view);
    if let (Some(segment), Some(under_way)) = (&nodes.segment, under_way) {
        segment.end(under_way);
    }
    result
}

#[inline]
fn run_begun(
    world: &World,
    schedules: &mut Schedules,
    nodes: &mut Nodes,
    call: &OwnCall<OnNodes>,
    view: Option<View>,
) -> Option<Result<(), c_int>> {
    let own = call.own;
    let Nodes {
        team,
        segment,
        bridges,
        ..
    } = nodes;
    let Some(view) = view else {
        let over = (&*team, &*bridges);
        return Some(barrier::run(world, schedules, over, segment.as_mut(), call));
    };
    if matches!(own, OnNodes::Alone | OnNodes::Reading)
        && let Some(places) = direct(&view)
    {
        let phases = Phases {
            schedules,
            team,
            bridges,
            segment: segment.as_mut(),
            call,
            view,
            places,
            elements: Elements::new(world, &view, call, None),
            between: Between::default(),
            spare: std::ptr::null_mut(),
        };
        // SAFETY: the view's buffers are the application's.
        return Some(unsafe { phases.run() });
    }
    let world_ranks = team.world_ranks.clone();
    let job = job(world, schedules, call, view, &world_ranks, team)?;
    let work = |scratch: &mut Scratch| {
        let room = Room::new(&job, team, call);
        let reserved = match scratch.block.provide(room.bytes) {
            true => Ok(()),
            false => Err(abi::MPI_ERR_NO_MEM as c_int),
        };
        or_give_up(segment.as_ref(), reserved)?;
        let start = scratch.block.start();
        // SAFETY: there is as much room as is demanded; the buffers are the application's.
        let places = or_give_up(segment.as_ref(), unsafe { job.bind(scratch) })?;
        let spare = room.spare.map(|from| room.address(start, from));
        let holed = (!view.unit.plain).then(|| Holed {
            job: &job,
            comm: job.comm,
            spare: spare.map(|at| view.unit.first(at, room.piece)),
        });
        let phases = Phases {
            schedules,
            team,
            bridges,
            segment: segment.as_mut(),
            call,
            view,
            places,
            elements: Elements::new(world, &view, call, holed),
            between: Between {
                carrier: Some((job.comm, job.tag)),
                requests: Some(&mut scratch.requests),
                before: Some(&mut scratch.before),
            },
            spare: view
                .unit
                .first(room.address(start, room.message), room.units),
        };
        // SAFETY: places were bound to the application's buffers and to room as long as the job demands; `phases`
        // works on these alone, and the result is handed over from where it left it.
        let result = unsafe {
            let result = phases.run();
            result.and(job.hand_over(&places))
        };
        let sends = !matches!(own, OnNodes::Alone | OnNodes::Reading);
        if result.is_err() && sends {
            // Messages may still be under way out of it.
            scratch.block.abandon();
        }
        result
    };
    Some(scratch::with(User::Node, work))
}

/// Whether this rank has room for the call, and for any other of its size class.
#[cold]
pub fn has_room(
    world: &World,
    schedules: &mut Schedules,
    nodes: &Nodes,
    call: &OwnCall<OnNodes>,
) -> bool {
    let (own, team) = (call.own, &nodes.team);
    if call.collective == Collective::Barrier {
        return barrier::has_room(world, schedules, team, call);
    }
    if own == OnNodes::Reading && !nodes.segment.as_ref().is_some_and(Segment::can_read) {
        return false;
    }
    let members = team.members(schedules.channel().rank);
    let view = call
        .arguments
        .view(world, call.collective, call.bytes, members);
    // Wrong arguments are no want of room: the library will report them.
    let Some(view) = view else { return true };
    let world_ranks = team.world_ranks.clone();
    let Some(job) = job(world, schedules, call, view, &world_ranks, team) else {
        return false;
    };
    let layout = (moves_blocks(call.collective) && matches!(own, OnNodes::Leaders(_)))
        .then(|| Layout::new(team, call.collective, view.block));
    if layout.is_some_and(|layout| !layout.is_modest()) {
        return false;
    }
    let demand = Demand {
        bytes: Room::in_class(&job, team, call),
        requests: match own {
            OnNodes::Direct(_) => messages_most(team),
            _ => 0,
        },
        temporaries: 0,
    };
    if !schedules.has_room(User::Node, demand) {
        return false;
    }
    let start = scratch::with(User::Node, |scratch| scratch.block.start());
    // The root leads its node, so any rank of a node may. Only lengths count, so any address will do.
    let unit0 = view.unit.first(start, view.block);
    let root = team.node_of[view.root];
    let Some(Crossing::Schedule(between)) = own.crossing() else {
        return true;
    };
    let rank = team.node;
    if let Some(layout) = layout {
        let call = layout.scheduled(world, call, between, (None, start));
        let world_ranks = &team.leaders;
        return p2p::has_room_among(world, schedules, Group { rank, world_ranks }, &call);
    }
    let (group, units) = match own {
        OnNodes::Lanes(_) if team.lane.is_empty() => return true,
        OnNodes::Lanes(_) => {
            let longest = longest_share(view.block, team.lanes);
            (&team.lane, longest)
        }
        _ => (&team.leaders, view.block),
    };
    let part = Part {
        root,
        bytes: units * packed_unit(&view, call),
        units,
    };
    let group = Group {
        rank,
        world_ranks: group,
    };
    let data = match call.collective {
        Collective::Reduce if group.rank != root => (Some(unit0), std::ptr::null_mut()),
        _ => (None, unit0),
    };
    let call = part.scheduled(world, call, between, data);
    p2p::has_room_among(world, schedules, group, &call)
}

/// Messages that a rank has under way at once, at most, where blocks go straight to where they are wanted.
fn messages_most(team: &Team) -> usize {
    let all = team.node_of.len();
    let (others, here) = (team.nodes.len() - 1, team.n_here());
    let sends = transfers::most(here, all).saturating_mul(others);
    sends.saturating_add(transfers::most(all, all) * 2)
}

fn job<'a>(
    world: &'a World,
    schedules: &Schedules,
    call: &OwnCall<OnNodes>,
    view: View,
    world_ranks: &'a [c_int],
    team: &Team,
) -> Option<Job<'a>> {
    let n = world_ranks.len();
    let blocks = match call.collective {
        Collective::Allgather | Collective::Alltoall => n as u32,
        _ => 1,
    };
    Some(Job {
        world,
        comm: world.messages.comm()?,
        tag: schedules.tag(),
        world_ranks,
        members: team.members(schedules.channel().rank),
        program: &NOTHING,
        view,
        lengths: Lengths::new(view.block, 1, blocks),
        in_place: InPlace::Shared,
    })
}

/// What a rank needs beside the caller's buffers: offsets in one piece of memory.
struct Room {
    bytes: usize,
    spare: [usize; 2],
    /// A message, or two, or the input of a call in place that is overwritten while it is sent.
    message: usize,
    units: u64,
    /// Units of a piece, at most.
    piece: u64,
}

impl Room {
    /// Units of the input of a call in place that is overwritten while it is sent, of a rank whose call is
    /// not in place, too: there may be others whose call is; or of all blocks, where they change places.
    fn kept(job: &Job, team: &Team, call: &OwnCall<OnNodes>) -> u64 {
        match call.own {
            OnNodes::Direct(_) if call.collective == Collective::Alltoall => job.view.input_units,
            OnNodes::Leaders(_) if moves_blocks(call.collective) => {
                Layout::new(team, call.collective, job.view.block).room()
            }
            _ => 0,
        }
    }

    fn new(job: &Job, team: &Team, call: &OwnCall<OnNodes>) -> Room {
        let unit = &job.view.unit;
        let reduces = unit.combine.is_some();
        let units = match (call.own.crossing(), call.collective) {
            // What the node has combined, and the result.
            (Some(Crossing::Library), Collective::Reduce) => job.view.block.saturating_mul(2),
            (Some(_), _) if reduces => job.view.block,
            _ => Room::kept(job, team, call),
        };
        let packed = packed_unit(&job.view, call);
        let all = if reduces { job.view.block } else { 0 };
        let piece = Cut::new(all, packed, 1).units_per_piece.min(all);
        let spare = if unit.plain {
            0
        } else {
            round(unit.bytes(piece))
        };
        let first = round(job.demand());
        let message = first.saturating_add(spare.saturating_mul(2));
        Room {
            bytes: message.saturating_add(round(unit.bytes(units))),
            spare: [first, first.saturating_add(spare)],
            message,
            units,
            piece,
        }
    }

    /// As many bytes as any call needs whose message is as long: whether elements have to be packed on
    /// this rank or not, and of pairs, whose holes take less room than they do, too.
    fn in_class(job: &Job, team: &Team, call: &OwnCall<OnNodes>) -> usize {
        let bytes = Room::new(job, team, call).bytes;
        if job.view.unit.combine.is_some() {
            return bytes.saturating_mul(2).saturating_add(4 * CELL);
        }
        let n = job.members.n_ranks as u64;
        let blocks = match call.collective {
            Collective::Bcast => 1,
            _ => n,
        };
        let message = job.view.unit.bytes(job.view.block.saturating_mul(blocks));
        let packed = round(message).saturating_mul(2);
        bytes.max(packed.saturating_add(round(job.view.unit.bytes(Room::kept(job, team, call)))))
    }

    fn address(&self, start: *mut u8, offset: usize) -> *mut u8 {
        start.wrapping_add(offset)
    }
}

/// Whether a collective moves a block of each rank to all others.
fn moves_blocks(collective: Collective) -> bool {
    matches!(collective, Collective::Allgather | Collective::Alltoall)
}

fn round(bytes: usize) -> usize {
    bytes.checked_next_multiple_of(ALIGN).unwrap_or(usize::MAX)
}

/// The places of the data where nothing has to be packed.
#[inline]
fn direct(view: &View) -> Option<Places> {
    let plain = |memory: &Memory| memory.plain || view.unit.combine.is_some();
    if !view.unit.plain {
        return None;
    }
    let output = match &view.output {
        Output::Nothing | Output::InInput => std::ptr::null_mut(),
        Output::User { memory, .. } if plain(memory) => memory.start,
        Output::User { .. } | Output::Blocks { .. } => return None,
    };
    let input = match &view.input {
        Input::Nothing => std::ptr::null_mut(),
        Input::User(memory) if plain(memory) => memory.start,
        Input::User(_) => return None,
        Input::InOutput { from } => output.wrapping_offset(*from as isize * view.unit.stride),
    };
    Some(Places { input, output })
}

impl<'a> Elements<'a> {
    #[inline]
    fn new(
        world: &'a World,
        view: &View,
        call: &OwnCall<OnNodes>,
        holed: Option<Holed<'a>>,
    ) -> Elements<'a> {
        let unit: Unit = view.unit;
        let combine = unit.combine.filter(|_| unit.plain);
        Elements {
            world,
            unit,
            unit_bytes: packed_unit(view, call),
            sum: combine
                .and_then(|combine| Sum::of(world, world.types.get(unit.datatype)?, combine.op)),
            holed,
        }
    }
}
