//! Messages in pieces: everybody copies into cells of the own area and out of the others', step by step as
//! [`Phase`] says.

use std::ffi::c_int;
use std::sync::atomic::Ordering;

use colltune_core::node::layout::Flag;
use colltune_core::node::phase::{CarriesOut, MemoryStep, Phase, Units};

use super::elements::Elements;
use super::fixed_order;
use super::segment::Segment;
use super::transfers::Transfers;

/// Where a phase's data begin in this rank's memory: what it contributes, and what it gets.
#[derive(Clone, Copy)]
pub struct PhaseData {
    pub source: *mut u8,
    pub target: *mut u8,
}

/// A phase under way on a node: its pieces follow each other, and between them the rank may do something else.
pub struct RunningPhase<'a, 'b, 'c> {
    elements: &'a Elements<'b>,
    segment: &'a Segment,
    phase: Phase<'a>,
    data: PhaseData,
    /// What comes from other nodes into the blocks that this rank gives.
    arriving: Option<&'a mut Transfers<'c>>,
    /// The ticket of the first piece.
    first: u64,
    /// Pieces whose steps are over.
    taken: u64,
    /// Another rank cannot go on, so nor can this one.
    stopped: bool,
    result: Result<(), c_int>,
}

impl<'a, 'b, 'c> RunningPhase<'a, 'b, 'c> {
    /// A phase that has not begun, with the next tickets of the node. All ranks make theirs in one order,
    /// and no steps of one come before all steps of those before.
    ///
    /// # Safety
    /// The source holds the units that this rank contributes when their piece's turn comes, and the target
    /// has room for those it gets.
    pub unsafe fn new(
        elements: &'a Elements<'b>,
        segment: &'a Segment,
        phase: Phase<'a>,
        data: PhaseData,
        arriving: Option<&'a mut Transfers<'c>>,
    ) -> RunningPhase<'a, 'b, 'c> {
        let holed = elements.holed.is_some();
        let first = segment.next.get();
        segment.next.set(first + phase.cut.pieces);
        RunningPhase {
            elements,
            segment,
            phase: Phase {
                holed,
                fixed_order: segment.fixed_order(elements.world),
                ..phase
            },
            data,
            arriving,
            first,
            taken: 0,
            stopped: false,
            result: Ok(()),
        }
    }

    /// Runs what is left of it. After a fault the rank goes on, so that no other waits for it for ever; the first fault
    /// is what it returns. Where another rank cannot go on, nor does this one.
    pub fn finish(&mut self) -> Result<(), c_int> {
        while self.step() {}
        self.result
    }

    /// Whether the ranks of the node can all go on.
    ///
    /// Errors: the first fault of this phase, where they cannot.
    pub fn goes_on(&self) -> Result<(), c_int> {
        match self.stopped {
            true => self.result,
            false => Ok(()),
        }
    }

    pub fn is_over(&self) -> bool {
        self.taken == self.phase.cut.pieces
    }

    /// The units of the next piece: the first and the one behind the last; `None` where there is no more.
    pub fn next_units(&self) -> Option<(u64, u64)> {
        let piece = (!self.is_over()).then_some(self.taken)?;
        let (first, units) = self.phase.extent(piece);
        Some((first, first + units))
    }

    pub fn phase(&self) -> &Phase<'a> {
        &self.phase
    }

    /// Runs the steps of pieces until so many are over.
    pub fn step_to(&mut self, pieces: u64) {
        while self.taken < pieces {
            self.step();
        }
    }

    /// Whether the next piece of a message that this rank gives finds its cell free.
    pub fn has_room(&mut self) -> bool {
        let ticket = self.first + self.taken;
        if ticket <= self.segment.room.get() {
            return true;
        }
        let cells = self.segment.areas.cells();
        let done = |place| self.segment.flag(place, Flag::Done).load(Ordering::Acquire);
        let least = self
            .segment
            .others()
            .map(done)
            .min()
            .unwrap_or(u64::MAX - cells);
        self.segment.room.set(least + cells);
        ticket <= least + cells
    }

    /// Runs the steps of the next piece; false where there is none.
    pub fn step(&mut self) -> bool {
        if self.is_over() {
            return false;
        }
        let (phase, piece) = (self.phase, self.taken);
        self.taken = match phase.steps(piece, self) {
            Ok(()) => piece + 1,
            Err(stopped) => {
                self.stopped = true;
                self.result = self.result.and(Err(stopped));
                phase.cut.pieces
            }
        };
        true
    }

    /// Where units of a piece lie.
    #[inline(always)]
    fn at(&self, piece: u64, place: Units, units: u64) -> *mut u8 {
        let elements = self.elements;
        match place {
            Units::Source(unit) => elements.at(self.data.source, unit),
            Units::Target(unit) => elements.at(self.data.target, unit),
            Units::Cell { of, unit } => {
                let (skip, bytes) = (elements.bytes(unit), elements.bytes(units));
                self.segment.in_cell(of, self.first + piece, skip, bytes)
            }
            Units::Room => match &elements.holed {
                Some(holed) => holed.spare[0],
                None => unreachable!("units that lie as they are packed need no room"),
            },
        }
    }

    #[inline(always)]
    fn until(&self, come: impl Fn() -> bool) -> Result<(), c_int> {
        self.segment.until(self.elements.world, come)
    }

    fn await_room(&self, ticket: u64) -> Result<(), c_int> {
        if ticket <= self.segment.room.get() {
            return Ok(());
        }
        let (mut least, cells) = (u64::MAX, self.segment.areas.cells());
        for place in self.segment.others() {
            let done = self.segment.flag(place, Flag::Done);
            self.until(|| done.load(Ordering::Acquire) + cells >= ticket)?;
            least = least.min(done.load(Ordering::Acquire));
        }
        self.segment.room.set(least + cells);
        Ok(())
    }
}

impl CarriesOut for RunningPhase<'_, '_, '_> {
    /// The error of another rank, which keeps this one from going on.
    type Fault = c_int;

    /// Carried out where it is said, so that nothing of what a step is has to be found out again.
    #[inline(always)]
    fn carry_out(&mut self, step: MemoryStep) -> Result<(), c_int> {
        let result = match step {
            MemoryStep::AwaitRoom { piece } => return self.await_room(self.first + piece),
            MemoryStep::Await { of, flag, piece } => {
                let (number, ticket) = (self.segment.flag(of, flag), self.first + piece);
                return self.until(|| number.load(Ordering::Acquire) >= ticket);
            }
            MemoryStep::Arrive { units } => {
                if let Some(arriving) = &mut self.arriving {
                    arriving.arrive(units);
                }
                return Ok(());
            }
            MemoryStep::Fold {
                piece,
                lowest,
                own,
                first,
                into,
                units,
            } => {
                for place in self.segment.others() {
                    let (number, ticket) =
                        (self.segment.flag(place, Flag::Filled), self.first + piece);
                    self.until(|| number.load(Ordering::Acquire) >= ticket)?;
                }
                let n_here = self.segment.n_here;
                let operand = |rank| match (lowest + rank) % n_here {
                    of if of == self.segment.place => self.at(piece, own, units).cast_const(),
                    of => self.at(piece, Units::Cell { of, unit: first }, units),
                };
                let into = self.at(piece, into, units);
                // SAFETY: by the promise to `new` the units lie in the buffers; all cells are filled, and no rank
                // writes there before this one is done with them. What is combined in a cell is never holed.
                unsafe { fixed_order::combine(self.elements, n_here, &operand, units, into) }
            }
            MemoryStep::Tell { flag, piece } => {
                let number = self.segment.flag(self.segment.place, flag);
                number.store(self.first + piece, Ordering::Release);
                return Ok(());
            }
            MemoryStep::Copy {
                piece,
                from,
                into,
                units,
            } => {
                let (start, end) = (self.at(piece, from, units), self.at(piece, into, units));
                // SAFETY: by the promise to `new` the units lie in the buffers; steps keep every cell to one writer, and
                // its readers away until it is written, and no two places of one overlap.
                unsafe { self.elements.transfer((from, start), units, (into, end)) }
            }
            MemoryStep::Combine {
                piece,
                from,
                into,
                units,
            } => {
                let (start, end) = (self.at(piece, from, units), self.at(piece, into, units));
                // SAFETY: as above; what is combined in a cell is never holed.
                unsafe { self.elements.combine_from((from, start), units, end) }
            }
        };
        self.result = self.result.and(result);
        Ok(())
    }
}
