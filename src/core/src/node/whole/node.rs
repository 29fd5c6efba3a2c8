//! What the ranks of a node do together: a model of what the shim does in each act.

use std::collections::VecDeque;

use super::memory::{Content, Found, Rank};
use crate::node::act::{Act, Kind, acts};
use crate::node::blocks::{Blocks, Ends};
use crate::node::layout::{Cut, slice};
use crate::node::stage::Inside;

/// The memory that the ranks of a node share: rings of two cells, so that every one is used again.
#[derive(Clone)]
pub struct Shared {
    pub first: u64,
    pub filled: Vec<u64>,
    pub combined: Vec<u64>,
    pub done: Vec<u64>,
    /// By place and cell: the ticket and the units of a piece.
    pub cells: Vec<[(u64, Vec<Option<Content>>); CELLS as usize]>,
}

const CELLS: u64 = 2;

impl Shared {
    pub fn new(n: usize) -> Shared {
        Shared {
            first: 1,
            filled: vec![0; n],
            combined: vec![0; n],
            done: vec![0; n],
            cells: vec![Default::default(); n],
        }
    }

    fn read(&self, place: usize, ticket: u64, unit: u64) -> Found<Content> {
        let (found, units) = &self.cells[place][(ticket % CELLS) as usize];
        if *found != ticket {
            return Err(format!("piece {ticket} of place {place} is {found}"));
        }
        let content = units.get(unit as usize).cloned().flatten();
        content.ok_or_else(|| format!("unit {unit} of piece {ticket} is read, and nobody gave it"))
    }
}

/// What the ranks of one node do together, each by its place.
pub struct Together<'t, 'a> {
    pub ranks: &'t mut [Rank<'a>],
    pub here: &'t [usize],
    pub insides: &'t [Inside<'a>],
    pub shared: &'t mut Shared,
    pub cut: Cut,
}

impl Together<'_, '_> {
    fn n(&self) -> usize {
        self.here.len()
    }

    fn ticket(&self, piece: u64) -> u64 {
        self.shared.first + piece
    }

    fn others(&self, own: usize) -> impl Iterator<Item = usize> + use<> {
        (0..self.here.len()).filter(move |place| *place != own)
    }

    fn has_room(&self, own: usize, piece: u64) -> bool {
        let ticket = self.ticket(piece);
        self.others(own)
            .all(|place| self.shared.done[place] + CELLS >= ticket)
    }

    /// Whether the sum comes where the own contribution lies.
    fn sums_in_place(&self, own: usize) -> bool {
        let (inside, rank) = (&self.insides[own], &self.ranks[self.here[own]]);
        let (source, target) = (rank.place(inside.source, 0), rank.place(inside.target, 0));
        std::ptr::eq(source.0, target.0) && source.1 == target.1
    }

    /// Whether it needs the own contribution elsewhere first.
    fn fills_to_fold(&self, own: usize) -> bool {
        let whole = matches!(self.insides[own].kind, Kind::ReduceWhole { .. });
        whole && own + 1 != self.n() && self.sums_in_place(own)
    }

    fn is_ready(&self, own: usize, act: Act) -> bool {
        let all = |flags: &[u64], piece| {
            let ticket = self.ticket(piece);
            self.others(own).all(|place| flags[place] >= ticket)
        };
        match act {
            Act::Fill { piece } => self.has_room(own, piece),
            Act::Take { piece, from } => self.shared.filled[from] >= self.ticket(piece),
            Act::Fold { piece } => {
                let has_room = !self.fills_to_fold(own) || self.has_room(own, piece);
                all(&self.shared.filled, piece) && has_room
            }
            Act::Combine { piece } => all(&self.shared.filled, piece),
            Act::Collect { piece } => all(&self.shared.combined, piece),
            Act::Done { .. } => true,
        }
    }

    fn perform(&mut self, own: usize, act: Act) -> Found<()> {
        match act {
            Act::Fill { piece } => {
                self.fill(own, piece)?;
                self.shared.filled[own] = self.ticket(piece);
            }
            Act::Take { piece, from } => self.take(own, piece, from)?,
            Act::Fold { piece } => self.fold(own, piece)?,
            Act::Combine { piece } => {
                self.combine(own, piece)?;
                self.shared.combined[own] = self.ticket(piece);
            }
            Act::Collect { piece } => {
                let (first, units) = self.cut.piece(piece);
                for place in 0..self.n() {
                    let (start, len) = slice(units, place, self.n());
                    for unit in start..start + len {
                        let content = self.shared.read(place, self.ticket(piece), unit)?;
                        self.write(own, first + unit, content)?;
                    }
                }
            }
            Act::Done { piece } => self.shared.done[own] = self.ticket(piece),
        }
        Ok(())
    }

    fn write(&mut self, own: usize, unit: u64, content: Content) -> Found<()> {
        let target = self.insides[own].target;
        self.ranks[self.here[own]].write(target, unit, Some(content))
    }

    fn fill(&mut self, own: usize, piece: u64) -> Found<()> {
        let inside = self.insides[own];
        let base = match inside.blocks {
            Blocks::Gathered(_) => inside.target,
            _ => inside.source,
        };
        let ticket = self.ticket(piece);
        let mut cell = Vec::new();
        for to in 0..inside.blocks.copies() {
            if to == own && matches!(inside.blocks, Blocks::Exchanged(_)) {
                continue;
            }
            let ends = Ends { from: own, to, own };
            let extent = self.cut.piece(piece);
            for stretch in inside.blocks.stretches(inside.units, extent, ends) {
                for unit in 0..stretch.units {
                    let content = self.ranks[self.here[own]].take(base, stretch.unit + unit)?;
                    let at = (stretch.in_cell + unit) as usize;
                    cell.resize(cell.len().max(at + 1), None);
                    cell[at] = Some(content);
                }
            }
        }
        self.shared.cells[own][(ticket % CELLS) as usize] = (ticket, cell);
        Ok(())
    }

    fn take(&mut self, own: usize, piece: u64, from: usize) -> Found<()> {
        let inside = self.insides[own];
        let (to, ticket) = (own, self.ticket(piece));
        let extent = self.cut.piece(piece);
        for stretch in inside
            .blocks
            .stretches(inside.units, extent, Ends { from, to, own })
        {
            for unit in 0..stretch.units {
                let content = self.shared.read(from, ticket, stretch.in_cell + unit)?;
                self.write(own, stretch.unit + unit, content)?;
            }
        }
        Ok(())
    }

    fn fold(&mut self, own: usize, piece: u64) -> Found<()> {
        let (inside, n) = (self.insides[own], self.n());
        let (to, from, ticket) = (own, own, self.ticket(piece));
        let extent = self.cut.piece(piece);
        let mut stretches = inside
            .blocks
            .stretches(inside.units, extent, Ends { from, to, own });
        let Some(stretch) = stretches.next() else {
            return Ok(());
        };
        let in_place = self.sums_in_place(own);
        if self.fills_to_fold(own) {
            self.fill(own, piece)?;
        }
        for unit in 0..stretch.units {
            let mut sum = Content::new();
            for place in 0..n {
                let given = match place == own && (!in_place || own + 1 == n) {
                    true => self.ranks[self.here[own]].take(inside.source, stretch.unit + unit)?,
                    false => self.shared.read(place, ticket, stretch.in_cell + unit)?,
                };
                sum.extend(given);
            }
            self.write(own, stretch.unit + unit, sum)?;
        }
        Ok(())
    }

    fn combine(&mut self, own: usize, piece: u64) -> Found<()> {
        let (_, units) = self.cut.piece(piece);
        let (start, len) = slice(units, own, self.n());
        let ticket = self.ticket(piece);
        for unit in start..start + len {
            let given = (0..self.n()).map(|place| self.shared.read(place, ticket, unit));
            let sum = given.collect::<Found<Vec<_>>>()?.concat();
            self.shared.cells[own][(ticket % CELLS) as usize].1[unit as usize] = Some(sum);
        }
        Ok(())
    }

    pub fn run(&mut self, highest: bool) -> Found<()> {
        let n = self.n();
        let mut left: Vec<VecDeque<Act>> = (0..n)
            .map(|place| {
                let mut all = VecDeque::new();
                let note = |act| {
                    all.push_back(act);
                    Ok::<(), std::convert::Infallible>(())
                };
                let Ok(()) = acts(self.insides[place].kind, place, n, self.cut.pieces, note);
                all
            })
            .collect();
        while left.iter().any(|acts| !acts.is_empty()) {
            let can = |place: &usize| {
                let act = left[*place].front();
                act.is_some_and(|act| self.is_ready(*place, *act))
            };
            let next = match highest {
                true => (0..n).rev().find(can),
                false => (0..n).find(can),
            };
            let place = next.ok_or("all ranks of a node wait")?;
            let act = left[place].pop_front().expect("one that can run");
            self.perform(place, act)?;
        }
        self.shared.first += self.cut.pieces;
        Ok(())
    }
}
