//! Compositions of gather and scatter. In place is the root's alone to know, and types are each rank's
//! own, so parts that the other ranks run alike work on packed bytes.

use std::ffi::c_int;

use super::{Done, RunningComposition};
use crate::arguments::Input;
use crate::p2p::endpoint::check;

impl RunningComposition<'_> {
    pub(super) fn gather_by_allgather(&self) -> Done {
        let block = self.view.block as usize;
        let (byte, count) = (self.endpoint.world.handles.byte, block as c_int);
        // SAFETY: the room holds all blocks twice: what is sent, and what comes.
        unsafe {
            self.pack_own_block(self.room.bytes)?;
            let (all, unpacked) = self.all_blocks();
            let own = self.room.bytes.cast();
            let allgather = self.parts.allgather;
            check(allgather(
                own,
                count,
                byte,
                all.cast(),
                count,
                byte,
                self.comm,
            ))?;
            self.unpack_all(all, unpacked)
        }
    }

    pub(super) fn gather_by_gatherv(&self) -> Done {
        let [send, recv] = self.sides();
        let (from, sent, to) = (send.start.cast(), send.count as c_int, recv.start.cast());
        let (counts, places) = (self.room.counts, self.room.displacements);
        let (of_sent, of_received, root) = (send.datatype, recv.datatype, self.root());
        // SAFETY: the lists have a place for each rank; the rest is the application's.
        check(unsafe {
            self.list_blocks(counts, places, recv.count as c_int);
            (self.parts.gatherv)(
                from,
                sent,
                of_sent,
                to,
                counts,
                places,
                of_received,
                root,
                self.comm,
            )
        })
    }

    pub(super) fn scatter_by_scatterv(&self) -> Done {
        let [send, recv] = self.sides();
        let (from, to, received) = (send.start.cast(), recv.start.cast(), recv.count as c_int);
        let (counts, places) = (self.room.counts, self.room.displacements);
        let (of_sent, of_received, root) = (send.datatype, recv.datatype, self.root());
        // SAFETY: the lists have a place for each rank; the rest is the application's.
        check(unsafe {
            self.list_blocks(counts, places, send.count as c_int);
            (self.parts.scatterv)(
                from,
                counts,
                places,
                of_sent,
                to,
                received,
                of_received,
                root,
                self.comm,
            )
        })
    }

    pub(super) fn scatter_by_bcast(&self) -> Done {
        let (n, block) = (self.n_ranks(), self.view.block as usize);
        // SAFETY: the room holds all blocks; the view's buffers are valid.
        unsafe {
            let all = match self.view.input {
                // Not out of the program's own, which a broadcast may write to, if only what is there.
                Input::User(memory) if memory.plain => {
                    std::ptr::copy_nonoverlapping(memory.start, self.room.bytes, n * block);
                    self.room.bytes
                }
                Input::User(memory) => {
                    self.pack(memory, self.room.bytes, n * block)?;
                    self.room.bytes
                }
                _ => self.room.bytes,
            };
            let (byte, count) = (self.endpoint.world.handles.byte, (n * block) as c_int);
            let bcast = self.parts.bcast;
            check(bcast(all.cast(), count, byte, self.root(), self.comm))?;
            let own = all.wrapping_add(self.rank() * block);
            match self.view.output.memory() {
                Some(memory) if memory.plain => {
                    std::ptr::copy(own, memory.start, block);
                    Ok(())
                }
                Some(memory) => self.unpack(own, block, memory),
                // The root's own block stays where it is.
                None => Ok(()),
            }
        }
    }

    pub(super) fn barrier_by_allreduce(&self) -> Done {
        let (byte, or) = (
            self.endpoint.world.handles.byte,
            self.endpoint.world.handles.bitwise_or,
        );
        // SAFETY: the room holds two bytes, and no result of an allreduce is there before every rank
        // has given its own.
        check(unsafe {
            self.room.bytes.write(0);
            let own = self.room.bytes.cast();
            let result = self.room.bytes.add(1).cast();
            (self.parts.allreduce)(own, result, 1, byte, or, self.comm)
        })
    }
}
