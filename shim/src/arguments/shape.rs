//! The arguments of a call, in the shape of its collective.

use std::ffi::{c_int, c_void};

use super::lists::{List, Listed};
use super::side::Side;
use crate::abi::{Datatype, Op};

/// The arguments of a call, in the shape of its collective. The root of those without one is 0.
#[derive(Clone, Copy)]
pub enum Arguments {
    Reduction(Reduction),
    Bcast {
        all: Side,
        root: c_int,
    },
    /// Allgather, alltoall, gather and scatter.
    Blocks {
        send: Side,
        recv: Side,
        root: c_int,
    },
    /// Allgatherv, alltoallv, alltoallw, gatherv and scatterv.
    Uneven {
        send: UnevenSide,
        recv: UnevenSide,
        root: c_int,
    },
    /// The barrier.
    Nothing,
}

/// The arguments of all that combine.
#[derive(Clone, Copy)]
pub struct Reduction {
    pub send: *const c_void,
    pub recv: *mut c_void,
    pub count: Counted,
    pub datatype: Datatype,
    pub op: Op,
    pub root: c_int,
}

/// The elements of a reduction.
#[derive(Clone, Copy)]
pub enum Counted {
    /// So many, or in each block of a reduce_scatter_block.
    All(i64),
    /// Those of each rank's result; the same on all ranks.
    Each(List),
}

impl Counted {
    #[inline(always)]
    pub fn all(count: impl Into<i64>) -> Counted {
        Counted::All(count.into())
    }
}

/// What one side of a call with uneven blocks has.
#[derive(Clone, Copy)]
pub enum UnevenSide {
    One(Side),
    Each(Listed),
}

/// The arguments of a reduction.
#[inline(always)]
pub fn reduction(
    (send, recv): (*const c_void, *mut c_void),
    count: Counted,
    datatype: Datatype,
    op: Op,
    root: c_int,
) -> Arguments {
    Arguments::Reduction(Reduction {
        send,
        recv,
        count,
        datatype,
        op,
        root,
    })
}

/// Those of equal blocks.
#[inline(always)]
pub fn blocks<N: Into<i64>>(
    send: (*const c_void, N, Datatype),
    recv: (*mut c_void, N, Datatype),
    root: c_int,
) -> Arguments {
    Arguments::Blocks {
        send: Side::new(send.0, send.1, send.2),
        recv: Side::new(recv.0, recv.1, recv.2),
        root,
    }
}

/// Those of blocks that differ in length.
#[inline(always)]
pub fn uneven(send: UnevenSide, recv: UnevenSide, root: c_int) -> Arguments {
    Arguments::Uneven { send, recv, root }
}

impl Arguments {
    #[inline(always)]
    pub(super) fn root(&self) -> c_int {
        match *self {
            Arguments::Reduction(Reduction { root, .. })
            | Arguments::Bcast { root, .. }
            | Arguments::Blocks { root, .. }
            | Arguments::Uneven { root, .. } => root,
            Arguments::Nothing => 0,
        }
    }
}
