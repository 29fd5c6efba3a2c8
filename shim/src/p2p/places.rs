//! Where everything of one call lies: the user's buffers, or copies of them, and temporaries.
//!
//! Where each rank knows its own counts alone, nothing is copied and no room is needed, whatever the lengths, of which
//! the ranks share none: every message is one block, from and to where the application has it. A block without bytes
//! is no message; its sender and its receiver know that alike.

use std::ffi::c_int;

use colltune_core::algorithm::lengths::Lengths;
use colltune_core::algorithm::program::{Program, Span};
use colltune_core::algorithm::registry::InPlace;
use colltune_core::algorithm::schedule::{Buffer, Temporary};

use super::endpoint::Endpoint;
use crate::arguments::lists::Located;
use crate::arguments::{Before, Input, Memory, Output, Typed, View};
use crate::scratch::{ALIGN, Demand, Scratch};

/// A region of the scratch memory.
#[derive(Clone, Copy)]
enum Region {
    InputCopy,
    OutputCopy,
    Temporary(usize),
    Staging(usize),
}

/// One call: what is run, on what, in which units.
pub struct ScheduledCall<'a> {
    pub endpoint: Endpoint<'a>,
    /// For each rank its rank in the world.
    pub world_ranks: &'a [c_int],
    pub program: &'a Program,
    pub view: &'a View,
    pub lengths: Lengths<'a>,
    pub in_place: InPlace,
    /// What [`View::has_own_counts`] says, asked once: every span depends on it.
    pub has_own_counts: bool,
}

/// Where the logical buffers of a call begin.
#[derive(Clone, Copy)]
pub struct Places {
    pub input: *mut u8,
    pub output: *mut u8,
}

impl ScheduledCall<'_> {
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
        if self.has_own_counts {
            return 0;
        }
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

    /// Data is moved as bytes; reductions, and blocks of lengths that are not shared, are elements where they lie.
    fn moves_bytes(&self) -> bool {
        self.view.unit.combine.is_none() && !self.has_own_counts
    }

    fn copies_input(&self) -> bool {
        match self.view.input {
            Input::Nothing | Input::Blocks(_) => false,
            Input::User(memory) => self.moves_bytes() && !memory.plain,
            Input::InOutput { .. } => self.in_place == InPlace::Copied,
        }
    }

    fn copies_output(&self) -> bool {
        match self.view.output {
            Output::Nothing | Output::InInput => false,
            Output::User { memory, .. } => self.moves_bytes() && !memory.plain,
            Output::Blocks { .. } => self.moves_bytes(),
        }
    }

    /// Binds the logical buffers and fills what the caller filled.
    ///
    /// # Safety
    /// The scratch memory holds as much as [`ScheduledCall::demand`] says, and the view's buffers are valid.
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
        if self.has_own_counts {
            return Ok(Places { input, output });
        }
        // SAFETY: the scratch memory is as large as the call demands and the view's buffers are valid, as the caller
        // promises.
        unsafe {
            match self.view.output {
                Output::User { memory, .. } if output.is_null() => output = memory.start,
                Output::User { memory, before, .. } => self.fill_output(memory, before, output)?,
                Output::Blocks {
                    listed,
                    before: Before::OwnBlock,
                } => {
                    let own = self.view.members.rank;
                    let (elements, bytes) = self.block(&listed, own);
                    let to = self.at(output, self.block_start(own));
                    self.endpoint.pack(elements, to, bytes)?;
                }
                Output::Nothing | Output::InInput | Output::Blocks { .. } => {}
            }
            match self.view.input {
                Input::Nothing | Input::Blocks(_) => {}
                Input::User(memory) if input.is_null() => input = memory.start,
                Input::User(memory) => self.pack(memory.typed(), input)?,
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
            Before::All => unsafe { self.pack(memory.typed(), output) },
            Before::OwnBlock => {
                let members = self.view.members;
                let own = self.endpoint.world.own_block(memory, members).typed();
                let to = self.at(output, members.rank as u64 * self.view.block);
                // SAFETY: this rank's block lies behind those of the ranks below, in the application's memory as in
                // its packed bytes, for which there is room.
                unsafe { self.pack(own, to) }
            }
        }
    }

    /// # Safety
    /// The elements lie there, and `to` has room for what they pack into, which is at most the message.
    unsafe fn pack(&self, from: Typed, to: *mut u8) -> Result<(), c_int> {
        // SAFETY: the caller promises the elements, and room for their packed bytes.
        unsafe { self.endpoint.pack(from, to, self.lengths.total()) }
    }

    /// Hands the output over where the schedule worked on packed bytes.
    ///
    /// # Safety
    /// The places are those of [`ScheduledCall::bind`], and the schedule has ended.
    pub unsafe fn hand_over(&self, places: &Places) -> Result<(), c_int> {
        if !self.copies_output() {
            return Ok(());
        }
        match self.view.output {
            Output::User {
                memory,
                written: true,
                ..
            } => {
                let (packed, to) = (places.output, memory.typed());
                // SAFETY: the packed message has at least the bytes of the elements of the caller's buffer.
                unsafe { self.endpoint.unpack(packed, self.lengths.total(), to) }
            }
            Output::Blocks { listed, .. } => {
                (0..self.view.members.n_ranks).try_for_each(|rank| {
                    let from = self.at(places.output, self.block_start(rank));
                    // SAFETY: every block has come, and its place is the application's.
                    unsafe { self.give_block(&listed, rank, from) }
                })
            }
            _ => Ok(()),
        }
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
        let bytes = self.block_start(rank + 1) - self.block_start(rank);
        // SAFETY: the caller promises that the list has a block for that rank.
        (unsafe { listed.side(rank) }.typed(), bytes)
    }

    /// Unpacks a block of a list from `from`.
    ///
    /// # Safety
    /// The block is the application's, and `from` has its packed bytes.
    unsafe fn give_block(&self, listed: &Located, rank: usize, from: *mut u8) -> Result<(), c_int> {
        // SAFETY: the block is the application's and `from` has its packed bytes, as the caller promises.
        unsafe {
            let (elements, bytes) = self.block(listed, rank);
            if bytes > 0 && listed.plain {
                std::ptr::copy(from, elements.start, bytes as usize);
            } else if bytes > 0 {
                // MPICH 4.0 takes a message of many pairs to the rank itself for too long.
                self.endpoint.unpack(from, bytes, elements)?;
            }
        }
        Ok(())
    }

    /// The address of a unit.
    #[inline]
    pub fn at(&self, base: *mut u8, unit: u64) -> *mut u8 {
        self.view.unit.at(base, unit)
    }

    /// The units of a span, or the block of the application's that it is.
    #[inline]
    pub fn span(&self, places: &Places, temporaries: &[*mut u8], span: Span) -> Typed {
        if self.has_own_counts {
            return self.own_block(span);
        }
        let base = match span.buffer {
            Buffer::Input => places.input,
            Buffer::Output => places.output,
            Buffer::Temporary(which) => temporaries[usize::from(which)],
        };
        let (from, units) = self.lengths.of(span, &self.program.temporaries);
        self.view.unit.typed(self.at(base, from), units)
    }

    /// The block of a span, which is one chunk; without elements where it has no bytes.
    #[inline(never)]
    fn own_block(&self, span: Span) -> Typed {
        let rank = span.first as usize;
        let block = match (span.buffer, self.view.input, self.view.output) {
            (Buffer::Input, Input::User(memory), _) => memory.typed(),
            (Buffer::Output, _, Output::User { memory, .. }) => memory.typed(),
            (Buffer::Input, Input::Blocks(listed), _)
            | (Buffer::Output, _, Output::Blocks { listed, .. }) => {
                // SAFETY: a span names a rank's block.
                unsafe { listed.side(rank) }.typed()
            }
            // It is nowhere on this rank, or lies where it goes.
            _ => self.endpoint.bytes(std::ptr::null_mut(), 0),
        };
        // Without elements the type may be invalid.
        let is_empty =
            block.count == 0 || self.endpoint.world.type_bytes(block.datatype) == Some(0);
        Typed {
            count: if is_empty { 0 } else { block.count },
            ..block
        }
    }

    /// Copies a span to another of as many units, or a block to one of another type.
    ///
    /// # Safety
    /// Both are this call's.
    #[inline]
    pub unsafe fn copy_span(&self, from: Typed, to: Typed) -> Result<(), c_int> {
        // SAFETY: the caller promises spans of this call, which are as long as the view says.
        unsafe {
            match self.has_own_counts {
                true => self.endpoint.copy_block(from, to),
                false => self.copy(from.start, to.start, from.count),
            }
        }
    }

    /// Copies units. What lies between their bytes stays untouched at the target.
    ///
    /// # Safety
    /// Both places hold so many units.
    #[inline]
    pub unsafe fn copy(&self, from: *mut u8, to: *mut u8, units: u64) -> Result<(), c_int> {
        // SAFETY: the caller promises that both places hold so many units.
        unsafe { self.endpoint.copy(&self.view.unit, from, to, units) }
    }
}
