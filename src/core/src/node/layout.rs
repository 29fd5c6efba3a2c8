//! Where everything lies in a node's segment, and how messages are cut into pieces.

/// Bytes of a cache line.
pub const LINE: usize = 64;
/// Bytes of a message that fit into a line beside its number.
pub const LINE_BYTES: usize = LINE - 8;
/// Lines and flags stand so far apart that fetching one does not fetch its neighbour, which another
/// rank may be about to write.
const APART: usize = 2 * LINE;

/// Lines of a rank's ring of short messages: so many calls may a root be ahead.
pub const LINES: u64 = 64;
/// Cells of a rank's ring of pieces.
pub const CELLS: u64 = 8;
/// Bytes of a cell.
pub const CELL: usize = 32 << 10;

/// Words of 64 bits in which a rank says on which processors it may run.
pub const PROCESSOR_WORDS: usize = 16;

/// Its number, where it keeps a secret of its own, and that secret.
pub const IDENTITY_WORDS: usize = 3;

const PAGE: usize = 4096;
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
/// Bytes of one rank's area: whole pages, so that each rank provides its own.
pub const AREA: usize = PIECES + CELLS as usize * CELL;

const _: () = assert!(AREA.is_multiple_of(PAGE) && AREA_HEAD.is_multiple_of(PAGE));
const _: () = assert!(RING.is_multiple_of(LINE));

/// What a rank tells the others by a number that only grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flag {
    /// The last piece that stands in its cell.
    Filled,
    /// The last piece of which the rank's own slice is combined in its cell.
    Combined,
    /// The last piece that the rank needs from nobody any more.
    Done,
    /// The same of short messages; told now and then only.
    ShortDone,
}

/// Bytes of the segment of so many ranks; `None` where no address space holds it.
pub fn segment_bytes(n_ranks: usize) -> Option<usize> {
    AREA.checked_mul(n_ranks)?.checked_add(HEADER)
}

/// Where the area of a rank begins.
#[inline]
pub fn area(rank: usize) -> usize {
    HEADER + rank * AREA
}

/// Where a flag of a rank lies.
#[inline]
pub fn flag(rank: usize, flag: Flag) -> usize {
    area(rank) + flag as usize * APART
}

/// Where a rank's list of processors lies.
pub fn processors(rank: usize) -> usize {
    area(rank) + PROCESSORS
}

/// Where a rank says which process it is: [`IDENTITY_WORDS`] numbers.
pub fn identity(rank: usize) -> usize {
    area(rank) + IDENTITY
}

/// Where the line of a short message lies.
#[inline]
pub fn line(rank: usize, ticket: u64) -> usize {
    area(rank) + RING + (ticket % LINES) as usize * APART
}

/// Where the cell of a piece lies.
#[inline]
pub fn cell(rank: usize, ticket: u64) -> usize {
    area(rank) + PIECES + (ticket % CELLS) as usize * CELL
}

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
        let n_ranks = 3;
        let mut taken = Vec::new();
        for rank in 0..n_ranks {
            for kind in [Flag::Filled, Flag::Combined, Flag::Done, Flag::ShortDone] {
                taken.push((flag(rank, kind), 8));
            }
            taken.push((processors(rank), PROCESSOR_WORDS * 8));
            taken.push((identity(rank), IDENTITY_WORDS * 8));
            taken.extend((0..LINES).map(|ticket| (line(rank, ticket), LINE)));
            taken.extend((0..CELLS).map(|ticket| (cell(rank, ticket), CELL)));
        }
        taken.sort_unstable();
        assert!(taken[0].0 >= HEADER && (8..HEADER).contains(&FAULT));
        for pair in taken.windows(2) {
            assert!(pair[0].0 + pair[0].1 <= pair[1].0, "{pair:?}");
        }
        let (start, bytes) = taken[taken.len() - 1];
        assert!(Some(start + bytes) <= segment_bytes(n_ranks));
        assert_eq!(segment_bytes(usize::MAX), None);
    }

    #[test]
    fn cells_and_lines_begin_at_cache_lines_and_come_round() {
        assert!(cell(2, 5).is_multiple_of(LINE) && line(2, 5).is_multiple_of(LINE));
        assert_eq!(cell(1, 3), cell(1, 3 + CELLS));
        assert_eq!(line(1, 3), line(1, 3 + LINES));
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
