//! Collectives that move blocks of which each has a length of its own: their counts are lists.

use std::ffi::{c_int, c_void};

use colltune_core::collective::Collective;
use colltune_core::decide::call::{SharedCall, SharedDetails};

use super::moving::one;
use super::{Form, is_beyond, is_into_place, is_own_block, numbers, total};
use crate::abi::{Comm, Datatype, is_in_place};
use crate::arguments::lists::{List, Listed};
use crate::arguments::{Arguments, UnevenSide};
use crate::library::collectives::{Collectives, Number};
use crate::tune::Tuner;
use crate::world::World;

/// Allgatherv and gatherv.
#[derive(Clone, Copy)]
pub struct Gathered<N: Number> {
    pub collective: Collective,
    pub send: *const c_void,
    pub send_count: N,
    pub send_type: Datatype,
    pub recv: *mut c_void,
    pub counts: *const N,
    pub places: *const N::Place,
    pub recv_type: Datatype,
    /// 0 where there is none.
    pub root: c_int,
}

impl<N: Number> Form for Gathered<N> {
    type Number = N;

    #[inline]
    fn shared(&self, world: &World, n_ranks: u32) -> SharedCall {
        if self.collective == Collective::Gatherv {
            return SharedCall::without_size(Collective::Gatherv);
        }
        // SAFETY: MPI asks for a count for each rank; in bytes they are the same on all ranks.
        let count = total(unsafe { numbers(self.counts, n_ranks) });
        let size = world.type_bytes(self.recv_type);
        let all = SharedCall::of_elements(Collective::Allgatherv, count, size);
        SharedCall {
            bytes: all.bytes / u64::from(n_ranks.max(1)),
            ..all
        }
    }

    #[inline]
    fn details(&self, _: &World, _: u32) -> SharedDetails {
        SharedDetails {
            in_place: self.collective == Collective::Allgatherv && is_in_place(self.send),
            ..SharedDetails::MOVES
        }
    }

    #[inline]
    fn is_refused(&self, world: &World, comm: Comm, n_ranks: u32) -> bool {
        if self.collective == Collective::Gatherv {
            let block = one(self.send.cast_mut(), self.send_count, self.send_type);
            let all = one(self.recv, self.send_count, self.recv_type);
            let own = |rank| own_place(self.counts, self.places, rank);
            return is_beyond(self.root, n_ranks)
                || is_own_block(world, (comm, self.root), block, all, own);
        }
        // SAFETY: MPI asks for a count for each rank.
        let counts = unsafe { numbers(self.counts, n_ranks) };
        counts.is_none()
            || world.is_no_type(self.recv_type)
            || (is_in_place(self.recv) && is_into_place(self.recv, total(counts)))
    }

    #[inline]
    fn arguments(&self) -> Arguments {
        let send = one(self.send.cast_mut(), self.send_count, self.send_type);
        let recv = ListedSide {
            buffer: self.recv,
            counts: self.counts,
            places: self.places,
            types: self.recv_type,
        };
        Arguments::Uneven {
            send: UnevenSide::One(send),
            recv: recv.each(recv.buffer),
            root: self.root,
        }
    }

    #[inline]
    unsafe fn native(&self, _: &Tuner, library: &Collectives<N>, comm: Comm) -> c_int {
        let Gathered {
            collective,
            send,
            send_count,
            send_type,
            recv,
            counts,
            places,
            recv_type,
            root,
        } = *self;
        // SAFETY: the caller promises valid arguments of this collective on `comm`, and this is its function.
        unsafe {
            match collective {
                Collective::Allgatherv => (library.allgatherv)(
                    send, send_count, send_type, recv, counts, places, recv_type, comm,
                ),
                _ => (library.gatherv)(
                    send, send_count, send_type, recv, counts, places, recv_type, root, comm,
                ),
            }
        }
    }
}

/// Scatterv.
#[derive(Clone, Copy)]
pub struct Scattered<N: Number> {
    pub send: *const c_void,
    pub counts: *const N,
    pub places: *const N::Place,
    pub send_type: Datatype,
    pub recv: *mut c_void,
    pub recv_count: N,
    pub recv_type: Datatype,
    pub root: c_int,
}

impl<N: Number> Form for Scattered<N> {
    type Number = N;

    #[inline]
    fn shared(&self, _: &World, _: u32) -> SharedCall {
        SharedCall::without_size(Collective::Scatterv)
    }

    #[inline]
    fn details(&self, _: &World, _: u32) -> SharedDetails {
        SharedDetails::MOVES
    }

    #[inline]
    fn is_refused(&self, world: &World, comm: Comm, n_ranks: u32) -> bool {
        let block = one(self.recv, self.recv_count, self.recv_type);
        let all = one(self.send.cast_mut(), self.recv_count, self.send_type);
        let own = |rank| own_place(self.counts, self.places, rank);
        is_beyond(self.root, n_ranks) || is_own_block(world, (comm, self.root), block, all, own)
    }

    #[inline]
    fn arguments(&self) -> Arguments {
        let send = ListedSide {
            buffer: self.send,
            counts: self.counts,
            places: self.places,
            types: self.send_type,
        };
        Arguments::Uneven {
            send: send.each(send.buffer.cast_mut()),
            recv: UnevenSide::One(one(self.recv, self.recv_count, self.recv_type)),
            root: self.root,
        }
    }

    #[inline]
    unsafe fn native(&self, _: &Tuner, library: &Collectives<N>, comm: Comm) -> c_int {
        let Scattered {
            send,
            counts,
            places,
            send_type,
            recv,
            recv_count,
            recv_type,
            root,
        } = *self;
        // SAFETY: the caller promises valid arguments of this collective on `comm`, and this is its function.
        unsafe {
            (library.scatterv)(
                send, counts, places, send_type, recv, recv_count, recv_type, root, comm,
            )
        }
    }
}

/// The count and displacement of a rank's block at a root; `None` where there are none.
fn own_place<N: Number>(
    counts: *const N,
    places: *const N::Place,
    rank: usize,
) -> Option<(i64, i64)> {
    if counts.is_null() || places.is_null() {
        return None;
    }
    // SAFETY: MPI asks the root for a count and a displacement for each rank.
    unsafe { Some((List::of(counts).at(rank), List::of(places).at(rank))) }
}

/// One side of alltoallv or alltoallw.
#[derive(Clone, Copy)]
pub struct ListedSide<N: Number, B, T> {
    pub buffer: B,
    pub counts: *const N,
    pub places: *const N::Place,
    /// One for all blocks, or the address of one for each rank.
    pub types: T,
}

impl<N: Number, B> ListedSide<N, B, Datatype> {
    fn each(&self, start: *mut c_void) -> UnevenSide {
        UnevenSide::Each(Listed {
            start,
            counts: List::of(self.counts),
            places: List::of(self.places),
            datatype: self.types,
        })
    }
}

/// Alltoallv.
#[derive(Clone, Copy)]
pub struct Exchanged<N: Number> {
    pub send: ListedSide<N, *const c_void, Datatype>,
    pub recv: ListedSide<N, *mut c_void, Datatype>,
}

impl<N: Number> Form for Exchanged<N> {
    type Number = N;

    #[inline]
    fn shared(&self, _: &World, _: u32) -> SharedCall {
        SharedCall::without_size(Collective::Alltoallv)
    }

    #[inline]
    fn details(&self, _: &World, _: u32) -> SharedDetails {
        SharedDetails {
            in_place: is_in_place(self.send.buffer),
            ..SharedDetails::MOVES
        }
    }

    #[inline]
    fn is_refused(&self, _: &World, _: Comm, n_ranks: u32) -> bool {
        // SAFETY: MPI asks for a count for each rank.
        let received = || total(unsafe { numbers(self.recv.counts, n_ranks) });
        self.recv.counts.is_null()
            || (is_in_place(self.recv.buffer) && is_into_place(self.recv.buffer, received()))
    }

    #[inline]
    fn arguments(&self) -> Arguments {
        Arguments::Uneven {
            send: self.send.each(self.send.buffer.cast_mut()),
            recv: self.recv.each(self.recv.buffer),
            root: 0,
        }
    }

    #[inline]
    unsafe fn native(&self, _: &Tuner, library: &Collectives<N>, comm: Comm) -> c_int {
        let Exchanged { send: s, recv: r } = *self;
        // SAFETY: the caller promises valid arguments of this collective on `comm`, and this is its function.
        unsafe {
            (library.alltoallv)(
                s.buffer, s.counts, s.places, s.types, r.buffer, r.counts, r.places, r.types, comm,
            )
        }
    }
}

/// Alltoallw.
#[derive(Clone, Copy)]
pub struct ExchangedByType<N: Number> {
    pub send: ListedSide<N, *const c_void, *const c_void>,
    pub recv: ListedSide<N, *mut c_void, *const c_void>,
}

impl<N: Number> Form for ExchangedByType<N> {
    type Number = N;

    #[inline]
    fn shared(&self, _: &World, _: u32) -> SharedCall {
        SharedCall::without_size(Collective::Alltoallw)
    }

    #[inline]
    fn details(&self, _: &World, _: u32) -> SharedDetails {
        SharedDetails {
            in_place: is_in_place(self.send.buffer),
            ..SharedDetails::MOVES
        }
    }

    #[inline]
    fn is_refused(&self, _: &World, _: Comm, n_ranks: u32) -> bool {
        // SAFETY: MPI asks for a count for each rank.
        let received = || total(unsafe { numbers(self.recv.counts, n_ranks) });
        self.recv.counts.is_null()
            || (is_in_place(self.recv.buffer) && is_into_place(self.recv.buffer, received()))
    }

    #[inline]
    fn arguments(&self) -> Arguments {
        Arguments::Nothing
    }

    #[inline]
    unsafe fn native(&self, _: &Tuner, library: &Collectives<N>, comm: Comm) -> c_int {
        let ExchangedByType { send: s, recv: r } = *self;
        // SAFETY: the caller promises valid arguments of this collective on `comm`, and this is its function.
        unsafe {
            (library.alltoallw)(
                s.buffer, s.counts, s.places, s.types, r.buffer, r.counts, r.places, r.types, comm,
            )
        }
    }
}
