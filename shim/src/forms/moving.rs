//! Collectives that move equal blocks, and the barrier.

use std::any::TypeId;
use std::ffi::{c_int, c_void};

use colltune_core::collective::Collective;
use colltune_core::decide::call::{SharedCall, SharedDetails};

use super::{Form, is_beyond, is_into_place, is_own_block, is_wrong};
use crate::abi::{Comm, Datatype, is_in_place};
use crate::arguments;
use crate::arguments::Arguments;
use crate::library::collectives::{Collectives, Number};
use crate::steer;
use crate::tune::Tuner;
use crate::world::World;

#[derive(Clone, Copy)]
pub struct Bcast<N> {
    pub buffer: *mut c_void,
    pub count: N,
    pub datatype: Datatype,
    pub root: c_int,
}

impl<N: Number> Form for Bcast<N> {
    type Number = N;

    #[inline(always)]
    fn shared(&self, world: &World, _: u32) -> SharedCall {
        let size = world.type_bytes(self.datatype);
        SharedCall::of_elements(Collective::Bcast, self.count.into(), size)
    }

    #[inline]
    fn details(&self, _: &World, _: u32) -> SharedDetails {
        SharedDetails::MOVES
    }

    #[inline]
    fn is_refused(&self, world: &World, _: Comm, n_ranks: u32) -> bool {
        is_wrong(world, self.count, self.datatype) || is_beyond(self.root, n_ranks)
    }

    #[inline(always)]
    fn arguments(&self) -> Arguments {
        Arguments::Bcast {
            buffer: self.buffer,
            count: self.count.into(),
            datatype: self.datatype,
            root: self.root,
        }
    }

    #[inline(always)]
    unsafe fn native(&self, tuner: &Tuner, library: &Collectives<N>, comm: Comm) -> c_int {
        let Bcast {
            buffer,
            count,
            datatype,
            root,
        } = *self;
        if TypeId::of::<N>() == TypeId::of::<c_int>() {
            let count = count.into() as c_int;
            // SAFETY: the same bytes move between the same ranks; see `steer::bcast_as_bytes`.
            return unsafe { steer::bcast_as_bytes(tuner, buffer, count, datatype, root, comm) };
        }
        // SAFETY: the caller promises valid arguments of this collective on `comm`, and this is its function.
        unsafe { (library.bcast)(buffer, count, datatype, root, comm) }
    }
}

/// Allgather, alltoall, gather and scatter.
#[derive(Clone, Copy)]
pub struct EqualBlocks<N> {
    pub collective: Collective,
    pub send: *const c_void,
    pub send_count: N,
    pub send_type: Datatype,
    pub recv: *mut c_void,
    pub recv_count: N,
    pub recv_type: Datatype,
    /// 0 where there is none.
    pub root: c_int,
}

impl<N: Number> Form for EqualBlocks<N> {
    type Number = N;

    #[inline(always)]
    fn shared(&self, world: &World, _: u32) -> SharedCall {
        let (count, datatype) = self.block();
        SharedCall::of_elements(self.collective, count.into(), world.type_bytes(datatype))
    }

    #[inline]
    fn details(&self, _: &World, _: u32) -> SharedDetails {
        let everywhere = matches!(
            self.collective,
            Collective::Allgather | Collective::Alltoall
        );
        SharedDetails {
            in_place: everywhere && is_in_place(self.send),
            ..SharedDetails::MOVES
        }
    }

    #[inline]
    fn is_refused(&self, world: &World, comm: Comm, n_ranks: u32) -> bool {
        let (count, datatype) = self.block();
        let everywhere = matches!(
            self.collective,
            Collective::Allgather | Collective::Alltoall
        );
        is_wrong(world, count, datatype)
            || is_beyond(self.root, n_ranks)
            || (everywhere && is_into_place(self.recv, self.recv_count))
            || self.is_refused_at_root(world, comm)
    }

    #[inline(always)]
    fn arguments(&self) -> Arguments {
        Arguments::Blocks {
            send: one(self.send.cast_mut(), self.send_count, self.send_type),
            recv: one(self.recv, self.recv_count, self.recv_type),
            root: self.root,
        }
    }

    #[inline(always)]
    unsafe fn native(&self, tuner: &Tuner, library: &Collectives<N>, comm: Comm) -> c_int {
        if self.collective == Collective::Alltoall && TypeId::of::<N>() == TypeId::of::<c_int>() {
            let sent = (self.send, self.send_count.into() as c_int, self.send_type);
            let received = (self.recv, self.recv_count.into() as c_int, self.recv_type);
            // SAFETY: the same bytes move between the same ranks; see `steer::alltoall_as_bytes`.
            let code = unsafe { steer::alltoall_as_bytes(tuner, sent, received, comm) };
            if let Some(code) = code {
                return code;
            }
        }
        let EqualBlocks {
            collective,
            send,
            send_count: n_sent,
            send_type,
            recv,
            recv_count: n_received,
            recv_type,
            root,
        } = *self;
        let rooted = match collective {
            Collective::Gather => library.gather,
            Collective::Scatter => library.scatter,
            _ => {
                let function = match collective {
                    Collective::Allgather => library.allgather,
                    _ => library.alltoall,
                };
                // SAFETY: the caller promises valid arguments of this collective on `comm`, and this is its function.
                return unsafe {
                    function(send, n_sent, send_type, recv, n_received, recv_type, comm)
                };
            }
        };
        // SAFETY: the caller promises valid arguments of this collective on `comm`, and this is its function.
        unsafe {
            rooted(
                send, n_sent, send_type, recv, n_received, recv_type, root, comm,
            )
        }
    }
}

impl<N: Number> EqualBlocks<N> {
    /// Whether this is the root of a gather or scatter that is refused.
    #[inline]
    fn is_refused_at_root(&self, world: &World, comm: Comm) -> bool {
        let send = one(self.send.cast_mut(), self.send_count, self.send_type);
        let recv = one(self.recv, self.recv_count, self.recv_type);
        let (all, block) = match self.collective {
            Collective::Gather => (recv, send),
            Collective::Scatter => (send, recv),
            _ => return false,
        };
        is_own_block(world, (comm, self.root), block, all, |rank| {
            Some((all.count, all.count.checked_mul(rank as i64)?))
        })
    }

    /// One block, as this rank knows it; its signature is the same on all ranks.
    #[inline(always)]
    fn block(&self) -> (N, Datatype) {
        let sent = (self.send_count, self.send_type);
        let received = (self.recv_count, self.recv_type);
        match self.collective {
            // The receive side has a meaning at the root alone, and there in place only it has one.
            Collective::Gather if is_in_place(self.send) => received,
            Collective::Gather => sent,
            Collective::Scatter if is_in_place(self.recv) => sent,
            _ => received,
        }
    }
}

#[derive(Clone, Copy)]
pub struct Barrier;

impl Form for Barrier {
    type Number = c_int;

    #[inline(always)]
    fn shared(&self, _: &World, _: u32) -> SharedCall {
        SharedCall::without_size(Collective::Barrier)
    }

    #[inline]
    fn details(&self, _: &World, _: u32) -> SharedDetails {
        SharedDetails::MOVES
    }

    #[inline]
    fn is_refused(&self, _: &World, _: Comm, _: u32) -> bool {
        false
    }

    #[inline(always)]
    fn arguments(&self) -> Arguments {
        Arguments::Nothing
    }

    #[inline(always)]
    unsafe fn native(&self, tuner: &Tuner, _: &Collectives<c_int>, comm: Comm) -> c_int {
        // SAFETY: the caller promises a communicator on which a barrier may be called; there are no other arguments.
        unsafe { (tuner.pmpi.barrier)(comm) }
    }
}

pub(super) fn one(start: *mut c_void, count: impl Number, datatype: Datatype) -> arguments::Side {
    arguments::Side {
        start,
        count: count.into(),
        datatype,
    }
}
