//! Compositions that move data: the caller's elements where each rank's own types tell all, packed
//! bytes where parts of a message are cut that no type describes.

use std::ffi::{c_int, c_void};
use std::ptr::null_mut;

use colltune_core::collective::Collective;

use super::{Done, RunningComposition, in_place};
use crate::arguments::{Input, Memory};
use crate::p2p::endpoint::check;
use crate::scratch::ALIGN;

impl RunningComposition<'_> {
    /// Packs a part of the application's memory to `bytes` bytes at `to`.
    ///
    /// # Safety
    /// The memory is valid, and there is room for as many bytes.
    pub(super) unsafe fn pack(&self, from: Memory, to: *mut u8, bytes: usize) -> Done {
        if from.plain {
            // SAFETY: plain memory is the packed bytes of its elements.
            unsafe { std::ptr::copy(from.start, to, bytes) };
            return Ok(());
        }
        // SAFETY: the caller promises valid memory and room for its packed bytes.
        self.report(unsafe { self.endpoint.pack(from.typed(), to, bytes as u64) })
    }

    /// Unpacks `bytes` bytes into the application's memory.
    ///
    /// # Safety
    /// There are as many bytes, and the memory is valid.
    pub(super) unsafe fn unpack(&self, from: *mut u8, bytes: usize, to: &Memory) -> Done {
        // SAFETY: the caller promises as many packed bytes and valid memory for their elements.
        self.report(unsafe { self.endpoint.unpack(from, bytes as u64, to.typed()) })
    }

    /// The message of a broadcast as bytes: in the caller's buffer, or in a copy at the root, whose buffer may be constant.
    fn message(&self) -> Result<*mut u8, c_int> {
        match self.view.output.memory() {
            Some(memory) if memory.plain && !self.is_root() => Ok(memory.start),
            Some(memory) if self.is_root() => {
                // SAFETY: there is room for the message.
                unsafe { self.pack(*memory, self.room.bytes, self.view.block as usize) }
                    .map(|()| self.room.bytes)
            }
            _ => Ok(self.room.bytes),
        }
    }

    /// Puts a broadcast message of bytes where the caller wants it.
    ///
    /// # Safety
    /// The message has come as a whole, and the view's buffers are valid.
    unsafe fn deliver(&self, message: *mut u8) -> Done {
        match self.view.output.memory() {
            Some(memory) if !memory.plain && !self.is_root() => {
                // SAFETY: the message has come as a whole.
                unsafe { self.unpack(message, self.view.block as usize, memory) }
            }
            _ => Ok(()),
        }
    }

    pub(super) fn bcast_by_scatter(&self) -> Done {
        let (n, total) = (self.n_ranks(), self.view.block as usize);
        let (block, byte) = (total / n, self.endpoint.world.handles.byte);
        let (count, rest) = (block as c_int, (total % n) as c_int);
        let (parts, comm, root) = (self.parts, self.comm, self.root());
        // SAFETY: the message has `n` blocks and the rest; a rank's own block lies at its place.
        unsafe {
            let message = self.message()?;
            let own: *mut c_void = message.wrapping_add(self.rank() * block).cast();
            let scatter = parts.scatter;
            check(if self.is_root() {
                scatter(
                    message.cast(),
                    count,
                    byte,
                    in_place(),
                    count,
                    byte,
                    root,
                    comm,
                )
            } else {
                scatter(std::ptr::null(), count, byte, own, count, byte, root, comm)
            })?;
            let whole = message.cast();
            check((parts.allgather)(
                in_place(),
                count,
                byte,
                whole,
                count,
                byte,
                comm,
            ))?;
            if rest > 0 {
                let last = message.wrapping_add(n * block).cast();
                check((parts.bcast)(last, rest, byte, root, comm))?;
            }
            self.deliver(message)
        }
    }

    pub(super) fn bcast_by_allgatherv(&self) -> Done {
        let (total, byte) = (self.view.block as c_int, self.endpoint.world.handles.byte);
        // SAFETY: the lists have a place for each rank; the root alone contributes.
        unsafe {
            for rank in 0..self.n_ranks() {
                let own = if rank == self.view.root { total } else { 0 };
                self.room.counts.add(rank).write(own);
                self.room.displacements.add(rank).write(0);
            }
            let message = self.message()?;
            check((self.parts.allgatherv)(
                in_place(),
                0,
                byte,
                message.cast(),
                self.room.counts,
                self.room.displacements,
                byte,
                self.comm,
            ))?;
            self.deliver(message)
        }
    }

    /// Lists equal blocks of `count` elements, one after another.
    ///
    /// # Safety
    /// The lists have a place for each rank.
    pub(super) unsafe fn list_blocks(
        &self,
        counts: *mut c_int,
        displacements: *mut c_int,
        count: c_int,
    ) {
        for rank in 0..self.n_ranks() {
            // SAFETY: the caller promises lists with a place for each rank, and `rank` is one.
            unsafe {
                counts.add(rank).write(count);
                displacements.add(rank).write(rank as c_int * count);
            }
        }
    }

    /// By bytes: ranks may describe the same blocks with types and counts of their own, by which the
    /// libraries cut an allgatherv and choose how to run it.
    pub(super) fn allgather_by_allgatherv(&self) -> Done {
        let block = self.view.block as usize;
        let (byte, count) = (self.endpoint.world.handles.byte, block as c_int);
        let (all, unpacked) = self.all_blocks();
        // SAFETY: the lists have a place for each rank; the room holds an own block and all of them.
        unsafe {
            let own = match self.own_block()? {
                None => in_place(),
                Some(own) => own.cast(),
            };
            self.list_blocks(self.room.counts, self.room.displacements, count);
            let (counts, places) = (self.room.counts, self.room.displacements);
            let allgatherv = self.parts.allgatherv;
            let whole = all.cast();
            check(allgatherv(
                own, count, byte, whole, counts, places, byte, self.comm,
            ))?;
            self.unpack_all(all, unpacked)
        }
    }

    /// By bytes, as the broadcast's message is cut by each rank's own count and type.
    pub(super) fn allgather_by_gather(&self) -> Done {
        let (n, block) = (self.n_ranks(), self.view.block as usize);
        let (byte, count) = (self.endpoint.world.handles.byte, block as c_int);
        let (all, unpacked) = self.all_blocks();
        let (root, comm, whole) = (self.root(), self.comm, all.cast());
        // SAFETY: the room holds an own block, and every rank has room for all of them.
        unsafe {
            let own = match self.own_block()? {
                None if self.is_root() => in_place(),
                None => all.add(self.rank() * block).cast(),
                Some(own) => own.cast(),
            };
            let gather = self.parts.gather;
            check(gather(own, count, byte, whole, count, byte, root, comm))?;
            check((self.parts.bcast)(
                whole,
                (n * block) as c_int,
                byte,
                root,
                comm,
            ))?;
            self.unpack_all(all, unpacked)
        }
    }

    /// Where the bytes of the own block of an allgather lie: `None` for at home among all blocks in the
    /// caller's buffer, else in the caller's other buffer or packed in the room.
    fn own_block(&self) -> Result<Option<*mut u8>, c_int> {
        match self.view.input {
            Input::User(memory) if memory.plain => Ok(Some(memory.start)),
            Input::InOutput { .. } if self.all_blocks().1.is_none() => Ok(None),
            _ => {
                // SAFETY: the room holds a block.
                unsafe { self.pack_own_block(self.room.bytes) }?;
                Ok(Some(self.room.bytes))
            }
        }
    }

    /// The own block of an allgather, packed at `to`.
    ///
    /// # Safety
    /// There is room for a block, and the view's buffers are valid.
    pub(super) unsafe fn pack_own_block(&self, to: *mut u8) -> Done {
        let bytes = self.view.block as usize;
        let memory = match (self.view.input, self.view.output.memory()) {
            (Input::User(memory), _) => memory,
            (_, Some(all)) => self.endpoint.world.own_block(*all, self.view.members),
            (_, None) => return Ok(()),
        };
        // SAFETY: the caller promises room for a block, and the memory is the view's.
        unsafe { self.pack(memory, to, bytes) }
    }

    /// Where all blocks of an allgather go as bytes: the caller's buffer where it holds them so,
    /// else the second half of the room.
    pub(super) fn all_blocks(&self) -> (*mut u8, Option<&Memory>) {
        let all = self.view.block as usize * self.n_ranks();
        match self.view.output.memory() {
            Some(memory) if memory.plain => (memory.start, None),
            memory => (
                self.room.bytes.wrapping_add(all.next_multiple_of(ALIGN)),
                memory,
            ),
        }
    }

    /// Puts all blocks where the caller wants them, if they are not there.
    ///
    /// # Safety
    /// The two are what [`RunningComposition::all_blocks`] returned, and the blocks have come.
    pub(super) unsafe fn unpack_all(&self, all: *mut u8, unpacked: Option<&Memory>) -> Done {
        let bytes = self.view.block as usize * self.n_ranks();
        // SAFETY: the two belong together and all blocks have come, as the caller promises: there are as many bytes,
        // and the memory is the view's output.
        unpacked.map_or(Ok(()), |memory| unsafe { self.unpack(all, bytes, memory) })
    }

    pub(super) fn allgather_by_alltoall(&self) -> Done {
        let (n, block) = (self.n_ranks(), self.view.block as usize);
        let (byte, count) = (self.endpoint.world.handles.byte, block as c_int);
        // SAFETY: the room holds all blocks twice.
        unsafe {
            self.pack_own_block(self.room.bytes)?;
            for rank in 1..n {
                let copy = self.room.bytes.add(rank * block);
                std::ptr::copy_nonoverlapping(self.room.bytes, copy, block);
            }
            let (all, unpacked) = self.all_blocks();
            check((self.parts.alltoall)(
                self.room.bytes.cast(),
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

    /// Allgather and gather by an allreduce and a reduce: a bitwise or of blocks that are zero but at home.
    pub(super) fn blocks_by_or(&self) -> Done {
        let (n, block) = (self.n_ranks(), self.view.block as usize);
        let handles = &self.endpoint.world.handles;
        let (byte, or, count) = (handles.byte, handles.bitwise_or, (n * block) as c_int);
        let (reduce, allreduce) = (self.parts.reduce, self.parts.allreduce);
        // SAFETY: the room holds all blocks twice: what is combined, and what comes of it.
        unsafe {
            std::ptr::write_bytes(self.room.bytes, 0, n * block);
            self.pack_own_block(self.room.bytes.add(self.rank() * block))?;
            let (all, unpacked) = self.all_blocks();
            let (own, whole) = (self.room.bytes.cast(), all.cast());
            check(match (self.view.collective, self.is_root()) {
                (Collective::Gather, true) => {
                    reduce(own, whole, count, byte, or, self.root(), self.comm)
                }
                (Collective::Gather, false) => {
                    reduce(own, null_mut(), count, byte, or, self.root(), self.comm)
                }
                _ => allreduce(own, whole, count, byte, or, self.comm),
            })?;
            self.unpack_all(all, unpacked)
        }
    }

    pub(super) fn alltoall_by_alltoallv(&self) -> Done {
        let [send, recv] = self.sides();
        let (from, to) = (send.start.cast(), recv.start.cast());
        // SAFETY: there are two lists each for what is sent and what is received.
        check(unsafe {
            let n = self.n_ranks();
            let sent = self.room.bytes.cast::<c_int>();
            let (sent_at, received) = (sent.add(n), sent.add(2 * n));
            let received_at = received.add(n);
            self.list_blocks(sent, sent_at, send.count as c_int);
            self.list_blocks(received, received_at, recv.count as c_int);
            let (of_sent, of_received) = (send.datatype, recv.datatype);
            (self.parts.alltoallv)(
                from,
                sent,
                sent_at,
                of_sent,
                to,
                received,
                received_at,
                of_received,
                self.comm,
            )
        })
    }
}
