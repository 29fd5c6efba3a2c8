//! Where everything lies in a node's segment, and how messages are cut into pieces.

/// Bytes of a cache line.
pub const LINE: usize = 64;
/// Bytes of a message that fit into a line beside its number.
pub const LINE_BYTES: usize = LINE - 8;
/// Lines and flags stand so far apart that fetching one does not fetch its neighbour, which another
/// rank may be about to write.
const APART: usize = 2 * LINE;

/// Lines of a rank's ring of short messages: so many calls may a root be ahead. With what stands before them they fill
/// two pages, which every rank of a node has of every other.
pub const LINES: u64 = 56;
/// Cells of a rank's ring of pieces, at most and at least. Only the root of a broadcast fills more than one piece
/// ahead, so two are enough.
const CELLS_MOST: u64 = 8;
const CELLS_LEAST: u64 = 2;
/// Cells of all ranks of a node, unless that left too few for each. Every rank reads in those of all others, and each
/// page that it has read in counts as its own in what a system says of it.
const CELLS_OF_ALL: u64 = 128;
/// Bytes of a cell.
pub const CELL: usize = 32 << 10;

/// Words of 64 bits in which a rank says on which processors it may run.
pub const PROCESSOR_WORDS: usize = crate::processors::MASK_WORDS;

/// The process's number, where it keeps its secret, that secret, and the namespace that the number is of.
pub const IDENTITY_WORDS: usize = 4;

pub const PAGE: usize = 4096;
/// The first page holds what shows a rank that it has found the right segment, and [`FAULT`].
const HEADER: usize = PAGE;
/// Where the first rank that cannot go on says so: 0, or the class of its error.
pub const FAULT: usize = APART;
const FLAGS: usize = 4 * APART;
const PROCESSORS: usize = FLAGS;
const IDENTITY: usize = PROCESSORS + PROCESSOR_WORDS * 8;
const RING: usize = IDENTITY + APART;
const PIECES: usize = (RING + LINES as usize * APART).next_multiple_of(PAGE);

/// Bytes of what stands in a rank's area before its cells.
pub const AREA_HEAD: usize = PIECES;

const _: () = assert!(CELL.is_multiple_of(PAGE) && AREA_HEAD == 2 * PAGE);
const _: () = assert!(RING.is_multiple_of(LINE));

/// What a rank tells the others by a number that only grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flag {
    /// The last piece that stands in its cell.
    Filled,
    /// The last piece of which the rank's own slice is combined in its cell.
    Combined,
    /// The last piece that the rank needs from no other any more.
    Done,
    /// The same of short messages; updated only now and then.
    ShortDone,
}

/// Where the areas of a node's ranks lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Areas {
    n_ranks: usize,
    /// Cells of a rank's ring: a power of two.
    cells: u64,
    /// Bytes of a rank's area.
    bytes: usize,
}

impl Areas {
    /// Those of so many ranks.
    pub fn new(n_ranks: usize) -> Areas {
        let each = CELLS_OF_ALL / (n_ranks as u64).clamp(1, CELLS_OF_ALL);
        let cells = 1 << each.clamp(CELLS_LEAST, CELLS_MOST).ilog2();
        Areas {
            n_ranks,
            cells,
            bytes: AREA_HEAD + cells as usize * CELL,
        }
    }

    /// Cells of a rank's ring of pieces.
    #[inline]
    pub fn cells(&self) -> u64 {
        self.cells
    }

    /// Bytes of one rank's area: whole pages, so that each rank provides its own.
    #[inline]
    pub fn area_bytes(&self) -> usize {
        self.bytes
    }

    /// Bytes of the segment; `None` where no address space holds it.
    pub fn segment_bytes(&self) -> Option<usize> {
        let areas = self.bytes.checked_mul(self.n_ranks)?;
        areas.checked_add(HEADER)
    }

    /// Where the area of a rank begins.
    #[inline]
    pub fn area(&self, rank: usize) -> usize {
        HEADER + rank * self.bytes
    }

    /// Where a flag of a rank lies.
    #[inline]
    pub fn flag(&self, rank: usize, flag: Flag) -> usize {
        self.area(rank) + flag as usize * APART
    }

    /// Where a rank's list of processors lies.
    pub fn processors(&self, rank: usize) -> usize {
        self.area(rank) + PROCESSORS
    }

    /// Where a rank says which process it is: [`IDENTITY_WORDS`] numbers.
    pub fn identity(&self, rank: usize) -> usize {
        self.area(rank) + IDENTITY
    }

    /// Where the line of a short message lies.
    #[inline]
    pub fn line(&self, rank: usize, ticket: u64) -> usize {
        self.area(rank) + RING + (ticket % LINES) as usize * APART
    }

    /// Where the cell of a piece lies.
    #[inline]
    pub fn cell(&self, rank: usize, ticket: u64) -> usize {
        self.area(rank) + PIECES + self.place(ticket) * CELL
    }

    /// Which cell of a rank's holds a piece.
    #[inline]
    fn place(&self, ticket: u64) -> usize {
        (ticket & (self.cells - 1)) as usize
    }

    /// The pages of a rank's cells on which so many bytes of a piece lie, from `skip` on, each a bit.
    #[inline]
    pub fn pages(&self, ticket: u64, skip: usize, bytes: usize) -> u64 {
        debug_assert!(skip + bytes <= CELL, "a piece lies in its cell");
        let first = skip / PAGE;
        let count = match bytes {
            0 => 0,
            _ => (skip + bytes).div_ceil(PAGE) - first,
        };
        ((1 << count) - 1) << (self.place(ticket) * CELL_PAGES + first)
    }

    /// Where such a page lies.
    pub fn page(&self, rank: usize, page: u32) -> usize {
        self.area(rank) + PIECES + page as usize * PAGE
    }
}

const CELL_PAGES: usize = CELL / PAGE;
const _: () = assert!(CELLS_MOST as usize * CELL_PAGES <= u64::BITS as usize);

/// How a message is cut: units go into pieces that are alike, but for a shorter last one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    pub units: u64,
    pub units_per_piece: u64,
    pub pieces: u64,
}

/// Shorter pieces than this are not worth their flags.
const PIECE_LEAST: u64 = 4 << 10;
/// A message becomes so many pieces where they stay long enough: reading begins after the first.
const PIECES_WANTED: u64 = 8;

impl Cut {
    /// Cuts `units` units of `unit_bytes` bytes each, of which each piece holds `copies` times as
    /// many bytes (alltoall: a part of the block for each rank). A unit fits into a cell `copies`
    /// times, else a piece is one unit all the same; callers rule that out by [`fits`].
    pub fn new(units: u64, unit_bytes: u64, copies: u64) -> Cut {
        let per_unit = unit_bytes.max(1).saturating_mul(copies.max(1));
        let total = units.saturating_mul(per_unit);
        let bytes = (total / PIECES_WANTED).clamp(PIECE_LEAST, CELL as u64);
        let most = (CELL as u64 / per_unit).max(1);
        let units_per_piece = (bytes / per_unit).clamp(1, most);
        Cut {
            units,
            units_per_piece,
            pieces: units.div_ceil(units_per_piece),
        }
    }

    /// The first unit of a piece, and how many it has.
    #[inline]
    pub fn piece(&self, piece: u64) -> (u64, u64) {
        let first = piece * self.units_per_piece;
        (first, self.units_per_piece.min(self.units - first))
    }
}

/// Whether a cell holds a unit for each of `copies` ranks.
pub fn fits(unit_bytes: u64, copies: u64) -> bool {
    unit_bytes.saturating_mul(copies) <= CELL as u64
}

/// The slice of a piece that a rank combines: its first unit there, and how many.
#[inline]
pub fn slice(units: u64, rank: usize, n_ranks: usize) -> (u64, u64) {
    let (rank, n) = (rank as u64, n_ranks as u64);
    let first = units * rank / n;
    (first, units * (rank + 1) / n - first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_overlaps_and_everything_lies_in_the_segment() {
        for n_ranks in [1, 3, 16, 17, 33, 200] {
            let areas = Areas::new(n_ranks);
            let mut taken = Vec::new();
            for rank in 0..n_ranks {
                for kind in [Flag::Filled, Flag::Combined, Flag::Done, Flag::ShortDone] {
                    taken.push((areas.flag(rank, kind), 8));
                }
                taken.push((areas.processors(rank), PROCESSOR_WORDS * 8));
                taken.push((areas.identity(rank), IDENTITY_WORDS * 8));
                taken.extend((0..LINES).map(|ticket| (areas.line(rank, ticket), LINE)));
                taken.extend((0..areas.cells()).map(|ticket| (areas.cell(rank, ticket), CELL)));
                let end = areas.area(rank) + areas.area_bytes();
                assert_eq!(taken.iter().map(|(at, bytes)| at + bytes).max(), Some(end));
            }
            taken.sort_unstable();
            assert!(taken[0].0 >= HEADER && (8..HEADER).contains(&FAULT));
            for pair in taken.windows(2) {
                assert!(pair[0].0 + pair[0].1 <= pair[1].0, "{pair:?}");
            }
            let (start, bytes) = taken[taken.len() - 1];
            assert!(Some(start + bytes) <= areas.segment_bytes());
        }
        assert_eq!(Areas::new(usize::MAX).segment_bytes(), None);
    }

    #[test]
    fn cells_and_lines_begin_at_cache_lines_and_come_round() {
        let areas = Areas::new(2);
        assert!(areas.cell(2, 5).is_multiple_of(LINE) && areas.line(2, 5).is_multiple_of(LINE));
        assert_eq!(areas.cell(1, 3), areas.cell(1, 3 + areas.cells()));
        assert_eq!(areas.line(1, 3), areas.line(1, 3 + LINES));
    }

    #[test]
    fn many_ranks_have_two_cells_each_and_few_have_eight() {
        let cells = [0, 1, 16, 17, 32, 33, 64, 65_536].map(|n_ranks| Areas::new(n_ranks).cells());
        assert_eq!(cells, [8, 8, 8, 4, 4, 2, 2, 2]);
    }

    #[test]
    fn pages_are_those_that_hold_the_bytes_and_no_others() {
        for areas in [Areas::new(2), Areas::new(64)] {
            for ticket in 0..20 {
                for (skip, bytes) in [
                    (0, 0),
                    (5000, 0),
                    (0, 1),
                    (4095, 1),
                    (4095, 2),
                    (5000, 9000),
                    (0, CELL),
                    (CELL - 1, 1),
                ] {
                    let pages = areas.pages(ticket, skip, bytes);
                    let start = areas.cell(7, ticket) + skip;
                    for page in 0..u64::BITS {
                        let at = areas.page(7, page);
                        let holds = bytes > 0 && at < start + bytes && start < at + PAGE;
                        assert_eq!(
                            pages >> page & 1 == 1,
                            holds,
                            "{ticket} {skip} {bytes} {page}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn pieces_cover_the_message_once_and_fit_into_cells() {
        for units in [0, 1, 7, 4096, 4097, 100_000, 1 << 22] {
            for unit_bytes in [1, 3, 8, 4000, CELL as u64] {
                for copies in [1, 2, 7] {
                    if !fits(unit_bytes, copies) {
                        continue;
                    }
                    let cut = Cut::new(units, unit_bytes, copies);
                    let mut next = 0;
                    for piece in 0..cut.pieces {
                        let (first, count) = cut.piece(piece);
                        assert_eq!(first, next);
                        assert!(count > 0 && count * unit_bytes * copies <= CELL as u64);
                        next = first + count;
                    }
                    assert_eq!(next, units);
                }
            }
        }
        let largest = Cut::new(u64::MAX / 2, 2, 1);
        assert!(largest.pieces > 0);
    }

    #[test]
    fn slices_cover_a_piece_once() {
        for units in 0..40 {
            for n in 1..9 {
                let mut next = 0;
                for rank in 0..n {
                    let (first, count) = slice(units, rank, n);
                    assert_eq!(first, next);
                    next = first + count;
                }
                assert_eq!(next, units);
            }
        }
    }
}
