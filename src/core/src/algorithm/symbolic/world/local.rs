//! Places, reading them, and local steps.

use super::{Place, Runner};
use crate::algorithm::pattern::{Holds, Pattern};
use crate::algorithm::program::{Message, Span};
use crate::algorithm::schedule::{self, Buffer, Order, Part, Temporary};
use crate::algorithm::symbolic::geometry::{Content, Fault, Wrong, base};
use crate::algorithm::symbolic::sum::Sum;

impl Runner<'_> {
    /// The places of a span.
    pub(super) fn cells(&self, rank: usize, span: Span) -> Result<Vec<Place>, Fault> {
        let (temporaries, geometry) = (&self.programs[rank].temporaries, &self.geometry);
        let (base, len) = base(temporaries, geometry, rank, span.buffer);
        let part = Part::range(span.buffer, span.first as usize, span.len as usize);
        let total = geometry.total_chunks();
        let own = |holds| match holds {
            Holds::OwnBlock => rank * geometry.parts_per_block,
            _ => 0,
        };
        let first = match part.buffer {
            Buffer::Input => own(geometry.pattern.input(rank, geometry.root)),
            Buffer::Output => own(geometry.pattern.output(rank, geometry.root)),
            Buffer::Temporary(index) => match temporaries.get(usize::from(index)) {
                Some(&Temporary::Like { first, .. }) => first as usize,
                Some(Temporary::Ring { .. }) if part.count() != 1 => {
                    return self.fault(rank, Wrong::Chunk);
                }
                _ => 0,
            },
        };
        let placed = schedule::place(&part, temporaries);
        if placed.chunks().any(|chunk| chunk >= len) {
            return self.fault(rank, Wrong::Chunk);
        }
        let places = part.chunks().zip(placed.chunks());
        let place = |(chunk, placed)| Place {
            cell: base + placed,
            len: geometry.place_len(rank, part.buffer, (first + chunk) % total),
        };
        let places: Vec<Place> = places.map(place).collect();
        self.check_offset(rank, span, &places)?;
        Ok(places)
    }

    /// Whether the memory that a span names, as what runs it asks for it, is that of its places.
    fn check_offset(&self, rank: usize, span: Span, places: &[Place]) -> Result<(), Fault> {
        let Some(lengths) = &self.lengths[rank] else {
            return Ok(());
        };
        let temporaries = &self.programs[rank].temporaries;
        let (offset, units) = lengths.of(span, temporaries);
        let before = |place: &Place| -> u64 {
            let ring = match span.buffer {
                Buffer::Temporary(index) => {
                    matches!(temporaries[usize::from(index)], Temporary::Ring { .. })
                }
                Buffer::Input | Buffer::Output => false,
            };
            let (base, _) = base(temporaries, &self.geometry, rank, span.buffer);
            let index = place.cell - base;
            if ring {
                return index as u64 * self.geometry.longest();
            }
            let first = |index| Span {
                first: index as u32,
                len: 1,
                ..span
            };
            (0..index)
                .map(|index| lengths.of(first(index), temporaries).1)
                .sum()
        };
        let right = units == places.iter().map(|place| place.len).sum::<u64>()
            && places.first().is_none_or(|first| offset == before(first));
        if right {
            Ok(())
        } else {
            self.fault(rank, Wrong::Offset)
        }
    }

    pub(super) fn places(&self, rank: usize, message: Message) -> Result<Vec<Place>, Fault> {
        let mut places = Ok(Vec::new());
        self.programs[rank].each(&message, &mut |span| {
            if let Ok(all) = &mut places {
                match self.cells(rank, *span) {
                    Ok(more) => all.extend(more),
                    Err(fault) => places = Err(fault),
                }
            }
        });
        places
    }

    /// Whether a rank may write the span: not the caller's input, unless it is the output too, nor the buffer of a bcast
    /// at its root, which may be constant; and no chunk of the output that is said to be final.
    pub(super) fn check_writable(&self, rank: usize, span: &Span) -> Result<(), Fault> {
        let (program, at) = (&self.programs[rank], self.ranks[rank].at);
        let chunks = span.first as usize..(span.first + span.len) as usize;
        match span.buffer {
            Buffer::Input => self.fault(rank, Wrong::InputWritten),
            Buffer::Output
                if self.geometry.pattern == Pattern::Bcast && rank == self.geometry.root =>
            {
                self.fault(rank, Wrong::InputWritten)
            }
            Buffer::Output => match program.final_at.get(chunks) {
                Some(last) if last.iter().any(|last| (*last as usize) < at) => {
                    self.fault(rank, Wrong::Late)
                }
                _ => Ok(()),
            },
            Buffer::Temporary(_) => Ok(()),
        }
    }

    pub(super) fn check_writable_all(&self, rank: usize, message: Message) -> Result<(), Fault> {
        let mut all = Ok(());
        self.programs[rank].each(&message, &mut |span| {
            if all.is_ok() {
                all = self.check_writable(rank, span);
            }
        });
        all
    }

    /// The contents that are read, none of them empty.
    pub(super) fn read(&self, rank: usize, places: &[Place]) -> Result<Vec<Content>, Fault> {
        let mut contents = Vec::new();
        for place in places {
            if place.len == 0 {
                continue;
            }
            let cell = &self.ranks[rank].cells[place.cell];
            if cell.written_by > 0 {
                return self.fault(rank, Wrong::InUse);
            }
            match &cell.content {
                None => return self.fault(rank, Wrong::Undefined),
                Some(content) => contents.push(content.clone()),
            }
        }
        Ok(contents)
    }

    pub(super) fn elements(&self, contents: &[Content]) -> u64 {
        contents.iter().map(|c| self.geometry.content_len(c)).sum()
    }

    pub(super) fn local(
        &mut self,
        rank: usize,
        source: Span,
        target: Span,
        order: Option<Order>,
    ) -> Result<(), Fault> {
        self.check_writable(rank, &target)?;
        if order == Some(Order::SourceLast) {
            self.check_writable(rank, &source)?;
        }
        let (from, to) = (self.cells(rank, source)?, self.cells(rank, target)?);
        if from.len() != to.len() {
            return self.fault(rank, Wrong::Length);
        }
        for (&from, &to) in from.iter().zip(&to) {
            let Some(source) = self.read_one(rank, from)? else {
                continue;
            };
            if self.misfit(from, &source) || self.misfit(to, &source) {
                return self.fault(rank, Wrong::Misplaced);
            }
            let state = &self.ranks[rank].cells[to.cell];
            // In place, a copy of a chunk onto itself is no step at all.
            if order.is_none() && from.cell == to.cell {
                continue;
            }
            if state.read_by + state.written_by > 0 {
                return self.fault(rank, Wrong::InUse);
            }
            let combined = match (order, self.read_one_of_reduction(rank, to, order)?) {
                (Some(_), None) | (None, _) => source.clone(),
                (Some(order), Some(target)) => {
                    if target.chunk != source.chunk {
                        return self.fault(rank, Wrong::Misplaced);
                    }
                    self.world.reduced[rank] += self.geometry.len(source.chunk);
                    Content {
                        chunk: source.chunk,
                        sum: Sum::both(source.sum.clone(), target.sum, order),
                    }
                }
            };
            self.ranks[rank].cells[to.cell].content = Some(combined);
            if order == Some(Order::SourceLast) {
                let consumed = &mut self.ranks[rank].cells[from.cell];
                if consumed.read_by > 0 {
                    return self.fault(rank, Wrong::InUse);
                }
                consumed.content = None;
            }
        }
        Ok(())
    }

    fn read_one(&self, rank: usize, place: Place) -> Result<Option<Content>, Fault> {
        Ok(self.read(rank, &[place])?.pop())
    }

    /// The target of a reduction is read as well; that of a copy is not.
    fn read_one_of_reduction(
        &self,
        rank: usize,
        place: Place,
        order: Option<Order>,
    ) -> Result<Option<Content>, Fault> {
        match order {
            Some(_) => self.read_one(rank, place),
            None => Ok(None),
        }
    }

    /// Whether a chunk of the message does not fit where it would lie.
    pub(super) fn misfit(&self, place: Place, content: &Content) -> bool {
        place.len != self.geometry.content_len(content)
    }
}
