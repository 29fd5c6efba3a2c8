//! Messages in pieces: everybody copies into cells of the own area and out of the others'.

use std::cell::Cell;
use std::ffi::c_int;
use std::sync::atomic::Ordering;

use colltune_core::node::act::{Act, Kind, acts_of};
use colltune_core::node::between::Turn;
use colltune_core::node::blocks::{Blocks, Ends, Stretch};
use colltune_core::node::layout::{Cut, Flag, slice};
use colltune_core::node::stage::Inside;

use super::bases::Bases;
use super::elements::Elements;
use super::segment::Segment;
use super::transfers::Transfers;
use crate::world::World;

/// What a phase works on.
#[derive(Clone, Copy)]
pub struct PhaseData<'a> {
    /// Where this rank's contribution begins, and where its result shall.
    pub source: *mut u8,
    pub target: *mut u8,
    /// Units of the message, or of one block.
    pub units: u64,
    pub blocks: Blocks<'a>,
}

impl<'a> PhaseData<'a> {
    /// Of a stage inside the node.
    #[inline]
    pub fn new(elements: &Elements, bases: &Bases, inside: &Inside<'a>) -> PhaseData<'a> {
        PhaseData {
            source: bases.at(elements, inside.source),
            target: bases.at(elements, inside.target),
            units: inside.units,
            blocks: inside.blocks,
        }
    }
}

/// A phase under way on a node: its pieces follow each other, and between them the rank may do something else.
pub struct Phase<'a, 'b, 'c> {
    elements: &'a Elements<'b>,
    segment: &'a Segment,
    kind: Kind,
    data: PhaseData<'a>,
    /// What comes from other nodes into the blocks that this rank gives.
    arriving: Option<&'a mut Transfers<'c>>,
    cut: Cut,
    turn: Turn,
    /// The ticket of the first piece.
    first: u64,
    /// Pieces whose acts are over.
    taken: u64,
    /// Another rank cannot go on, so nor can this one.
    stopped: Cell<bool>,
    result: Result<(), c_int>,
}

/// Runs a phase on a node. After a fault the rank goes on, so that no other waits for it for ever;
/// the first fault is what it returns. Where another rank cannot go on, nor does this one.
///
/// # Safety
/// As [`Phase::new`].
pub unsafe fn run(
    elements: &Elements,
    segment: &Segment,
    kind: Kind,
    data: PhaseData,
    arriving: Option<&mut Transfers>,
) -> Result<(), c_int> {
    // SAFETY: the caller promises what `Phase::new` asks for: buffers as long as the phase's kind says.
    let mut phase = unsafe { Phase::new(elements, segment, kind, data, Turn::Forth) };
    phase.arriving = arriving;
    phase.finish()
}

impl<'a, 'b, 'c> Phase<'a, 'b, 'c> {
    /// A phase that has not begun, with the next tickets of the node. All ranks make theirs in one order,
    /// and no acts of one come before all acts of those before.
    ///
    /// # Safety
    /// The source holds the units that this rank contributes when their piece's turn comes, and the target
    /// has room for those it gets.
    pub unsafe fn new(
        elements: &'a Elements<'b>,
        segment: &'a Segment,
        kind: Kind,
        data: PhaseData<'a>,
        turn: Turn,
    ) -> Phase<'a, 'b, 'c> {
        let cut = data.blocks.cut(data.units, elements.unit_bytes);
        let first = segment.next.get();
        segment.next.set(first + cut.pieces);
        Phase {
            elements,
            segment,
            kind,
            data,
            arriving: None,
            cut,
            turn,
            first,
            taken: 0,
            stopped: Cell::new(false),
            result: Ok(()),
        }
    }

    /// Runs what is left of it.
    pub fn finish(&mut self) -> Result<(), c_int> {
        while self.step() {}
        self.result
    }

    /// Whether the ranks of the node can all go on.
    ///
    /// Errors: the first fault of this phase, where they cannot.
    pub fn goes_on(&self) -> Result<(), c_int> {
        match self.stopped.get() {
            true => self.result,
            false => Ok(()),
        }
    }

    pub fn is_over(&self) -> bool {
        self.taken == self.cut.pieces
    }

    /// The units of the next piece: the first and the one behind the last; `None` where there is no more.
    pub fn next_units(&self) -> Option<(u64, u64)> {
        let piece = (!self.is_over()).then_some(self.taken)?;
        let (first, units) = self.extent(piece);
        Some((first, first + units))
    }

    /// Runs the acts of all pieces up to the last that holds one of these units.
    pub fn step_past(&mut self, start: u64, end: u64) {
        let (each, pieces) = (self.cut.units_per_piece, self.cut.pieces);
        let holding = (start / each)..end.div_ceil(each).min(pieces);
        let numbers = holding.map(|piece| self.turn.piece(piece, pieces));
        let turns = numbers.max().map_or(0, |last| last + 1);
        while self.taken < turns {
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

    /// Runs the acts of the next piece; false where there is none.
    pub fn step(&mut self) -> bool {
        if self.is_over() {
            return false;
        }
        let (kind, piece, pieces) = (self.kind, self.taken, self.cut.pieces);
        let who = (self.segment.place, self.segment.n_here);
        let mut act = |act| {
            // SAFETY: the promise of `new`; the acts keep every cell to one writer, and its readers away
            // until it is written.
            let result = unsafe { self.perform(act) };
            self.result = self.result.and(result);
            match self.stopped.get() {
                false => Ok(()),
                true => Err(()),
            }
        };
        self.taken = match acts_of(kind, who, piece, pieces, &mut act) {
            Ok(()) => self.taken + 1,
            Err(()) => pieces,
        };
        true
    }

    fn extent(&self, piece: u64) -> (u64, u64) {
        self.cut.piece(self.turn.piece(piece, self.cut.pieces))
    }

    unsafe fn perform(&mut self, act: Act) -> Result<(), c_int> {
        // SAFETY: each act is one of this phase's kind, whose buffers and cells `new` was promised.
        unsafe {
            match act {
                Act::Fill { piece } => {
                    self.await_room(piece)?;
                    let result = self.fill(piece);
                    self.tell(Flag::Filled, piece);
                    result
                }
                Act::Take { piece, from } => {
                    self.wait(from, Flag::Filled, piece)?;
                    self.take(piece, from)
                }
                Act::Fold { piece } => self.fold(piece),
                Act::Combine { piece } => {
                    let result = self.combine(piece);
                    if self.stopped.get() {
                        return result;
                    }
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

    #[inline]
    fn world(&self) -> &World {
        self.elements.world
    }

    fn tell(&self, flag: Flag, piece: u64) {
        let number = self.segment.flag(self.segment.place, flag);
        number.store(self.first + piece, Ordering::Release);
    }

    fn wait(&self, place: usize, flag: Flag, piece: u64) -> Result<(), c_int> {
        let (number, ticket) = (self.segment.flag(place, flag), self.first + piece);
        self.until(|| number.load(Ordering::Acquire) >= ticket)
    }

    fn until(&self, come: impl Fn() -> bool) -> Result<(), c_int> {
        let stopped = self.segment.until(self.world(), come);
        stopped.inspect_err(|_| self.stopped.set(true))
    }

    fn await_room(&self, piece: u64) -> Result<(), c_int> {
        let ticket = self.first + piece;
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

    fn cell(&self, place: usize, piece: u64) -> *mut u8 {
        self.segment.cell(place, self.first + piece)
    }

    /// Where so many units of a piece, from unit `first` of it on, lie in a rank's cell to be read.
    fn in_cell(&self, place: usize, piece: u64, first: u64, units: u64) -> *mut u8 {
        let (skip, bytes) = (self.elements.bytes(first), self.elements.bytes(units));
        self.segment.in_cell(place, self.first + piece, skip, bytes)
    }

    /// The units of a piece of the rank in place `from` that are meant for the one in place `to`.
    fn stretches(
        &self,
        piece: u64,
        from: usize,
        to: usize,
    ) -> impl Iterator<Item = Stretch> + use<'_> {
        let own = self.segment.place;
        let ends = Ends { from, to, own };
        self.data
            .blocks
            .stretches(self.data.units, self.extent(piece), ends)
    }

    unsafe fn fill(&mut self, piece: u64) -> Result<(), c_int> {
        let (first, units) = self.extent(piece);
        if let Some(arriving) = &mut self.arriving {
            arriving.arrive(first + units);
        }
        let (elements, data, own) = (self.elements, self.data, self.segment.place);
        let cell = self.cell(own, piece);
        let base = match data.blocks {
            // What is given has come there, or was put there.
            Blocks::Gathered(_) => data.target,
            _ => data.source,
        };
        let mut result = Ok(());
        for to in 0..data.blocks.copies() {
            if to == own && matches!(data.blocks, Blocks::Exchanged(_)) {
                continue;
            }
            for stretch in self.stretches(piece, own, to) {
                let source = elements.at(base, stretch.unit);
                let place = cell.wrapping_add(elements.bytes(stretch.in_cell));
                // SAFETY: a piece fits into a cell, and its units lie in the buffer, as `new` was promised.
                result = result.and(unsafe { elements.store(source, stretch.units, place) });
            }
        }
        result
    }

    unsafe fn take(&self, piece: u64, from: usize) -> Result<(), c_int> {
        let (elements, data) = (self.elements, &self.data);
        let mut result = Ok(());
        for stretch in self.stretches(piece, from, self.segment.place) {
            let place = self.in_cell(from, piece, stretch.in_cell, stretch.units);
            let target = elements.at(data.target, stretch.unit);
            // SAFETY: the cell is filled, and the target has room for the piece.
            result = result.and(unsafe { elements.load(place, stretch.units, target) });
        }
        result
    }

    /// Combines whole pieces into the target, from the last rank down.
    unsafe fn fold(&mut self, piece: u64) -> Result<(), c_int> {
        let (elements, data) = (self.elements, self.data);
        let (own, n) = (self.segment.place, self.segment.n_here);
        let Some(stretch) = self.stretches(piece, own, own).next() else {
            return Ok(());
        };
        let (first, units) = (stretch.unit, stretch.units);
        let target = elements.at(data.target, first);
        let in_place = data.source == data.target;
        let mut result = Ok(());
        if in_place && own + 1 != n && matches!(self.kind, Kind::ReduceWhole { .. }) {
            // The target is needed before the own contribution is. Nobody reads this cell.
            self.await_room(piece)?;
            // SAFETY: a piece fits into a cell, and its units lie in the buffer, as `new` was promised.
            result = unsafe { self.fill(piece) };
        }
        for place in (0..n).rev() {
            if place != own {
                self.wait(place, Flag::Filled, piece)?;
            }
            let cell = self.in_cell(place, piece, stretch.in_cell, units);
            let source = elements.at(data.source, first);
            // SAFETY: the cells are filled, and the target has room for the piece.
            let step = unsafe {
                match (place + 1 == n, place == own) {
                    (true, true) if in_place => Ok(()),
                    (false, true) if !in_place => elements.combine_own(source, units, target),
                    // What is not in place was not always filled in.
                    (true, true) => elements.copy(source, units, target),
                    (true, false) => elements.load(cell, units, target),
                    (false, _) => elements.combine(cell, units, target),
                }
            };
            result = result.and(step);
        }
        result
    }

    /// Combines the own slice of everybody's piece into the own cell, from the last rank down.
    unsafe fn combine(&self, piece: u64) -> Result<(), c_int> {
        let (elements, data) = (self.elements, &self.data);
        let (own, n) = (self.segment.place, self.segment.n_here);
        let (first, units) = self.extent(piece);
        let (start, len) = slice(units, own, n);
        let within = |place| self.in_cell(place, piece, start, len);
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
                self.wait(place, Flag::Filled, piece)?;
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
            // SAFETY: the own slice has been combined at `sum`, and its place in the message has room for it.
            result = result.and(unsafe { elements.store(sum, len, result_at) });
        }
        result
    }

    /// Reads every slice where it was combined.
    unsafe fn collect(&self, piece: u64) -> Result<(), c_int> {
        let (elements, n) = (self.elements, self.segment.n_here);
        let (first, units) = self.extent(piece);
        let mut result = Ok(());
        for step in 0..n {
            let place = (self.segment.place + step) % n;
            if step > 0 {
                self.wait(place, Flag::Combined, piece)?;
            }
            let (start, len) = slice(units, place, n);
            let cell = self.in_cell(place, piece, start, len);
            let target = elements.at(self.data.target, first + start);
            // SAFETY: the slice is combined, and the target has room for the piece.
            result = result.and(unsafe { elements.load(cell, len, target) });
        }
        result
    }
}
