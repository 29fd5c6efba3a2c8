//! Messages in pieces: everybody copies into cells of the own area and out of the others'.

use std::convert::Infallible;
use std::ffi::c_int;
use std::sync::atomic::Ordering;

use colltune_core::node::act::{Act, Kind, acts};
use colltune_core::node::layout::{CELLS, Cut, Flag, slice};

use super::elements::Elements;
use super::segment::Segment;
use crate::tune::Tuner;

/// What a phase works on.
#[derive(Clone, Copy)]
pub struct Data {
    /// Where this rank's contribution begins, and where its result shall.
    pub source: *mut u8,
    pub target: *mut u8,
    /// Units of the message, or of one block.
    pub units: u64,
    pub blocks: Blocks,
}

/// Which blocks the source and the target have.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Blocks {
    /// Both are the message.
    One,
    /// The target has one of each rank.
    Gathered,
    /// The source has one for each rank, too.
    Exchanged,
}

struct Phase<'a, 'b> {
    elements: &'a Elements<'b>,
    segment: &'a mut Segment,
    kind: Kind,
    data: Data,
    cut: Cut,
    /// The ticket of the first piece.
    first: u64,
    result: Result<(), c_int>,
}

/// Runs a phase on a node. After a fault the rank goes on, so that no other waits for it for ever;
/// the first fault is what it returns.
///
/// # Safety
/// The source holds the units that this rank contributes, and the target has room for those it gets.
pub unsafe fn run(
    elements: &Elements,
    segment: &mut Segment,
    kind: Kind,
    data: Data,
) -> Result<(), c_int> {
    let n = segment.n_here;
    let copies = match data.blocks {
        Blocks::Exchanged => n as u64,
        _ => 1,
    };
    let cut = Cut::new(data.units, elements.unit_bytes, copies);
    let first = segment.next;
    segment.next += cut.pieces;
    let place = segment.place;
    let mut phase = Phase {
        elements,
        segment,
        kind,
        data,
        cut,
        first,
        result: Ok(()),
    };
    let act = |act| {
        // SAFETY: the caller's promise is passed on; the acts keep every cell to one writer, and its
        // readers away until it is written.
        let result = unsafe { phase.perform(act) };
        phase.result = phase.result.and(result);
        Ok::<(), Infallible>(())
    };
    let Ok(()) = acts(kind, place, n, cut.pieces, act);
    phase.result
}

impl Phase<'_, '_> {
    unsafe fn perform(&mut self, act: Act) -> Result<(), c_int> {
        // SAFETY: the caller's promise is passed on.
        unsafe {
            match act {
                Act::Fill { piece } => {
                    self.await_room(piece);
                    let result = self.fill(piece);
                    self.tell(Flag::Filled, piece);
                    result
                }
                Act::Take { piece, from } => {
                    self.wait(from, Flag::Filled, piece);
                    self.take(piece, from)
                }
                Act::Fold { piece } => self.fold(piece),
                Act::Combine { piece } => {
                    let result = self.combine(piece);
                    self.tell(Flag::Combined, piece);
                    result
                }
                Act::Collect { piece } => self.collect(piece),
                Act::Done { piece } => {
                    self.tell(Flag::Done, piece);
                    Ok(())
                }
            }
        }
    }

    fn tuner(&self) -> &Tuner {
        self.elements.tuner
    }

    fn tell(&self, flag: Flag, piece: u64) {
        let number = self.segment.flag(self.segment.place, flag);
        number.store(self.first + piece, Ordering::Release);
    }

    fn wait(&self, place: usize, flag: Flag, piece: u64) {
        let (number, ticket) = (self.segment.flag(place, flag), self.first + piece);
        let come = || number.load(Ordering::Acquire) >= ticket;
        self.segment.patience.until(self.tuner(), come);
    }

    fn await_room(&mut self, piece: u64) {
        let ticket = self.first + piece;
        if ticket <= self.segment.room {
            return;
        }
        let mut least = u64::MAX;
        for place in self.segment.others() {
            let done = self.segment.flag(place, Flag::Done);
            let come = || done.load(Ordering::Acquire) + CELLS >= ticket;
            self.segment.patience.until(self.tuner(), come);
            least = least.min(done.load(Ordering::Acquire));
        }
        self.segment.room = least + CELLS;
    }

    fn cell(&self, place: usize, piece: u64) -> *mut u8 {
        self.segment.cell(place, self.first + piece)
    }

    unsafe fn fill(&self, piece: u64) -> Result<(), c_int> {
        let (elements, data) = (self.elements, &self.data);
        let (first, units) = self.cut.piece(piece);
        let cell = self.cell(self.segment.place, piece);
        if data.blocks != Blocks::Exchanged {
            // SAFETY: a piece fits into a cell; the caller's promise is passed on.
            return unsafe { elements.store(elements.at(data.source, first), units, cell) };
        }
        let mut result = Ok(());
        for to in self.segment.others() {
            let source = elements.at(data.source, to as u64 * data.units + first);
            let place = cell.wrapping_add(elements.bytes(units) * to);
            // SAFETY: as above; a piece is a part of the block for each rank.
            result = result.and(unsafe { elements.store(source, units, place) });
        }
        result
    }

    unsafe fn take(&self, piece: u64, from: usize) -> Result<(), c_int> {
        let (elements, data) = (self.elements, &self.data);
        let (first, units) = self.cut.piece(piece);
        let mut cell = self.cell(from, piece);
        if data.blocks == Blocks::Exchanged {
            cell = cell.wrapping_add(elements.bytes(units) * self.segment.place);
        }
        let block = match data.blocks {
            Blocks::One => 0,
            _ => from as u64 * data.units,
        };
        // SAFETY: the cell is filled, and the target has room for the piece.
        unsafe { elements.load(cell, units, elements.at(data.target, block + first)) }
    }

    /// Combines whole pieces into the target, from the last rank down.
    unsafe fn fold(&mut self, piece: u64) -> Result<(), c_int> {
        let (elements, data) = (self.elements, self.data);
        let (own, n) = (self.segment.place, self.segment.n_here);
        let (first, units) = self.cut.piece(piece);
        let target = elements.at(data.target, first);
        let in_place = data.source == data.target;
        let mut result = Ok(());
        if in_place && own + 1 != n && matches!(self.kind, Kind::ReduceWhole { .. }) {
            // The target is needed before the own contribution is. Nobody reads this cell.
            self.await_room(piece);
            // SAFETY: a piece fits into a cell; the caller's promise is passed on.
            result = unsafe { self.fill(piece) };
        }
        for place in (0..n).rev() {
            if place != own {
                self.wait(place, Flag::Filled, piece);
            }
            let cell = self.cell(place, piece);
            let source = elements.at(data.source, first);
            // SAFETY: the cells are filled, and the target has room for the piece.
            let step = unsafe {
                match (place + 1 == n, place == own) {
                    (true, true) if in_place => Ok(()),
                    (false, true) if !in_place => elements.combine_own(source, units, target),
                    // What is not in place was not always filled in.
                    (true, true) => self.copy(source, units, target),
                    (true, false) => elements.load(cell, units, target),
                    (false, _) => elements.combine(cell, units, target),
                }
            };
            result = result.and(step);
        }
        result
    }

    /// Copies units from one place of this rank's to another, by way of its cell where they have
    /// holes.
    unsafe fn copy(&mut self, from: *mut u8, units: u64, to: *mut u8) -> Result<(), c_int> {
        if self.elements.holed.is_some() {
            // SAFETY: the caller's promise is passed on.
            return unsafe { self.elements.copy_holed(from, units, to) };
        }
        // SAFETY: the caller's promise is passed on.
        unsafe { std::ptr::copy(from, to, self.elements.bytes(units)) };
        Ok(())
    }

    /// Combines the own slice of everybody's piece into the own cell, from the last rank down.
    unsafe fn combine(&self, piece: u64) -> Result<(), c_int> {
        let (elements, data) = (self.elements, &self.data);
        let (own, n) = (self.segment.place, self.segment.n_here);
        let (first, units) = self.cut.piece(piece);
        let (start, len) = slice(units, own, n);
        let within = |place| {
            let cell = self.cell(place, piece);
            cell.wrapping_add(elements.bytes(start))
        };
        let mine = elements.at(data.source, first + start);
        let result_at = within(own);
        // Units with holes are combined in this rank's form, elsewhere.
        let sum = elements
            .holed
            .as_ref()
            .map_or(result_at, |holed| holed.spare[0]);
        let mut result = Ok(());
        for place in (0..n).rev() {
            if place != own {
                self.wait(place, Flag::Filled, piece);
            }
            // SAFETY: the cells are filled; nobody else touches the own slice of the own cell.
            let step = unsafe {
                match (place + 1 == n, place == own) {
                    // It already lies there.
                    (true, true) if elements.holed.is_none() => Ok(()),
                    (true, _) => elements.load(within(place), len, sum),
                    (false, true) => elements.combine_own(mine, len, sum),
                    (false, false) => elements.combine(within(place), len, sum),
                }
            };
            result = result.and(step);
        }
        if elements.holed.is_some() {
            // SAFETY: as above.
            result = result.and(unsafe { elements.store(sum, len, result_at) });
        }
        result
    }

    /// Reads every slice where it was combined.
    unsafe fn collect(&self, piece: u64) -> Result<(), c_int> {
        let (elements, n) = (self.elements, self.segment.n_here);
        let (first, units) = self.cut.piece(piece);
        let mut result = Ok(());
        for step in 0..n {
            let place = (self.segment.place + step) % n;
            if step > 0 {
                self.wait(place, Flag::Combined, piece);
            }
            let (start, len) = slice(units, place, n);
            let cell = self.cell(place, piece).wrapping_add(elements.bytes(start));
            let target = elements.at(self.data.target, first + start);
            // SAFETY: the slice is combined, and the target has room for the piece.
            result = result.and(unsafe { elements.load(cell, len, target) });
        }
        result
    }
}
