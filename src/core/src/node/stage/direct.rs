//! Calls whose blocks go straight to the ranks of other nodes that want them, and on through their memory.

use super::moves::{exchange_here, gather_all, gather_here};
use super::step::{Call, INPUT, Inside, OUTPUT, SPARE, Stage};
use crate::node::between::{Carriers, receiver};
use crate::node::blocks::Blocks;
use crate::node::kind::Kind;
use crate::node::map::NodeMap;

/// Blocks of the own node are given to all there; those of the others come to their carriers, who give them on as they
/// come.
pub fn allgather_direct<'a, E>(
    call: &Call,
    map: &'a NodeMap,
    carriers: Carriers,
    visit: &mut impl FnMut(Stage<'a>) -> Result<(), E>,
) -> Result<(), E> {
    let blocks = &map.streams(carriers)[map.place];
    for of_node in blocks.chunk_by(|a, b| map.node_of[*a] == map.node_of[*b]) {
        match carriers {
            Carriers::Leader => {
                let from = map.nodes[map.node_of[of_node[0]]][0];
                visit(Stage::Receive {
                    blocks: of_node,
                    from,
                })?;
            }
            Carriers::Each => {
                for block in of_node.chunks(1) {
                    let from = block[0];
                    visit(Stage::Receive {
                        blocks: block,
                        from,
                    })?;
                }
            }
        }
    }
    match carriers {
        Carriers::Leader => {
            gather_here(call, map, visit)?;
            if map.place == 0 {
                send_to_nodes(map, (carriers, map.here()), visit)?;
            }
        }
        Carriers::Each => {
            // What is sent need not have been given to the node before.
            call.place_own_block(map, visit)?;
            let own = &map.here()[map.place..=map.place];
            send_to_nodes(map, (carriers, own), visit)?;
            gather_all(call, map, visit)?;
        }
    }
    let givers = match carriers {
        Carriers::Leader => 1,
        Carriers::Each => map.n_here(),
    };
    visit(Stage::Inside(Inside {
        kind: Kind::Exchange { givers },
        source: OUTPUT,
        target: OUTPUT,
        units: call.block,
        blocks: Blocks::Gathered(map.streams(carriers)),
        in_place: true,
        arriving: true,
    }))?;
    visit(Stage::Finish)
}

/// What this rank carries goes to every other node, the one below first.
fn send_to_nodes<'a, E>(
    map: &'a NodeMap,
    (carriers, blocks): (Carriers, &'a [usize]),
    visit: &mut impl FnMut(Stage<'a>) -> Result<(), E>,
) -> Result<(), E> {
    let n_nodes = map.nodes.len();
    for step in 1..n_nodes {
        let there = &map.nodes[(map.node + n_nodes - step) % n_nodes];
        let to = there[receiver(carriers, map.place, there.len())];
        visit(Stage::Send {
            from: OUTPUT,
            blocks,
            to,
        })?;
    }
    Ok(())
}

/// Blocks for other nodes go to their ranks, those for the own node through its memory.
pub fn alltoall_direct<'a, E>(
    call: &Call,
    map: &'a NodeMap,
    visit: &mut impl FnMut(Stage<'a>) -> Result<(), E>,
) -> Result<(), E> {
    let n_nodes = map.nodes.len();
    let mut input = INPUT;
    if call.in_place {
        // It is overwritten while it is sent.
        let units = call.block * map.n_ranks() as u64;
        visit(Stage::Copy {
            from: INPUT,
            to: SPARE,
            units,
        })?;
        input = SPARE;
    }
    for step in 1..n_nodes {
        for blocks in map.nodes[(map.node + step) % n_nodes].chunks(1) {
            let from = blocks[0];
            visit(Stage::Receive { blocks, from })?;
        }
    }
    for step in 1..n_nodes {
        let there = &map.nodes[(map.node + n_nodes - step) % n_nodes];
        // Not all ranks of the node begin with the same one.
        for turn in 0..there.len() {
            let at = (turn + map.place) % there.len();
            visit(Stage::Send {
                from: input,
                blocks: &there[at..=at],
                to: there[at],
            })?;
        }
    }
    exchange_here(call, map, input, visit)?;
    visit(Stage::Finish)
}
