//! Open MPI's algorithms.

use super::Need::{
    AboveTwoRanks, BytesAtLeastRanks, Commutative, CountAtLeastPowerOfTwo, CountAtLeastRanks,
    EvenRanks, ExactlyTwoRanks, MessageAboveSegment, NotInPlace, PowerOfTwoRanks, SegmentPerRank,
    TwoSegments,
};
use super::{Need, Steering, Variant};
use crate::collective::Collective::{
    self, Allgather, Allgatherv, Allreduce, Alltoall, Alltoallv, Barrier, Bcast, Exscan, Gather,
    Reduce, ReduceScatter, ReduceScatterBlock, Scan, Scatter,
};
use crate::library::Library;
use crate::variant::VariantName;

struct OpenMpiRow {
    collective: Collective,
    algorithm: i32,
    name: &'static str,
    /// Segment sizes in bytes; 0 stands for "in one piece".
    segsizes: &'static [u64],
    needs: &'static [Need],
    /// For the segmented forms, beside `needs`.
    segmented_needs: &'static [Need],
    alone: bool,
    /// The first version (major, minor) that has it.
    since: (u16, u16),
}

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

const fn row(
    collective: Collective,
    algorithm: i32,
    name: &'static str,
    needs: &'static [Need],
) -> OpenMpiRow {
    OpenMpiRow {
        collective,
        algorithm,
        name,
        segsizes: &[0],
        needs,
        segmented_needs: needs,
        alone: false,
        since: (4, 0),
    }
}

impl OpenMpiRow {
    const fn segments(
        self,
        segsizes: &'static [u64],
        segmented_needs: &'static [Need],
    ) -> OpenMpiRow {
        OpenMpiRow {
            segsizes,
            segmented_needs,
            ..self
        }
    }

    const fn since(self, since: (u16, u16)) -> OpenMpiRow {
        OpenMpiRow { since, ..self }
    }

    const fn alone(self) -> OpenMpiRow {
        OpenMpiRow {
            alone: true,
            ..self
        }
    }
}

/// Open MPI's `coll/tuned`. Its forced algorithms do not check for commutative operations
/// (open-mpi/ompi issues 7765 and 8010), so the needs here do. It has nothing for gatherv, scatterv
/// and alltoallw. Allgather's sparbit (7, from 5.0 on)
/// is left out: in place its results are wrong (5.0.11, 2 to 5 ranks). `linear_sync` has no segments here: each rank would cut its block by its own type.
/// In place, algorithms of reduce_scatter(_block) differ in what they leave behind a rank's result.
const OPENMPI: &[OpenMpiRow] = &[
    row(Allreduce, 1, "basic_linear", &[]),
    row(Allreduce, 2, "nonoverlapping", &[]).alone(),
    row(Allreduce, 3, "recursive_doubling", &[Commutative]),
    row(Allreduce, 4, "ring", &[Commutative, CountAtLeastRanks]),
    row(
        Allreduce,
        5,
        "segmented_ring",
        &[Commutative, CountAtLeastRanks],
    )
    .segments(
        &[16 * KIB, 64 * KIB, MIB],
        &[Commutative, CountAtLeastRanks, SegmentPerRank],
    ),
    row(
        Allreduce,
        6,
        "rabenseifner",
        &[Commutative, CountAtLeastPowerOfTwo],
    ),
    row(Bcast, 1, "basic_linear", &[]),
    row(Bcast, 2, "chain", &[AboveTwoRanks])
        .segments(&[0, 32 * KIB], &[AboveTwoRanks, MessageAboveSegment]),
    row(Bcast, 3, "pipeline", &[AboveTwoRanks]).segments(
        &[0, 4 * KIB, 16 * KIB, 32 * KIB, 128 * KIB],
        &[AboveTwoRanks, MessageAboveSegment],
    ),
    row(Bcast, 4, "split_binary_tree", &[AboveTwoRanks, TwoSegments])
        .segments(&[0, 4 * KIB, 32 * KIB], &[AboveTwoRanks, TwoSegments]),
    row(Bcast, 5, "binary_tree", &[AboveTwoRanks]).segments(
        &[0, 4 * KIB, 32 * KIB],
        &[AboveTwoRanks, MessageAboveSegment],
    ),
    row(Bcast, 6, "binomial", &[AboveTwoRanks])
        .segments(&[0, 32 * KIB], &[AboveTwoRanks, MessageAboveSegment]),
    row(Bcast, 7, "knomial", &[AboveTwoRanks])
        .segments(&[0, 32 * KIB], &[AboveTwoRanks, MessageAboveSegment]),
    row(Bcast, 8, "scatter_allgather", &[BytesAtLeastRanks]),
    row(Bcast, 9, "scatter_allgather_ring", &[BytesAtLeastRanks]),
    row(Allgather, 1, "linear", &[]).alone(),
    row(Allgather, 2, "bruck", &[]),
    row(Allgather, 3, "recursive_doubling", &[PowerOfTwoRanks]),
    row(Allgather, 4, "ring", &[]),
    row(Allgather, 5, "neighbor", &[EvenRanks]),
    row(Allgather, 6, "two_proc", &[ExactlyTwoRanks]),
    row(Alltoall, 1, "linear", &[NotInPlace]),
    row(Alltoall, 2, "pairwise", &[NotInPlace]),
    row(Alltoall, 3, "modified_bruck", &[NotInPlace]),
    row(Alltoall, 4, "linear_sync", &[NotInPlace]),
    row(Alltoall, 5, "two_proc", &[NotInPlace, ExactlyTwoRanks]),
    row(Reduce, 1, "linear", &[]),
    row(Reduce, 2, "chain", &[AboveTwoRanks, Commutative]).segments(
        &[0, 32 * KIB],
        &[AboveTwoRanks, Commutative, MessageAboveSegment],
    ),
    row(Reduce, 3, "pipeline", &[AboveTwoRanks, Commutative]).segments(
        &[0, 4 * KIB, 32 * KIB],
        &[AboveTwoRanks, Commutative, MessageAboveSegment],
    ),
    row(Reduce, 4, "binary", &[AboveTwoRanks, Commutative]).segments(
        &[0, 4 * KIB, 32 * KIB],
        &[AboveTwoRanks, Commutative, MessageAboveSegment],
    ),
    row(Reduce, 5, "binomial", &[AboveTwoRanks, Commutative]).segments(
        &[0, 32 * KIB],
        &[AboveTwoRanks, Commutative, MessageAboveSegment],
    ),
    row(Reduce, 6, "in-order_binary", &[AboveTwoRanks])
        .segments(&[0, 32 * KIB], &[AboveTwoRanks, MessageAboveSegment]),
    row(
        Reduce,
        7,
        "rabenseifner",
        &[Commutative, CountAtLeastPowerOfTwo],
    ),
    row(Allgatherv, 1, "default", &[]).alone(),
    row(Allgatherv, 2, "bruck", &[]),
    row(Allgatherv, 3, "ring", &[]),
    row(Allgatherv, 4, "neighbor", &[EvenRanks]),
    row(Allgatherv, 5, "two_proc", &[ExactlyTwoRanks]),
    row(Allgatherv, 6, "sparbit", &[]).since((5, 0)),
    row(Gather, 1, "basic_linear", &[]),
    row(Gather, 2, "binomial", &[]),
    row(Gather, 3, "linear_sync", &[]),
    row(Scatter, 1, "basic_linear", &[]),
    row(Scatter, 2, "binomial", &[]),
    row(Scatter, 3, "linear_nb", &[]),
    row(Alltoallv, 1, "basic_linear", &[NotInPlace]),
    row(Alltoallv, 2, "pairwise", &[NotInPlace]),
    row(ReduceScatter, 1, "non-overlapping", &[NotInPlace]).alone(),
    row(
        ReduceScatter,
        2,
        "recursive_halving",
        &[Commutative, NotInPlace],
    ),
    row(ReduceScatter, 3, "ring", &[Commutative, NotInPlace]),
    row(ReduceScatter, 4, "butterfly", &[Commutative, NotInPlace]),
    row(ReduceScatterBlock, 1, "basic_linear", &[NotInPlace]).alone(),
    row(
        ReduceScatterBlock,
        2,
        "recursive_doubling",
        &[Commutative, NotInPlace],
    ),
    row(
        ReduceScatterBlock,
        3,
        "recursive_halving",
        &[Commutative, NotInPlace],
    ),
    row(
        ReduceScatterBlock,
        4,
        "butterfly",
        &[Commutative, NotInPlace],
    ),
    row(Scan, 1, "linear", &[]),
    row(Scan, 2, "recursive_doubling", &[]),
    row(Exscan, 1, "linear", &[]),
    row(Exscan, 2, "recursive_doubling", &[]),
    row(Barrier, 1, "linear", &[]),
    row(Barrier, 2, "double_ring", &[]),
    row(Barrier, 3, "recursive_doubling", &[]),
    row(Barrier, 4, "bruck", &[]),
    row(Barrier, 5, "two_proc", &[ExactlyTwoRanks]),
    row(Barrier, 6, "tree", &[]),
];

/// The native variants of `collective` in a version of Open MPI.
pub(super) fn variants(library: Library, collective: Collective) -> Vec<Variant> {
    let has = |row: &&OpenMpiRow| row.collective == collective && library.is_at_least(row.since);
    let rows = OPENMPI.iter().filter(has);
    rows.flat_map(|row| {
        row.segsizes.iter().map(move |&segsize| Variant {
            collective,
            name: VariantName::native(row.name, (segsize > 0).then_some(segsize)),
            steering: Steering::OpenMpi {
                algorithm: row.algorithm,
                alone: row.alone,
            },
            own: None,
            needs: if segsize > 0 {
                row.segmented_needs
            } else {
                row.needs
            }
            .to_vec(),
            needs_across: Vec::new(),
        })
    })
    .collect()
}
