//! What each rank of a node does in a collective: a pure function from (kind, rank, ranks) to acts.
//!
//! Piece `p` of a call has the ticket `first + p`; tickets run on through all calls of a
//! communicator. A rank may fill the cell of ticket `t` once every other rank is done with
//! `t - cells`, whose piece lay there. [`Act`] says what each act waits for, reads, writes and
//! tells; the tests run the acts of several calls in every interleaving.

/// What the ranks of a node do together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Every rank gets the piece of rank `root`.
    Bcast { root: usize },
    /// Every rank combines whole pieces for itself: fewest waits.
    AllreduceWhole,
    /// Every rank combines a slice of each piece for all: least work.
    AllreduceSliced,
    /// The root combines whole pieces.
    ReduceWhole { root: usize },
    /// Every rank combines a slice for the root.
    ReduceSliced { root: usize },
    /// Every rank gets something from the piece of each of the first `givers` ranks.
    Exchange { givers: usize },
    /// Each of the first `lanes` ranks combines its share of everybody's piece, for itself.
    ReduceScatter { lanes: usize },
    /// The root gets the pieces of the first `lanes` ranks.
    Gather { root: usize, lanes: usize },
}

/// One act of a rank. "Every rank" leaves the rank itself out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// Waits until every rank is done with what lay in the cell, writes the piece there, and tells
    /// that it is filled.
    Fill { piece: u64 },
    /// Waits until rank `from` has filled its cell, and reads there what is meant for this rank.
    Take { piece: u64, from: usize },
    /// Waits until every rank has filled its cell, and combines all of it.
    Fold { piece: u64 },
    /// Waits until every rank has filled its cell, combines the own slice of all, writes it into the
    /// own cell, and tells that it is combined.
    Combine { piece: u64 },
    /// Waits until every rank has combined its slice, and reads it in that rank's cell.
    Collect { piece: u64 },
    /// Tells that this rank needs nothing of the piece, or of any before, any more.
    Done { piece: u64 },
}

/// Hands the acts of a rank to `visit`, in order: those of one piece after those of another.
///
/// Errors: the first of `visit`.
#[inline]
pub fn acts<E>(
    kind: Kind,
    rank: usize,
    n_ranks: usize,
    pieces: u64,
    mut visit: impl FnMut(Act) -> Result<(), E>,
) -> Result<(), E> {
    (0..pieces).try_for_each(|piece| acts_of(kind, (rank, n_ranks), piece, pieces, &mut visit))
}

/// The acts of one piece of several. Whatever a rank fills ahead, it fills one piece ahead at most, so
/// rings of two cells are enough not to wait for ever; the root of a broadcast, whose data may still
/// be on their way to it, fills none.
///
/// Errors: the first of `visit`.
#[inline]
pub fn acts_of<E>(
    kind: Kind,
    (rank, n_ranks): (usize, usize),
    piece: u64,
    pieces: u64,
    visit: &mut impl FnMut(Act) -> Result<(), E>,
) -> Result<(), E> {
    let (fills, ahead) = match kind {
        Kind::Bcast { root } => (rank == root, 0),
        Kind::ReduceWhole { root } => (rank != root, 1),
        Kind::Exchange { givers } => (rank < givers, 1),
        Kind::Gather { root, lanes } => (rank < lanes && rank != root, 1),
        _ => (true, 1),
    };
    if fills && piece == 0 && ahead > 0 {
        visit(Act::Fill { piece })?;
    }
    if fills && piece + ahead < pieces {
        visit(Act::Fill {
            piece: piece + ahead,
        })?;
    }
    match kind {
        Kind::Bcast { root } if rank != root => visit(Act::Take { piece, from: root })?,
        Kind::AllreduceWhole => visit(Act::Fold { piece })?,
        Kind::ReduceWhole { root } if rank == root => visit(Act::Fold { piece })?,
        Kind::Bcast { .. } | Kind::ReduceWhole { .. } => {}
        Kind::AllreduceSliced => {
            visit(Act::Combine { piece })?;
            visit(Act::Collect { piece })?;
        }
        Kind::ReduceSliced { root } => {
            visit(Act::Combine { piece })?;
            if rank == root {
                visit(Act::Collect { piece })?;
            }
        }
        Kind::Exchange { givers } => {
            // Each begins with its neighbour, so that not all read one rank's cell at once.
            let others = (1..n_ranks).map(|step| (rank + step) % n_ranks);
            for from in others.filter(|&from| from < givers) {
                visit(Act::Take { piece, from })?;
            }
        }
        Kind::ReduceScatter { lanes } if rank < lanes => visit(Act::Fold { piece })?,
        Kind::Gather { root, lanes } if rank == root => {
            for from in (0..lanes).filter(|&from| from != root) {
                visit(Act::Take { piece, from })?;
            }
        }
        Kind::ReduceScatter { .. } | Kind::Gather { .. } => {}
    }
    visit(Act::Done { piece })
}

/// A message that is longer is combined in slices: with two waits instead of one, but `n_ranks`
/// times less work for each. Pieces are looked at, because each has its waits.
const WHOLE_MOST: u64 = 4 << 10;

/// How an allreduce of `bytes` bytes runs.
pub fn allreduce(bytes: u64, n_ranks: usize) -> Kind {
    if bytes.saturating_mul(n_ranks as u64) <= 2 * WHOLE_MOST {
        Kind::AllreduceWhole
    } else {
        Kind::AllreduceSliced
    }
}

/// How a reduce of `bytes` bytes runs.
pub fn reduce(bytes: u64, n_ranks: usize, root: usize) -> Kind {
    if n_ranks == 2 || bytes <= WHOLE_MOST {
        Kind::ReduceWhole { root }
    } else {
        Kind::ReduceSliced { root }
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    #[test]
    fn in_an_exchange_every_rank_takes_every_other_ranks_piece_once() {
        for n_ranks in 2..8 {
            for rank in 0..n_ranks {
                let mut taken = vec![0; n_ranks];
                let Ok(()) = acts(
                    Kind::Exchange { givers: n_ranks },
                    rank,
                    n_ranks,
                    3,
                    |act| {
                        if let Act::Take { piece: 1, from } = act {
                            taken[from] += 1;
                        }
                        Ok::<(), Infallible>(())
                    },
                );
                let wanted: Vec<_> = (0..n_ranks).map(|from| i32::from(from != rank)).collect();
                assert_eq!(taken, wanted, "rank {rank} of {n_ranks}");
            }
        }
    }
}
