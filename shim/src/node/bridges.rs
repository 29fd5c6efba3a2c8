//! Calls of the library's between the nodes, by its own choice.
//!
//! The ranks in one place of each node have a communicator of ours, as a schedule's leaders and lanes have
//! none: for those in the first place, and as many more as are lanes, made at once. Its ranks are the nodes
//! in their order.

use std::ffi::{c_int, c_void};
use std::ptr::null_mut;

use colltune_core::collective::Collective;

use super::team::Team;
use crate::abi::{self, Comm};
use crate::arguments::{Combine, Input, View};
use crate::library::Pmpi;
use crate::p2p::endpoint::check;
use crate::private::{self, Parent, Private, Who};
use crate::world::World;

/// The communicators across the nodes that hang on one of the program's.
#[derive(Default)]
pub struct Bridges {
    /// On which the library chooses by itself.
    plain: Private,
}

impl Bridges {
    /// Sees to it that the library can be called between the nodes. Collective over the program's communicator;
    /// the answer is the same on all its ranks.
    #[inline]
    pub fn ready(&mut self, world: &World, parent: Parent, team: &Team) -> bool {
        let who = Who::Coloured {
            colour: (team.map.place < team.map.lanes).then_some(team.map.place as c_int),
            key: team.map.node as c_int,
        };
        let split = || private::split(world, parent.comm, who);
        self.plain.ready(world, parent, split)
    }

    /// Runs a call that is ready, on a rank that has a part in it.
    ///
    /// # Safety
    /// The view's members are the nodes, and its buffers are valid.
    pub unsafe fn run(&self, world: &World, view: &View) -> Result<(), c_int> {
        let Private::Made(comm) = self.plain else {
            unreachable!("a variant runs only after `ready` said so");
        };
        // SAFETY: the caller promises a call of the ranks of `comm`, one of each node, with valid buffers.
        check(unsafe { call(world.pmpi, view, comm) })
    }

    /// Frees them, without waiting for other ranks.
    pub fn free(&mut self, pmpi: &Pmpi) {
        self.plain.free(pmpi);
    }
}

/// Counts are those of messages that an int counts.
///
/// # Safety
/// The view's members are the ranks of `comm`, and its buffers are valid.
unsafe fn call(pmpi: &Pmpi, view: &View, comm: Comm) -> c_int {
    let all = &pmpi.collectives;
    let (count, datatype, root) = (view.block as c_int, view.unit.datatype, view.root as c_int);
    let in_place = abi::MPI_IN_PLACE as *mut c_void;
    let send = match view.input {
        Input::User(memory) => memory.start.cast(),
        _ => in_place,
    };
    let recv = view.output.memory();
    let recv = recv.map_or(null_mut(), |memory| memory.start.cast());
    // SAFETY: the caller promises the members and valid buffers, which are as long as the view says.
    unsafe {
        match (view.collective, view.unit.combine) {
            (Collective::Reduce, Some(Combine { op, .. })) => {
                (all.reduce)(send, recv, count, datatype, op, root, comm)
            }
            (_, Some(Combine { op, .. })) => (all.allreduce)(send, recv, count, datatype, op, comm),
            (Collective::Bcast, _) => (all.bcast)(recv, count, datatype, root, comm),
            (Collective::Allgather, _) => {
                (all.allgather)(send, count, datatype, recv, count, datatype, comm)
            }
            (Collective::Alltoall, _) => {
                (all.alltoall)(send, count, datatype, recv, count, datatype, comm)
            }
            _ => (pmpi.barrier)(comm),
        }
    }
}
