//! Shared memory inside the nodes: each node of a communicator has a segment of its own.
//!
//! What the ranks do with it is told by `colltune_core::node`. On several nodes one rank of each, its
//! leader, meets the other leaders in a schedule over messages; before that the node combines, and
//! after it the node spreads. A root leads its node, so that nothing goes a longer way.
//!
//! In the order of a call: the [`team`] of the communicator, the [`segment`] of its node, how ranks
//! wait for each other ([`patience`]) as long as there are any ([`neighbours`]), the [`short`] messages that travel beside their flags, the
//! [`elements`] of all others, the [`pieces`] that carry them, the [`bridges`] on which the library
//! meets the other nodes, and [`call`] and [`barrier`], which put phases together;
//! and the short way of a call that is like the last one ([`again`]).

mod team;

mod neighbours;
mod patience;
mod segment;

mod elements;
mod pieces;
mod short;
mod transfers;

mod bridges;
mod memory;
pub use memory::NodeMemory;

mod barrier;
mod collect;
mod direct;
mod lanes;
mod overlap;
mod part;
mod phases;
mod reads;

mod call;

mod again;
pub use again::{Again, Operands};

use std::ffi::c_int;

use colltune_core::catalogue::{Crossing, OnNodes};

use crate::own_call::OwnCall;
use crate::p2p::{self, Schedules};
use crate::private::Parent;
use crate::world::World;

/// Sees to it that a call can be run. Collective at the first call of a variant and size class;
/// the answer is the same on all ranks.
#[inline]
pub fn ready(
    world: &World,
    parent: Parent,
    (schedules, node): (&mut Schedules, &mut NodeMemory),
    call: &OwnCall<OnNodes>,
) -> bool {
    match node {
        NodeMemory::Open(_) => {}
        NodeMemory::Failed => return false,
        NodeMemory::Unopened => {
            if !p2p::open(world, parent, schedules) {
                return false;
            }
            *node = NodeMemory::open(world, parent, schedules.channel());
        }
    }
    let NodeMemory::Open(nodes) = node else {
        return false;
    };
    if matches!(call.own.crossing(), Some(Crossing::Library))
        && !nodes.bridges.ready(world, parent, &nodes.team)
    {
        return false;
    }
    p2p::settled(
        world,
        parent,
        schedules,
        (call.variant, call.bytes),
        &call.arguments,
        |schedules| call::has_room(world, schedules, nodes, call),
    )
}

/// Runs a call that is ready. `default` runs where an argument is wrong, so that the library says so.
#[inline]
pub fn run(
    world: &World,
    parent: Parent,
    (schedules, node): (&mut Schedules, &mut NodeMemory),
    call: &OwnCall<OnNodes>,
    default: impl Fn() -> c_int,
) -> c_int {
    call::run(world, parent, (schedules, node), call, default)
}
