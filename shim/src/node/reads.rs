//! Long messages that are copied once: ranks read each other's buffers where they lie.
//!
//! The kernel copies from one process into another (process_vm_readv), where it lets it: security modules and
//! containers may forbid that, so the ranks find out in the set-up and agree. Lines carry the addresses; a
//! call ends when everybody has read, because a buffer is its owner's again then. Memory that can be used
//! and not be read in this way, as a device's may, shows in the first bytes or at the end, to all alike, and
//! then the call runs through the cells.

use std::ffi::{c_int, c_void};
use std::sync::atomic::{Ordering, fence};

use colltune_core::catalogue::OnNodes;
use colltune_core::collective::Collective;
use colltune_core::node::layout::{CELL, slice};

use super::elements::Elements;
use super::phases::{Phases, or_give_up};
use super::pieces::PhaseData;
use super::segment::Segment;
use crate::abi;
use crate::world::World;

/// What ranks tell each other of their reading; the largest counts.
const FINE: u64 = 0;
const FAILED: u64 = 1;

/// Reads from the memory of another process; whether that worked.
///
/// # Safety
/// There is room for so many bytes at `into`.
pub unsafe fn read(process: u64, from: u64, into: *mut u8, bytes: usize) -> bool {
    let mut done = 0;
    while done < bytes {
        let local = libc::iovec {
            iov_base: into.wrapping_add(done).cast(),
            iov_len: bytes - done,
        };
        let remote = libc::iovec {
            iov_base: (from as usize + done) as *mut c_void,
            iov_len: bytes - done,
        };
        // SAFETY: the caller promises room for the bytes; whatever the other address is, the kernel checks it.
        let read =
            unsafe { libc::process_vm_readv(process as libc::pid_t, &local, 1, &remote, 1, 0) };
        match usize::try_from(read) {
            Ok(read) if read > 0 => done += read,
            _ => return false,
        }
    }
    true
}

impl Segment {
    /// Whether this rank can read the memory of all others of its node.
    #[cold]
    pub fn can_read(&self) -> bool {
        self.others().all(|place| {
            let [process, address, secret, _] = self.identity(place);
            let mut found = 0u64;
            // SAFETY: there is room for one number.
            let read = unsafe { read(process, address, (&raw mut found).cast(), size_of::<u64>()) };
            read && found == secret
        })
    }

    /// Waits until every rank has come, and tells what the largest number is that one brings along.
    fn agree(&mut self, world: &World, number: u64) -> Result<u64, c_int> {
        let ticket = self.tell_words(world, &[number])?;
        let mut largest = number;
        for place in self.others() {
            largest = largest.max(self.hear_words::<1>(world, place, ticket)?[0]);
        }
        self.done_short(ticket);
        Ok(largest)
    }
}

impl Phases<'_, '_> {
    /// # Safety
    /// As [`Phases::run`].
    pub(super) unsafe fn by_reading(&mut self) -> Result<(), c_int> {
        // Others read the program's buffers: what it wrote past the caches (non-temporal stores, which no store of ours
        // waits for) has to be there before an address is told.
        fence(Ordering::SeqCst);
        // SAFETY: by the promise to `Phases::run` the places are the view's buffers or packed copies of them, so each
        // way may work on them.
        let read = unsafe {
            match self.view.collective {
                Collective::Bcast => self.bcast_by_reading(),
                Collective::Allreduce => self.allreduce_by_reading(),
                _ => self.blocks_by_reading(),
            }
        };
        match read? {
            FINE => Ok(()),
            // SAFETY: the input is as it was.
            _ => unsafe { self.in_stages(OnNodes::Alone) },
        }
    }

    unsafe fn bcast_by_reading(&mut self) -> Result<u64, c_int> {
        let (world, output) = (self.elements.world, self.places.output);
        let bytes = self.elements.bytes(self.view.block);
        let root = self.team.map.place_of[self.view.root];
        let Some(segment) = &mut self.segment else {
            return Ok(FAILED);
        };
        let mut result = FINE;
        if segment.place == root {
            let ticket = segment.tell_words(world, &[output as u64])?;
            segment.done_short(ticket);
        } else {
            let ticket = segment.skip_line();
            let [address] = segment.hear_words(world, root, ticket)?;
            let [process, ..] = segment.identity(root);
            // SAFETY: the output has room for the message.
            if !unsafe { read(process, address, output, bytes) } {
                result = FAILED;
            }
            segment.done_short(ticket);
        }
        segment.agree(world, result)
    }

    /// Allgather and alltoall.
    unsafe fn blocks_by_reading(&mut self) -> Result<u64, c_int> {
        let (world, input, output) = (self.elements.world, self.places.input, self.places.output);
        let bytes = self.elements.bytes(self.view.block);
        let each = self.view.collective == Collective::Alltoall;
        let Some(segment) = &mut self.segment else {
            return Ok(FAILED);
        };
        let (own, n) = (segment.place, segment.n_here);
        // What would be overwritten before others have read it is not lent.
        let lent = !each || !self.view.is_in_place();
        let ticket = segment.tell_words(world, &[input as u64, u64::from(lent)])?;
        let skip = if each { own * bytes } else { 0 };
        let mut result = FINE;
        // SAFETY: the output has a block for each rank, and the input what this one gives itself.
        unsafe {
            std::ptr::copy(
                input.wrapping_add(skip),
                output.wrapping_add(own * bytes),
                bytes,
            )
        };
        for step in 1..n {
            let from = (own + step) % n;
            let [address, theirs] = segment.hear_words(world, from, ticket)?;
            let [process, ..] = segment.identity(from);
            let target = output.wrapping_add(from * bytes);
            // Where the own input is not lent, it may not be lost either.
            // SAFETY: the output has a block for each rank of the node; whatever the other address is, the kernel
            // checks it.
            let reads = || unsafe { read(process, address + skip as u64, target, bytes) };
            if !lent || theirs == 0 || !reads() {
                result = FAILED;
            }
        }
        segment.done_short(ticket);
        segment.agree(world, result)
    }

    /// Every rank combines a slice of the message, and reads the others where they were combined.
    unsafe fn allreduce_by_reading(&mut self) -> Result<u64, c_int> {
        let (world, units) = (self.elements.world, self.view.block);
        let (input, output) = (self.places.input, self.places.output);
        let Some(segment) = &mut self.segment else {
            return Ok(FAILED);
        };
        let n = segment.n_here;
        let data = PhaseData {
            source: input,
            target: output,
        };
        let ticket = segment.tell_words(world, &[input as u64, output as u64])?;
        let mut result = FINE;
        for place in segment.others() {
            let heard: [u64; 2] = segment.hear_words(world, place, ticket)?;
            let [process, ..] = segment.identity(place);
            let mut byte = 0u8;
            // SAFETY: there is room for a byte.
            let seen = heard.map(|address| unsafe { read(process, address, &mut byte, 1) });
            if seen != [true; 2] {
                result = FAILED;
            }
        }
        // Everybody has come, so nobody reads in cells of calls before: the own ones can be used.
        if segment.agree(world, result)? != FINE {
            segment.done_short(ticket);
            return Ok(FAILED);
        }
        // SAFETY: by the promise to `Phases::run` the places are the view's buffers or packed copies of them: the
        // operands lie in the input, and the output has room for the result.
        let mut result = unsafe { combine_slice(&self.elements, segment, ticket, (data, units)) };
        if let Err(code) = result {
            // The input may be lost already, where it is in place.
            segment.give_up(code);
            return Err(code);
        }
        segment.agree(world, FINE)?;
        for step in 1..n {
            let from = (segment.place + step) % n;
            let [_, address] = segment.hear_words(world, from, ticket)?;
            let [process, ..] = segment.identity(from);
            let (start, len) = slice(units, from, n);
            let skip = self.elements.bytes(start);
            let target = output.wrapping_add(skip);
            // SAFETY: the output has room for the message.
            if !unsafe {
                read(
                    process,
                    address + skip as u64,
                    target,
                    self.elements.bytes(len),
                )
            } {
                result = Err(abi::MPI_ERR_OTHER as c_int);
            }
        }
        segment.done_short(ticket);
        segment.agree(world, FINE)?;
        or_give_up(self.segment.as_deref(), result)?;
        Ok(FINE)
    }
}

/// Combines the own slice of everybody's message into the output, from the last rank down.
///
/// # Safety
/// The data's places are those of the message, and no other rank uses the own cells.
unsafe fn combine_slice(
    elements: &Elements,
    segment: &Segment,
    ticket: u64,
    (data, units): (PhaseData, u64),
) -> Result<(), c_int> {
    let (own, n) = (segment.place, segment.n_here);
    let (start, len) = slice(units, own, n);
    // Parts that stay in the processor's cache; there are two cells to work in.
    let most = (CELL as u64 / elements.unit_bytes.max(1)).max(1);
    let (sum, other) = (segment.cell(own, 0), segment.cell(own, 1));
    let mut done = 0;
    while done < len {
        let units = most.min(len - done);
        let (first, bytes) = (start + done, elements.bytes(units));
        let skip = elements.bytes(first);
        for place in (0..n).rev() {
            let into = if place + 1 == n { sum } else { other };
            if place != own {
                let [address, _] = segment.hear_words(elements.world, place, ticket)?;
                let [process, ..] = segment.identity(place);
                // SAFETY: a part fits into a cell.
                if !unsafe { read(process, address + skip as u64, into, bytes) } {
                    return Err(abi::MPI_ERR_OTHER as c_int);
                }
            }
            // SAFETY: both cells hold a part, and the own units lie in the message.
            unsafe {
                match (place + 1 == n, place == own) {
                    (true, true) => {
                        std::ptr::copy_nonoverlapping(data.source.wrapping_add(skip), sum, bytes)
                    }
                    (true, false) => {}
                    (false, true) => {
                        elements.combine_own(data.source.wrapping_add(skip), units, sum)?
                    }
                    (false, false) => elements.combine(other, units, sum)?,
                }
            }
        }
        // SAFETY: the output has room for the message; others read it when they have been told.
        unsafe { std::ptr::copy_nonoverlapping(sum, data.target.wrapping_add(skip), bytes) };
        done += units;
    }
    Ok(())
}
