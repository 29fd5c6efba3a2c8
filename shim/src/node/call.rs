//! One call over the nodes: its phases, and where their data lies on this rank.

use std::ffi::{c_int, c_void};

use colltune_core::algorithm::registry::InPlace;
use colltune_core::catalogue::{OnNodes, Scheduled};
use colltune_core::collective::Collective;
use colltune_core::node::act::{self, Kind};
use colltune_core::node::layout::{Cut, LINE_BYTES};

use super::elements::{Elements, Holed, Sum};
use super::pieces::{self, Blocks, Data};
use super::segment::Segment;
use super::team::Team;
use super::{Beside, Open, barrier, short};
use crate::abi;
use crate::communicator::State;
use crate::own::Call;
use crate::p2p::arguments::{Arguments, Input, Members, Memory, Output, Unit, View};
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
};

/// A call whose data is at hand.
struct Phases<'a, 'b> {
    p2p: &'a mut p2p::Beside,
    team: &'a mut Team,
    segment: Option<&'a mut Segment>,
    call: &'a Call,
    view: View,
    places: Places,
    elements: Elements<'b>,
    /// Room for a message, where a leader has no buffer of the caller's.
    sum: *mut u8,
}

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
    match run_open(tuner, &mut state.p2p, open, call, own) {
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
    let Open { team, segment } = open;
    if call.collective == Collective::Barrier {
        return Some(barrier::run(tuner, p2p, team, segment.as_mut(), call, own));
    }
    let members = team.members(p2p.channel().rank);
    let view = call
        .arguments
        .view(tuner, call.collective, call.bytes, members)?;
    if own.between.is_none()
        && let Some(places) = direct(&view)
    {
        let phases = Phases {
            p2p,
            team,
            segment: segment.as_mut(),
            call,
            view,
            places,
            elements: Elements::new(tuner, &view, call, None),
            sum: std::ptr::null_mut(),
        };
        // SAFETY: the view's buffers are the application's.
        return Some(unsafe { phases.run(own) });
    }
    let world_ranks = team.world_ranks.clone();
    let job = job(tuner, p2p, call, view, &world_ranks, team)?;
    let work = |scratch: &mut Scratch| {
        let room = Room::new(&job, call);
        if !scratch.block.reserve(room.bytes) {
            return Err(abi::MPI_ERR_NO_MEM as c_int);
        }
        let start = scratch.block.start();
        // SAFETY: there is as much room as is demanded; the buffers are the application's.
        let places = unsafe { job.bind(scratch)? };
        let spare = room.spare.map(|from| room.address(start, from));
        let holed = (!view.unit.plain).then(|| Holed {
            job: &job,
            comm: job.comm,
            spare: spare.map(|at| view.unit.first(at, room.piece)),
        });
        let phases = Phases {
            p2p,
            team,
            segment: segment.as_mut(),
            call,
            view,
            places,
            elements: Elements::new(tuner, &view, call, holed),
            sum: view.unit.first(room.address(start, room.sum), view.block),
        };
        // SAFETY: as above.
        unsafe {
            let result = phases.run(own);
            result.and(job.hand_over(&places))
        }
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
    let bytes = Room::new(&job, call).bytes;
    let demand = bytes.saturating_mul(2).saturating_add(1 << 12);
    let mut start = std::ptr::null_mut();
    let room = scratch::with(User::Node, |scratch| {
        let enough = scratch.block.reserve(demand);
        start = scratch.block.start();
        enough
    });
    let Some(between) = own.between.filter(|_| room) else {
        return room;
    };
    // Every rank may lead its node. Only lengths count, so any address will do.
    let unit0 = view.unit.first(start, view.block);
    let leading = leading(tuner, call, between, &open.team, &view, (None, unit0));
    let group = Group {
        rank: open.team.node,
        world_ranks: &open.team.leaders,
    };
    p2p::has_room_among(tuner, &mut state.p2p, group, &leading)
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
    sum: usize,
    /// Units of a piece, at most.
    piece: u64,
}

impl Room {
    fn new(job: &Job, call: &Call) -> Room {
        let unit = &job.view.unit;
        let reduces = unit.combine.is_some();
        let units = if reduces { job.view.block } else { 0 };
        let packed = packed_unit(&job.view, call);
        let piece = Cut::new(units, packed, 1).units_per_piece.min(units);
        let spare = if unit.plain {
            0
        } else {
            round(unit.bytes(piece))
        };
        let first = round(job.demand());
        let sum = first.saturating_add(spare.saturating_mul(2));
        Room {
            bytes: sum.saturating_add(round(unit.bytes(units))),
            spare: [first, first.saturating_add(spare)],
            sum,
            piece,
        }
    }

    fn address(&self, start: *mut u8, offset: usize) -> *mut u8 {
        start.wrapping_add(offset)
    }
}

fn round(bytes: usize) -> usize {
    bytes.checked_next_multiple_of(ALIGN).unwrap_or(usize::MAX)
}

/// The bytes of a packed unit: a fact that all ranks share.
#[inline]
fn packed_unit(view: &View, call: &Call) -> u64 {
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

/// The call as the leaders of nodes run it among themselves: on what their nodes have combined, or on
/// packed bytes. `data` is this rank's contribution, unless it lies in the second place already.
fn leading(
    tuner: &Tuner,
    call: &Call,
    between: Scheduled,
    team: &Team,
    view: &View,
    data: (Option<*mut u8>, *mut u8),
) -> p2p::Call {
    let root = team.node_of[view.root] as c_int;
    let (send, recv) = data;
    let in_place = abi::MPI_IN_PLACE as *const c_void;
    let arguments = match call.arguments {
        Arguments::Reduction {
            count,
            datatype,
            op,
            ..
        } => Arguments::Reduction {
            send: send.map_or(in_place, |send| send.cast_const().cast()),
            recv: recv.cast(),
            count,
            datatype,
            op,
            root,
        },
        Arguments::Bcast { .. } => Arguments::Bcast {
            buffer: recv.cast(),
            count: call.bytes as i64,
            datatype: tuner.handles.byte,
            root,
        },
        other => other,
    };
    p2p::Call {
        collective: call.collective,
        variant: call.variant,
        own: between,
        bytes: call.bytes,
        arguments,
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

impl Phases<'_, '_> {
    /// # Safety
    /// The places are those of the view's buffers, or packed copies of them.
    #[inline]
    unsafe fn run(mut self, own: OnNodes) -> Result<(), c_int> {
        let (n, bytes, units) = (self.team.n_here(), self.call.bytes, self.view.block);
        let (input, output) = (self.places.input, self.places.output);
        // SAFETY: the caller's promise is passed on.
        unsafe {
            match (self.call.collective, own.between) {
                (Collective::Allreduce, None) => {
                    self.on_node(act::allreduce(bytes, n), input, output, Blocks::One)
                }
                (Collective::Allreduce, Some(between)) => self.allreduce_between(between),
                (Collective::Reduce, None) => {
                    let root = self.team.place_of[self.view.root];
                    self.on_node(act::reduce(bytes, n, root), input, output, Blocks::One)
                }
                (Collective::Reduce, Some(between)) => self.reduce_between(between),
                (Collective::Bcast, None) => {
                    let root = self.team.place_of[self.view.root];
                    self.on_node(Kind::Bcast { root }, output, output, Blocks::One)
                }
                (Collective::Bcast, Some(between)) => self.bcast_between(between),
                (Collective::Allgather, _) => {
                    let own = self.elements.at(output, self.team.place as u64 * units);
                    std::ptr::copy(input, own, units as usize);
                    self.on_node(Kind::Exchange, input, output, Blocks::Gathered)
                }
                // No other collective has such variants.
                (_, _) => {
                    let skip = self.team.place as u64 * units;
                    let (from, to) = (
                        self.elements.at(input, skip),
                        self.elements.at(output, skip),
                    );
                    std::ptr::copy(from, to, units as usize);
                    self.on_node(Kind::Exchange, input, output, Blocks::Exchanged)
                }
            }
        }
    }

    /// # Safety
    /// As [`pieces::run`].
    #[inline]
    unsafe fn on_node(
        &mut self,
        kind: Kind,
        source: *mut u8,
        target: *mut u8,
        blocks: Blocks,
    ) -> Result<(), c_int> {
        let Some(segment) = &mut self.segment else {
            return Ok(());
        };
        let data = Data {
            source,
            target,
            units: self.view.block,
            blocks,
        };
        let copies = match blocks {
            Blocks::Exchanged => self.team.n_here(),
            _ => 1,
        };
        // SAFETY: the caller's promise is passed on.
        unsafe {
            if self.elements.bytes(data.units).saturating_mul(copies) <= LINE_BYTES {
                short::run(&self.elements, segment, kind, data)
            } else {
                pieces::run(&self.elements, segment, kind, data)
            }
        }
    }

    /// This rank leads its node; runs the call among the leaders. `root` is a rank of the
    /// communicator.
    fn among_leaders(
        &mut self,
        between: Scheduled,
        data: (Option<*mut u8>, *mut u8),
    ) -> Result<(), c_int> {
        let tuner = self.elements.tuner;
        let leading = leading(tuner, self.call, between, self.team, &self.view, data);
        let root = self.view.root;
        let node = self.team.node_of[root];
        // The root leads its node.
        let usual = self.team.leaders[node];
        if self.call.collective != Collective::Allreduce {
            self.team.leaders[node] = self.team.world_ranks[root];
        }
        let group = Group {
            rank: self.team.node,
            world_ranks: &self.team.leaders,
        };
        let result = p2p::run_among(tuner, self.p2p, group, &leading);
        self.team.leaders[node] = usual;
        // The arguments were looked at before.
        result.unwrap_or(Err(abi::MPI_ERR_NO_MEM as c_int))
    }

    unsafe fn allreduce_between(&mut self, between: Scheduled) -> Result<(), c_int> {
        let (n, bytes) = (self.team.n_here(), self.call.bytes);
        let (input, output) = (self.places.input, self.places.output);
        // SAFETY: the caller's promise is passed on.
        unsafe {
            let kind = act::reduce(bytes, n, 0);
            let mut result = self.on_node(kind, input, output, Blocks::One);
            if self.team.place == 0 {
                // A rank alone on its node has combined nothing yet.
                let alone = n == 1 && input != output;
                let send = alone.then_some(input);
                result = result.and(self.among_leaders(between, (send, output)));
            }
            let spread = Kind::Bcast { root: 0 };
            result.and(self.on_node(spread, output, output, Blocks::One))
        }
    }

    unsafe fn reduce_between(&mut self, between: Scheduled) -> Result<(), c_int> {
        let (n, bytes, root) = (self.team.n_here(), self.call.bytes, self.view.root);
        let (input, output) = (self.places.input, self.places.output);
        let leader = self.team.leader_here(root);
        let leads = leader == self.team.place;
        let is_root = leads && self.team.node_of[root] == self.team.node;
        let target = if is_root { output } else { self.sum };
        // SAFETY: the caller's promise is passed on; a leader without a buffer has room for the sum.
        let result = unsafe {
            let kind = act::reduce(bytes, n, leader);
            self.on_node(kind, input, target, Blocks::One)
        };
        if !leads {
            return result;
        }
        let data = match (is_root, n) {
            (true, 1) if input != output => (Some(input), output),
            (true, _) => (None, output),
            (false, 1) => (Some(input), target),
            (false, _) => (Some(target), std::ptr::null_mut()),
        };
        result.and(self.among_leaders(between, data))
    }

    unsafe fn bcast_between(&mut self, between: Scheduled) -> Result<(), c_int> {
        let output = self.places.output;
        let leader = self.team.leader_here(self.view.root);
        let mut result = Ok(());
        if leader == self.team.place {
            result = self.among_leaders(between, (None, output));
        }
        let kind = Kind::Bcast { root: leader };
        // SAFETY: the caller's promise is passed on.
        result.and(unsafe { self.on_node(kind, output, output, Blocks::One) })
    }
}

impl Team {
    fn members(&self, rank: usize) -> Members {
        Members {
            rank,
            n_ranks: self.node_of.len(),
        }
    }
}
