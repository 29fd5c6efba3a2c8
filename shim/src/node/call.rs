//! One call over the nodes: where its data lies on this rank, and how much room it needs.

use std::ffi::c_int;

use colltune_core::algorithm::lengths::Lengths;
use colltune_core::algorithm::program::Program;
use colltune_core::algorithm::registry::InPlace;
use colltune_core::catalogue::{Crossing, OnNodes, Scheduled};
use colltune_core::collective::Collective;
use colltune_core::node::between::{self, longest_share};
use colltune_core::node::collected::{CollectedLayout, moves_blocks};
use colltune_core::node::layout::{CELL, Cut};
use colltune_core::node::stage::spare_units;

use super::barrier;
use super::elements::{Elements, Holed};
use super::memory::{NodeMemory, Nodes};
use super::patience::{after_call, asks_after};
use super::phases::{Phases, call_of, or_give_up};
use super::segment::Segment;
use super::team::{self, Team};
use crate::abi;
use crate::arguments::{Input, Memory, Output, View};
use crate::p2p::endpoint::Endpoint;
use crate::p2p::places::{Places, ScheduledCall};
use crate::p2p::{self, Need, Schedules};
use crate::scratch::{self, ALIGN, Demand, Scratch, User};
use crate::world::World;

/// No messages: no program says what a node does.
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
    (schedules, node): (&mut Schedules, &mut NodeMemory),
    own: OnNodes,
    view: &View,
) -> Result<(), c_int> {
    schedules.count_call();
    let NodeMemory::Open(nodes) = node else {
        unreachable!("a variant runs only after `open` said so");
    };
    let result = run_open(world, schedules, nodes, own, view);
    let always = asks_after(own, view.collective, view.bytes);
    after_call(world, schedules, always);
    result
}

#[inline]
fn run_open(
    world: &World,
    schedules: &mut Schedules,
    nodes: &mut Nodes,
    own: OnNodes,
    view: &View,
) -> Result<(), c_int> {
    let begun = nodes.segment.as_ref().map(|segment| segment.begin(world));
    let under_way = begun.transpose()?;
    let result = run_begun(world, schedules, nodes, own, view);
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
    own: OnNodes,
    view: &View,
) -> Result<(), c_int> {
    let Nodes {
        team,
        segment,
        bridges,
        ..
    } = nodes;
    if view.collective == Collective::Barrier {
        let over = (&*team, &*bridges);
        return barrier::run(world, schedules, over, segment.as_mut(), own, view);
    }
    let stays = matches!(own, OnNodes::Alone | OnNodes::Reading);
    if stays && let Some(places) = direct(view) {
        let phases = Phases {
            schedules,
            team,
            bridges,
            segment: segment.as_mut(),
            own,
            view,
            places,
            elements: Elements::new(world, view, None),
            between: None,
            spare: std::ptr::null_mut(),
        };
        // SAFETY: the view's buffers are the application's.
        return unsafe { phases.run() };
    }
    let world_ranks = team.reach.world_ranks.clone();
    let endpoint = Endpoint::new(world, schedules.tag())?;
    let call = call(endpoint, view, &world_ranks);
    let work = |scratch: &mut Scratch| {
        let room = NodeRoom::new(&call, team, own);
        let reserved = match scratch.block.provide(room.bytes) {
            true => Ok(()),
            false => Err(abi::MPI_ERR_NO_MEM as c_int),
        };
        or_give_up(segment.as_ref(), reserved)?;
        let start = scratch.block.start();
        // SAFETY: there is as much room as is demanded; the buffers are the application's.
        let places = or_give_up(segment.as_ref(), unsafe { call.bind(scratch) })?;
        let at = |offset, units| view.unit.first(start.wrapping_add(offset), units);
        let holed = (!view.unit.plain).then(|| Holed {
            endpoint,
            spare: room.spare.map(|from| at(from, room.piece)),
        });
        let phases = Phases {
            schedules,
            team,
            bridges,
            segment: segment.as_mut(),
            own,
            view,
            places,
            elements: Elements::new(world, view, holed),
            between: Some((endpoint, &mut scratch.requests, &mut scratch.before)),
            spare: at(room.message, room.units),
        };
        // SAFETY: places were bound to the application's buffers and to room as long as the call demands; `phases`
        // works on these alone, and the result is handed over from where it left it.
        let result = unsafe {
            let result = phases.run();
            result.and(call.hand_over(&places))
        };
        if result.is_err() && !stays {
            // The library may still be reading it for messages under way.
            scratch.block.abandon();
        }
        result
    };
    scratch::with(User::Node, work)
}

/// Makes room on this rank for the call, and for any other of its size class. `None` where there is none; else what of
/// it depends on the root.
#[cold]
pub fn has_room(
    world: &World,
    (schedules, node): (&mut Schedules, &NodeMemory),
    own: OnNodes,
    view: &View,
) -> Option<Need> {
    let NodeMemory::Open(nodes) = node else {
        return None;
    };
    let team = &nodes.team;
    if view.collective == Collective::Barrier {
        return barrier::has_room(world, schedules, team, own);
    }
    if own == OnNodes::Reading && !nodes.segment.as_ref().is_some_and(Segment::can_read) {
        return None;
    }
    let endpoint = Endpoint::new(world, schedules.tag()).ok()?;
    let call = call(endpoint, view, &team.reach.world_ranks);
    let layout = collected(team, own, view);
    if layout.is_some_and(|layout| !layout.is_modest()) {
        return None;
    }
    let demand = Demand {
        bytes: NodeRoom::in_class(&call, team, own),
        requests: match own {
            OnNodes::Direct(_) => messages_most(team),
            _ => 0,
        },
        temporaries: 0,
    };
    if !schedules.has_room(User::Node, demand) {
        return None;
    }
    match across(team, own, view) {
        Some((schedule, part)) => p2p::has_room(world, schedules, schedule, &part),
        None => Some(Need::default()),
    }
}

/// Compiles what a call that is ready lacks still of its schedule between the nodes.
pub fn compile((schedules, node): (&mut Schedules, &NodeMemory), own: OnNodes, view: &View) {
    let NodeMemory::Open(nodes) = node else {
        return;
    };
    if let Some((schedule, part)) = across(&nodes.team, own, view) {
        schedules.compile(schedule, &part);
    }
}

/// The schedule in which this rank may meet other nodes, and its part of a call that moves data.
fn across(team: &Team, own: OnNodes, view: &View) -> Option<(Scheduled, View)> {
    let Some(Crossing::Schedule(schedule)) = own.crossing() else {
        return None;
    };
    let block = match (collected(team, own, view), own) {
        _ if view.collective == Collective::Barrier => return None,
        (Some(layout), _) => layout.between(),
        (_, OnNodes::Lanes(_)) if team.reach.lane.is_empty() => return None,
        (_, OnNodes::Lanes(_)) => longest_share(view.block, team.map.lanes),
        _ => view.block,
    };
    // Only lengths count, so any address will do.
    let start = scratch::with(User::Node, |scratch| scratch.block.start());
    let any = view.unit.first(start, block);
    let data = match view.collective {
        Collective::Reduce => (Some(any), any),
        _ => (None, any),
    };
    Some((schedule, team::part(&team.map, view, block, data)))
}

/// How blocks lie on this node's leader, where they go over leaders.
fn collected(team: &Team, own: OnNodes, view: &View) -> Option<CollectedLayout> {
    let collects = matches!(own, OnNodes::Leaders(_)) && moves_blocks(view.collective);
    collects.then(|| CollectedLayout::new(&team.map, view.collective, view.block))
}

/// Messages that a rank has under way at once, at most, where blocks go straight to where they are wanted.
fn messages_most(team: &Team) -> usize {
    let all = team.map.node_of.len();
    let (others, here) = (team.map.nodes.len() - 1, team.n_here());
    let sends = between::messages_most(here, all).saturating_mul(others);
    sends.saturating_add(between::messages_most(all, all) * 2)
}

fn call<'a>(endpoint: Endpoint<'a>, view: &'a View, world_ranks: &'a [c_int]) -> ScheduledCall<'a> {
    let blocks = match moves_blocks(view.collective) {
        true => world_ranks.len() as u32,
        false => 1,
    };
    ScheduledCall {
        endpoint,
        world_ranks,
        program: &NOTHING,
        view,
        lengths: Lengths::new(view.block, 1, blocks),
        in_place: InPlace::Shared,
        has_own_counts: view.has_own_counts(),
    }
}

/// What a rank needs beside the caller's buffers: offsets in one piece of memory.
struct NodeRoom {
    bytes: usize,
    spare: [usize; 2],
    /// A message, or two, or the input of a call in place that is overwritten while it is sent.
    message: usize,
    units: u64,
    /// Units of a piece, at most.
    piece: u64,
}

impl NodeRoom {
    /// Units that a rank needs beside its buffers.
    fn spare(view: &View, team: &Team, own: OnNodes) -> u64 {
        spare_units(&call_of(view, own, false), &team.map)
    }

    fn new(call: &ScheduledCall, team: &Team, own: OnNodes) -> NodeRoom {
        let (view, unit) = (call.view, &call.view.unit);
        let reduces = unit.combine.is_some();
        let units = NodeRoom::spare(view, team, own);
        let all = if reduces { view.block } else { 0 };
        let piece = Cut::new(all, view.unit_bytes(), 1).units_per_piece.min(all);
        let spare = if unit.plain {
            0
        } else {
            round(unit.bytes(piece))
        };
        let first = round(call.demand());
        let message = first.saturating_add(spare.saturating_mul(2));
        NodeRoom {
            bytes: message.saturating_add(round(unit.bytes(units))),
            spare: [first, first.saturating_add(spare)],
            message,
            units,
            piece,
        }
    }

    /// As many bytes as any call needs whose message is as long: whether elements have to be packed on
    /// this rank or not, whoever is the root, and of pairs, whose holes take less room than they do, too.
    fn in_class(call: &ScheduledCall, team: &Team, own: OnNodes) -> usize {
        let (view, unit) = (call.view, &call.view.unit);
        let bytes = NodeRoom::new(call, team, own).bytes;
        if unit.combine.is_some() {
            let at_root = match view.collective {
                Collective::Reduce => round(unit.bytes(view.block)).saturating_mul(2),
                _ => 0,
            };
            let bytes = bytes.saturating_add(at_root);
            return bytes.saturating_mul(2).saturating_add(4 * CELL);
        }
        let blocks = match view.collective {
            Collective::Bcast => 1,
            _ => view.members.n_ranks as u64,
        };
        let message = unit.bytes(view.block.saturating_mul(blocks));
        let packed = round(message).saturating_mul(2);
        bytes.max(packed.saturating_add(round(unit.bytes(NodeRoom::spare(view, team, own)))))
    }
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
        Input::User(_) | Input::Blocks(_) => return None,
        Input::InOutput { from } => view.unit.at(output, *from),
    };
    Some(Places { input, output })
}
