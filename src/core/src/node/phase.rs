//! What a rank does in its node's memory in a phase: a pure function from (phase, piece) to steps.
//!
//! Piece `p` of a phase has the ticket `first + p`; tickets run on through all calls of a communicator. A rank may fill
//! the cell of ticket `t` once every other rank is done with `t - cells`, whose piece lay there.
//!
//! The shim carries out these steps, and so do the tests: [`interleavings`](super::interleavings) in every order,
//! [`whole`](super::whole) with contents.

use super::between::Turn;
use super::blocks::{Blocks, Ends, Stretch};
use super::kind::Kind;
use super::layout::{Cut, Flag, slice};
use super::stage::Inside;

/// Some units of a piece. Those of one buffer are numbered through the buffer, those of a cell through the piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Units {
    /// From this unit of what the rank contributes on, in the form that its own memory has.
    Source(u64),
    /// The same of what it gets.
    Target(u64),
    /// From this unit of the cell of the rank in a place on: packed.
    Cell { of: usize, unit: u64 },
    /// From the first unit of room for a piece on, in the form that the rank's own memory has.
    Room,
}

/// A step of a rank. What it tells, the others wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryStep {
    /// Waits until every other rank has read the previous piece in this rank's cell.
    AwaitRoom { piece: u64 },
    /// Waits until the rank in a place has set this flag for a piece.
    Await { of: usize, flag: Flag, piece: u64 },
    /// Waits until the first so many units that come from other nodes into the target have come.
    Arrive { units: u64 },
    /// Units of a piece go from one place to another: into a cell, out of it, or past it.
    Copy {
        piece: u64,
        from: Units,
        into: Units,
        units: u64,
    },
    /// Units of a lower rank are combined with those of higher ones that lie in `into`.
    Combine {
        piece: u64,
        from: Units,
        into: Units,
        units: u64,
    },
    /// Waits until all others have filled their cells of a piece, and combines everybody's units in the order of
    /// [`fixed_order`](crate::algorithm::fixed_order), those of the rank in place `lowest` first and so on round the node:
    /// the own ones, and those that lie in the others' cells from unit `first` on.
    Fold {
        piece: u64,
        lowest: usize,
        own: Units,
        first: u64,
        into: Units,
        units: u64,
    },
    /// Tells all others of a piece.
    Tell { flag: Flag, piece: u64 },
}

/// Who carries out steps.
pub trait CarriesOut {
    /// What keeps it from the next step.
    type Fault;

    fn carry_out(&mut self, step: MemoryStep) -> Result<(), Self::Fault>;
}

impl<E, F: FnMut(MemoryStep) -> Result<(), E>> CarriesOut for F {
    type Fault = E;

    fn carry_out(&mut self, step: MemoryStep) -> Result<(), E> {
        self(step)
    }
}

/// What the ranks of a node do together with the pieces of one message, as one of them sees it.
#[derive(Clone, Copy, Debug)]
pub struct Phase<'a> {
    pub kind: Kind,
    pub blocks: Blocks<'a>,
    /// Units of the message, or of one block.
    pub units: u64,
    pub cut: Cut,
    /// The order in which pieces are taken, alike on all ranks.
    pub turn: Turn,
    /// This rank's place on its node, and how many ranks are there.
    pub place: usize,
    pub n_here: usize,
    /// Whether what the rank gets comes to where its contribution lies.
    pub in_place: bool,
    /// Whether units have another form in cells than in this rank's memory, where they are combined.
    pub holed: bool,
    /// Whether what the rank gives comes from other nodes meanwhile.
    pub arriving: bool,
    /// The place of the node's lowest rank, where operands have to be combined in the fixed order. Their units have no
    /// holes then.
    pub fixed_order: Option<usize>,
}

impl<'a> Phase<'a> {
    /// What a stage inside the node is to the rank in a place of so many, of units of `unit_bytes` bytes.
    #[inline(always)]
    pub fn new(inside: &Inside<'a>, (place, n_here): (usize, usize), unit_bytes: u64) -> Phase<'a> {
        Phase {
            kind: inside.kind,
            blocks: inside.blocks,
            units: inside.units,
            cut: inside.blocks.cut(inside.units, unit_bytes),
            turn: Turn::Forth,
            place,
            n_here,
            in_place: inside.in_place,
            holed: false,
            arriving: inside.arriving,
            fixed_order: None,
        }
    }

    /// The same where all of it is one piece, which every rank combines as a whole.
    #[inline(always)]
    pub fn in_one_piece(inside: &Inside<'a>, (place, n_here): (usize, usize)) -> Phase<'a> {
        Phase {
            kind: match inside.kind {
                Kind::AllreduceSliced => Kind::AllreduceWhole,
                Kind::ReduceSliced { root } => Kind::ReduceWhole { root },
                kind => kind,
            },
            blocks: inside.blocks,
            units: inside.units,
            cut: Cut {
                units: inside.units,
                units_per_piece: inside.units,
                pieces: 1,
            },
            turn: Turn::Forth,
            place,
            n_here,
            in_place: inside.in_place,
            holed: false,
            arriving: false,
            fixed_order: None,
        }
    }

    /// The first unit of the piece that is taken as number `piece`, and how many it has.
    #[inline(always)]
    pub fn extent(&self, piece: u64) -> (u64, u64) {
        self.cut.piece(self.turn.piece(piece, self.cut.pieces))
    }

    /// How many pieces are taken until the last that holds one of these units is.
    pub fn taken_with(&self, start: u64, end: u64) -> u64 {
        let (each, pieces) = (self.cut.units_per_piece, self.cut.pieces);
        let holding = (start / each)..end.div_ceil(each).min(pieces);
        let numbers = holding.map(|piece| self.turn.piece(piece, pieces));
        numbers.max().map_or(0, |last| last + 1)
    }

    /// Has the steps of the piece that is taken as number `piece` carried out by `by`, in order, with those of what is
    /// filled ahead: one piece ahead at most, so rings of two cells are enough not to wait for ever. The root of a
    /// broadcast, whose data may still be on their way to it, fills none.
    ///
    /// Errors: the first of `by`.
    #[inline(always)]
    pub fn steps<B: CarriesOut>(&self, piece: u64, by: &mut B) -> Result<(), B::Fault> {
        let (rank, n) = (self.place, self.n_here);
        let (fills, ahead) = match self.kind {
            Kind::Bcast { root } => (rank == root, 0),
            Kind::ReduceWhole { root } => (rank != root, 1),
            Kind::Exchange { givers } => (rank < givers, 1),
            Kind::Gather { root, lanes } => (rank < lanes && rank != root, 1),
            _ => (true, 1),
        };
        if fills && piece == 0 && ahead > 0 {
            self.give(piece, by)?;
        }
        if fills && piece + ahead < self.cut.pieces {
            self.give(piece + ahead, by)?;
        }
        match self.kind {
            Kind::Bcast { root } if rank != root => self.take(piece, root, by)?,
            Kind::AllreduceWhole => self.fold(piece, by)?,
            Kind::ReduceWhole { root } if rank == root => self.fold(piece, by)?,
            Kind::ReduceScatter { lanes } if rank < lanes => self.fold(piece, by)?,
            Kind::AllreduceSliced => {
                self.combine(piece, by)?;
                self.collect(piece, by)?;
            }
            Kind::ReduceSliced { root } => {
                self.combine(piece, by)?;
                if rank == root {
                    self.collect(piece, by)?;
                }
            }
            Kind::Exchange { givers } => {
                // Each begins with its neighbour, so that not all read one rank's cell at once.
                let others = (1..n).map(|step| (rank + step) % n);
                for from in others.filter(|&from| from < givers) {
                    self.take(piece, from, by)?;
                }
            }
            Kind::Gather { root, lanes } if rank == root => {
                for from in (0..lanes).filter(|&from| from != root) {
                    self.take(piece, from, by)?;
                }
            }
            Kind::Bcast { .. }
            | Kind::ReduceWhole { .. }
            | Kind::ReduceScatter { .. }
            | Kind::Gather { .. } => {}
        }
        let flag = Flag::Done;
        by.carry_out(MemoryStep::Tell { flag, piece })
    }

    /// The units of a piece of the rank in place `from` that are meant for the one in place `to`.
    #[inline(always)]
    fn stretches(
        &self,
        piece: u64,
        (from, to): (usize, usize),
    ) -> impl Iterator<Item = Stretch> + use<'a> {
        let own = self.place;
        let ends = Ends { from, to, own };
        self.blocks.stretches(self.units, self.extent(piece), ends)
    }

    /// Fills the own cell, and tells that it is filled.
    #[inline(always)]
    fn give<B: CarriesOut>(&self, piece: u64, by: &mut B) -> Result<(), B::Fault> {
        by.carry_out(MemoryStep::AwaitRoom { piece })?;
        self.fill(piece, by)?;
        let flag = Flag::Filled;
        by.carry_out(MemoryStep::Tell { flag, piece })
    }

    #[inline(always)]
    fn fill<B: CarriesOut>(&self, piece: u64, by: &mut B) -> Result<(), B::Fault> {
        if self.arriving {
            let (first, units) = self.extent(piece);
            let units = first + units;
            by.carry_out(MemoryStep::Arrive { units })?;
        }
        let own = self.place;
        for to in 0..self.blocks.copies() {
            if to == own && matches!(self.blocks, Blocks::Exchanged(_)) {
                continue;
            }
            for stretch in self.stretches(piece, (own, to)) {
                by.carry_out(MemoryStep::Copy {
                    piece,
                    from: match self.blocks {
                        // What is given has come there, or was put there.
                        Blocks::Gathered(_) => Units::Target(stretch.unit),
                        _ => Units::Source(stretch.unit),
                    },
                    into: Units::Cell {
                        of: own,
                        unit: stretch.in_cell,
                    },
                    units: stretch.units,
                })?;
            }
        }
        Ok(())
    }

    #[inline(always)]
    fn take<B: CarriesOut>(&self, piece: u64, of: usize, by: &mut B) -> Result<(), B::Fault> {
        let flag = Flag::Filled;
        by.carry_out(MemoryStep::Await { of, flag, piece })?;
        for stretch in self.stretches(piece, (of, self.place)) {
            by.carry_out(MemoryStep::Copy {
                piece,
                from: Units::Cell {
                    of,
                    unit: stretch.in_cell,
                },
                into: Units::Target(stretch.unit),
                units: stretch.units,
            })?;
        }
        Ok(())
    }

    /// Combines whole pieces into the target, from the last rank down.
    #[inline(always)]
    fn fold<B: CarriesOut>(&self, piece: u64, by: &mut B) -> Result<(), B::Fault> {
        let (own, last) = (self.place, self.n_here - 1);
        let Some(stretch) = self.stretches(piece, (own, own)).next() else {
            return Ok(());
        };
        let is_needed_first = own != last || self.fixed_order.is_some();
        if self.in_place && is_needed_first && matches!(self.kind, Kind::ReduceWhole { .. }) {
            // The target is needed before the own contribution is. No other rank reads this cell.
            by.carry_out(MemoryStep::AwaitRoom { piece })?;
            self.fill(piece, by)?;
        }
        let (units, into) = (stretch.units, Units::Target(stretch.unit));
        if let Some(lowest) = self.fixed_order {
            let first = stretch.in_cell;
            let own = match self.in_place {
                true => Units::Cell {
                    of: own,
                    unit: first,
                },
                false => Units::Source(stretch.unit),
            };
            return by.carry_out(MemoryStep::Fold {
                piece,
                lowest,
                own,
                first,
                into,
                units,
            });
        }
        for of in (0..=last).rev() {
            if of != own {
                let flag = Flag::Filled;
                by.carry_out(MemoryStep::Await { of, flag, piece })?;
            }
            let cell = Units::Cell {
                of,
                unit: stretch.in_cell,
            };
            let from = match of == own && !self.in_place {
                // The cell is not always filled where the call is not in place.
                true => Units::Source(stretch.unit),
                false => cell,
            };
            match of == last {
                // It lies there.
                true if of == own && self.in_place => {}
                true => by.carry_out(copy(piece, from, into, units))?,
                false => by.carry_out(combine(piece, from, into, units))?,
            }
        }
        Ok(())
    }

    /// Combines the own slice of everybody's piece into the own cell, from the last rank down, and tells so.
    #[inline(always)]
    fn combine<B: CarriesOut>(&self, piece: u64, by: &mut B) -> Result<(), B::Fault> {
        let (own, last) = (self.place, self.n_here - 1);
        let (first, units) = self.extent(piece);
        let (start, units) = slice(units, own, self.n_here);
        let cell = |of| Units::Cell { of, unit: start };
        let sum = match self.holed {
            true => Units::Room,
            false => cell(own),
        };
        if let Some(lowest) = self.fixed_order {
            by.carry_out(MemoryStep::Fold {
                piece,
                lowest,
                own: Units::Source(first + start),
                first: start,
                into: sum,
                units,
            })?;
            let flag = Flag::Combined;
            return by.carry_out(MemoryStep::Tell { flag, piece });
        }
        for of in (0..=last).rev() {
            if of != own {
                let flag = Flag::Filled;
                by.carry_out(MemoryStep::Await { of, flag, piece })?;
            }
            match (of == last, of == own) {
                (true, _) if cell(of) == sum => {}
                (true, _) => by.carry_out(copy(piece, cell(of), sum, units))?,
                (false, true) => {
                    by.carry_out(combine(piece, Units::Source(first + start), sum, units))?;
                }
                (false, false) => by.carry_out(combine(piece, cell(of), sum, units))?,
            }
        }
        if self.holed {
            by.carry_out(copy(piece, sum, cell(own), units))?;
        }
        let flag = Flag::Combined;
        by.carry_out(MemoryStep::Tell { flag, piece })
    }

    /// Reads every slice where it was combined.
    #[inline(always)]
    fn collect<B: CarriesOut>(&self, piece: u64, by: &mut B) -> Result<(), B::Fault> {
        let (first, all) = self.extent(piece);
        for step in 0..self.n_here {
            let of = (self.place + step) % self.n_here;
            if step > 0 {
                let flag = Flag::Combined;
                by.carry_out(MemoryStep::Await { of, flag, piece })?;
            }
            let (start, units) = slice(all, of, self.n_here);
            let cell = Units::Cell { of, unit: start };
            by.carry_out(copy(piece, cell, Units::Target(first + start), units))?;
        }
        Ok(())
    }
}

fn copy(piece: u64, from: Units, into: Units, units: u64) -> MemoryStep {
    MemoryStep::Copy {
        piece,
        from,
        into,
        units,
    }
}

fn combine(piece: u64, from: Units, into: Units, units: u64) -> MemoryStep {
    MemoryStep::Combine {
        piece,
        from,
        into,
        units,
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;
    use crate::node::stage::OUTPUT;

    /// A line is announced once, by the number in it.
    #[test]
    fn in_one_piece_nobody_waits_for_slices() {
        for kind in [Kind::AllreduceSliced, Kind::ReduceSliced { root: 1 }] {
            for place in 0..3 {
                let inside = Inside {
                    kind,
                    source: OUTPUT,
                    target: OUTPUT,
                    units: 7,
                    blocks: Blocks::One,
                    in_place: place == 1,
                    arriving: false,
                };
                let mut waits = 0;
                let phase = Phase::in_one_piece(&inside, (place, 3));
                let Ok(()) = phase.steps(0, &mut |step| {
                    waits += u32::from(matches!(step, MemoryStep::Await { .. }));
                    if let MemoryStep::Await { flag, .. } | MemoryStep::Tell { flag, .. } = step {
                        assert_ne!(flag, Flag::Combined, "{kind:?} in place {place}");
                    }
                    Ok::<(), Infallible>(())
                });
                let folds = place == 1 || kind == Kind::AllreduceSliced;
                assert_eq!(
                    waits,
                    if folds { 2 } else { 0 },
                    "{kind:?} in place {place}"
                );
            }
        }
    }

    #[test]
    fn in_an_exchange_every_rank_takes_every_other_ranks_piece_once() {
        for n_ranks in 2..8 {
            for rank in 0..n_ranks {
                let mut taken = vec![0; n_ranks];
                let inside = Inside {
                    kind: Kind::Exchange { givers: n_ranks },
                    source: OUTPUT,
                    target: OUTPUT,
                    units: 9,
                    blocks: Blocks::One,
                    in_place: false,
                    arriving: false,
                };
                let phase = Phase::in_one_piece(&inside, (rank, n_ranks));
                let Ok(()) = phase.steps(0, &mut |step| {
                    if let MemoryStep::Await { of, .. } = step {
                        taken[of] += 1;
                    }
                    Ok::<(), Infallible>(())
                });
                let wanted: Vec<_> = (0..n_ranks).map(|from| i32::from(from != rank)).collect();
                assert_eq!(taken, wanted, "rank {rank} of {n_ranks}");
            }
        }
    }
}
