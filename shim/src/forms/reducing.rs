//! Collectives that combine contributions with an operation.

use std::ffi::{c_int, c_void};

use colltune_core::collective::Collective;
use colltune_core::decide::call::{SharedCall, SharedDetails};

use super::{Form, is_beyond, is_into_place, is_wrong, numbers, own_rank_at_root, total};
use crate::abi::{self, Comm, Datatype, Op, bits, is_in_place};
use crate::arguments::lists::List;
use crate::arguments::{Arguments, Counted};
use crate::library::collectives::{Collectives, Number};
use crate::node::AllreduceArguments;
use crate::tune::Tuner;
use crate::world::World;

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
    fn shared(&self, world: &World, n_ranks: u32) -> SharedCall {
        let count = self.total(n_ranks);
        SharedCall::of_elements(self.collective, count, world.type_bytes(self.datatype))
    }

    #[inline]
    fn details(&self, world: &World, n_ranks: u32) -> SharedDetails {
        // Where the result of a rank has no meaning, its buffer has none, and may be any.
        let in_place = match self.collective {
            Collective::Allreduce | Collective::Scan | Collective::ReduceScatterBlock => {
                is_in_place(self.send)
            }
            _ => false,
        };
        SharedDetails {
            in_place,
            ..combining(world, self.total(n_ranks), self.datatype, self.op)
        }
    }

    #[inline]
    fn is_refused(&self, world: &World, comm: Comm, n_ranks: u32) -> bool {
        let everywhere = matches!(self.collective, Collective::Allreduce | Collective::Scan);
        is_wrong(world, self.count, self.datatype)
            || is_no_operation(world, self.op)
            || is_beyond(self.root, n_ranks)
            || (everywhere && (is_into_place(self.recv, self.count) || self.is_alias()))
            || (self.collective == Collective::Reduce && self.is_refused_by_role(world, comm))
    }

    #[inline(always)]
    fn repeat(&self, tuner: &Tuner, comm: Comm) -> Option<c_int> {
        if self.collective != Collective::Allreduce {
            return None;
        }
        let operands = AllreduceArguments {
            send: self.send,
            recv: self.recv,
            count: self.count.into(),
            datatype: self.datatype,
            op: self.op,
        };
        // SAFETY: the application passed these arguments to a collective on this communicator.
        unsafe { tuner.repeat_allreduce(operands, comm) }
    }

    #[inline(always)]
    fn arguments(&self) -> Arguments {
        Arguments::Reduction {
            send: self.send,
            recv: self.recv,
            count: Counted::All(self.count.into()),
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
        // One buffer for both sides, where Open MPI lets that pass, is what its own choice takes for a call in place;
        // some of its algorithms would read what they have written.
        let everywhere = matches!(collective, Collective::Allreduce | Collective::Scan);
        let send = match cfg!(mpi = "openmpi") && everywhere && send == recv.cast_const() {
            true => abi::MPI_IN_PLACE as *const c_void,
            false => send,
        };
        let function = match collective {
            Collective::Allreduce => library.allreduce,
            Collective::Scan => library.scan,
            Collective::Exscan => library.exscan,
            Collective::ReduceScatterBlock => library.reduce_scatter_block,
            // SAFETY: the caller promises valid arguments of this collective on `comm`, and this is its function.
            _ => return unsafe { (library.reduce)(send, recv, count, datatype, op, root, comm) },
        };
        // SAFETY: the caller promises valid arguments of this collective on `comm`, and this is its function.
        unsafe { function(send, recv, count, datatype, op, comm) }
    }
}

impl<N: Number> Reduction<N> {
    /// The elements of all blocks.
    #[inline(always)]
    fn total(&self, n_ranks: u32) -> i64 {
        let count: i64 = self.count.into();
        match self.collective {
            Collective::ReduceScatterBlock => count.saturating_mul(n_ranks.into()),
            _ => count,
        }
    }

    /// Whether a reduce is refused on this rank for its buffers: the root's result may lie neither in place nor where
    /// its operands are, the others have operands.
    #[inline]
    fn is_refused_by_role(&self, world: &World, comm: Comm) -> bool {
        let has_alias = !self.send.is_null() && self.send == self.recv.cast_const();
        let at_root = is_in_place(self.recv) || has_alias;
        let elsewhere = is_in_place(self.send);
        // Of nothing libraries take what they like.
        if self.count.into() == 0 || (!at_root && !elsewhere) {
            return false;
        }
        match own_rank_at_root(world, comm, self.root) {
            Some(_) => at_root,
            None => elsewhere,
        }
    }

    /// Whether both buffers are one where the library refuses that on every rank: MPICH where there are elements;
    /// Open MPI where there are several, and not in a scan (`allreduce.c`, `scan.c` of 4.1.4 and 5.0.5).
    fn is_alias(&self) -> bool {
        let refused = match (cfg!(mpi = "openmpi"), self.collective) {
            (true, Collective::Allreduce) => self.count.into() > 1,
            (true, _) => false,
            (false, _) => self.count.into() != 0,
        };
        refused && self.send == self.recv.cast_const()
    }
}

/// What all ranks know of a reduction of so many elements, but for where its operands lie.
fn combining(world: &World, count: i64, datatype: Datatype, op: Op) -> SharedDetails {
    let builtin_op = world.ops.get(op).is_some();
    let facts = world.types.get(datatype);
    let is_exact = facts.is_some_and(|facts| facts.exact);
    SharedDetails {
        count: Some(u64::try_from(count).unwrap_or(u64::MAX)),
        commutative: builtin_op || (!is_no_operation(world, op) && world.is_commutative(op)),
        builtin_op,
        plain_elements: facts.is_some(),
        combines: world.combines(datatype, op),
        exact: is_exact && builtin_op,
        ..SharedDetails::MOVES
    }
}

fn is_no_operation(world: &World, op: Op) -> bool {
    bits(op) == bits(world.handles.op_null)
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
    fn shared(&self, world: &World, n_ranks: u32) -> SharedCall {
        // SAFETY: MPI asks for a count for each rank, the same on all ranks.
        let counts = unsafe { numbers(self.counts, n_ranks) };
        let size = world.type_bytes(self.datatype);
        SharedCall::of_elements(Collective::ReduceScatter, total(counts), size)
    }

    #[inline]
    fn details(&self, world: &World, n_ranks: u32) -> SharedDetails {
        // SAFETY: MPI asks for a count for each rank, the same on all ranks.
        let counts = unsafe { numbers(self.counts, n_ranks) };
        let all = counts.unwrap_or(&[]);
        let first = all.first().map_or(0, |&count| count.into());
        // A rank without elements may have no receive buffer, and then is not in place with the
        // others; so such calls count as in place on all ranks.
        let some_without = all.iter().any(|&count| count.into() == 0);
        SharedDetails {
            equal_blocks: all.iter().all(|&count| count.into() == first),
            in_place: some_without || is_in_place(self.send),
            ..combining(world, total(counts), self.datatype, self.op)
        }
    }

    #[inline]
    fn is_refused(&self, world: &World, _: Comm, n_ranks: u32) -> bool {
        // SAFETY: MPI asks for a count for each rank, the same on all ranks.
        unsafe { numbers(self.counts, n_ranks) }.is_none()
            || world.is_no_type(self.datatype)
            || is_no_operation(world, self.op)
    }

    #[inline]
    fn arguments(&self) -> Arguments {
        Arguments::Reduction {
            send: self.send,
            recv: self.recv,
            count: Counted::Each(List::of(self.counts)),
            datatype: self.datatype,
            op: self.op,
            root: 0,
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
        // SAFETY: the caller promises valid arguments of this collective on `comm`, and this is its function.
        unsafe { (library.reduce_scatter)(send, recv, counts, datatype, op, comm) }
    }
}
