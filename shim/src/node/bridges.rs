//! Calls of the library's between the nodes: its own choice, or an algorithm of its own.
//!
//! The ranks in one place of each node have a communicator of ours, as a schedule's leaders and lanes have
//! none: for those in the first place, and as many more as are lanes, made at once. Its ranks are the nodes
//! in their order. A forced algorithm needs what it needs on the program's communicator: in Open MPI a carrier.

use std::ffi::c_int;

use colltune_core::collective::Collective;

use super::team::Team;
use crate::abi::{self, Comm};
use crate::library::Pmpi;
use crate::p2p::arguments::Arguments;
use crate::private::{self, Parent, Private, Who};
use crate::steer::Carriers;
use crate::tune::Tuner;

/// The communicators across the nodes that hang on one of the program's.
#[derive(Default)]
pub struct Bridges {
    /// On which the library chooses by itself.
    plain: Private,
    carriers: Carriers,
}

/// The place of the library's own choice among a collective's variants.
const OWN_CHOICE: u16 = 0;

impl Bridges {
    /// Sees to it that the variant in a place among the collective's can be run between the nodes. Collective
    /// over the program's communicator; the answer is the same on all its ranks.
    #[inline]
    pub fn ready(
        &mut self,
        tuner: &Tuner,
        parent: Parent,
        team: &Team,
        collective: Collective,
        variant: u16,
    ) -> bool {
        let who = Who::Coloured {
            colour: (team.place < team.lanes).then_some(team.place as c_int),
            key: team.node as c_int,
        };
        if matches!(self.plain, Private::Unmade) {
            self.plain = Private::make(tuner, parent, || private::split(tuner, parent.comm, who));
        }
        let members = (parent, who);
        self.plain.is_there()
            && (variant == OWN_CHOICE
                || tuner
                    .steer
                    .ready_among(tuner, members, &mut self.carriers, collective, variant))
    }

    /// Runs a call that is ready, on a rank that has a part in it.
    ///
    /// # Safety
    /// The arguments are those of the collective, of ranks that are nodes.
    pub unsafe fn run(
        &self,
        tuner: &Tuner,
        collective: Collective,
        variant: u16,
        arguments: &Arguments,
    ) -> Result<(), c_int> {
        let Private::Made(plain) = self.plain else {
            unreachable!("a variant runs only after `ready` said so");
        };
        // SAFETY: the caller's promise is passed on.
        let native = |comm| unsafe { call(tuner.pmpi, collective, arguments, comm) };
        let code = match variant {
            OWN_CHOICE => native(plain),
            _ => tuner
                .steer
                .run_among(plain, &self.carriers, collective, variant, native),
        };
        match code {
            abi::SUCCESS => Ok(()),
            code => Err(code),
        }
    }

    /// Frees them, without waiting for other ranks.
    pub fn free(&mut self, pmpi: &Pmpi) {
        self.plain.free(pmpi);
        self.carriers.free(pmpi);
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
