//! Calls of which one or more ranks of each node carry a share, and meet their like with it.

use super::step::{Across, Among, At, Call, INPUT, OUTPUT, SPARE, Stage};
use crate::collective::Collective;
use crate::node::between::share;
use crate::node::blocks::Blocks;
use crate::node::kind::{self, Kind};
use crate::node::map::NodeMap;
use crate::node::on_nodes::Crossing;

/// One or more ranks of each node carry a share, and meet their like with it.
pub fn by_lanes<'a, E>(
    call: &Call,
    map: &'a NodeMap,
    (crossing, lanes): (Crossing, usize),
    visit: &mut impl FnMut(Stage<'a>) -> Result<(), E>,
) -> Result<(), E> {
    match call.collective {
        Collective::Allreduce => allreduce_by_lanes(call, map, lanes, visit),
        Collective::Reduce => reduce_by_lanes(call, map, (crossing, lanes), visit),
        _ => bcast_by_lanes(call, map, (crossing, lanes), visit),
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
        1 => call.whole(kind::reduce(call.bytes, map.n_here(), 0), INPUT, target),
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
    (crossing, lanes): (Crossing, usize),
    visit: &mut impl FnMut(Stage<'a>) -> Result<(), E>,
) -> Result<(), E> {
    let on_roots_node = map.is_here(call.root);
    if on_roots_node {
        let root = map.place_of[call.root];
        visit(call.whole(Kind::Bcast { root }, OUTPUT, OUTPUT))?;
    }
    if let Some((share, units)) = own_share(call, map, OUTPUT, lanes) {
        let is_root = map.here()[map.place] == call.root;
        // Some of the library's algorithms write at the root, whose buffer may be constant.
        let result = match (is_root, crossing) {
            (true, Crossing::Library) => {
                let to = SPARE;
                visit(Stage::Copy {
                    from: share,
                    to,
                    units,
                })?;
                to
            }
            _ => share,
        };
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
