//! MPICH's algorithms.

use super::Need::{
    BuiltinOp, BytesAtLeastRanks, Commutative, CountAtLeastPowerOfTwo, EqualBlocks, Hierarchy,
    InPlace, NotInPlace, PlainElements, PowerOfTwoRanks, RanksByNode,
};
use super::{Need, Steering, Variant};
use crate::collective::Collective::{
    self, Allgather, Allgatherv, Allreduce, Alltoall, Barrier, Bcast, Reduce, ReduceScatter,
    ReduceScatterBlock, Scan,
};
use crate::library::Library;
use crate::variant::VariantName;

struct MpichRow {
    collective: Collective,
    algorithm: &'static str,
    needs: &'static [Need],
    /// The first version (major, minor) that has it, and the first that has it no more.
    since: (u16, u16),
    until: (u16, u16),
}

const fn row(collective: Collective, algorithm: &'static str, needs: &'static [Need]) -> MpichRow {
    MpichRow {
        collective,
        algorithm,
        needs,
        since: (0, 0),
        until: (u16::MAX, 0),
    }
}

impl MpichRow {
    const fn since(self, since: (u16, u16)) -> MpichRow {
        MpichRow { since, ..self }
    }

    const fn until(self, until: (u16, u16)) -> MpichRow {
        MpichRow { until, ..self }
    }
}

/// MPICH's intra-communicator algorithms, by the names of `..._INTRA_ALGORITHM`. Where a
/// call has one alone, it is what `default` runs, and has no row: gather(v), scatter(v), exscan,
/// alltoallv and alltoallw. `noncommutative` steps over elements by their true extent; `pairwise` copies
/// overlapping memory in place, and as in Open MPI the rest of the buffer differs there. Of the
/// newer ones those that combine want a commutative operation, as most of them say themselves; `ccl` needs
/// another library. Allgather's `k_brucks` is left out: where a type begins below its address, or its extent is
/// not its true one, it writes outside of its memory (5.0.2, 3 and 4 ranks). Trees and radices are the library's own settings.
const MPICH: &[MpichRow] = &[
    row(Allreduce, "smp", &[Commutative, Hierarchy]),
    row(Allreduce, "recursive_doubling", &[]),
    row(
        Allreduce,
        "reduce_scatter_allgather",
        &[BuiltinOp, CountAtLeastPowerOfTwo],
    ),
    row(Allreduce, "tree", &[Commutative]).since((4, 1)),
    row(Allreduce, "recexch", &[Commutative]).since((4, 1)),
    row(Allreduce, "ring", &[Commutative]).since((4, 1)),
    row(Allreduce, "k_reduce_scatter_allgather", &[Commutative]).since((4, 1)),
    row(Allreduce, "recursive_multiplying", &[Commutative]).since((4, 3)),
    row(Bcast, "binomial", &[]),
    row(Bcast, "smp", &[Hierarchy]),
    row(
        Bcast,
        "scatter_recursive_doubling_allgather",
        &[BytesAtLeastRanks],
    ),
    row(Bcast, "scatter_ring_allgather", &[BytesAtLeastRanks]),
    row(Bcast, "tree", &[]).since((4, 1)),
    row(Bcast, "pipelined_tree", &[]).since((4, 1)),
    row(Allgather, "brucks", &[]),
    row(Allgather, "recursive_doubling", &[PowerOfTwoRanks]),
    row(Allgather, "ring", &[]),
    row(Allgather, "recexch_doubling", &[]).since((4, 2)),
    row(Allgather, "recexch_halving", &[]).since((4, 2)),
    row(Alltoall, "brucks", &[NotInPlace]),
    row(Alltoall, "pairwise", &[NotInPlace]),
    row(Alltoall, "pairwise_sendrecv_replace", &[InPlace]),
    row(Alltoall, "scattered", &[NotInPlace]),
    row(Alltoall, "k_brucks", &[NotInPlace]).since((4, 1)),
    row(Reduce, "binomial", &[]),
    row(Reduce, "smp", &[Commutative, Hierarchy]),
    row(
        Reduce,
        "reduce_scatter_gather",
        &[BuiltinOp, CountAtLeastPowerOfTwo],
    ),
    row(Allgatherv, "brucks", &[]),
    row(Allgatherv, "recursive_doubling", &[PowerOfTwoRanks]),
    row(Allgatherv, "ring", &[]),
    row(
        ReduceScatter,
        "noncommutative",
        &[NotInPlace, PowerOfTwoRanks, EqualBlocks, PlainElements],
    ),
    row(ReduceScatter, "pairwise", &[Commutative, NotInPlace]),
    row(ReduceScatter, "recursive_doubling", &[NotInPlace]),
    row(
        ReduceScatter,
        "recursive_halving",
        &[Commutative, NotInPlace],
    ),
    row(
        ReduceScatterBlock,
        "noncommutative",
        &[NotInPlace, PowerOfTwoRanks, PlainElements],
    ),
    row(ReduceScatterBlock, "pairwise", &[Commutative, NotInPlace]),
    row(ReduceScatterBlock, "recursive_doubling", &[NotInPlace]),
    row(
        ReduceScatterBlock,
        "recursive_halving",
        &[Commutative, NotInPlace],
    ),
    row(Scan, "smp", &[Commutative, Hierarchy, RanksByNode]),
    row(Scan, "recursive_doubling", &[]),
    row(Barrier, "dissemination", &[]).until((4, 1)),
    row(Barrier, "k_dissemination", &[]).since((4, 1)),
    row(Barrier, "recexch", &[]).since((4, 1)),
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
        collective,
        name: VariantName::native(row.algorithm, None),
        steering: Steering::Mpich {
            algorithm: row.algorithm,
        },
        own: None,
        needs: row.needs.to_vec(),
        needs_across: Vec::new(),
    })
    .collect()
}
