//! Compositions of reductions: the caller's elements, wherever they lie.

use std::ffi::{c_int, c_void};
use std::ptr::null_mut;

use colltune_core::collective::Collective;

use super::{Done, Job, Room, done, in_place};
use crate::abi::{Datatype, Op};
use crate::arguments::Arguments;

/// What a reduction combines.
#[derive(Clone, Copy)]
struct Vector {
    /// The caller's contribution, also where it lies in the output.
    input: *const c_void,
    /// Null where this rank gets nothing.
    output: *mut c_void,
    count: u64,
    datatype: Datatype,
    op: Op,
}

impl Job<'_> {
    fn vector(&self) -> Vector {
        let Arguments::Reduction {
            send,
            recv,
            count,
            datatype,
            op,
            ..
        } = self.call.arguments
        else {
            unreachable!("the view of a reduction is made of a reduction's arguments");
        };
        Vector {
            input: if self.is_in_place() { recv } else { send },
            output: self.output().map_or(null_mut(), |_| recv),
            count: count as u64,
            datatype,
            op,
        }
    }

    /// The address of one of the elements from `start` on.
    pub(super) fn element(&self, start: *const c_void, index: u64) -> *mut c_void {
        let distance = index as isize * self.view.unit.stride;
        start.wrapping_byte_offset(distance).cast_mut()
    }

    /// # Safety
    /// As for [`Job::run`]; so it is for the other ones.
    pub(super) unsafe fn reduce_bcast(&self) -> Done {
        let Vector {
            input,
            output,
            count,
            datatype,
            op,
        } = self.vector();
        let parts = self.parts;
        let (send, recv) = match (self.is_root(), self.is_in_place()) {
            (true, true) => (in_place().cast_const(), output),
            (true, false) => (input, output),
            (false, _) => (input, null_mut()),
        };
        let count = count as c_int;
        // SAFETY: the arguments are the application's; the root of both is the same rank.
        unsafe {
            done((parts.reduce)(
                send,
                recv,
                count,
                datatype,
                op,
                self.root(),
                self.comm,
            ))?;
            done((parts.bcast)(
                output,
                count,
                datatype,
                self.root(),
                self.comm,
            ))
        }
    }

    /// # Safety
    /// As for [`Job::run`].
    pub(super) unsafe fn reduce_by_allreduce(&self, room: &Room) -> Done {
        let Vector {
            input,
            output,
            count,
            datatype,
            op,
        } = self.vector();
        let result = if self.is_root() {
            output
        } else {
            self.view.unit.first(room.bytes, count).cast()
        };
        let send = if self.is_in_place() {
            in_place().cast_const()
        } else {
            input
        };
        let (parts, count) = (self.parts, count as c_int);
        // SAFETY: what is not the application's is room for the whole message.
        done(unsafe { (parts.allreduce)(send, result, count, datatype, op, self.comm) })
    }

    /// Reduce-scatter in equal blocks, then gather or allgather; the elements that are left over
    /// are reduced by themselves.
    ///
    /// # Safety
    /// As for [`Job::run`].
    pub(super) unsafe fn reduce_by_blocks(&self, room: &Room) -> Done {
        let vector = self.vector();
        let Vector {
            input,
            output,
            datatype,
            op,
            ..
        } = vector;
        let block = vector.count / self.members.n_ranks as u64;
        let whole = block * self.members.n_ranks as u64;
        let share: *mut c_void = self.view.unit.first(room.bytes, block).cast();
        let (parts, count) = (self.parts, block as c_int);
        // SAFETY: a share has room for a block; the rest is the application's.
        unsafe {
            done((parts.reduce_scatter_block)(
                input, share, count, datatype, op, self.comm,
            ))?;
            done(if self.is_rooted() {
                (parts.gather)(
                    share,
                    count,
                    datatype,
                    output,
                    count,
                    datatype,
                    self.root(),
                    self.comm,
                )
            } else {
                (parts.allgather)(share, count, datatype, output, count, datatype, self.comm)
            })?;
        }
        let rest = (vector.count - whole) as c_int;
        if rest == 0 {
            return Ok(());
        }
        let recv = if output.is_null() {
            null_mut()
        } else {
            self.element(output, whole)
        };
        let send = if self.is_in_place() {
            in_place()
        } else {
            self.element(input, whole)
        };
        // SAFETY: `whole` elements before the end of the application's buffers there are `rest`.
        done(unsafe {
            if self.is_rooted() {
                (parts.reduce)(send, recv, rest, datatype, op, self.root(), self.comm)
            } else {
                (parts.allreduce)(send, recv, rest, datatype, op, self.comm)
            }
        })
    }

    /// Reduce-scatter in near-equal shares, then gather or allgather.
    ///
    /// # Safety
    /// As for [`Job::run`].
    pub(super) unsafe fn reduce_by_shares(&self, room: &Room) -> Done {
        let Vector {
            input,
            output,
            count,
            datatype,
            op,
        } = self.vector();
        // SAFETY: the lists have room for a number per rank.
        unsafe { self.list_shares(room, count) };
        let (counts, displacements) = (room.counts, room.displacements);
        // SAFETY: the list was just filled.
        let own = unsafe { counts.add(self.members.rank).read() };
        let share: *mut c_void = self.view.unit.first(room.bytes, own as u64).cast();
        let parts = self.parts;
        // SAFETY: a share has room for the longest of them; the rest is the application's.
        unsafe {
            done((parts.reduce_scatter)(
                input, share, counts, datatype, op, self.comm,
            ))?;
            done(if self.is_rooted() {
                (parts.gatherv)(
                    share,
                    own,
                    datatype,
                    output,
                    counts,
                    displacements,
                    datatype,
                    self.root(),
                    self.comm,
                )
            } else {
                (parts.allgatherv)(
                    share,
                    own,
                    datatype,
                    output,
                    counts,
                    displacements,
                    datatype,
                    self.comm,
                )
            })
        }
    }

    /// Whether one rank alone gets the result.
    fn is_rooted(&self) -> bool {
        self.call.collective == Collective::Reduce
    }
}
