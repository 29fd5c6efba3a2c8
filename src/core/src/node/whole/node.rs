//! The memory of a node, with contents, and the steps of its ranks in it.

use std::collections::VecDeque;

use super::memory::{Buffers, Content, Found};
use crate::algorithm::fixed_order::{self, FoldStep};
use crate::algorithm::schedule::Order;
use crate::algorithm::symbolic::Sum;
use crate::node::kind::Kind;
use crate::node::layout::{Cut, Flag};
use crate::node::phase::{MemoryStep, Phase, Units};
use crate::node::stage::Inside;

/// The memory that the ranks of a node share: rings of two cells, so that every one is used again.
#[derive(Clone)]
pub struct Shared {
    areas: Vec<Area>,
    /// What its ranks did together: each finds what the first of them found.
    phases: Vec<(Kind, Cut)>,
}

/// What a rank provides.
#[derive(Clone, Default)]
struct Area {
    told: [u64; 3],
    /// The ticket and the units of a piece.
    cells: [(u64, Vec<Option<Content>>); CELLS as usize],
}

const CELLS: u64 = 2;

/// A phase that a rank is in.
pub struct Running<'a> {
    inside: Inside<'a>,
    phase: Phase<'a>,
    /// The ticket of the first piece.
    first: u64,
    /// Pieces whose steps have been asked for, and those of them that are left.
    asked: u64,
    steps: VecDeque<MemoryStep>,
    room: Vec<Option<Content>>,
}

impl<'a> Running<'a> {
    pub fn new(inside: Inside<'a>, phase: Phase<'a>, first: u64) -> Running<'a> {
        Running {
            inside,
            phase,
            first,
            asked: 0,
            steps: VecDeque::new(),
            room: Vec::new(),
        }
    }

    /// The ticket of the first piece of the next phase.
    pub fn next_ticket(&self) -> u64 {
        self.first + self.phase.cut.pieces
    }

    pub fn phase(&self) -> &Phase<'a> {
        &self.phase
    }

    /// Pieces whose steps are over.
    pub fn over(&self) -> u64 {
        self.asked - u64::from(self.is_within())
    }

    pub fn is_over(&self) -> bool {
        self.over() == self.phase.cut.pieces
    }

    /// Whether some steps of a piece are left.
    pub fn is_within(&self) -> bool {
        !self.steps.is_empty()
    }

    /// The units of the next piece: the first and the one behind the last.
    pub fn next_units(&self) -> (u64, u64) {
        let (first, units) = self.phase.extent(self.over());
        (first, first + units)
    }

    /// Whether the next piece finds its cell free.
    pub fn has_room(&self, shared: &Shared) -> bool {
        shared.has_room(self.phase.place, self.first + self.over())
    }

    /// The next step; `None` at the end.
    pub fn next(&mut self) -> Option<MemoryStep> {
        while self.steps.is_empty() && self.asked < self.phase.cut.pieces {
            let Ok(()) = self.phase.steps(self.asked, &mut |step| {
                self.steps.push_back(step);
                Ok::<(), std::convert::Infallible>(())
            });
            self.asked += 1;
        }
        self.steps.front().copied()
    }

    fn read(
        &self,
        shared: &Shared,
        buffers: &Buffers,
        piece: u64,
        from: Units,
        unit: u64,
    ) -> Found<Content> {
        match from {
            Units::Source(first) => buffers.take(self.inside.source.behind(first), unit),
            Units::Target(first) => buffers.take(self.inside.target.behind(first), unit),
            Units::Cell { of, unit: first } => shared.read(of, self.first + piece, first + unit),
            Units::Room => self
                .room
                .get(unit as usize)
                .cloned()
                .flatten()
                .ok_or_else(|| format!("unit {unit} of the room is read before it is written")),
        }
    }

    fn write(
        &mut self,
        shared: &mut Shared,
        buffers: &mut Buffers,
        (piece, into, unit): (u64, Units, u64),
        content: Content,
    ) -> Found<()> {
        match into {
            Units::Source(_) => Err("the source is written".to_owned()),
            Units::Target(first) => {
                buffers.write(self.inside.target.behind(first), unit, Some(content))
            }
            Units::Cell { of, .. } if of != self.phase.place => Err(format!(
                "a cell of place {of} is written by place {}",
                self.phase.place
            )),
            Units::Cell { of, unit: first } => {
                let units = shared.cell(of, self.first + piece);
                put(units, first + unit, content);
                Ok(())
            }
            Units::Room => {
                put(&mut self.room, unit, content);
                Ok(())
            }
        }
    }

    /// A unit of everybody's, combined as the steps of the fixed order say.
    fn folded(
        &self,
        shared: &Shared,
        buffers: &Buffers,
        (piece, lowest): (u64, usize),
        (mine, in_cell): (Units, u64),
        unit: u64,
    ) -> Found<Content> {
        let (own, n) = (self.phase.place, self.phase.n_here);
        let read = |rank: usize| match (lowest + rank) % n {
            of if of == own => self.read(shared, buffers, piece, mine, unit),
            of => shared.read(of, self.first + piece, in_cell),
        };
        let both = |lower, higher| Sum::both(lower, higher, Order::SourceFirst);
        let mut slots: Vec<Content> = Vec::new();
        fixed_order::combine(n, |step| {
            match step {
                FoldStep::Take { rank, .. } => slots.push(read(rank)?),
                FoldStep::Before { rank, slot } => {
                    slots[slot] = both(read(rank)?, slots[slot].clone())
                }
                FoldStep::Merge { slot } => {
                    let lower = slots.remove(slot + 1);
                    slots[slot] = both(lower, slots[slot].clone());
                }
            }
            Found::Ok(())
        })?;
        Ok(slots.remove(0))
    }

    /// Takes the next step, unless it waits; whether it did. `arrived` says whether so many units have come from other
    /// nodes.
    pub fn step(
        &mut self,
        shared: &mut Shared,
        buffers: &mut Buffers,
        arrived: impl FnOnce(&mut Buffers, u64) -> Found<bool>,
    ) -> Found<bool> {
        let Some(&step) = self.steps.front() else {
            return Ok(true);
        };
        let own = self.phase.place;
        let ticket = |piece| self.first + piece;
        let is_cell = |place: Units| matches!(place, Units::Cell { .. });
        let can = match step {
            MemoryStep::AwaitRoom { piece } => shared.has_room(own, ticket(piece)),
            MemoryStep::Await { of, flag, piece } => {
                shared.areas[of].told[flag as usize] >= ticket(piece)
            }
            MemoryStep::Arrive { units } => arrived(buffers, units)?,
            MemoryStep::Fold { piece, .. } => {
                let mut places = shared.areas.iter().enumerate();
                let filled = |area: &Area| area.told[Flag::Filled as usize] >= ticket(piece);
                places.all(|(place, area)| place == own || filled(area))
            }
            _ => true,
        };
        if !can {
            return Ok(false);
        }
        match step {
            MemoryStep::Copy {
                piece,
                from,
                into,
                units,
            } => {
                if self.phase.holed && is_cell(from) && is_cell(into) {
                    return Err("packed units are copied as if they were not".to_owned());
                }
                for unit in 0..units {
                    let content = self.read(shared, buffers, piece, from, unit)?;
                    self.write(shared, buffers, (piece, into, unit), content)?;
                }
            }
            MemoryStep::Combine {
                piece,
                from,
                into,
                units,
            } => {
                if self.phase.holed && is_cell(into) {
                    return Err("packed units are combined as if they were not".to_owned());
                }
                for unit in 0..units {
                    let lower = self.read(shared, buffers, piece, from, unit)?;
                    let higher = self.read(shared, buffers, piece, into, unit)?;
                    let sum = Sum::both(lower, higher, Order::SourceFirst);
                    self.write(shared, buffers, (piece, into, unit), sum)?;
                }
            }
            MemoryStep::Fold {
                piece,
                lowest,
                own: mine,
                first,
                into,
                units,
            } => {
                if self.phase.holed {
                    return Err("units with holes are combined in the fixed order".to_owned());
                }
                for unit in 0..units {
                    let content =
                        self.folded(shared, buffers, (piece, lowest), (mine, first + unit), unit)?;
                    self.write(shared, buffers, (piece, into, unit), content)?;
                }
            }
            MemoryStep::Tell { flag, piece } => {
                shared.areas[own].told[flag as usize] = self.first + piece
            }
            _ => {}
        }
        self.steps.pop_front();
        Ok(true)
    }
}

fn put(units: &mut Vec<Option<Content>>, unit: u64, content: Content) {
    let at = unit as usize;
    units.resize(units.len().max(at + 1), None);
    units[at] = Some(content);
}

impl Shared {
    pub fn new(n: usize) -> Shared {
        Shared {
            areas: vec![Area::default(); n],
            phases: Vec::new(),
        }
    }

    /// Whether a rank does in its phase of a number what the others do.
    pub fn agrees(&mut self, number: usize, phase: &Phase) -> bool {
        let mine = (phase.kind, phase.cut);
        if number == self.phases.len() {
            self.phases.push(mine);
        }
        self.phases.get(number) == Some(&mine)
    }

    fn has_room(&self, own: usize, ticket: u64) -> bool {
        let others = self
            .areas
            .iter()
            .enumerate()
            .filter(|(place, _)| *place != own);
        let mut told = others.map(|(_, area)| area.told[Flag::Done as usize]);
        told.all(|done| done + CELLS >= ticket)
    }

    fn read(&self, place: usize, ticket: u64, unit: u64) -> Found<Content> {
        let (found, units) = &self.areas[place].cells[(ticket % CELLS) as usize];
        if *found != ticket {
            return Err(format!("piece {ticket} of place {place} is {found}"));
        }
        let content = units.get(unit as usize).cloned().flatten();
        content.ok_or_else(|| format!("unit {unit} of piece {ticket} is read, and nobody gave it"))
    }

    /// The units of the cell that holds, or from now on holds, a piece.
    fn cell(&mut self, place: usize, ticket: u64) -> &mut Vec<Option<Content>> {
        let (found, units) = &mut self.areas[place].cells[(ticket % CELLS) as usize];
        if *found != ticket {
            *found = ticket;
            units.clear();
        }
        units
    }
}
