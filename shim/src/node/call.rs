//! One call over the nodes: where its data lies on this rank, and how much room it needs.

use std::ffi::{c_int, c_void};

use colltune_core::algorithm::registry::InPlace;
use colltune_core::catalogue::{Crossing, OnNodes, Scheduled};
use colltune_core::collective::Collective;
use colltune_core::node::between::longest_share;
use colltune_core::node::layout::{CELL, Cut};

use super::collect::Layout;
use super::elements::{Elements, Holed, Sum};
use super::patience::{after_call, asks_after};
use super::phases::{Between, Phases, or_give_up};
use super::segment::Segment;
use super::team::Team;
use super::transfers;
use super::{Beside, Open, barrier};
use crate::abi;
use crate::communicator::State;
use crate::own::Call;
use crate::p2p::arguments::{Arguments, Input, Memory, Output, Unit, View};
use crate::p2p::lengths::Lengths;
use crate::p2p::places::{Job, Places};
use crate::p2p::program::Program;
use crate::p2p::scratch::{self, ALIGN, Scratch, User};
use crate::p2p::{self, Group};
use crate::private;
use crate::tune::Tuner;

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
    tuner: &Tuner,
    state: &mut State,
    call: &Call,
    own: OnNodes,
    default: impl Fn() -> c_int,
) -> c_int {
    state.p2p.count_call();
    let Beside::Open(open) = &mut state.node else {
        unreachable!("a variant runs only after `ready` said so");
    };
    let result = run_open(tuner, &mut state.p2p, open, call, own);
    let always = asks_after(own, call.collective, call.bytes);
    after_call(tuner, &state.p2p, always);
    match result {
        None => default(),
        Some(Ok(())) => abi::SUCCESS,
        Some(Err(code)) => private::report(tuner, state.comm, code),
    }
}

#[inline]
fn run_open(
    tuner: &Tuner,
    p2p: &mut p2p::Beside,
    open: &mut Open,
    call: &Call,
    own: OnNodes,
) -> Option<Result<(), c_int>> {
    let Open {
        team,
        segment,
        bridges,
    } = open;
    if let Some(segment) = segment
        && let Err(class) = segment.is_sound()
    {
        return Some(Err(class));
    }
    if call.collective == Collective::Barrier {
        let over = (&*team, &*bridges);
        return Some(barrier::run(tuner, p2p, over, segment.as_mut(), call, own));
    }
    let members = team.members(p2p.channel().rank);
    let view = call
        .arguments
        .view(tuner, call.collective, call.bytes, members)?;
    if matches!(own, OnNodes::Alone | OnNodes::Reading)
        && let Some(places) = direct(&view)
    {
        let phases = Phases {
            p2p,
            team,
            bridges,
            segment: segment.as_mut(),
            call,
            view,
            places,
            elements: Elements::new(tuner, &view, call, None),
            between: Between::default(),
            spare: std::ptr::null_mut(),
        };
        // SAFETY: the view's buffers are the application's.
        return Some(unsafe { phases.run(own) });
    }
    let world_ranks = team.world_ranks.clone();
    let job = job(tuner, p2p, call, view, &world_ranks, team)?;
    let work = |scratch: &mut Scratch| {
        let room = Room::new(&job, team, call, own);
        let reserved = match scratch.block.reserve(room.bytes) {
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
            p2p,
            team,
            bridges,
            segment: segment.as_mut(),
            call,
            view,
            places,
            elements: Elements::new(tuner, &view, call, holed),
            between: Between {
                carrier: Some((job.comm, job.tag)),
                requests: Some(&mut scratch.requests),
                before: Some(&mut scratch.before),
            },
            spare: view
                .unit
                .first(room.address(start, room.message), room.units),
        };
        // SAFETY: as above.
        let result = unsafe {
            let result = phases.run(own);
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
pub fn has_room(tuner: &Tuner, state: &mut State, call: &Call, own: OnNodes) -> bool {
    let Beside::Open(open) = &mut state.node else {
        return false;
    };
    if call.collective == Collective::Barrier {
        return barrier::has_room(tuner, &mut state.p2p, &open.team, call, own);
    }
    if own == OnNodes::Reading && !open.segment.as_ref().is_some_and(Segment::can_read) {
        return false;
    }
    let members = open.team.members(state.p2p.channel().rank);
    let view = call
        .arguments
        .view(tuner, call.collective, call.bytes, members);
    // Wrong arguments are no want of room: the library will report them.
    let Some(view) = view else { return true };
    let world_ranks = open.team.world_ranks.clone();
    let Some(job) = job(tuner, &state.p2p, call, view, &world_ranks, &open.team) else {
        return false;
    };
    let layout = (moves_blocks(call.collective) && matches!(own, OnNodes::Leaders(_)))
        .then(|| Layout::new(&open.team, call.collective, view.block));
    if layout.is_some_and(|layout| !layout.is_modest()) {
        return false;
    }
    let bytes = Room::in_class(&job, &open.team, call, own);
    let demand = bytes.saturating_mul(2).saturating_add(1 << 12);
    let most = messages_most(&open.team);
    let mut start = std::ptr::null_mut();
    let room = scratch::with(User::Node, |scratch| {
        let enough = scratch.block.reserve(demand);
        start = scratch.block.start();
        enough
            && (!matches!(own, OnNodes::Direct(_))
                || (scratch.requests.try_reserve(most).is_ok()
                    && scratch.before.try_reserve(most).is_ok()))
    });
    if !room {
        return false;
    }
    // The root leads its node, so any rank of a node may. Only lengths count, so any address will do.
    let unit0 = view.unit.first(start, view.block);
    let root = open.team.node_of[view.root];
    let Some(Crossing::Schedule(between)) = own.crossing() else {
        return true;
    };
    let rank = open.team.node;
    if let Some(layout) = layout {
        let call = layout.scheduled(tuner, call, between, (None, start));
        let world_ranks = &open.team.leaders;
        return p2p::has_room_among(tuner, &mut state.p2p, Group { rank, world_ranks }, &call);
    }
    let (group, units) = match own {
        OnNodes::Lanes(_) if open.team.lane.is_empty() => return true,
        OnNodes::Lanes(_) => {
            let longest = longest_share(view.block, open.team.lanes);
            (&open.team.lane, longest)
        }
        _ => (&open.team.leaders, view.block),
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
    let call = part.scheduled(tuner, call, between, data);
    p2p::has_room_among(tuner, &mut state.p2p, group, &call)
}

/// Messages that a rank has under way at once, at most, where blocks go straight to where they are wanted.
fn messages_most(team: &Team) -> usize {
    let all = team.node_of.len();
    let (others, here) = (team.nodes.len() - 1, team.n_here());
    let sends = transfers::most(here, all).saturating_mul(others);
    sends.saturating_add(transfers::most(all, all) * 2)
}

fn job<'a>(
    tuner: &'a Tuner,
    p2p: &p2p::Beside,
    call: &Call,
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
        tuner,
        comm: tuner.p2p.comm()?,
        tag: p2p.tag(),
        world_ranks,
        members: team.members(p2p.channel().rank),
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
    fn kept(job: &Job, team: &Team, call: &Call, own: OnNodes) -> u64 {
        match own {
            OnNodes::Direct(_) if call.collective == Collective::Alltoall => job.view.input_units,
            OnNodes::Leaders(_) if moves_blocks(call.collective) => {
                Layout::new(team, call.collective, job.view.block).room()
            }
            _ => 0,
        }
    }

    fn new(job: &Job, team: &Team, call: &Call, own: OnNodes) -> Room {
        let unit = &job.view.unit;
        let reduces = unit.combine.is_some();
        let units = match (own.crossing(), call.collective) {
            // What the node has combined, and the result.
            (Some(Crossing::Library(_)), Collective::Reduce) => job.view.block.saturating_mul(2),
            (Some(_), _) if reduces => job.view.block,
            _ => Room::kept(job, team, call, own),
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
    fn in_class(job: &Job, team: &Team, call: &Call, own: OnNodes) -> usize {
        let bytes = Room::new(job, team, call, own).bytes;
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
        bytes.max(
            packed.saturating_add(round(job.view.unit.bytes(Room::kept(job, team, call, own)))),
        )
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

/// The bytes of a packed unit: a fact that all ranks share.
#[inline]
pub fn packed_unit(view: &View, call: &Call) -> u64 {
    match view.unit.combine {
        Some(_) if view.block > 0 => call.bytes / view.block,
        _ => 1,
    }
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

/// What some ranks, one of each node, do together with a part of the message.
pub struct Part {
    /// A place in their list.
    pub root: usize,
    pub bytes: u64,
    pub units: u64,
}

impl Part {
    /// The arguments with which they run it: on what their nodes have combined, or on packed bytes. `data` is
    /// this rank's contribution, unless it lies in the second place already, and the place of the result.
    pub fn arguments(
        &self,
        tuner: &Tuner,
        call: &Call,
        (send, recv): (Option<*mut u8>, *mut u8),
    ) -> Arguments {
        let root = self.root as c_int;
        let in_place = abi::MPI_IN_PLACE as *const c_void;
        match call.arguments {
            Arguments::Reduction { datatype, op, .. } => Arguments::Reduction {
                send: send.map_or(in_place, |send| send.cast_const().cast()),
                recv: recv.cast(),
                count: self.units as i64,
                datatype,
                op,
                root,
            },
            Arguments::Bcast { .. } => Arguments::Bcast {
                buffer: recv.cast(),
                count: self.bytes as i64,
                datatype: tuner.handles.byte,
                root,
            },
            other => other,
        }
    }

    /// The same as a call of a schedule.
    pub fn scheduled(
        &self,
        tuner: &Tuner,
        call: &Call,
        between: Scheduled,
        data: (Option<*mut u8>, *mut u8),
    ) -> p2p::Call {
        p2p::Call {
            collective: call.collective,
            variant: call.variant,
            own: between,
            bytes: self.bytes,
            arguments: self.arguments(tuner, call, data),
        }
    }
}

impl<'a> Elements<'a> {
    #[inline]
    fn new(tuner: &'a Tuner, view: &View, call: &Call, holed: Option<Holed<'a>>) -> Elements<'a> {
        let unit: Unit = view.unit;
        let combine = unit.combine.filter(|_| unit.plain);
        Elements {
            tuner,
            unit,
            unit_bytes: packed_unit(view, call),
            sum: combine
                .and_then(|combine| Sum::of(tuner, tuner.types.get(unit.datatype)?, combine.op)),
            holed,
        }
    }
}
