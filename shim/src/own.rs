//! Our own families: each call goes to the one that runs its variant.

use std::ffi::c_int;

use colltune_core::catalogue::Own;
use colltune_core::decide::rooms::Class;

use crate::arguments::View;
use crate::library::Pmpi;
use crate::node::{self, NodeMemory};
use crate::p2p::{self, Schedules};
use crate::padded;
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

    /// Frees what hangs on the communicator, without waiting.
    pub fn free(&mut self, pmpi: &Pmpi) {
        self.node.free(pmpi);
        self.schedules.free();
    }
}

/// A call of one of our own variants.
pub struct OwnCall<'a> {
    pub own: Own,
    /// The calls for which what the ranks agree on holds; `None` where that is this one alone.
    pub class: Option<Class>,
    /// The call as this rank sees it; `None` where an argument is wrong.
    pub view: Option<&'a View>,
}

/// Sees to it that a call can be run. Collective at the first call of a variant and size class;
/// the answer is the same on all ranks.
#[inline]
pub fn ready(world: &World, parent: Parent, families: &mut OwnFamilies, call: &OwnCall) -> bool {
    let OwnFamilies { schedules, node } = families;
    let is_open = match call.own {
        Own::Schedule(_) => p2p::open(world, parent, schedules),
        Own::Node(own) => node::open(world, parent, (schedules, node), own),
    };
    let of_view = |schedules: &mut Schedules, view: &View| match call.own {
        Own::Schedule(own) => p2p::has_room(world, schedules, own, view),
        Own::Node(own) => node::has_room(world, (schedules, node), own, view),
    };
    let has_room = |schedules: &mut Schedules| match call.view {
        // Wrong arguments are no want of room: the library will report them.
        None => Some(p2p::Need::default()),
        Some(view) if padded::is_padded(call.own, view.collective) => {
            padded::has_room(schedules, view, of_view)
        }
        Some(view) => of_view(schedules, view),
    };
    is_open && p2p::settled(world, parent, schedules, call.class, has_room)
}

/// Compiles what a call that is ready lacks still: what the ranks agreed on with another root holds for this one, too.
/// A sampled call's clock starts behind that.
pub fn compile(families: &mut OwnFamilies, call: &OwnCall) {
    let OwnFamilies { schedules, node } = families;
    let mut compile = |view: &View| match call.own {
        Own::Schedule(own) => schedules.compile(own, view),
        Own::Node(own) => node::compile((schedules, node), own, view),
    };
    match call.view {
        Some(view) if padded::is_padded(call.own, view.collective) => {
            if let Some(equal) = padded::outline(view) {
                compile(&equal);
            }
        }
        Some(view) => compile(view),
        None => {}
    }
}

/// Runs a call that is ready.
///
/// Errors: the code that still has to go to the program's error handler.
#[inline]
pub fn run(world: &World, families: &mut OwnFamilies, own: Own, view: &View) -> Result<(), c_int> {
    let OwnFamilies { schedules, node } = families;
    let mut run = |schedules: &mut Schedules, view: &View| match own {
        Own::Schedule(own) => p2p::run(world, schedules, own, view),
        Own::Node(own) => node::run(world, (schedules, node), own, view),
    };
    match padded::is_padded(own, view.collective) {
        true => padded::run(world, schedules, view, run),
        false => run(schedules, view),
    }
}
