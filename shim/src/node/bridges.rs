//! Calls of the library's between the nodes, by its own choice.
//!
//! The ranks in one place of each node have a communicator of ours, as a schedule's leaders and lanes have
//! none: for those in the first place, and as many more as are lanes, made at once. Its ranks are the nodes
//! in their order.

use std::ffi::c_int;

use colltune_core::collective::Collective;

use super::team::Team;
use crate::abi::{self, Comm};
use crate::arguments::Arguments;
use crate::library::Pmpi;
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
            colour: (team.place < team.lanes).then_some(team.place as c_int),
            key: team.node as c_int,
        };
        let split = || private::split(world, parent.comm, who);
        self.plain.ready(world, parent, split)
    }

    /// Runs a call that is ready, on a rank that has a part in it.
    ///
    /// # Safety
    /// The arguments are those of the collective, of ranks that are nodes.
    pub unsafe fn run(
        &self,
        world: &World,
        collective: Collective,
        arguments: &Arguments,
    ) -> Result<(), c_int> {
        let Private::Made(comm) = self.plain else {
            unreachable!("a variant runs only after `ready` said so");
        };
        // SAFETY: the caller promises the arguments of this collective among the ranks of `comm`, one of each node.
        match unsafe { call(world.pmpi, collective, arguments, comm) } {
            abi::SUCCESS => Ok(()),
            code => Err(code),
        }
    }

    /// Frees them, without waiting for other ranks.
    pub fn free(&mut self, pmpi: &Pmpi) {
        self.plain.free(pmpi);
    }
}

/// # Safety
/// As [`Bridges::run`].
unsafe fn call(pmpi: &Pmpi, collective: Collective, arguments: &Arguments, comm: Comm) -> c_int {
    let all = &pmpi.collectives;
    // SAFETY: the caller's promise is passed on; counts are those of messages that an int counts.
    unsafe {
        match *arguments {
            Arguments::Reduction {
                send,
                recv,
                count,
                datatype,
                op,
                root,
            } => match collective {
                Collective::Reduce => {
                    (all.reduce)(send, recv, count as c_int, datatype, op, root, comm)
                }
                _ => (all.allreduce)(send, recv, count as c_int, datatype, op, comm),
            },
            Arguments::Bcast {
                buffer,
                count,
                datatype,
                root,
            } => (all.bcast)(buffer, count as c_int, datatype, root, comm),
            Arguments::Blocks { send, recv, .. } => {
                let run = match collective {
                    Collective::Allgather => all.allgather,
                    _ => all.alltoall,
                };
                let (sent, received) = (send.count as c_int, recv.count as c_int);
                run(
                    send.start,
                    sent,
                    send.datatype,
                    recv.start,
                    received,
                    recv.datatype,
                    comm,
                )
            }
            _ => (pmpi.barrier)(comm),
        }
    }
}
