//! Messages that travel in one cache line with the number that says that they have come.
//!
//! The steps are those of a message of one piece; there is nothing to cut.

use std::cell::UnsafeCell;
use std::ffi::c_int;
use std::sync::atomic::{AtomicU64, Ordering};

use colltune_core::algorithm::fixed_order::{self, FoldStep};
use colltune_core::node::layout::{Flag, LINES};
use colltune_core::node::phase::{CarriesOut, MemoryStep, Phase, Units};

use super::elements::{Elements, Sum};
use super::fixed_order::SLOTS;
use super::pieces::PhaseData;
use super::segment::Segment;
use crate::abi::{Datatype, Op};
use crate::p2p::endpoint::check;
use crate::world::World;

/// Ranks tell now and then only that they are done with lines.
const TOLD: u64 = LINES / 4;

/// What a line carries.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Payload([u64; 7]);

impl Payload {
    const EMPTY: Payload = Payload([0; 7]);

    fn start(&mut self) -> *mut u8 {
        self.0.as_mut_ptr().cast()
    }
}

/// What a rank contributes to a sum, or another combination, that fits into a line.
#[derive(Clone, Copy)]
pub struct Contribution {
    pub units: usize,
    pub bytes: usize,
    /// `None` where the library combines.
    pub sum: Option<Sum>,
    pub datatype: Datatype,
    pub op: Op,
}

impl Contribution {
    /// # Safety
    /// The units lie at `at`.
    #[inline(always)]
    unsafe fn read(&self, at: *const u8) -> Payload {
        let mut load = Payload::EMPTY;
        // SAFETY: the caller promises the units at `at`; a line holds their bytes.
        unsafe {
            match self.bytes {
                8 => load.0[0] = at.cast::<u64>().read_unaligned(),
                bytes => std::ptr::copy_nonoverlapping(at, load.start(), bytes),
            }
        }
        load
    }

    /// # Safety
    /// There is room for the units at `at`.
    #[inline(always)]
    unsafe fn write(&self, mut load: Payload, at: *mut u8) {
        // SAFETY: the caller promises room for the units at `at`; the words hold as many bytes.
        unsafe {
            match self.bytes {
                8 => at.cast::<u64>().write_unaligned(load.0[0]),
                bytes => std::ptr::copy_nonoverlapping(load.start(), at, bytes),
            }
        }
    }

    /// Combines the units of a lower rank with those of higher ones.
    #[inline(always)]
    fn combine(&self, world: &World, mut from: Payload, into: &mut Payload) -> Result<(), c_int> {
        if let Some(sum) = self.sum {
            // SAFETY: both lines hold so many numbers of that kind.
            unsafe { sum.add(from.start(), into.start(), self.units) };
            return Ok(());
        }
        // SAFETY: both lines hold the units, of a type without holes.
        check(unsafe {
            (world.pmpi.reduce_local)(
                from.start().cast(),
                into.start().cast(),
                self.units as c_int,
                self.datatype,
                self.op,
            )
        })
    }
}

impl Segment {
    /// Combines what all ranks contribute, from the last rank down.
    ///
    /// # Safety
    /// The own contribution lies at `source`, and there is room for as much at `target`.
    #[inline(always)]
    pub unsafe fn combine_lines(
        &mut self,
        world: &World,
        contribution: Contribution,
        source: *const u8,
        target: *mut u8,
    ) -> Result<(), c_int> {
        let ticket = self.next_short();
        let bytes = contribution.bytes;
        // SAFETY: the caller promises the contribution at `source`.
        let mine = unsafe { contribution.read(source) };
        self.send_line(world, ticket, &mine, bytes)?;
        let mut result = Ok(());
        if let Some(lowest) = self.fixed_order(world) {
            let line = (ticket, lowest, bytes, 0);
            let sum = self.fold_lines(world, line, &contribution, mine, &mut result)?;
            // SAFETY: the caller promises room for as much at `target`.
            unsafe { contribution.write(sum, target) };
            self.done_short(ticket);
            return result;
        }
        let mut all = Payload::EMPTY;
        for place in (0..self.n_here).rev() {
            let load = match place == self.place {
                true => mine,
                false => self.receive_line(world, place, ticket, bytes)?,
            };
            if place + 1 == self.n_here {
                all = load;
            } else {
                result = result.and(contribution.combine(world, load, &mut all));
            }
        }
        // SAFETY: the caller promises room for as much at `target`.
        unsafe { contribution.write(all, target) };
        self.done_short(ticket);
        result
    }

    /// Combines what the lines of a ticket carry behind their first `skip` bytes, and what is `mine`, in the fixed order.
    #[cold]
    #[inline(never)]
    fn fold_lines(
        &self,
        world: &World,
        (ticket, lowest, bytes, skip): (u64, usize, usize, usize),
        contribution: &Contribution,
        mine: Payload,
        result: &mut Result<(), c_int>,
    ) -> Result<Payload, c_int> {
        let operand = |rank| match (lowest + rank) % self.n_here {
            place if place == self.place => Ok::<_, c_int>(mine),
            place => {
                let mut line = self.receive_line(world, place, ticket, bytes)?;
                let start = line.start().wrapping_add(skip);
                // SAFETY: the units of the contribution lie behind what is skipped.
                Ok(unsafe { contribution.read(start) })
            }
        };
        let mut slots = [Payload::EMPTY; SLOTS];
        fixed_order::combine(self.n_here, |step| {
            let (from, slot) = match step {
                FoldStep::Take { rank, slot } => {
                    slots[slot] = operand(rank)?;
                    return Ok::<_, c_int>(());
                }
                FoldStep::Before { rank, slot } => (operand(rank)?, slot),
                FoldStep::Merge { slot } => (slots[slot + 1], slot),
            };
            *result = result.and(contribution.combine(world, from, &mut slots[slot]));
            Ok::<_, c_int>(())
        })?;
        Ok(slots[0])
    }

    #[inline(always)]
    fn send_line(
        &mut self,
        world: &World,
        ticket: u64,
        load: &Payload,
        bytes: usize,
    ) -> Result<(), c_int> {
        if ticket > self.room_short {
            self.await_room_short(world, ticket)?;
        }
        let line = self.areas.line(self.place, ticket);
        for place in 0..bytes.div_ceil(8) {
            let word = self.number(line + 8 + 8 * place);
            word.store(load.0[place], Ordering::Relaxed);
        }
        self.number(line).store(ticket, Ordering::Release);
        Ok(())
    }

    #[cold]
    fn await_room_short(&mut self, world: &World, ticket: u64) -> Result<(), c_int> {
        let mut least = u64::MAX;
        for place in self.others() {
            let done = self.flag(place, Flag::ShortDone);
            self.until(world, || done.load(Ordering::Acquire) + LINES >= ticket)?;
            least = least.min(done.load(Ordering::Acquire));
        }
        self.room_short = least + LINES;
        Ok(())
    }

    #[inline(always)]
    fn receive_line(
        &self,
        world: &World,
        from: usize,
        ticket: u64,
        bytes: usize,
    ) -> Result<Payload, c_int> {
        let line = self.areas.line(from, ticket);
        let number = self.number(line);
        self.until(world, || number.load(Ordering::Acquire) == ticket)?;
        let mut load = Payload::EMPTY;
        for place in 0..bytes.div_ceil(8) {
            let word = self.number(line + 8 + 8 * place);
            load.0[place] = word.load(Ordering::Relaxed);
        }
        Ok(load)
    }

    /// Sends a few numbers in a line; its ticket.
    pub fn tell_words(&mut self, world: &World, words: &[u64]) -> Result<u64, c_int> {
        let ticket = self.next_short();
        let mut load = Payload::EMPTY;
        load.0[..words.len()].copy_from_slice(words);
        self.send_line(world, ticket, &load, words.len() * 8)?;
        Ok(ticket)
    }

    /// The numbers that a rank has sent in a line.
    pub fn hear_words<const N: usize>(
        &self,
        world: &World,
        from: usize,
        ticket: u64,
    ) -> Result<[u64; N], c_int> {
        let load = self.receive_line(world, from, ticket, N * 8)?;
        Ok(std::array::from_fn(|place| load.0[place]))
    }

    /// Sends a line without a message; its ticket.
    #[inline]
    pub fn tell_line(&mut self, world: &World) -> Result<u64, c_int> {
        let ticket = self.next_short();
        self.send_line(world, ticket, &Payload::EMPTY, 0)?;
        Ok(ticket)
    }

    /// The number of a rank's line.
    #[inline(always)]
    pub fn line(&self, place: usize, ticket: u64) -> &AtomicU64 {
        self.number(self.areas.line(place, ticket))
    }

    #[inline(always)]
    fn next_short(&mut self) -> u64 {
        let ticket = self.next_short;
        self.next_short += 1;
        ticket
    }

    #[inline(always)]
    pub fn done_short(&self, ticket: u64) {
        if ticket.is_multiple_of(TOLD) {
            self.flag(self.place, Flag::ShortDone)
                .store(ticket, Ordering::Release);
        }
    }
}

/// A phase whose message, or all of its blocks, fits into a line, which is the cell of its one piece.
struct InLine<'a, 'b> {
    elements: &'a Elements<'b>,
    segment: &'a mut Segment,
    data: PhaseData,
    ticket: u64,
    /// Bytes of the line.
    bytes: usize,
    mine: UnsafeCell<Payload>,
    /// Of the rank that was waited for last.
    theirs: UnsafeCell<Payload>,
    /// After a fault the others still get what they wait for.
    result: Result<(), c_int>,
}

/// Runs one.
///
/// # Safety
/// As [`super::pieces::RunningPhase::new`].
#[inline(always)]
pub unsafe fn run(
    elements: &Elements,
    segment: &mut Segment,
    phase: Phase,
    data: PhaseData,
) -> Result<(), c_int> {
    let ticket = segment.next_short();
    let mut line = InLine {
        elements,
        segment,
        data,
        ticket,
        bytes: elements.bytes(phase.units) * phase.blocks.copies(),
        mine: UnsafeCell::new(Payload::EMPTY),
        theirs: UnsafeCell::new(Payload::EMPTY),
        result: Ok(()),
    };
    let fixed_order = line.segment.fixed_order(elements.world);
    Phase {
        fixed_order,
        ..phase
    }
    .steps(0, &mut line)?;
    line.result
}

impl InLine<'_, '_> {
    /// So many units of a line, of a reduction.
    fn contribution(&self, units: u64) -> Option<Contribution> {
        let Elements { unit, sum, .. } = self.elements;
        Some(Contribution {
            units: units as usize,
            bytes: self.elements.bytes(units),
            sum: *sum,
            datatype: unit.datatype,
            op: unit.combine?.op,
        })
    }

    #[inline(always)]
    fn at(&self, place: Units) -> *mut u8 {
        match place {
            Units::Source(unit) => self.elements.at(self.data.source, unit),
            Units::Target(unit) => self.elements.at(self.data.target, unit),
            Units::Cell { of, unit } => {
                let line = match of == self.segment.place {
                    true => &self.mine,
                    false => &self.theirs,
                };
                let start = line.get().cast::<u8>();
                start.wrapping_add(self.elements.bytes(unit))
            }
            Units::Room => unreachable!("slices have room, and a line has none"),
        }
    }
}

impl CarriesOut for InLine<'_, '_> {
    type Fault = c_int;

    #[inline(always)]
    fn carry_out(&mut self, step: MemoryStep) -> Result<(), c_int> {
        let (world, ticket, bytes) = (self.elements.world, self.ticket, self.bytes);
        let result = match step {
            MemoryStep::Await { of, .. } => {
                *self.theirs.get_mut() = self.segment.receive_line(world, of, ticket, bytes)?;
                return Ok(());
            }
            MemoryStep::Tell { flag, .. } => match flag {
                Flag::Filled => {
                    let mine = self.mine.get_mut();
                    return self.segment.send_line(world, ticket, mine, bytes);
                }
                _ => {
                    self.segment.done_short(ticket);
                    return Ok(());
                }
            },
            MemoryStep::Fold {
                lowest,
                own,
                first,
                into,
                units,
                ..
            } => {
                let Some(contribution) = self.contribution(units) else {
                    return Ok(());
                };
                // SAFETY: by the promise to `run` the own units lie there, or in the own line.
                let mine = unsafe { contribution.read(self.at(own)) };
                let line = (ticket, lowest, bytes, self.elements.bytes(first));
                let mut result = Ok(());
                let sum =
                    (self.segment).fold_lines(world, line, &contribution, mine, &mut result)?;
                // SAFETY: as above; there is room for the units.
                unsafe { contribution.write(sum, self.at(into)) };
                result
            }
            // Who sends a line waits for room then, and nothing comes from other nodes meanwhile.
            MemoryStep::AwaitRoom { .. } | MemoryStep::Arrive { .. } => return Ok(()),
            MemoryStep::Copy {
                from, into, units, ..
            } => {
                let (start, end) = (self.at(from), self.at(into));
                // SAFETY: by the promise to `run` the units lie in the buffers; others are in a line, which has room for
                // all.
                unsafe { self.elements.transfer((from, start), units, (into, end)) }
            }
            MemoryStep::Combine {
                from, into, units, ..
            } => {
                let (start, end) = (self.at(from), self.at(into));
                // SAFETY: as above.
                unsafe { self.elements.combine_from((from, start), units, end) }
            }
        };
        self.result = self.result.and(result);
        Ok(())
    }
}
