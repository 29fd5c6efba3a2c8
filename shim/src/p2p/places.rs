//! Where everything of one call lies: the user's buffers, or copies of them, and temporaries.

use std::ffi::{c_int, c_void};

use colltune_core::algorithm::lengths::Lengths;
use colltune_core::algorithm::program::{Program, Span};
use colltune_core::algorithm::registry::InPlace;
use colltune_core::algorithm::schedule::{Buffer, Temporary};

use crate::abi::{self, Aint, Comm, Datatype};
use crate::arguments::lists::Located;
use crate::arguments::{Before, Input, Members, Memory, Output, Unit, View};
use crate::scratch::{ALIGN, Demand, Scratch};
use crate::world::World;

/// A region of the scratch memory.
#[derive(Clone, Copy)]
enum Region {
    InputCopy,
    OutputCopy,
    Temporary(usize),
    Staging(usize),
}

/// One call: what is run, on what, in which units.
pub struct Job<'a> {
    pub world: &'a World,
    /// The communicator of ours that carries the messages.
    pub comm: Comm,
    pub tag: c_int,
    /// For each rank its rank there.
    pub world_ranks: &'a [c_int],
    pub members: Members,
    pub program: &'a Program,
    pub view: View,
    pub lengths: Lengths<'a>,
    pub in_place: InPlace,
}

/// Elements of a type: where the first is, how many there are.
type Typed = (*mut u8, u64, Datatype);

/// Where the logical buffers of a job begin.
#[derive(Clone, Copy)]
pub struct Places {
    pub input: *mut u8,
    pub output: *mut u8,
}

impl Unit {
    /// The bytes that so many units take in memory; saturates.
    pub fn bytes(&self, units: u64) -> usize {
        let Some(before_last) = units.checked_sub(1) else {
            return 0;
        };
        let stride = self.stride.unsigned_abs() as u64;
        let last = u64::try_from(self.true_extent).unwrap_or(0);
        let bytes = before_last.saturating_mul(stride).saturating_add(last);
        usize::try_from(bytes).unwrap_or(usize::MAX)
    }

    /// The address of unit 0 of `units` units that fill the memory from `start` on.
    pub fn first(&self, start: *mut u8, units: u64) -> *mut u8 {
        let below = if self.stride < 0 {
            units.saturating_sub(1) as Aint * -self.stride
        } else {
            0
        };
        start.wrapping_offset(below - self.true_lower)
    }
}

impl Job<'_> {
    /// Bytes of scratch memory that the call uses; saturates.
    pub fn demand(&self) -> usize {
        let mut bytes = 0usize;
        self.regions(|_, units| bytes = bytes.saturating_add(self.room(units)));
        bytes
    }

    /// As much as any call needs whose message is as long: of uneven blocks whatever their
    /// lengths and however they lie on this rank; of elements whether they have to be packed or not, and
    /// of pairs, whose holes take less room than they do, too.
    pub fn demand_in_class(&self) -> Demand {
        Demand {
            bytes: self.bytes_in_class(),
            requests: self.program.staged_chunks.len(),
            temporaries: self.program.temporaries.len(),
        }
    }

    fn bytes_in_class(&self) -> usize {
        if self.view.uneven.is_none() {
            let mut bytes = self.demand();
            if !self.copies_input() && (self.moves_bytes() || self.in_place == InPlace::Copied) {
                let units = self.view.input_units.max(self.lengths.longest());
                bytes = bytes.saturating_add(self.room(units));
            }
            if self.moves_bytes() {
                let copied = if self.copies_output() {
                    0
                } else {
                    self.lengths.total()
                };
                return bytes.saturating_add(self.room(copied));
            }
            return bytes.saturating_mul(2);
        }
        let ring = |temporary: &Temporary| match temporary {
            Temporary::Like { .. } => 1,
            Temporary::Ring { places } => *places as usize,
        };
        let temporaries: usize = self.program.temporaries.iter().map(ring).sum();
        let staged = self.program.staged_chunks.iter();
        let regions = 2 + temporaries + staged.filter(|&&chunks| chunks > 0).count();
        regions.saturating_mul(self.room(self.lengths.total()))
    }

    fn room(&self, units: u64) -> usize {
        let bytes = self.view.unit.bytes(units);
        bytes.checked_next_multiple_of(ALIGN).unwrap_or(usize::MAX)
    }

    /// Every region with its units, in a fixed order.
    fn regions(&self, mut region: impl FnMut(Region, u64)) {
        if self.copies_input() {
            region(Region::InputCopy, self.view.input_units);
        }
        if self.copies_output() {
            region(Region::OutputCopy, self.lengths.total());
        }
        for (place, &temporary) in self.program.temporaries.iter().enumerate() {
            region(Region::Temporary(place), self.lengths.temporary(temporary));
        }
        for (request, &chunks) in self.program.staged_chunks.iter().enumerate() {
            if chunks > 0 {
                region(Region::Staging(request), self.lengths.most(chunks));
            }
        }
    }

    /// Data is moved as bytes, reductions work on elements where they lie.
    fn moves_bytes(&self) -> bool {
        self.view.unit.combine.is_none()
    }

    fn copies_input(&self) -> bool {
        match self.view.input {
            Input::Nothing => false,
            Input::User(memory) => self.moves_bytes() && !memory.plain,
            Input::InOutput { .. } => self.in_place == InPlace::Copied,
        }
    }

    fn copies_output(&self) -> bool {
        match self.view.output {
            Output::Nothing | Output::InInput => false,
            Output::User { memory, .. } => self.moves_bytes() && !memory.plain,
            Output::Blocks { .. } => true,
        }
    }

    /// Binds the logical buffers and fills what the caller filled.
    ///
    /// # Safety
    /// The scratch memory holds as much as [`Job::demand`] says, and the view's buffers are valid.
    pub unsafe fn bind(&self, scratch: &mut Scratch) -> Result<Places, c_int> {
        let null = std::ptr::null_mut();
        let (mut input, mut output) = (null, null);
        let mut next = scratch.block.start();
        let (temporaries, staging) = (&mut scratch.temporaries, &mut scratch.staging);
        temporaries.clear();
        temporaries.resize(self.program.temporaries.len(), null);
        staging.clear();
        staging.resize(self.program.staged_chunks.len(), null);
        self.regions(|region, units| {
            let first = self.view.unit.first(next, units);
            match region {
                Region::InputCopy => input = first,
                Region::OutputCopy => output = first,
                Region::Temporary(place) => temporaries[place] = first,
                Region::Staging(request) => staging[request] = first,
            }
            next = next.wrapping_add(self.room(units));
        });
        // SAFETY: the scratch memory is as large as the job demands and the view's buffers are valid, as the caller
        // promises.
        unsafe {
            match self.view.output {
                Output::User { memory, .. } if output.is_null() => output = memory.start,
                Output::User { memory, before, .. } => self.fill_output(memory, before, output)?,
                Output::Blocks {
                    listed,
                    before: Before::OwnBlock,
                } => {
                    let own = self.members.rank;
                    self.take_block(&listed, own, self.at(output, self.block_start(own)))?;
                }
                Output::Nothing | Output::InInput | Output::Blocks { .. } => {}
            }
            match self.view.input {
                Input::Nothing => {}
                Input::User(memory) if input.is_null() => input = memory.start,
                Input::User(memory) => self.pack(memory.start, memory.count, memory, input)?,
                Input::InOutput { from } => {
                    let source = self.at(output, from);
                    if input.is_null() {
                        input = source;
                    } else {
                        self.copy(source, input, self.view.input_units)?;
                    }
                }
            }
        }
        Ok(Places { input, output })
    }

    /// Packs what the caller put into an output that the schedule works on as packed bytes.
    unsafe fn fill_output(
        &self,
        memory: Memory,
        before: Before,
        output: *mut u8,
    ) -> Result<(), c_int> {
        match before {
            Before::Nothing => Ok(()),
            // SAFETY: the memory is the application's, and `output` has room for its packed bytes, as the caller
            // promises.
            Before::All => unsafe { self.pack(memory.start, memory.count, memory, output) },
            Before::OwnBlock => {
                let rank = self.members.rank as u64;
                let count = memory.count / self.members.n_ranks as u64;
                let (mut lower, mut stride) = (0, 0);
                // SAFETY: the application passed the handle as a datatype. Its own block lies
                // behind those of the ranks below.
                unsafe {
                    let get = self.world.pmpi.type_get_extent;
                    check(get(memory.datatype, &mut lower, &mut stride))?;
                    let from = memory
                        .start
                        .wrapping_offset((rank * count) as Aint * stride);
                    let to = self.at(output, rank * self.view.block);
                    self.pack(from, count, memory, to)
                }
            }
        }
    }

    unsafe fn pack(
        &self,
        from: *mut u8,
        count: u64,
        memory: Memory,
        to: *mut u8,
    ) -> Result<(), c_int> {
        if from.is_null() {
            // MPI_BOTTOM, which MPICH 4.0 does not pack from.
            let bytes = Memory { count, ..memory };
            let bytes = self.world.packed_bytes(&bytes).unwrap_or(0);
            let typed = (from, count, memory.datatype);
            // SAFETY: `to` has room for what the elements pack into.
            return unsafe { self.message_to_self(typed, (to, bytes, self.view.unit.datatype)) };
        }
        let (mut position, room) = (0, self.lengths.total().min(c_int::MAX as u64));
        // SAFETY: `to` has room for what the elements pack into, which is at most the message.
        check(unsafe {
            (self.world.pmpi.pack)(
                from.cast(),
                count as c_int,
                memory.datatype,
                to.cast(),
                room as c_int,
                &mut position,
                self.comm,
            )
        })
    }

    /// Hands the output over where the schedule worked on packed bytes.
    ///
    /// # Safety
    /// The places are those of [`Job::bind`], and the schedule has ended.
    pub unsafe fn hand_over(&self, places: &Places) -> Result<(), c_int> {
        let memory = match self.view.output {
            Output::User {
                memory,
                written: true,
                ..
            } if self.copies_output() => memory,
            Output::Blocks { listed, .. } => {
                return (0..self.members.n_ranks).try_for_each(|rank| {
                    let from = self.at(places.output, self.block_start(rank));
                    // SAFETY: every block has come, and its place is the application's.
                    unsafe { self.give_block(&listed, rank, from) }
                });
            }
            _ => return Ok(()),
        };
        let (mut position, bytes) = (0, self.lengths.total());
        if memory.start.is_null() {
            // Where the schedule's message has every rank's block, this rank's is a part of it.
            let own = self.world.packed_bytes(&memory).unwrap_or(bytes);
            let packed = (places.output, own, self.view.unit.datatype);
            let typed = (memory.start, memory.count, memory.datatype);
            // SAFETY: the output is the application's, and its packed bytes lie in the scratch memory that `bind`
            // gave.
            return unsafe { self.message_to_self(packed, typed) };
        }
        // SAFETY: the packed message has as many bytes as the elements of the caller's buffer.
        check(unsafe {
            (self.world.pmpi.unpack)(
                places.output.cast(),
                bytes as c_int,
                &mut position,
                memory.start.cast(),
                memory.count as c_int,
                memory.datatype,
                self.comm,
            )
        })
    }

    /// The first unit of a rank's block.
    fn block_start(&self, rank: usize) -> u64 {
        let parts = u64::from(self.program.parts_per_block);
        self.lengths.start(rank as u64 * parts)
    }

    /// A block of a list, as elements and as the packed bytes that it has.
    ///
    /// # Safety
    /// The list has a block for that rank.
    unsafe fn block(&self, listed: &Located, rank: usize) -> (Typed, u64) {
        // SAFETY: the caller promises that the list has a block for that rank.
        let (start, count) = unsafe { listed.block(rank) };
        let bytes = self.block_start(rank + 1) - self.block_start(rank);
        ((start.cast(), count as u64, listed.listed.datatype), bytes)
    }

    /// Packs a block of a list to `to`.
    ///
    /// # Safety
    /// The block is the application's, and `to` has room for it.
    unsafe fn take_block(&self, listed: &Located, rank: usize, to: *mut u8) -> Result<(), c_int> {
        // SAFETY: the block is the application's and `to` has room for its packed bytes, as the caller promises.
        unsafe {
            let (elements, bytes) = self.block(listed, rank);
            let byte = self.view.unit.datatype;
            self.message_to_self(elements, (to, bytes, byte))
        }
    }

    /// Unpacks a block of a list from `from`.
    ///
    /// # Safety
    /// The block is the application's, and `from` has its packed bytes.
    unsafe fn give_block(&self, listed: &Located, rank: usize, from: *mut u8) -> Result<(), c_int> {
        // SAFETY: the block is the application's and `from` has its packed bytes, as the caller promises.
        unsafe {
            let (elements, bytes) = self.block(listed, rank);
            let byte = self.view.unit.datatype;
            if bytes == 0 {
                return Ok(());
            }
            if self.world.types.get(listed.listed.datatype).is_some() {
                std::ptr::copy(from, elements.0, bytes as usize);
                return Ok(());
            }
            self.message_to_self((from, bytes, byte), elements)
        }
    }

    /// The address of a unit.
    #[inline]
    pub fn at(&self, base: *mut u8, unit: u64) -> *mut u8 {
        base.wrapping_offset(unit as Aint * self.view.unit.stride)
    }

    /// Where a span begins, and how many units it has.
    #[inline]
    pub fn span(&self, places: &Places, temporaries: &[*mut u8], span: Span) -> (*mut u8, u64) {
        let base = match span.buffer {
            Buffer::Input => places.input,
            Buffer::Output => places.output,
            Buffer::Temporary(which) => temporaries[usize::from(which)],
        };
        let (from, units) = self.lengths.of(span, &self.program.temporaries);
        (self.at(base, from), units)
    }

    /// Copies units. What lies between their bytes stays untouched at the target.
    ///
    /// # Safety
    /// Both places hold so many units.
    #[inline]
    pub unsafe fn copy(&self, from: *mut u8, to: *mut u8, units: u64) -> Result<(), c_int> {
        if from == to || units == 0 {
            return Ok(());
        }
        if self.view.unit.plain {
            let bytes = units as usize * self.view.unit.stride as usize;
            // SAFETY: units without holes are their bytes.
            unsafe { std::ptr::copy(from, to, bytes) };
            return Ok(());
        }
        // SAFETY: the caller promises that both places hold so many units.
        unsafe { self.copy_typed(from, to, units) }
    }

    #[cold]
    unsafe fn copy_typed(&self, from: *mut u8, to: *mut u8, units: u64) -> Result<(), c_int> {
        let datatype = self.view.unit.datatype;
        // SAFETY: the caller promises that both places hold so many units.
        unsafe { self.message_to_self((from, units, datatype), (to, units, datatype)) }
    }

    /// Copies between buffers of two types with one signature, each with its count: MPI does that
    /// only by a message.
    ///
    /// # Safety
    /// Both buffers hold what their types and counts say.
    pub unsafe fn message_to_self(&self, from: Typed, to: Typed) -> Result<(), c_int> {
        let own = self.world_ranks[self.members.rank];
        // SAFETY: no schedule sends to its own rank, so nothing else matches these messages.
        check(unsafe {
            (self.world.pmpi.sendrecv)(
                from.0.cast(),
                from.1 as c_int,
                from.2,
                own,
                self.tag,
                to.0.cast(),
                to.1 as c_int,
                to.2,
                own,
                self.tag,
                self.comm,
                abi::MPI_STATUS_IGNORE as *mut c_void,
            )
        })
    }
}

/// An error code as an error.
#[inline]
pub fn check(code: c_int) -> Result<(), c_int> {
    if code == abi::SUCCESS {
        Ok(())
    } else {
        Err(code)
    }
}
