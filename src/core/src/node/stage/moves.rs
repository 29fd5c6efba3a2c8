//! Calls that move blocks: inside a node, and by way of the nodes' leaders.

use super::step::{Across, Among, At, Call, INPUT, Inside, OUTPUT, SPARE, Stage};
use crate::node::blocks::Blocks;
use crate::node::collected::CollectedLayout;
use crate::node::kind::Kind;
use crate::node::map::NodeMap;

/// Every rank of the node gets the blocks of all the others there.
#[inline]
pub fn gather_here<'a, E>(
    call: &Call,
    map: &'a NodeMap,
    visit: &mut impl FnMut(Stage<'a>) -> Result<(), E>,
) -> Result<(), E> {
    call.place_own_block(map, visit)?;
    gather_all(call, map, visit)
}

/// The same where the own block is in its place.
#[inline]
pub fn gather_all<'a, E>(
    call: &Call,
    map: &'a NodeMap,
    visit: &mut impl FnMut(Stage<'a>) -> Result<(), E>,
) -> Result<(), E> {
    let givers = map.n_here();
    let blocks = Blocks::Gathered(&map.own_blocks);
    visit(call.of(Kind::Exchange { givers }, INPUT, OUTPUT, blocks))
}

/// Every rank of the node gets what all the others there have for it, in `input`.
#[inline]
pub fn exchange_here<'a, E>(
    call: &Call,
    map: &'a NodeMap,
    input: At,
    visit: &mut impl FnMut(Stage<'a>) -> Result<(), E>,
) -> Result<(), E> {
    let skip = map.here()[map.place] as u64 * call.block;
    visit(Stage::Copy {
        from: input.behind(skip),
        to: OUTPUT.behind(skip),
        units: call.block,
    })?;
    let givers = map.n_here();
    let blocks = Blocks::Exchanged(map.here());
    visit(call.of(Kind::Exchange { givers }, input, OUTPUT, blocks))
}

/// Every node collects its blocks, the leaders exchange them, and every node gets all.
pub fn allgather_by_leaders<'a, E>(
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
        in_place: true,
        arriving: false,
    }))
}

/// The leader of every node collects the messages of its ranks, the leaders exchange what is in them for each
/// other's ranks, and every rank gets its own of it.
pub fn alltoall_by_leaders<'a, E>(
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
            in_place: call.is_same(source, target),
            arriving: false,
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
