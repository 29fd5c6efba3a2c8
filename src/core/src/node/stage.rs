//! What a rank does in a collective over the nodes: a pure function from (call, nodes, rank) to stages.
//!
//! A stage is something that the ranks of a node do together in its memory ([`Kind`]), a collective among ranks of
//! which one is on each node, or a copy. The checker of [`whole`](super::whole) runs the stages of all ranks of a
//! communicator, the acts and the schedules in them too, and compares what comes out with what the collective promises;
//! the shim runs the same stages. Variants whose messages go straight to where they are wanted, and those that read the
//! others' buffers, are not told here.

use super::act::{self, Kind};
use super::between::share;
use super::blocks::Blocks;
use super::collected::{CollectedLayout, moves_blocks};
use super::map::NodeMap;
use crate::catalogue::{Crossing, OnNodes};
use crate::collective::Collective;

/// What the stages of a call depend on.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    pub collective: Collective,
    pub own: OnNodes,
    /// Bytes of the message, alike on all ranks.
    pub bytes: u64,
    /// Units of the message, or of one block: elements of a reduction, else bytes.
    pub block: u64,
    pub root: usize,
    /// Whether the input begins where the output does, on this rank.
    pub in_place: bool,
}

/// Memory that a rank has in a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Buffer {
    Input,
    Output,
    /// Room of ours, for a sum that is no rank's result here, or for blocks that are collected.
    Spare,
}

/// A place in a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct At {
    pub buffer: Buffer,
    /// Units before it.
    pub unit: u64,
}

const INPUT: At = Buffer::Input.at(0);
const OUTPUT: At = Buffer::Output.at(0);
const SPARE: At = Buffer::Spare.at(0);

impl Buffer {
    const fn at(self, unit: u64) -> At {
        At { buffer: self, unit }
    }
}

impl At {
    fn behind(self, units: u64) -> At {
        self.buffer.at(self.unit + units)
    }
}

/// What the ranks of a node do together.
#[derive(Clone, Copy, Debug)]
pub struct Inside<'a> {
    pub kind: Kind,
    /// Where this rank's contribution begins, and where its result shall.
    pub source: At,
    pub target: At,
    /// Units of the message, or of one block.
    pub units: u64,
    pub blocks: Blocks<'a>,
}

/// Some ranks, one of each node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Among {
    /// One of each node, where the root of the call leads its own.
    Leaders,
    /// Those in this rank's place.
    Lane,
}

/// The same collective among some ranks; the one on the root's node is the root there.
#[derive(Clone, Copy, Debug)]
pub struct Across {
    pub among: Among,
    /// Units of the message, or of one block.
    pub units: u64,
    /// What this rank contributes; `None` where it lies where the result shall.
    pub given: Option<At>,
    /// The result, or room that nobody needs where this rank gets none.
    pub result: At,
}

/// One step of a call.
#[derive(Clone, Copy, Debug)]
pub enum Stage<'a> {
    Inside(Inside<'a>),
    Across(Across),
    /// Units go from one place to another.
    Copy {
        from: At,
        to: At,
        units: u64,
    },
}

/// Hands the stages of a call to `visit`, in order.
///
/// Errors: the first of `visit`.
#[inline]
pub fn stages<'a, E>(
    call: &Call,
    map: &'a NodeMap,
    visit: &mut impl FnMut(Stage<'a>) -> Result<(), E>,
) -> Result<(), E> {
    use Collective::{Allgather, Allreduce, Alltoall, Bcast, Reduce};
    match (call.own, call.collective) {
        (OnNodes::Leaders(_), Allgather) => allgather_by_leaders(call, map, visit),
        (OnNodes::Leaders(_), Alltoall) => alltoall_by_leaders(call, map, visit),
        (OnNodes::Leaders(Crossing::Schedule(_)), Reduce) => reduce_by_leaders(call, map, visit),
        (OnNodes::Leaders(Crossing::Schedule(_)), Bcast) => bcast_by_leaders(call, map, visit),
        // With one lane that is a node's first rank, which a root reaches over its node's memory: the library knows no
        // other leaders in a call with another root.
        (OnNodes::Leaders(crossing), _) => by_lanes(call, map, (crossing, 1), visit),
        (OnNodes::Lanes(crossing), _) => by_lanes(call, map, (crossing, map.lanes), visit),
        // On one node, or what a call of blocks does inside it.
        (_, Allgather) => gather_here(call, map, visit),
        (_, Alltoall) => exchange_here(call, map, visit),
        (_, collective) => {
            let (bytes, n) = (call.bytes, map.n_here());
            let root = map.place_of[call.root];
            let (kind, source) = match collective {
                Allreduce => (act::allreduce(bytes, n), INPUT),
                Reduce => (act::reduce(bytes, n, root), INPUT),
                _ => (Kind::Bcast { root }, OUTPUT),
            };
            visit(call.whole(kind, source, OUTPUT))
        }
    }
}

/// Units of [`Buffer::Spare`] that the stages of a call need on this rank.
pub fn spare_units(call: &Call, map: &NodeMap) -> u64 {
    match (call.own, call.own.crossing()) {
        // What the node has combined, and the result.
        (_, Some(Crossing::Library)) if call.collective == Collective::Reduce => {
            call.block.saturating_mul(2)
        }
        (_, Some(_)) if call.collective.is_reduction() => call.block,
        (OnNodes::Leaders(_), _) if moves_blocks(call.collective) => {
            CollectedLayout::new(map, call.collective, call.block).room()
        }
        _ => 0,
    }
}

/// What a leader's node does before and after the leaders meet, where the three go on at once. One after the other they
/// are stages of the call.
#[derive(Clone, Copy, Debug)]
pub struct Overlapping<'a> {
    pub combining: Option<Inside<'a>>,
    pub across: Option<Across>,
    pub giving: Option<Inside<'a>>,
}

/// An allreduce, bcast or reduce of a long message by leaders.
pub fn overlapping<'a>(call: &Call, map: &NodeMap) -> Overlapping<'a> {
    let (n, collective) = (map.n_here(), call.collective);
    let leader = match collective {
        Collective::Allreduce => 0,
        _ => map.leader_here(call.root),
    };
    let leads = leader == map.place;
    let is_root = leads && map.is_here(call.root);
    let sum = if n == 1 { INPUT } else { SPARE };
    let inside = |kind, source, target| Inside {
        kind,
        source,
        target,
        units: call.block,
        blocks: Blocks::One,
    };
    let kind = act::reduce(call.bytes, n, leader);
    let combining = inside(kind, INPUT, if leads { sum } else { OUTPUT });
    let giving = inside(Kind::Bcast { root: leader }, OUTPUT, OUTPUT);
    let (given, result) = match collective {
        Collective::Bcast => (None, OUTPUT),
        Collective::Reduce if !is_root => (Some(sum), SPARE),
        // In place, alone on its node.
        _ if call.is_same(sum, OUTPUT) => (None, OUTPUT),
        _ => (Some(sum), OUTPUT),
    };
    Overlapping {
        combining: (collective != Collective::Bcast).then_some(combining),
        across: leads.then_some(Across {
            among: Among::Leaders,
            units: call.block,
            given,
            result,
        }),
        giving: (collective != Collective::Reduce).then_some(giving),
    }
}

impl Call {
    fn whole<'a>(&self, kind: Kind, source: At, target: At) -> Stage<'a> {
        self.of(kind, source, target, Blocks::One)
    }

    fn of<'a>(&self, kind: Kind, source: At, target: At, blocks: Blocks<'a>) -> Stage<'a> {
        Stage::Inside(Inside {
            kind,
            source,
            target,
            units: self.block,
            blocks,
        })
    }

    /// Whether two places are one.
    fn is_same(&self, a: At, b: At) -> bool {
        let both_users = a.buffer != Buffer::Spare && b.buffer != Buffer::Spare;
        a.unit == b.unit && (a.buffer == b.buffer || self.in_place && both_users)
    }
}

/// Every rank of the node gets the blocks of all the others there.
#[inline]
fn gather_here<'a, E>(
    call: &Call,
    map: &'a NodeMap,
    visit: &mut impl FnMut(Stage<'a>) -> Result<(), E>,
) -> Result<(), E> {
    let rank = map.here()[map.place];
    visit(Stage::Copy {
        from: INPUT,
        to: OUTPUT.behind(rank as u64 * call.block),
        units: call.block,
    })?;
    let givers = map.n_here();
    let blocks = Blocks::Gathered(&map.own_blocks);
    visit(call.of(Kind::Exchange { givers }, INPUT, OUTPUT, blocks))
}

/// Every rank of the node gets what all the others there have for it.
#[inline]
fn exchange_here<'a, E>(
    call: &Call,
    map: &'a NodeMap,
    visit: &mut impl FnMut(Stage<'a>) -> Result<(), E>,
) -> Result<(), E> {
    let skip = map.here()[map.place] as u64 * call.block;
    visit(Stage::Copy {
        from: INPUT.behind(skip),
        to: OUTPUT.behind(skip),
        units: call.block,
    })?;
    let givers = map.n_here();
    let blocks = Blocks::Exchanged(map.here());
    visit(call.of(Kind::Exchange { givers }, INPUT, OUTPUT, blocks))
}

fn reduce_by_leaders<'a, E>(
    call: &Call,
    map: &'a NodeMap,
    visit: &mut impl FnMut(Stage<'a>) -> Result<(), E>,
) -> Result<(), E> {
    let n = map.n_here();
    let leader = map.leader_here(call.root);
    let leads = leader == map.place;
    let is_root = leads && map.is_here(call.root);
    let target = if is_root { OUTPUT } else { SPARE };
    visit(call.whole(act::reduce(call.bytes, n, leader), INPUT, target))?;
    if !leads {
        return Ok(());
    }
    let given = match (is_root, n) {
        (true, 1) if !call.in_place => Some(INPUT),
        (true, _) => None,
        (false, 1) => Some(INPUT),
        (false, _) => Some(SPARE),
    };
    visit(Stage::Across(Across {
        among: Among::Leaders,
        units: call.block,
        given,
        result: target,
    }))
}

fn bcast_by_leaders<'a, E>(
    call: &Call,
    map: &'a NodeMap,
    visit: &mut impl FnMut(Stage<'a>) -> Result<(), E>,
) -> Result<(), E> {
    let root = map.leader_here(call.root);
    if root == map.place {
        visit(Stage::Across(Across {
            among: Among::Leaders,
            units: call.block,
            given: None,
            result: OUTPUT,
        }))?;
    }
    visit(call.whole(Kind::Bcast { root }, OUTPUT, OUTPUT))
}

/// One or more ranks of each node carry a share, and meet their like with it.
fn by_lanes<'a, E>(
    call: &Call,
    map: &'a NodeMap,
    (crossing, lanes): (Crossing, usize),
    visit: &mut impl FnMut(Stage<'a>) -> Result<(), E>,
) -> Result<(), E> {
    match call.collective {
        Collective::Allreduce => allreduce_by_lanes(call, map, lanes, visit),
        Collective::Reduce => reduce_by_lanes(call, map, (crossing, lanes), visit),
        _ => bcast_by_lanes(call, map, lanes, visit),
    }
}

/// The own share of a message: where it begins, and how many units it has; `None` for a rank that is no lane, and
/// where there is nothing to carry.
fn own_share(call: &Call, map: &NodeMap, of: At, lanes: usize) -> Option<(At, u64)> {
    let (start, units) = share(call.block, map.place.min(lanes - 1), lanes);
    (map.place < lanes && units > 0).then(|| (of.behind(start), units))
}

/// Each lane gets what the node has combined of its share.
fn reduce_to_lanes<'a>(call: &Call, map: &NodeMap, target: At, lanes: usize) -> Stage<'a> {
    match lanes {
        1 => call.whole(act::reduce(call.bytes, map.n_here(), 0), INPUT, target),
        _ => call.of(
            Kind::ReduceScatter { lanes },
            INPUT,
            target,
            Blocks::Shares(lanes),
        ),
    }
}

/// Every rank of the node gets every lane's share.
fn spread_from_lanes<'a>(call: &Call, lanes: usize) -> Stage<'a> {
    match lanes {
        1 => call.whole(Kind::Bcast { root: 0 }, OUTPUT, OUTPUT),
        _ => call.of(
            Kind::Exchange { givers: lanes },
            OUTPUT,
            OUTPUT,
            Blocks::OwnShare(lanes),
        ),
    }
}

fn allreduce_by_lanes<'a, E>(
    call: &Call,
    map: &'a NodeMap,
    lanes: usize,
    visit: &mut impl FnMut(Stage<'a>) -> Result<(), E>,
) -> Result<(), E> {
    visit(reduce_to_lanes(call, map, OUTPUT, lanes))?;
    let sum = if map.n_here() > 1 { OUTPUT } else { INPUT };
    if let Some((result, units)) = own_share(call, map, OUTPUT, lanes) {
        let given = own_share(call, map, sum, lanes).map(|(start, _)| start);
        visit(Stage::Across(Across {
            among: Among::Lane,
            units,
            given: given.filter(|given| !call.is_same(*given, result)),
            result,
        }))?;
    }
    visit(spread_from_lanes(call, lanes))
}

fn reduce_by_lanes<'a, E>(
    call: &Call,
    map: &'a NodeMap,
    (crossing, lanes): (Crossing, usize),
    visit: &mut impl FnMut(Stage<'a>) -> Result<(), E>,
) -> Result<(), E> {
    visit(reduce_to_lanes(call, map, SPARE, lanes))?;
    // MPICH 4.0 dies of its reduce in place, on ranks of one machine.
    let apart = matches!(crossing, Crossing::Library);
    let mut sum = SPARE;
    if map.n_here() == 1 {
        match apart && call.in_place {
            true => visit(Stage::Copy {
                from: INPUT,
                to: SPARE,
                units: call.block,
            })?,
            false => sum = INPUT,
        }
    }
    let on_roots_node = map.is_here(call.root);
    let is_root = map.here()[map.place] == call.root;
    let target = match (is_root, apart) {
        (true, _) => OUTPUT,
        (false, true) => SPARE.behind(call.block),
        (false, false) => SPARE,
    };
    if let Some((result, units)) = own_share(call, map, target, lanes) {
        let given = own_share(call, map, sum, lanes).map(|(start, _)| start);
        // Only where the result is the addresses may be one.
        let given = given.filter(|given| !on_roots_node || !call.is_same(*given, result));
        visit(Stage::Across(Across {
            among: Among::Lane,
            units,
            given,
            result,
        }))?;
    }
    if !on_roots_node {
        return Ok(());
    }
    let root = map.place_of[call.root];
    let gather = Kind::Gather { root, lanes };
    visit(call.of(gather, target, target, Blocks::OwnShare(lanes)))
}

fn bcast_by_lanes<'a, E>(
    call: &Call,
    map: &'a NodeMap,
    lanes: usize,
    visit: &mut impl FnMut(Stage<'a>) -> Result<(), E>,
) -> Result<(), E> {
    let on_roots_node = map.is_here(call.root);
    if on_roots_node {
        let root = map.place_of[call.root];
        visit(call.whole(Kind::Bcast { root }, OUTPUT, OUTPUT))?;
    }
    if let Some((result, units)) = own_share(call, map, OUTPUT, lanes) {
        visit(Stage::Across(Across {
            among: Among::Lane,
            units,
            given: None,
            result,
        }))?;
    }
    match on_roots_node {
        true => Ok(()),
        false => visit(spread_from_lanes(call, lanes)),
    }
}

/// Every node collects its blocks, the leaders exchange them, and every node gets all.
fn allgather_by_leaders<'a, E>(
    call: &Call,
    map: &'a NodeMap,
    visit: &mut impl FnMut(Stage<'a>) -> Result<(), E>,
) -> Result<(), E> {
    let layout = CollectedLayout::new(map, call.collective, call.block);
    gather_here(call, map, visit)?;
    if map.place == 0 {
        let own = map.node;
        for (place, rank) in map.here().iter().enumerate() {
            visit(Stage::Copy {
                from: OUTPUT.behind(*rank as u64 * call.block),
                to: SPARE.behind(layout.gathered(own, place)),
                units: call.block,
            })?;
        }
        visit(Stage::Across(Across {
            among: Among::Lane,
            units: layout.between(),
            given: None,
            result: SPARE,
        }))?;
        for (node, ranks) in map
            .nodes
            .iter()
            .enumerate()
            .filter(|(node, _)| *node != own)
        {
            for (place, rank) in ranks.iter().enumerate() {
                visit(Stage::Copy {
                    from: SPARE.behind(layout.gathered(node, place)),
                    to: OUTPUT.behind(*rank as u64 * call.block),
                    units: call.block,
                })?;
            }
        }
    }
    visit(Stage::Inside(Inside {
        kind: Kind::Bcast { root: 0 },
        source: OUTPUT,
        target: OUTPUT,
        units: layout.message(),
        blocks: Blocks::One,
    }))
}

/// The leader of every node collects the messages of its ranks, the leaders exchange what is in them for each
/// other's ranks, and every rank gets its own of it.
fn alltoall_by_leaders<'a, E>(
    call: &Call,
    map: &'a NodeMap,
    visit: &mut impl FnMut(Stage<'a>) -> Result<(), E>,
) -> Result<(), E> {
    let layout = CollectedLayout::new(map, call.collective, call.block);
    let message = layout.message();
    let inside = |kind, source, target, blocks| {
        Stage::Inside(Inside {
            kind,
            source,
            target,
            units: message,
            blocks,
        })
    };
    let lanes = map.n_here();
    let gather = Kind::Gather { root: 0, lanes };
    visit(inside(gather, INPUT, SPARE, Blocks::Collected))?;
    if map.place == 0 {
        visit(Stage::Copy {
            from: INPUT,
            to: SPARE,
            units: message,
        })?;
        exchange_collected(call, map, &layout, visit)?;
        visit(Stage::Copy {
            from: SPARE,
            to: OUTPUT,
            units: message,
        })?;
    }
    let blocks = Blocks::Exchanged(&map.places);
    visit(inside(Kind::Exchange { givers: 1 }, SPARE, OUTPUT, blocks))
}

/// What is collected for each rank takes the place of what was collected of it.
fn exchange_collected<'a, E>(
    call: &Call,
    map: &'a NodeMap,
    layout: &CollectedLayout,
    visit: &mut impl FnMut(Stage<'a>) -> Result<(), E>,
) -> Result<(), E> {
    let sent = SPARE.behind(layout.collected());
    let received = sent.behind(layout.across());
    let move_all = |visit: &mut dyn FnMut(Stage<'a>) -> Result<(), E>, back: bool| {
        for own in 0..map.n_here() {
            for (node, ranks) in map.nodes.iter().enumerate() {
                for (place, rank) in ranks.iter().enumerate() {
                    let here = SPARE.behind(layout.of_message(own, *rank));
                    let (from, to) = match back {
                        false => (here, sent.behind(layout.exchanged(node, own, place))),
                        true => (received.behind(layout.exchanged(node, place, own)), here),
                    };
                    let units = call.block;
                    visit(Stage::Copy { from, to, units })?;
                }
            }
        }
        Ok(())
    };
    move_all(visit, false)?;
    visit(Stage::Across(Across {
        among: Among::Lane,
        units: layout.between(),
        given: Some(sent),
        result: received,
    }))?;
    move_all(visit, true)
}
