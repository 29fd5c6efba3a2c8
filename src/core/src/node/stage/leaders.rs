//! Calls of which one rank of each node carries the message, the root on its own.

use super::step::{Across, Among, Call, INPUT, Inside, OUTPUT, SPARE, Stage};
use crate::collective::Collective;
use crate::node::blocks::Blocks;
use crate::node::kind::{self, Kind};
use crate::node::map::NodeMap;

pub fn reduce_by_leaders<'a, E>(
    call: &Call,
    map: &'a NodeMap,
    visit: &mut impl FnMut(Stage<'a>) -> Result<(), E>,
) -> Result<(), E> {
    let n = map.n_here();
    let leader = map.leader_here(call.root);
    let leads = leader == map.place;
    let is_root = leads && map.is_here(call.root);
    let target = if is_root { OUTPUT } else { SPARE };
    visit(call.whole(kind::reduce(call.bytes, n, leader), INPUT, target))?;
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

pub fn bcast_by_leaders<'a, E>(
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
        in_place: call.is_same(source, target),
        arriving: false,
    };
    let kind = kind::reduce(call.bytes, n, leader);
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
