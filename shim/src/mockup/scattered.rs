//! Compositions of reductions whose result is dealt out, and of the scan: the caller's elements.

use std::ffi::{c_int, c_void};
use std::ptr::null_mut;

use super::{Done, Job, Room, done};
use crate::abi::{Datatype, Op};
use crate::arguments::Arguments;

/// A reduction each rank of which gets a part of the result, or another result.
#[derive(Clone, Copy)]
struct Dealt {
    /// The caller's contribution, also where it lies in the output.
    input: *const c_void,
    output: *mut c_void,
    /// Elements of the contribution.
    all: c_int,
    /// Elements of this rank's result.
    own: c_int,
    datatype: Datatype,
    op: Op,
}

impl Job<'_> {
    fn dealt(&self) -> Dealt {
        let (send, recv, datatype, op) = match self.call.arguments {
            Arguments::Reduction {
                send,
                recv,
                datatype,
                op,
                ..
            }
            | Arguments::ReduceScatter {
                send,
                recv,
                datatype,
                op,
                ..
            } => (send, recv, datatype, op),
            _ => unreachable!("the view of a reduction is made of a reduction's arguments"),
        };
        Dealt {
            input: if self.is_in_place() { recv } else { send },
            output: recv,
            all: self.view.input_units as c_int,
            own: self.view.block as c_int,
            datatype,
            op,
        }
    }

    /// Lists how many elements each rank gets, and where they begin; the place of this rank's own.
    ///
    /// # Safety
    /// The lists have a place for each rank, and the caller's counts are valid.
    unsafe fn list_dealt(&self, room: &Room) -> u64 {
        let (mut start, mut own) = (0, 0);
        for rank in 0..self.members.n_ranks {
            let count = match self.call.arguments {
                // SAFETY: MPI asks for a count for each rank.
                Arguments::ReduceScatter { counts, .. } => unsafe { counts.at(rank) as u64 },
                _ => self.view.block,
            };
            if rank == self.members.rank {
                own = start;
            }
            // SAFETY: as the caller promises.
            unsafe {
                room.counts.add(rank).write(count as c_int);
                room.displacements.add(rank).write(start as c_int);
            }
            start += count;
        }
        own
    }

    /// Copies elements that do not overlap.
    ///
    /// # Safety
    /// Both places hold so many elements of the view's unit.
    unsafe fn copy_elements(&self, from: *const c_void, to: *mut c_void, count: u64) -> Done {
        let unit = &self.view.unit;
        if count == 0 {
            return Ok(());
        }
        // SAFETY: the caller's promise; units without holes are their bytes.
        unsafe {
            if unit.plain {
                let bytes = count as usize * unit.stride as usize;
                std::ptr::copy(from.cast::<u8>(), to.cast::<u8>(), bytes);
                return Ok(());
            }
            let from = (from.cast::<u8>().cast_mut(), count, unit.datatype);
            self.message_to_self(from, (to.cast(), count, unit.datatype))
        }
    }

    /// Reduce to rank 0, which deals the result out.
    ///
    /// # Safety
    /// As for [`Job::run`]; so it is for the other ones.
    pub(super) unsafe fn reduce_and_scatter(&self, room: &Room) -> Done {
        let of = self.dealt();
        let whole: *mut c_void = self.view.unit.first(room.bytes, of.all as u64).cast();
        let result = if self.is_root() { whole } else { null_mut() };
        let (parts, comm, root) = (self.parts, self.comm, self.root());
        // SAFETY: the room holds the whole vector; the rest is the application's.
        unsafe {
            let reduce = parts.reduce;
            done(reduce(
                of.input,
                result,
                of.all,
                of.datatype,
                of.op,
                root,
                comm,
            ))?;
            if matches!(self.call.arguments, Arguments::Reduction { .. }) {
                return done((parts.scatter)(
                    result,
                    of.own,
                    of.datatype,
                    of.output,
                    of.own,
                    of.datatype,
                    root,
                    comm,
                ));
            }
            self.list_dealt(room);
            done((parts.scatterv)(
                result,
                room.counts,
                room.displacements,
                of.datatype,
                of.output,
                of.own,
                of.datatype,
                root,
                comm,
            ))
        }
    }

    /// Allreduce, of whose result every rank keeps its own part.
    ///
    /// # Safety
    /// As for [`Job::run`].
    pub(super) unsafe fn blocks_by_allreduce(&self, room: &Room) -> Done {
        let of = self.dealt();
        let whole: *mut c_void = self.view.unit.first(room.bytes, of.all as u64).cast();
        // SAFETY: the room holds the whole vector; the rest is the application's.
        unsafe {
            let allreduce = self.parts.allreduce;
            done(allreduce(
                of.input,
                whole,
                of.all,
                of.datatype,
                of.op,
                self.comm,
            ))?;
            let own = self.element(whole, self.list_dealt(room));
            self.copy_elements(own, of.output, of.own as u64)
        }
    }

    /// # Safety
    /// As for [`Job::run`].
    pub(super) unsafe fn blocks_by_reduce_scatter(&self, room: &Room) -> Done {
        let of = self.dealt();
        // SAFETY: the lists have a place for each rank; the rest is the application's.
        done(unsafe {
            self.list_dealt(room);
            (self.parts.reduce_scatter)(
                of.input,
                of.output,
                room.counts,
                of.datatype,
                of.op,
                self.comm,
            )
        })
    }

    /// A reduce-scatter that deals everything to the root.
    ///
    /// # Safety
    /// As for [`Job::run`].
    pub(super) unsafe fn reduce_by_reduce_scatter(&self, room: &Room) -> Done {
        let of = self.dealt();
        // What others have in place here, the root alone knows; so nobody's is.
        let apart = !self.is_root() || self.is_in_place();
        let result: *mut c_void = if apart {
            self.view.unit.first(room.bytes, of.all as u64).cast()
        } else {
            of.output
        };
        // SAFETY: the lists have a place for each rank, the room holds the whole vector, and the
        // rest is the application's.
        unsafe {
            for rank in 0..self.members.n_ranks {
                let all = if rank == self.view.root { of.all } else { 0 };
                room.counts.add(rank).write(all);
            }
            done((self.parts.reduce_scatter)(
                of.input,
                result,
                room.counts,
                of.datatype,
                of.op,
                self.comm,
            ))?;
            if self.is_root() && apart {
                return self.copy_elements(result, of.output, of.all as u64);
            }
            Ok(())
        }
    }

    /// Exscan, and the own contribution behind what it brings.
    ///
    /// # Safety
    /// As for [`Job::run`].
    pub(super) unsafe fn scan_by_exscan(&self, room: &Room) -> Done {
        let of = self.dealt();
        let before: *mut c_void = self.view.unit.first(room.bytes, of.all as u64).cast();
        // SAFETY: the room holds the whole vector; the rest is the application's.
        unsafe {
            let exscan = self.parts.exscan;
            done(exscan(
                of.input,
                before,
                of.all,
                of.datatype,
                of.op,
                self.comm,
            ))?;
            if !self.is_in_place() {
                self.copy_elements(of.input, of.output, of.all as u64)?;
            }
            if self.members.rank == 0 {
                return Ok(());
            }
            let combine = self.world.pmpi.reduce_local;
            done(combine(before, of.output, of.all, of.datatype, of.op))
        }
    }
}
