//! Compositions of reductions: the caller's elements, wherever they lie.

use std::ffi::{c_int, c_void};
use std::ptr::null_mut;

use colltune_core::collective::Collective;

use super::{Done, RunningComposition, in_place};
use crate::abi::{Datatype, Op};
use crate::arguments::Input;
use crate::p2p::endpoint::check;

/// What a reduction combines, and what this rank gets of it.
#[derive(Clone, Copy)]
pub struct Vector {
    /// What the library takes for a contribution that may lie in place.
    pub send: *const c_void,
    /// The caller's contribution, also where it lies in the output.
    pub input: *const c_void,
    /// Null where this rank gets nothing.
    pub output: *mut c_void,
    /// Elements of the contribution, and of this rank's result.
    pub all: c_int,
    pub own: c_int,
    pub datatype: Datatype,
    pub op: Op,
}

impl RunningComposition<'_> {
    pub(super) fn vector(&self) -> Vector {
        let Some(combine) = self.view.unit.combine else {
            unreachable!("a reduction has an operation");
        };
        let output = self.view.output.memory();
        let output = output.map_or(null_mut(), |memory| memory.start.cast::<c_void>());
        let (send, input) = match self.view.input {
            Input::User(memory) => (memory.start.cast(), memory.start.cast()),
            _ => (in_place(), output),
        };
        Vector {
            send,
            input,
            output,
            all: self.view.input_units as c_int,
            own: self.view.block as c_int,
            datatype: self.view.unit.datatype,
            op: combine.op,
        }
    }

    /// The address of one of the elements from `start` on.
    pub(super) fn element(&self, start: *const c_void, index: u64) -> *mut c_void {
        self.view.unit.at(start.cast_mut().cast(), index).cast()
    }

    /// Room for so many elements.
    pub(super) fn elements(&self, count: c_int) -> *mut c_void {
        self.view.unit.first(self.room.bytes, count as u64).cast()
    }

    pub(super) fn reduce_bcast(&self) -> Done {
        let of = self.vector();
        let (send, recv) = match self.is_root() {
            true => (of.send, of.output),
            false => (of.input, null_mut()),
        };
        let (reduce, bcast) = (self.parts.reduce, self.parts.bcast);
        let (count, root, comm) = (of.all, self.root(), self.comm);
        // SAFETY: the arguments are the application's; the root of both is the same rank.
        unsafe {
            check(reduce(send, recv, count, of.datatype, of.op, root, comm))?;
            check(bcast(of.output, count, of.datatype, root, comm))
        }
    }

    pub(super) fn reduce_by_allreduce(&self) -> Done {
        let of = self.vector();
        let result = match self.is_root() {
            true => of.output,
            false => self.elements(of.all),
        };
        let allreduce = self.parts.allreduce;
        // SAFETY: what is not the application's is room for the whole message.
        check(unsafe { allreduce(of.send, result, of.all, of.datatype, of.op, self.comm) })
    }

    /// Reduce-scatter in equal blocks, then gather or allgather; the elements that are left over
    /// are reduced by themselves.
    pub(super) fn reduce_by_blocks(&self) -> Done {
        let (of, parts, comm, root) = (self.vector(), self.parts, self.comm, self.root());
        let (output, datatype, op) = (of.output, of.datatype, of.op);
        let n = self.n_ranks() as c_int;
        let (count, rest) = (of.all / n, of.all % n);
        let share = self.elements(count);
        let scatter = parts.reduce_scatter_block;
        // SAFETY: a share has room for a block; the rest is the application's.
        unsafe {
            check(scatter(of.input, share, count, datatype, op, comm))?;
            check(match self.is_rooted() {
                true => (parts.gather)(share, count, datatype, output, count, datatype, root, comm),
                false => (parts.allgather)(share, count, datatype, output, count, datatype, comm),
            })?;
        }
        if rest == 0 {
            return Ok(());
        }
        let whole = (of.all - rest) as u64;
        let recv = match output.is_null() {
            true => output,
            false => self.element(output, whole),
        };
        let send = match self.view.is_in_place() {
            true => of.send,
            false => self.element(of.input, whole),
        };
        // SAFETY: behind `whole` elements of the application's buffers there are `rest`.
        check(unsafe {
            match self.is_rooted() {
                true => (parts.reduce)(send, recv, rest, datatype, op, root, comm),
                false => (parts.allreduce)(send, recv, rest, datatype, op, comm),
            }
        })
    }

    /// Reduce-scatter in near-equal shares, then gather or allgather.
    pub(super) fn reduce_by_shares(&self) -> Done {
        let (of, parts, comm, root) = (self.vector(), self.parts, self.comm, self.root());
        let (output, datatype) = (of.output, of.datatype);
        let (counts, places) = (self.room.counts, self.room.displacements);
        let scatter = parts.reduce_scatter;
        // SAFETY: the lists have room for a number per rank, and a share for the longest of them; the rest is the
        // application's.
        unsafe {
            self.list_shares(of.all as u64);
            let own = counts.add(self.rank()).read();
            let share = self.elements(own);
            check(scatter(of.input, share, counts, datatype, of.op, comm))?;
            check(match self.is_rooted() {
                true => {
                    let gatherv = parts.gatherv;
                    gatherv(
                        share, own, datatype, output, counts, places, datatype, root, comm,
                    )
                }
                false => {
                    let allgatherv = parts.allgatherv;
                    allgatherv(share, own, datatype, output, counts, places, datatype, comm)
                }
            })
        }
    }

    /// Whether one rank alone gets the result.
    fn is_rooted(&self) -> bool {
        self.view.collective == Collective::Reduce
    }
}
