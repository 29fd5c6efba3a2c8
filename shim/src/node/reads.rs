//! Long messages that are copied once: ranks read each other's buffers where they lie.
//!
//! The kernel copies from one process into another (process_vm_readv), where it lets it: security modules and
//! containers may forbid that, so the ranks find out in the set-up and agree. Lines carry the addresses;
//! [`SingleCopy`] says which steps a rank takes. Memory that cannot be read in this way, as a device's may, shows in
//! the first bytes or at the end, to all ranks alike. Then the call runs through the cells.

use std::ffi::{c_int, c_void};
use std::sync::atomic::{Ordering, fence};

use colltune_core::catalogue::OnNodes;
use colltune_core::node::single_copy::{Lent, Part, ReadStep, SingleCopy};

use super::elements::Elements;
use super::phases::{Phases, or_give_up};
use super::pieces::PhaseData;
use super::segment::Segment;
use crate::abi;
use crate::world::World;

/// What ranks tell each other of their reading; the largest counts.
const FINE: u64 = 0;
const FAILED: u64 = 1;
/// In place of an address: the buffer may not be read.
const NOT_LENT: u64 = 0;

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
        // waits for) has to be there before the address is passed on.
        fence(Ordering::SeqCst);
        let Some(segment) = self.segment.as_deref_mut() else {
            // It is alone on its node.
            // SAFETY: as the caller promises.
            return unsafe { self.in_stages(OnNodes::Alone) };
        };
        let call = SingleCopy {
            collective: self.view.collective,
            place: segment.place,
            n_here: segment.n_here,
            root: self.team.map.place_of[self.view.root],
            units: self.view.block,
            unit_bytes: self.elements.unit_bytes,
            in_place: self.view.is_in_place(),
        };
        let mut reading = Reading {
            elements: &self.elements,
            segment,
            data: PhaseData {
                source: self.places.input,
                target: self.places.output,
            },
            ticket: 0,
            told: FINE,
            agreed: false,
        };
        // SAFETY: by the promise to `Phases::run` the places are the view's buffers or packed copies of them, within which
        // the steps of its collective stay (held by the core's tests).
        let ended = call.steps(&mut |step| unsafe { reading.carry_out(step) });
        match ended {
            Ok(()) => Ok(()),
            // What others wait for does not come any more, and the input may be lost already.
            Err(End::Fault(code)) => or_give_up(self.segment.as_deref(), Err(code)),
            // SAFETY: the input is as it was.
            Err(End::Stopped) => unsafe { self.in_stages(OnNodes::Alone) },
        }
    }
}

/// What ends a call before its last step.
enum End {
    /// Some rank could not read, and all know.
    Stopped,
    /// The class of an error.
    Fault(c_int),
}

impl From<c_int> for End {
    fn from(code: c_int) -> End {
        End::Fault(code)
    }
}

/// A call under way.
struct Reading<'a, 'b> {
    elements: &'a Elements<'b>,
    segment: &'a mut Segment,
    data: PhaseData,
    /// Of the line that holds the addresses.
    ticket: u64,
    /// What this rank tells the others when they first agree, and whether they have.
    told: u64,
    agreed: bool,
}

impl Reading<'_, '_> {
    /// The address of a part; room lies in the own cells.
    fn own(&self, part: Part) -> *mut u8 {
        let (segment, elements) = (&self.segment, self.elements);
        match part {
            Part::Lent(Lent::Source(unit)) => elements.at(self.data.source, unit),
            Part::Lent(Lent::Target(unit)) => elements.at(self.data.target, unit),
            Part::Sum => segment.cell(segment.place, 0),
            Part::Operand => segment.cell(segment.place, 1),
        }
    }

    /// Where the buffers of the rank in a place lie, once it has lent them.
    fn lent(&self, of: usize) -> Result<[u64; 2], c_int> {
        self.segment
            .hear_words(self.elements.world, of, self.ticket)
    }

    /// Reads from another rank's memory. A failure before all have agreed is reported when they do.
    ///
    /// # Safety
    /// There is room for the bytes at `into`.
    unsafe fn read(
        &mut self,
        of: usize,
        (base, skip): (u64, usize),
        into: *mut u8,
        bytes: usize,
    ) -> Result<(), c_int> {
        let [process, ..] = self.segment.identity(of);
        // SAFETY: the caller promises the room; whatever the other address is, the kernel checks it.
        let is_read = base != NOT_LENT && unsafe { read(process, base + skip as u64, into, bytes) };
        match (is_read, self.agreed) {
            (true, _) => {}
            (false, false) => self.told = FAILED,
            (false, true) => return Err(abi::MPI_ERR_OTHER as c_int),
        }
        Ok(())
    }

    /// # Safety
    /// The call's buffers hold what the step reads, and have room for what it writes; no other rank uses the own cells
    /// behind the first agreement.
    unsafe fn carry_out(&mut self, step: ReadStep) -> Result<(), End> {
        let (world, elements) = (self.elements.world, self.elements);
        match step {
            ReadStep::Lend { readable } => {
                let addresses = [self.data.source as u64, self.data.target as u64];
                let words = if readable { addresses } else { [NOT_LENT; 2] };
                self.told = if readable { FINE } else { FAILED };
                self.ticket = self.segment.tell_words(world, &words)?;
            }
            ReadStep::Probe { of } => {
                for base in self.lent(of)? {
                    let mut byte = 0u8;
                    // SAFETY: there is room for a byte.
                    unsafe { self.read(of, (base, 0), &mut byte, 1)? };
                }
            }
            ReadStep::Read {
                of,
                from,
                into,
                units,
            } => {
                let [source, target] = self.lent(of)?;
                let (base, unit) = match from {
                    Lent::Source(unit) => (source, unit),
                    Lent::Target(unit) => (target, unit),
                };
                let (skip, bytes) = (elements.bytes(unit), elements.bytes(units));
                // SAFETY: the caller promises the room.
                unsafe { self.read(of, (base, skip), self.own(into), bytes)? };
            }
            // SAFETY: the caller promises both places; units that are read have no holes.
            ReadStep::Copy { from, into, units } => unsafe {
                elements.copy(self.own(from), units, self.own(into))?;
            },
            // SAFETY: the caller promises both places.
            ReadStep::Combine { from, into, units } => unsafe {
                elements.combine_own(self.own(from), units, self.own(into))?;
            },
            ReadStep::Return => self.segment.done_short(self.ticket),
            ReadStep::Agree => {
                let told = self.segment.agree(world, self.told)?;
                self.agreed = true;
                if told != FINE {
                    self.segment.done_short(self.ticket);
                    return Err(End::Stopped);
                }
            }
        }
        Ok(())
    }
}
