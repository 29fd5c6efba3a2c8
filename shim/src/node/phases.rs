//! The phases of one call over the nodes: inside each node, between them, and inside again.

use std::ffi::c_int;

use colltune_core::catalogue::{Crossing, OnNodes, Scheduled};
use colltune_core::collective::Collective;
use colltune_core::node::act::{self, Kind};
use colltune_core::node::layout::LINE_BYTES;

use super::bridges::Bridges;
use super::elements::Elements;
use super::pieces::{self, Blocks, PhaseData};
use super::segment::Segment;
use super::short;
use super::team::Team;
use super::transfers::Transfers;
use crate::abi::Request;
use crate::arguments::View;
use crate::p2p::endpoint::Endpoint;
use crate::p2p::places::Places;
use crate::p2p::{self, Schedules};
use crate::world::World;

/// A call whose data is at hand.
pub struct Phases<'a, 'b> {
    pub schedules: &'a mut Schedules,
    pub team: &'a mut Team,
    pub bridges: &'a Bridges,
    pub segment: Option<&'a mut Segment>,
    pub own: OnNodes,
    pub view: &'a View,
    pub places: Places,
    pub elements: Elements<'b>,
    /// What messages between nodes need.
    pub between: Option<(Endpoint<'b>, &'a mut Vec<Request>, &'a mut Vec<u64>)>,
    /// Room for a message, where a rank has no buffer of the caller's for what it carries, and behind it for the
    /// result of the library's reduce; or for the input of an alltoall in place.
    pub spare: *mut u8,
}

/// From so many bytes on what happens inside the nodes and between them is interleaved.
const OVERLAPPED_ABOVE: u64 = 8 << 10;

/// Some ranks, one of each node.
#[derive(Clone, Copy)]
pub enum Across {
    /// One of each node, where the root of the call leads its own.
    Leaders { root: usize },
    /// Those in this rank's place.
    Lane,
}

impl Phases<'_, '_> {
    /// # Safety
    /// The places are those of the view's buffers, or packed copies of them.
    #[inline]
    pub unsafe fn run(mut self) -> Result<(), c_int> {
        // SAFETY: the places are the view's buffers or packed copies of them, as the caller promises: as long as each
        // way of the collective asks for.
        unsafe {
            match self.own {
                OnNodes::Alone => self.alone(),
                OnNodes::Reading => self.by_reading(),
                OnNodes::Leaders(crossing) => self.by_leaders(crossing),
                OnNodes::Lanes(crossing) => self.by_lanes(crossing, self.team.lanes),
                OnNodes::Direct(carriers) => match self.view.collective {
                    Collective::Allgather => self.allgather_direct(carriers),
                    _ => self.alltoall_direct(),
                },
            }
        }
    }

    unsafe fn by_leaders(&mut self, crossing: Crossing) -> Result<(), c_int> {
        // SAFETY: by the promise to `Phases::run` the places are the view's buffers or packed copies of them.
        unsafe {
            match (crossing, self.view.collective) {
                (_, Collective::Allgather) => self.allgather_by_leaders(crossing),
                (_, Collective::Alltoall) => self.alltoall_by_leaders(crossing),
                // Alike on all ranks.
                (Crossing::Schedule(between), _) if self.view.bytes > OVERLAPPED_ABOVE => {
                    self.overlapped(between)
                }
                (Crossing::Schedule(_), Collective::Reduce) => self.reduce_by_leaders(crossing),
                (Crossing::Schedule(_), Collective::Bcast) => self.bcast_by_leaders(crossing),
                // The library knows no other leaders in a call with another root.
                _ => self.by_lanes(crossing, 1),
            }
        }
    }

    #[inline]
    pub(super) unsafe fn alone(&mut self) -> Result<(), c_int> {
        let (n, bytes) = (self.team.n_here(), self.view.bytes);
        let (input, output) = (self.places.input, self.places.output);
        let root = self.team.place_of[self.view.root];
        // SAFETY: by the promise to `Phases::run` the places are the view's buffers or packed copies of them, as long
        // as the collective's.
        unsafe {
            match self.view.collective {
                Collective::Allreduce => {
                    self.on_node(act::allreduce(bytes, n), input, output, Blocks::One)
                }
                Collective::Reduce => {
                    let kind = act::reduce(bytes, n, root);
                    self.on_node(kind, input, output, Blocks::One)
                }
                Collective::Bcast => {
                    self.on_node(Kind::Bcast { root }, output, output, Blocks::One)
                }
                Collective::Allgather => self.gather_here(),
                // No other collective has such variants.
                _ => self.exchange_here(input),
            }
        }
    }

    /// Every rank of the node gets the blocks of all the others there.
    #[inline]
    pub(super) unsafe fn gather_here(&mut self) -> Result<(), c_int> {
        let (input, output) = (self.places.input, self.places.output);
        let rank = self.team.here[self.team.place];
        let own = self.elements.at(output, rank as u64 * self.view.block);
        let data = PhaseData {
            source: input,
            target: output,
            units: self.view.block,
            blocks: Blocks::Gathered(&self.team.own_blocks),
        };
        let givers = self.team.n_here();
        let kind = Kind::Exchange { givers };
        // SAFETY: by the promise to `Phases::run` the places are the view's buffers or packed copies of them: an
        // allgather's input is a block, which has its place in the output.
        unsafe {
            std::ptr::copy(input, own, self.view.block as usize);
            phase(&self.elements, &mut self.segment, kind, data, None)
        }
    }

    /// Every rank of the node gets what all the others there have for it.
    #[inline]
    pub(super) unsafe fn exchange_here(&mut self, input: *mut u8) -> Result<(), c_int> {
        let (units, output) = (self.view.block, self.places.output);
        let skip = self.team.here[self.team.place] as u64 * units;
        let own = self.elements.at(output, skip);
        let data = PhaseData {
            source: input,
            target: output,
            units,
            blocks: Blocks::Exchanged(&self.team.here),
        };
        let givers = self.team.n_here();
        let kind = Kind::Exchange { givers };
        // SAFETY: by the promise to `Phases::run` the places are the view's buffers or packed copies of them: an
        // alltoall's input and output have a block for each rank.
        unsafe {
            std::ptr::copy(self.elements.at(input, skip), own, units as usize);
            phase(&self.elements, &mut self.segment, kind, data, None)
        }
    }

    /// Runs a phase on messages, or on shares of them.
    ///
    /// # Safety
    /// As [`pieces::run`].
    #[inline]
    pub(super) unsafe fn on_node(
        &mut self,
        kind: Kind,
        source: *mut u8,
        target: *mut u8,
        blocks: Blocks<'static>,
    ) -> Result<(), c_int> {
        let data = PhaseData {
            source,
            target,
            units: self.view.block,
            blocks,
        };
        // SAFETY: the caller promises buffers as long as the phase's kind says.
        unsafe { phase(&self.elements, &mut self.segment, kind, data, None) }
    }

    /// Runs a part of the call among ranks of which this is one. In a schedule the root leads its node. After an
    /// error the node knows that this rank cannot go on, and gets nothing more from it.
    ///
    /// # Safety
    /// The part's buffers are valid.
    pub(super) unsafe fn across(
        &mut self,
        across: Across,
        crossing: Crossing,
        part: &View,
    ) -> Result<(), c_int> {
        let (world, segment) = (self.elements.world, self.segment.as_deref());
        let between = match crossing {
            Crossing::Schedule(between) => between,
            Crossing::Library => {
                // What a rank of the node could not combine is not sent.
                segment.map_or(Ok(()), Segment::is_sound)?;
                // SAFETY: the caller promises valid buffers.
                let result = unsafe { self.bridges.run(world, part) };
                return or_give_up(segment, result);
            }
        };
        let ranks = (&mut *self.team, across, segment);
        across_nodes(self.schedules, ranks, world, (between, part), &mut ())
    }

    /// The part of a message that so many units are.
    pub(super) fn part(&self, units: u64, data: (Option<*mut u8>, *mut u8)) -> View {
        self.team.part(self.view, units, data)
    }

    unsafe fn reduce_by_leaders(&mut self, crossing: Crossing) -> Result<(), c_int> {
        let (n, bytes, root) = (self.team.n_here(), self.view.bytes, self.view.root);
        let (input, output) = (self.places.input, self.places.output);
        let leader = self.team.leader_here(root);
        let leads = leader == self.team.place;
        let is_root = leads && self.team.node_of[root] == self.team.node;
        let target = if is_root { output } else { self.spare };
        // SAFETY: by the promise to `Phases::run` the places are the view's buffers or packed copies of them; a leader
        // without a buffer has room for the sum.
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
        let part = self.part(self.view.block, data);
        let leaders = Across::Leaders { root };
        // SAFETY: by the promise to `Phases::run` and of the room for the sum both places hold the message.
        result.and(unsafe { self.across(leaders, crossing, &part) })
    }

    unsafe fn bcast_by_leaders(&mut self, crossing: Crossing) -> Result<(), c_int> {
        let output = self.places.output;
        let leader = self.team.leader_here(self.view.root);
        let kind = Kind::Bcast { root: leader };
        // SAFETY: by the promise to `Phases::run` the places are the view's buffers or packed copies of them: a bcast
        // has its message, or room for it, in the output.
        unsafe {
            if leader == self.team.place {
                let part = self.part(self.view.block, (None, output));
                let root = self.view.root;
                let leaders = Across::Leaders { root };
                self.across(leaders, crossing, &part)?;
            }
            self.on_node(kind, output, output, Blocks::One)
        }
    }
}

/// Runs a part of the call in a schedule, among ranks of which this is one. The root leads its node.
pub(super) fn across_nodes(
    schedules: &mut Schedules,
    (team, across, segment): (&mut Team, Across, Option<&Segment>),
    world: &World,
    (between, part): (Scheduled, &View),
    watch: &mut impl p2p::Overlap,
) -> Result<(), c_int> {
    // What a rank of the node could not combine is not sent.
    segment.map_or(Ok(()), Segment::is_sound)?;
    let usual = team.leaders[part.root];
    let world_ranks = match across {
        Across::Leaders { root } => {
            team.leaders[part.root] = team.world_ranks[root];
            &team.leaders
        }
        Across::Lane => &team.lane,
    };
    let result = p2p::run_among(world, schedules, world_ranks, between, part, watch);
    team.leaders[part.root] = usual;
    or_give_up(segment, result)
}

/// Lets the node know of an error that keeps this rank from giving it what it waits for.
#[inline]
pub(super) fn or_give_up<T>(
    segment: Option<&Segment>,
    result: Result<T, c_int>,
) -> Result<T, c_int> {
    if let (Some(segment), Err(code)) = (segment, &result) {
        segment.give_up(*code);
    }
    result
}

/// Runs a phase on this rank's node; nothing where it is alone there, but for what comes from others.
///
/// # Safety
/// As [`pieces::run`].
#[inline]
pub(super) unsafe fn phase(
    elements: &Elements,
    segment: &mut Option<&mut Segment>,
    kind: Kind,
    data: PhaseData,
    arriving: Option<&mut Transfers>,
) -> Result<(), c_int> {
    let Some(segment) = segment else {
        return Ok(());
    };
    let copies = match data.blocks {
        Blocks::Exchanged(here) => here.len(),
        _ => 1,
    };
    let is_short = elements.bytes(data.units).saturating_mul(copies) <= LINE_BYTES;
    // SAFETY: the caller promises buffers as long as the phase's kind says.
    unsafe {
        if is_short && arriving.is_none() && data.blocks.are_single() {
            short::run(elements, segment, kind, data)
        } else {
            pieces::run(elements, segment, kind, data, arriving)
        }
    }
}
