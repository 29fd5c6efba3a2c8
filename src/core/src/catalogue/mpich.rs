//! MPICH's algorithms.

use super::Need::{
    BuiltinOp, BytesAtLeastRanks, Commutative, CountAtLeastPowerOfTwo, EqualBlocks, Hierarchy,
    InPlace, NotInPlace, PlainElements, PowerOfTwoRanks, RanksByNode, WritableRoot,
};
use super::{Need, Steering, Variant};
use crate::collective::Collective::{
    self, Allgather, Allgatherv, Allreduce, Alltoall, Barrier, Bcast, Reduce, ReduceScatter,
    ReduceScatterBlock, Scan,
};
use crate::library::Library;
use crate::shape::Growth::{
    self, HalfRanksEachRound, Log, Once, Ranks, RanksAndLog, Twice, TwiceLog, TwiceRanks,
};
use crate::shape::Shape;
use crate::variant::VariantName;

struct MpichRow {
    collective: Collective,
    algorithm: &'static str,
    needs: &'static [Need],
    /// The first version (major, minor) that has it, and the first that has it no more.
    since: (u16, u16),
    until: (u16, u16),
    /// `None` where it has levels.
    shape: Option<Shape>,
}

const fn row(collective: Collective, algorithm: &'static str, needs: &'static [Need]) -> MpichRow {
    MpichRow {
        collective,
        algorithm,
        needs,
        since: (0, 0),
        until: (u16::MAX, 0),
        shape: None,
    }
}

impl MpichRow {
    const fn since(self, since: (u16, u16)) -> MpichRow {
        MpichRow { since, ..self }
    }

    const fn spread(self, messages: Growth, blocks: Growth) -> MpichRow {
        MpichRow {
            shape: Some(Shape::Rounds(messages, blocks)),
            ..self
        }
    }

    const fn until(self, until: (u16, u16)) -> MpichRow {
        MpichRow { until, ..self }
    }
}

/// Of what is left out MPICH 4.0 names this, in a description of which every name has to be known ([`left_out`]).
const LEFT_OUT: [(Collective, &str); 1] = [(Collective::Allgatherv, "ring")];

/// Algorithms that MPICH 4.0 has and that are not drawn.
pub fn left_out(collective: Collective) -> impl Iterator<Item = &'static str> {
    let of_it = LEFT_OUT
        .into_iter()
        .filter(move |(of, _)| *of == collective);
    of_it.map(|(_, name)| name)
}

/// MPICH's intra-communicator algorithms, by the names of `..._INTRA_ALGORITHM`. Where a
/// call has one alone, it is what `default` runs, and has no row: gather(v), scatter(v), exscan,
/// alltoallv and alltoallw. `noncommutative` steps over elements by their true extent; `pairwise` copies
/// overlapping memory in place, and as in Open MPI the rest of the buffer differs there. Of the newer ones those that
/// combine need a commutative operation, as most of them say themselves; `ccl` needs another library. Some of
/// allreduce fail where elements have holes, overlap or do not begin at their address: `ring`,
/// `k_reduce_scatter_allgather` and `recursive_multiplying` write outside of their memory or combine other memory
/// than the call's, and `tree` ends the program (5.0.2, 2 and 3 ranks). Algorithms that move data and go wrong by a
/// rank's own types are left out, as no rank knows the others' types. One is allgatherv's `ring`, which cuts blocks
/// into chunks by the extent of the rank's own type (4.0.2, 2 ranks: wrong data, errors, hangs; the library's own
/// choice for long messages, too). The others are allgather's `k_brucks` (5.0.2, 3 and 4 ranks), `recexch_doubling` and
/// `recexch_halving` (5.0.2: wrong data, writes outside of the buffers, hangs), and alltoall's `k_brucks` (5.0.2, wrong
/// data, writes outside of its memory). Both of bcast that end in an allgather also write into the root's buffer, so
/// they are never run: where the default runs them, `default` stands for them. Trees and radices are the library's own
/// settings.
#[rustfmt::skip]
const MPICH: &[MpichRow] = &[
    row(Allreduce, "smp", &[Commutative, Hierarchy]),
    row(Allreduce, "recursive_doubling", &[]).spread(Log, Log),
    row(Allreduce, "reduce_scatter_allgather", &[BuiltinOp, CountAtLeastPowerOfTwo]).spread(TwiceLog, Twice),
    row(Allreduce, "tree", &[Commutative, PlainElements]).spread(TwiceLog, TwiceLog).since((4, 1)),
    row(Allreduce, "recexch", &[Commutative]).spread(Log, Log).since((4, 1)),
    row(Allreduce, "ring", &[Commutative, PlainElements]).spread(TwiceRanks, Twice).since((4, 1)),
    row(Allreduce, "k_reduce_scatter_allgather", &[Commutative, PlainElements]).spread(TwiceLog, Twice).since((4, 1)),
    row(Allreduce, "recursive_multiplying", &[Commutative, PlainElements]).spread(Log, Log).since((4, 3)),
    row(Bcast, "binomial", &[]).spread(Log, Log),
    row(Bcast, "smp", &[Hierarchy]),
    row(Bcast, "scatter_recursive_doubling_allgather", &[BytesAtLeastRanks, WritableRoot]).spread(TwiceLog, Twice),
    row(Bcast, "scatter_ring_allgather", &[BytesAtLeastRanks, WritableRoot]).spread(RanksAndLog, Twice),
    row(Bcast, "tree", &[]).spread(Log, Log).since((4, 1)),
    row(Bcast, "pipelined_tree", &[]).since((4, 1)),
    row(Allgather, "brucks", &[]).spread(Log, Ranks),
    row(Allgather, "recursive_doubling", &[PowerOfTwoRanks]).spread(Log, Ranks),
    row(Allgather, "ring", &[]).spread(Ranks, Ranks),
    row(Alltoall, "brucks", &[NotInPlace]).spread(Log, HalfRanksEachRound),
    row(Alltoall, "pairwise", &[NotInPlace]).spread(Ranks, Ranks),
    row(Alltoall, "pairwise_sendrecv_replace", &[InPlace]).spread(Ranks, Ranks),
    row(Alltoall, "scattered", &[NotInPlace]).spread(Ranks, Ranks),
    row(Reduce, "binomial", &[]).spread(Log, Log),
    row(Reduce, "smp", &[Commutative, Hierarchy]),
    row(Reduce, "reduce_scatter_gather", &[BuiltinOp, CountAtLeastPowerOfTwo]).spread(TwiceLog, Twice),
    row(Allgatherv, "brucks", &[]).spread(Log, Ranks),
    row(Allgatherv, "recursive_doubling", &[PowerOfTwoRanks]).spread(Log, Ranks),
    row(ReduceScatter, "noncommutative", &[NotInPlace, PowerOfTwoRanks, EqualBlocks, PlainElements]).spread(Log, Once),
    // In place, which no rank knows of the others, blocks that overlap would be copied onto each other.
    row(ReduceScatter, "pairwise", &[Commutative, NotInPlace, EqualBlocks]).spread(Ranks, Once),
    row(ReduceScatter, "recursive_doubling", &[NotInPlace]).spread(Log, Log),
    row(ReduceScatter, "recursive_halving", &[Commutative, NotInPlace]).spread(Log, Once),
    row(ReduceScatterBlock, "noncommutative", &[NotInPlace, PowerOfTwoRanks, PlainElements]).spread(Log, Once),
    row(ReduceScatterBlock, "pairwise", &[Commutative, NotInPlace]).spread(Ranks, Once),
    row(ReduceScatterBlock, "recursive_doubling", &[NotInPlace]).spread(Log, Log),
    row(ReduceScatterBlock, "recursive_halving", &[Commutative, NotInPlace]).spread(Log, Once),
    row(Scan, "smp", &[Commutative, Hierarchy, RanksByNode]),
    row(Scan, "recursive_doubling", &[]).spread(Log, Log),
    row(Barrier, "dissemination", &[]).spread(Log, Once).until((4, 1)),
    row(Barrier, "k_dissemination", &[]).spread(Log, Once).since((4, 1)),
    row(Barrier, "recexch", &[]).spread(Log, Once).since((4, 1)),
    row(Barrier, "smp", &[Hierarchy]),
];

/// The native variants of `collective` in a version of MPICH.
pub(super) fn variants(library: Library, collective: Collective) -> Vec<Variant> {
    let has = |row: &&MpichRow| {
        row.collective == collective
            && library.is_at_least(row.since)
            && !library.is_at_least(row.until)
    };
    let rows = MPICH.iter().filter(has);
    rows.map(|row| Variant {
        steering: Steering::Mpich {
            algorithm: row.algorithm,
        },
        needs: row.needs.to_vec(),
        shape: row.shape,
        ..Variant::named(collective, VariantName::native(row.algorithm, None))
    })
    .collect()
}
