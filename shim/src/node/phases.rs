//! The phases of one call over the nodes: inside each node, between them, and inside again.

use std::ffi::c_int;

use colltune_core::catalogue::{OnNodes, Scheduled};
use colltune_core::collective::Collective;
use colltune_core::node::act::{self, Kind};
use colltune_core::node::between::{share, turns};
use colltune_core::node::layout::LINE_BYTES;

use super::call::Part;
use super::elements::Elements;
use super::overlap::Node;
use super::pieces::{self, Blocks, Data, Phase};
use super::segment::Segment;
use super::short;
use super::team::Team;
use super::transfers::Transfers;
use crate::abi::{self, Comm, Request};
use crate::own::Call;
use crate::p2p::arguments::View;
use crate::p2p::places::Places;
use crate::p2p::{self, Group};

/// A call whose data is at hand.
pub struct Phases<'a, 'b> {
    pub p2p: &'a mut p2p::Beside,
    pub team: &'a mut Team,
    pub segment: Option<&'a mut Segment>,
    pub call: &'a Call,
    pub view: View,
    pub places: Places,
    pub elements: Elements<'b>,
    pub between: Between<'a>,
    /// Room for a message, where a rank has no buffer of the caller's for what it carries, or for the
    /// input of an alltoall in place.
    pub spare: *mut u8,
}

/// What messages between nodes need; nothing where there is one node.
#[derive(Default)]
pub struct Between<'a> {
    pub carrier: Option<(Comm, c_int)>,
    pub requests: Option<&'a mut Vec<Request>>,
    pub before: Option<&'a mut Vec<u64>>,
}

/// From so many bytes on what happens inside the nodes and between them is interleaved.
const OVERLAPPED_ABOVE: u64 = 8 << 10;

/// Some ranks, one of each node.
#[derive(Clone, Copy)]
pub enum Across {
    Leaders,
    /// Those in this rank's place.
    Lane,
}

impl Phases<'_, '_> {
    /// # Safety
    /// The places are those of the view's buffers, or packed copies of them.
    #[inline]
    pub unsafe fn run(mut self, own: OnNodes) -> Result<(), c_int> {
        // SAFETY: the caller's promise is passed on.
        unsafe {
            match own {
                OnNodes::Alone => self.alone(),
                OnNodes::Reading => self.by_reading(),
                // Alike on all ranks.
                OnNodes::Leaders(between) if self.call.bytes > OVERLAPPED_ABOVE => {
                    self.overlapped(between)
                }
                OnNodes::Leaders(between) => match self.call.collective {
                    Collective::Allreduce => self.allreduce_by_leaders(between),
                    Collective::Reduce => self.reduce_by_leaders(between),
                    _ => self.bcast_by_leaders(between),
                },
                OnNodes::Lanes(between) => match self.call.collective {
                    Collective::Allreduce => self.allreduce_by_lanes(between),
                    Collective::Reduce => self.reduce_by_lanes(between),
                    _ => self.bcast_by_lanes(between),
                },
                OnNodes::Direct(carriers) => match self.call.collective {
                    Collective::Allgather => self.allgather_direct(carriers),
                    _ => self.alltoall_direct(),
                },
            }
        }
    }

    #[inline]
    pub(super) unsafe fn alone(&mut self) -> Result<(), c_int> {
        let (n, bytes) = (self.team.n_here(), self.call.bytes);
        let (input, output) = (self.places.input, self.places.output);
        let root = self.team.place_of[self.view.root];
        // SAFETY: the caller's promise is passed on.
        unsafe {
            match self.call.collective {
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
        let data = Data {
            source: input,
            target: output,
            units: self.view.block,
            blocks: Blocks::Gathered(&self.team.own_blocks),
        };
        let givers = self.team.n_here();
        let kind = Kind::Exchange { givers };
        // SAFETY: the caller's promise is passed on.
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
        let data = Data {
            source: input,
            target: output,
            units,
            blocks: Blocks::Exchanged(&self.team.here),
        };
        let givers = self.team.n_here();
        let kind = Kind::Exchange { givers };
        // SAFETY: the caller's promise is passed on.
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
    unsafe fn on_node(
        &mut self,
        kind: Kind,
        source: *mut u8,
        target: *mut u8,
        blocks: Blocks<'static>,
    ) -> Result<(), c_int> {
        let data = Data {
            source,
            target,
            units: self.view.block,
            blocks,
        };
        // SAFETY: the caller's promise is passed on.
        unsafe { phase(&self.elements, &mut self.segment, kind, data, None) }
    }

    /// Runs a part of the call among ranks of which this is one. The root leads its node.
    fn across(
        &mut self,
        across: Across,
        part: &Part,
        data: (Option<*mut u8>, *mut u8),
    ) -> Result<(), c_int> {
        let Phases {
            p2p,
            team,
            segment,
            call,
            view,
            elements,
            ..
        } = self;
        across_nodes(
            p2p,
            (team, segment.as_deref()),
            (call, view),
            elements,
            (across, part, data),
            &mut (),
        )
    }

    /// The part of a message that so many units are.
    fn part(&self, between: Scheduled, units: u64) -> Part {
        Part {
            variant: self.call.variant,
            between,
            root: self.team.node_of[self.view.root],
            bytes: units * self.elements.unit_bytes,
            units,
        }
    }

    /// A leader's node combines what the schedule wants next, and gets what has come, piece by piece,
    /// while messages are under way. The acts of each rank in its node's memory are those of one phase
    /// after the other.
    unsafe fn overlapped(&mut self, between: Scheduled) -> Result<(), c_int> {
        let (n, bytes, units) = (self.team.n_here(), self.call.bytes, self.view.block);
        let (input, output) = (self.places.input, self.places.output);
        let (root, collective) = (self.view.root, self.call.collective);
        let leader = match collective {
            Collective::Allreduce => 0,
            _ => self.team.leader_here(root),
        };
        let leads = leader == self.team.place;
        let is_root = leads && self.team.node_of[root] == self.team.node;
        let part = self.part(between, units);
        let sum = if n == 1 { input } else { self.spare };
        let cut = pieces::cut(&self.elements, units, Blocks::One);
        let nodes = self.team.nodes.len();
        let (wanted, comes) = turns(&between, self.team.node, nodes, cut.pieces);
        let data = |source, target| Data {
            source,
            target,
            units,
            blocks: Blocks::One,
        };
        let Phases {
            p2p,
            team,
            segment,
            call,
            view,
            elements,
            ..
        } = self;
        let segment = segment.as_deref();
        let phase = |kind, data, turn| {
            let segment = segment?;
            // SAFETY: the caller's promise is passed on; every rank has room for the sum. A leader's output
            // is given on as it becomes final.
            Some(unsafe { Phase::new(elements, segment, kind, data, turn) })
        };
        let mut node = Node {
            combining: None,
            giving: None,
        };
        if collective != Collective::Bcast {
            let kind = act::reduce(bytes, n, leader);
            let target = if leads { sum } else { output };
            node.combining = phase(kind, data(input, target), wanted);
        }
        if collective != Collective::Reduce {
            let kind = Kind::Bcast { root: leader };
            node.giving = phase(kind, data(output, output), comes);
        }
        let mut result = Ok(());
        if leads {
            if input == output {
                // What is received would overwrite what is not combined yet.
                node.combine_all();
            }
            let data = match collective {
                Collective::Bcast => (None, output),
                // A root in place, alone on its node.
                Collective::Reduce if is_root && sum == output => (None, output),
                Collective::Allreduce if sum == output => (None, output),
                Collective::Reduce if !is_root => (Some(sum), std::ptr::null_mut()),
                _ => (Some(sum), output),
            };
            let what = (Across::Leaders, &part, data);
            result = across_nodes(
                p2p,
                (team, segment),
                (call, view),
                elements,
                what,
                &mut node,
            );
        }
        result.and(node.finish())
    }

    unsafe fn allreduce_by_leaders(&mut self, between: Scheduled) -> Result<(), c_int> {
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
                let part = self.part(between, self.view.block);
                result = result.and(self.across(Across::Leaders, &part, (send, output)));
            }
            let spread = Kind::Bcast { root: 0 };
            result.and(self.on_node(spread, output, output, Blocks::One))
        }
    }

    unsafe fn reduce_by_leaders(&mut self, between: Scheduled) -> Result<(), c_int> {
        let (n, bytes, root) = (self.team.n_here(), self.call.bytes, self.view.root);
        let (input, output) = (self.places.input, self.places.output);
        let leader = self.team.leader_here(root);
        let leads = leader == self.team.place;
        let is_root = leads && self.team.node_of[root] == self.team.node;
        let target = if is_root { output } else { self.spare };
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
        let part = self.part(between, self.view.block);
        result.and(self.across(Across::Leaders, &part, data))
    }

    unsafe fn bcast_by_leaders(&mut self, between: Scheduled) -> Result<(), c_int> {
        let output = self.places.output;
        let leader = self.team.leader_here(self.view.root);
        let mut result = Ok(());
        if leader == self.team.place {
            let part = self.part(between, self.view.block);
            result = self.across(Across::Leaders, &part, (None, output));
        }
        let kind = Kind::Bcast { root: leader };
        // SAFETY: the caller's promise is passed on.
        result.and(unsafe { self.on_node(kind, output, output, Blocks::One) })
    }

    /// The own share of a message: where it begins at an address, and how many units it has; `None`
    /// for a rank that is no lane, and where there is nothing to carry.
    fn share(&self, of: *mut u8) -> Option<(*mut u8, u64)> {
        let (place, lanes) = (self.team.place, self.team.lanes);
        let (start, units) = share(self.view.block, place.min(lanes - 1), lanes);
        (place < lanes && units > 0).then(|| (self.elements.at(of, start), units))
    }

    unsafe fn allreduce_by_lanes(&mut self, between: Scheduled) -> Result<(), c_int> {
        let lanes = self.team.lanes;
        let (mut input, output) = (self.places.input, self.places.output);
        // SAFETY: the caller's promise is passed on.
        unsafe {
            let scatter = Kind::ReduceScatter { lanes };
            let mut result = self.on_node(scatter, input, output, Blocks::Shares(lanes));
            if self.team.n_here() > 1 {
                input = output;
            }
            if let Some((result_at, units)) = self.share(output) {
                let part = self.part(between, units);
                let send = self.share(input).map(|(start, _)| start);
                let send = send.filter(|start| *start != result_at);
                result = result.and(self.across(Across::Lane, &part, (send, result_at)));
            }
            let gather = Kind::Exchange { givers: lanes };
            result.and(self.on_node(gather, output, output, Blocks::OwnShare(lanes)))
        }
    }

    unsafe fn reduce_by_lanes(&mut self, between: Scheduled) -> Result<(), c_int> {
        let (lanes, root) = (self.team.lanes, self.view.root);
        let (mut input, output, spare) = (self.places.input, self.places.output, self.spare);
        let on_roots_node = self.team.node_of[root] == self.team.node;
        // SAFETY: the caller's promise is passed on; every rank has room for the sum.
        unsafe {
            let scatter = Kind::ReduceScatter { lanes };
            let mut result = self.on_node(scatter, input, spare, Blocks::Shares(lanes));
            if self.team.n_here() > 1 {
                input = spare;
            }
            let is_root = self.team.here[self.team.place] == root;
            let target = if is_root { output } else { spare };
            if let Some((result_at, units)) = self.share(target) {
                let part = self.part(between, units);
                let given = self.share(input).map(|(start, _)| start);
                let send = given.filter(|start| *start != result_at);
                // Only where the result is the addresses may be one.
                let send = if on_roots_node { send } else { given };
                result = result.and(self.across(Across::Lane, &part, (send, result_at)));
            }
            if !on_roots_node {
                return result;
            }
            let root = self.team.place_of[root];
            let gather = Kind::Gather { root, lanes };
            result.and(self.on_node(gather, target, target, Blocks::OwnShare(lanes)))
        }
    }

    unsafe fn bcast_by_lanes(&mut self, between: Scheduled) -> Result<(), c_int> {
        let (lanes, root) = (self.team.lanes, self.view.root);
        let output = self.places.output;
        let on_roots_node = self.team.node_of[root] == self.team.node;
        let mut result = Ok(());
        // SAFETY: the caller's promise is passed on.
        unsafe {
            if on_roots_node {
                let root = self.team.place_of[root];
                result = self.on_node(Kind::Bcast { root }, output, output, Blocks::One);
            }
            if let Some((start, units)) = self.share(output) {
                let part = self.part(between, units);
                result = result.and(self.across(Across::Lane, &part, (None, start)));
            }
            if on_roots_node {
                return result;
            }
            let gather = Kind::Exchange { givers: lanes };
            result.and(self.on_node(gather, output, output, Blocks::OwnShare(lanes)))
        }
    }
}

/// Runs a part of the call among ranks of which this is one. The root leads its node.
fn across_nodes(
    p2p: &mut p2p::Beside,
    (team, segment): (&mut Team, Option<&Segment>),
    (call, view): (&Call, &View),
    elements: &Elements,
    (across, part, data): (Across, &Part, (Option<*mut u8>, *mut u8)),
    watch: &mut impl p2p::Watch,
) -> Result<(), c_int> {
    // What a rank of the node could not combine is not sent.
    segment.map_or(Ok(()), Segment::is_sound)?;
    let usual = team.leaders[part.root];
    if call.collective != Collective::Allreduce {
        team.leaders[part.root] = team.world_ranks[view.root];
    }
    let world_ranks = match across {
        Across::Leaders => &team.leaders,
        Across::Lane => &team.lane,
    };
    let group = Group {
        rank: team.node,
        world_ranks,
    };
    let tuner = elements.tuner;
    let part_call = part.call(tuner, call, data);
    let result = p2p::run_among(tuner, p2p, group, &part_call, watch);
    team.leaders[part.root] = usual;
    // The arguments were looked at before.
    let result = result.unwrap_or(Err(abi::MPI_ERR_NO_MEM as c_int));
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
    data: Data,
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
    // SAFETY: the caller's promise is passed on.
    unsafe {
        if is_short && arriving.is_none() && data.blocks.are_single() {
            short::run(elements, segment, kind, data)
        } else {
            pieces::run(elements, segment, kind, data, arriving)
        }
    }
}
