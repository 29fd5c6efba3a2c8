//! Our own families: each call goes to the one that runs its variant.

use std::ffi::c_int;

use colltune_core::catalogue::Own;

use crate::library::Pmpi;
use crate::mockup;
use crate::node::{self, NodeMemory};
use crate::own_call::OwnCall;
use crate::p2p::{self, Schedules};
use crate::private::Parent;
use crate::world::World;

/// What our own families keep with a communicator.
#[derive(Default)]
pub struct OwnFamilies {
    pub schedules: Schedules,
    pub node: NodeMemory,
}

impl OwnFamilies {
    /// What a call over the nodes takes.
    pub fn on_nodes(&mut self) -> (&mut Schedules, &mut NodeMemory) {
        (&mut self.schedules, &mut self.node)
    }

    /// Frees what hangs on the communicator; waits for nobody.
    pub fn free(&mut self, pmpi: &Pmpi) {
        self.node.free(pmpi);
        self.schedules.free();
    }
}

/// Sees to it that a call can be run. Collective at the first call of a variant and size class;
/// the answer is the same on all ranks.
#[inline]
pub fn ready(
    world: &World,
    parent: Parent,
    families: &mut OwnFamilies,
    call: &OwnCall<Own>,
) -> bool {
    match call.own {
        Own::Schedule(own) => {
            let schedules = &mut families.schedules;
            p2p::ready(world, parent, schedules, &call.by(own))
        }
        Own::Node(own) => node::ready(world, parent, families.on_nodes(), &call.by(own)),
        Own::Composed(own) => mockup::ready(world, parent, &mut families.schedules, &call.by(own)),
    }
}

/// Runs a call that is ready. `default` runs where an argument is wrong, so that the library says so.
#[inline]
pub fn run(
    world: &World,
    parent: Parent,
    families: &mut OwnFamilies,
    call: &OwnCall<Own>,
    default: impl Fn() -> c_int,
) -> c_int {
    match call.own {
        Own::Schedule(own) => {
            let schedules = &mut families.schedules;
            p2p::run(world, parent, schedules, &call.by(own), default)
        }
        Own::Node(own) => node::run(world, parent, families.on_nodes(), &call.by(own), default),
        Own::Composed(own) => mockup::run(world, parent, &call.by(own), default),
    }
}
