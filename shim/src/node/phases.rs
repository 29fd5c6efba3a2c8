//! The phases of one call over the nodes: inside each node, between them, and inside again.

use std::ffi::c_int;

use colltune_core::catalogue::{Crossing, OnNodes, Scheduled};
use colltune_core::node::collected::moves_blocks;
use colltune_core::node::overlap::OVERLAPPED_ABOVE;
use colltune_core::node::phase::Phase;
use colltune_core::node::stage::{Among, Call, Inside, OUTPUT, Stage, stages};

use super::bases::Bases;
use super::bridges::Bridges;
use super::elements::Elements;
use super::pieces::RunningPhase;
use super::segment::Segment;
use super::short;
use super::team::{Reach, Team};
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
    /// Room for a message where the caller gave this rank no buffer for it, and behind it for the result of the
    /// library's reduce; or room for the input of an alltoall in place.
    pub spare: *mut u8,
}

impl Phases<'_, '_> {
    /// # Safety
    /// The places are those of the view's buffers, or packed copies of them.
    #[inline]
    pub unsafe fn run(mut self) -> Result<(), c_int> {
        // SAFETY: the places are the view's buffers or packed copies of them, as the caller promises: as long as each
        // way of the collective asks for.
        unsafe {
            match (self.own, self.view.collective) {
                (OnNodes::Reading, _) => self.by_reading(),
                // Alike on all ranks.
                (OnNodes::Leaders(Crossing::Schedule(between)), collective)
                    if self.view.bytes > OVERLAPPED_ABOVE && !moves_blocks(collective) =>
                {
                    self.overlapped(between)
                }
                (own, _) => self.in_stages(own),
            }
        }
    }

    /// What the stages of the call depend on.
    #[inline]
    pub(super) fn call(&self, own: OnNodes) -> Call {
        call_of(self.view, own, self.places.input == self.places.output)
    }

    /// Runs the stages of the call. After an error inside the node the rank goes on, so that no other waits for it
    /// for ever; after one between the nodes the node knows that it cannot.
    ///
    /// # Safety
    /// As [`Phases::run`].
    #[inline]
    pub(super) unsafe fn in_stages(&mut self, own: OnNodes) -> Result<(), c_int> {
        let call = self.call(own);
        let base = self.bases();
        let Phases {
            schedules,
            team,
            bridges,
            segment,
            view,
            elements,
            between,
            ..
        } = self;
        let Team { map, reach, .. } = &mut **team;
        let (map, elements) = (&*map, &*elements);
        let mut transfers = match (own, between.take()) {
            (OnNodes::Direct(_), Some((endpoint, requests, before))) => {
                let total = view.block * map.n_ranks() as u64;
                let lengths = (view.block, total);
                Some(Transfers::new(endpoint, lengths, (requests, before)))
            }
            _ => None,
        };
        let mut result = Ok(());
        let ended = stages(&call, map, &mut |stage| {
            let step = match (stage, &mut transfers) {
                // SAFETY: by the promise to `Phases::run` the places are the view's buffers or packed copies of them,
                // and the spare room is as long as `spare_units` says: whole collectives over the nodes are checked to
                // stay within (`colltune_core::node`).
                (Stage::Inside(inside), transfers) => unsafe {
                    let arriving = transfers.as_mut().filter(|_| inside.arriving);
                    phase(elements, segment, (&inside, &base), arriving)
                },
                // SAFETY: `from` and `to` are places of this call, valid by the promise to `Phases::run`; the same
                // checker keeps `units` within them.
                (Stage::Copy { from, to, units }, _) => unsafe {
                    elements.copy(base.at(elements, from), units, base.at(elements, to))
                },
                (Stage::Across(across), _) => {
                    let part = base.part(elements, (map, view), &across);
                    let ranks = (&mut *reach, across.among, view.root);
                    let node = (elements.world, segment.as_deref());
                    // SAFETY: the part's buffers are places of this call, valid by the promise to `Phases::run`.
                    let crossed = unsafe {
                        let crossing = own.crossing();
                        meet(node, (schedules, bridges), ranks, (crossing, &part))
                    };
                    if crossed.is_err() {
                        return result.and(crossed);
                    }
                    Ok(())
                }
                // SAFETY: the output has a place for each block, and is the call's until its end; the checker holds
                // that it is left alone there until `Finish`.
                (Stage::Receive { blocks, from }, Some(transfers)) => unsafe {
                    let output = base.at(elements, OUTPUT);
                    transfers.receive(output, blocks, reach.world_ranks[from]);
                    Ok(())
                },
                // SAFETY: the same of the blocks that are sent.
                (Stage::Send { from, blocks, to }, Some(transfers)) => unsafe {
                    let start = base.at(elements, from);
                    transfers.send(start, blocks, reach.world_ranks[to]);
                    Ok(())
                },
                (Stage::Finish, Some(transfers)) => {
                    or_give_up(segment.as_deref(), transfers.finish())
                }
                (Stage::Receive { .. } | Stage::Send { .. } | Stage::Finish, None) => {
                    unreachable!("messages have room where blocks go straight to other nodes")
                }
            };
            result = result.and(step);
            Ok(())
        });
        ended.and(result)
    }

    #[inline]
    pub(super) fn bases(&self) -> Bases {
        Bases::new(self.places, self.spare)
    }
}

/// What the stages of a call depend on.
pub(super) fn call_of(view: &View, own: OnNodes, in_place: bool) -> Call {
    Call {
        collective: view.collective,
        own,
        bytes: view.bytes,
        block: view.block,
        root: view.root,
        in_place,
    }
}

/// Runs a part of the call among ranks of which this is one. After an error the node knows that this rank cannot go
/// on, and gets nothing more from it.
///
/// # Safety
/// The part's buffers are valid.
unsafe fn meet(
    (world, segment): (&World, Option<&Segment>),
    (schedules, bridges): (&mut Schedules, &Bridges),
    ranks: (&mut Reach, Among, usize),
    (crossing, part): (Option<Crossing>, &View),
) -> Result<(), c_int> {
    if let Some(Crossing::Schedule(between)) = crossing {
        return across_nodes((world, segment), schedules, ranks, (between, part), &mut ());
    }
    // What a rank of the node could not combine is not sent.
    segment.map_or(Ok(()), Segment::is_sound)?;
    // SAFETY: the caller promises valid buffers.
    let result = unsafe { bridges.run(world, part) };
    or_give_up(segment, result)
}

/// Runs a part of the call in a schedule, among ranks of which this is one. The root leads its node.
pub(super) fn across_nodes(
    (world, segment): (&World, Option<&Segment>),
    schedules: &mut Schedules,
    (reach, among, root): (&mut Reach, Among, usize),
    (between, part): (Scheduled, &View),
    watch: &mut impl p2p::Overlap,
) -> Result<(), c_int> {
    // What a rank of the node could not combine is not sent.
    segment.map_or(Ok(()), Segment::is_sound)?;
    let usual = reach.leaders[part.root];
    let world_ranks = match among {
        Among::Leaders => {
            reach.leaders[part.root] = reach.world_ranks[root];
            &reach.leaders
        }
        Among::Lane => &reach.lane,
    };
    let result = p2p::run_among(world, schedules, world_ranks, between, part, watch);
    reach.leaders[part.root] = usual;
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

/// Runs a phase on this rank's node; nothing where it is alone there.
///
/// # Safety
/// The stage's places hold what it reads, and have room for what it writes.
#[inline]
unsafe fn phase(
    elements: &Elements,
    segment: &mut Option<&mut Segment>,
    (inside, bases): (&Inside, &Bases),
    arriving: Option<&mut Transfers>,
) -> Result<(), c_int> {
    let Some(segment) = segment else {
        return Ok(());
    };
    let who = (segment.place, segment.n_here);
    let data = bases.of_phase(elements, inside);
    // SAFETY: the caller promises the places.
    unsafe {
        if inside.fits_a_line(elements.unit_bytes) {
            short::run(elements, segment, Phase::in_one_piece(inside, who), data)
        } else {
            let phase = Phase::new(inside, who, elements.unit_bytes);
            RunningPhase::new(elements, segment, phase, data, arriving).finish()
        }
    }
}
