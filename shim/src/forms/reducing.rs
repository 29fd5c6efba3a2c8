//! Collectives that combine contributions with an operation.

use std::ffi::{c_int, c_void};

use colltune_core::collective::Collective;

use super::{Form, is_refused, numbers, sum};
use crate::abi::{Comm, Datatype, Op, is_in_place};
use crate::arguments::Arguments;
use crate::arguments::lists::List;
use crate::library::collectives::{Collectives, Number};
use crate::node::Operands;
use crate::tune::{Call, Elements, Tuner};

/// Allreduce, reduce, scan, exscan and reduce_scatter_block, whose `count` is one block's.
#[derive(Clone, Copy)]
pub struct Reduction<N> {
    pub collective: Collective,
    pub send: *const c_void,
    pub recv: *mut c_void,
    pub count: N,
    pub datatype: Datatype,
    pub op: Op,
    /// 0 where there is none.
    pub root: c_int,
}

impl<N: Number> Form for Reduction<N> {
    type Number = N;

    #[inline(always)]
    fn classify<'a>(&self, tuner: &'a Tuner, comm: Comm) -> Option<Call<'a>> {
        // Where the result of a rank has no meaning, its buffer has none, and may be any.
        let everywhere = matches!(self.collective, Collective::Allreduce | Collective::Scan);
        if self.root < 0 || (everywhere && is_refused(self.send, self.recv, self.count.into())) {
            return None;
        }
        let in_place = match self.collective {
            Collective::Allreduce | Collective::Scan | Collective::ReduceScatterBlock => {
                is_in_place(self.send)
            }
            _ => false,
        };
        let operands = (self.datatype, self.op);
        tuner.reduction(self.collective, operands, comm, |n_ranks| {
            let count = u64::try_from(self.count.into()).ok()?;
            let blocks = match self.collective {
                Collective::ReduceScatterBlock => n_ranks.into(),
                _ => 1,
            };
            Some(Elements {
                count: count.saturating_mul(blocks),
                equal_blocks: true,
                in_place,
            })
        })
    }

    #[inline(always)]
    fn again(&self, tuner: &Tuner, comm: Comm) -> Option<c_int> {
        if self.collective != Collective::Allreduce {
            return None;
        }
        let operands = Operands {
            send: self.send,
            recv: self.recv,
            count: self.count.into(),
            datatype: self.datatype,
            op: self.op,
        };
        // SAFETY: the application passed these arguments to a collective on this communicator.
        unsafe { tuner.allreduce_again(operands, comm) }
    }

    #[inline(always)]
    fn arguments(&self) -> Arguments {
        Arguments::Reduction {
            send: self.send,
            recv: self.recv,
            count: self.count.into(),
            datatype: self.datatype,
            op: self.op,
            root: self.root,
        }
    }

    #[inline(always)]
    unsafe fn native(&self, _: &Tuner, library: &Collectives<N>, comm: Comm) -> c_int {
        let Reduction {
            collective,
            send,
            recv,
            count,
            datatype,
            op,
            root,
        } = *self;
        let function = match collective {
            Collective::Allreduce => library.allreduce,
            Collective::Scan => library.scan,
            Collective::Exscan => library.exscan,
            Collective::ReduceScatterBlock => library.reduce_scatter_block,
            // SAFETY: the caller's promise.
            _ => return unsafe { (library.reduce)(send, recv, count, datatype, op, root, comm) },
        };
        // SAFETY: the caller's promise.
        unsafe { function(send, recv, count, datatype, op, comm) }
    }
}

/// Reduce_scatter.
#[derive(Clone, Copy)]
pub struct ReduceScatter<N> {
    pub send: *const c_void,
    pub recv: *mut c_void,
    pub counts: *const N,
    pub datatype: Datatype,
    pub op: Op,
}

impl<N: Number> Form for ReduceScatter<N> {
    type Number = N;

    #[inline]
    fn classify<'a>(&self, tuner: &'a Tuner, comm: Comm) -> Option<Call<'a>> {
        let operands = (self.datatype, self.op);
        tuner.reduction(Collective::ReduceScatter, operands, comm, |n_ranks| {
            // SAFETY: MPI asks for a count for each rank, the same on all ranks.
            let counts = unsafe { numbers(self.counts, n_ranks) }?;
            let first = counts.first().map_or(0, |&count| count.into());
            // A rank without elements may have no receive buffer, and then is not in place with the
            // others; so such calls count as in place on all ranks.
            let some_without = counts.iter().any(|&count| count.into() == 0);
            Some(Elements {
                count: sum(counts),
                equal_blocks: counts.iter().all(|&count| count.into() == first),
                in_place: some_without || is_in_place(self.send),
            })
        })
    }

    #[inline]
    fn arguments(&self) -> Arguments {
        Arguments::ReduceScatter {
            send: self.send,
            recv: self.recv,
            counts: List::of(self.counts),
            datatype: self.datatype,
            op: self.op,
        }
    }

    #[inline]
    unsafe fn native(&self, _: &Tuner, library: &Collectives<N>, comm: Comm) -> c_int {
        let ReduceScatter {
            send,
            recv,
            counts,
            datatype,
            op,
        } = *self;
        // SAFETY: the caller's promise.
        unsafe { (library.reduce_scatter)(send, recv, counts, datatype, op, comm) }
    }
}
