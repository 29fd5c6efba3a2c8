//! Open MPI's algorithms.

use super::Need::{
    AboveTwoRanks, BuiltinOp, BytesAtLeastRanks, Commutative, CountAtLeastPowerOfTwo,
    CountAtLeastRanks, EvenRanks, ExactlyTwoRanks, MessageAboveSegment, NotInPlace, PlainElements,
    PowerOfTwoRanks, SegmentPerRank, SomeBytes, TwoSegments, WritableRoot,
};
use super::{Need, Steering, Variant};
use crate::collective::Collective::{
    self, Allgather, Allgatherv, Allreduce, Alltoall, Alltoallv, Barrier, Bcast, Exscan, Gather,
    Reduce, ReduceScatter, ReduceScatterBlock, Scan, Scatter,
};
use crate::shape::Growth::{
    HalfRanks, HalfRanksEachRound, Log, Once, QuarterRanks, Ranks, RanksAndLog, Twice, TwiceLog,
    TwiceRanks,
};
use crate::shape::Shape::{self, Rounds, Tree};
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
    shape: Shape,
}

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

const fn row(
    collective: Collective,
    algorithm: i32,
    name: &'static str,
    shape: Shape,
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
        shape,
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
/// is left out: in place its results are wrong (5.0.11, 2 to 5 ranks). Allgatherv's (6, likewise) is left out, too:
/// where the types of the two sides differ, or elements have holes, it gives wrong data, writes outside of the buffer,
/// ends in errors or hangs (5.0.11, 2 to 4 ranks). `linear_sync` has no segments here: each rank would cut its block by
/// its own type. Gather's `binomial` (2) is left out, and allgather's `linear` (1), which ends in it: ranks collect
/// others' blocks side by side in their own type. Where its elements reach into each other's extents (a column of a
/// matrix, say) blocks overlap, and data are wrong (4.1.4, 4, 5 and 7 ranks). The library's own choice takes it, too,
/// for some sizes from 4 ranks on. Allgather's `bruck` counts in an `int` what it passes on: 2 * 10^9 elements without
/// bytes keep 8 ranks busy for ever (4.1.4). The rings of allreduce take an element's data to begin at its address
/// (4.1.4, 5.0.11, 2 to 9 ranks): where they begin below or above it, they write outside of their own memory.
/// Reduce_scatter_block's `recursive_doubling` calls operations with a length of 0 (4.1.4, 2 and 3 ranks), which a
/// program's need not expect. Both of bcast that end in an allgather write what it brings into the root's buffer, too
/// (4.1.4, 4 ranks), so they are never run: where the default runs them, `default` stands for them. In place,
/// algorithms of reduce_scatter(_block) differ in what they leave behind a rank's result.
#[rustfmt::skip]
const OPENMPI: &[OpenMpiRow] = &[
    row(Allreduce, 1, "basic_linear", Rounds(TwiceRanks, TwiceRanks), &[]),
    row(Allreduce, 2, "nonoverlapping", Rounds(TwiceLog, TwiceLog), &[]).alone(),
    row(Allreduce, 3, "recursive_doubling", Rounds(Log, Log), &[Commutative]),
    row(Allreduce, 4, "ring", Rounds(TwiceRanks, Twice), &[Commutative, CountAtLeastRanks, PlainElements]),
    row(Allreduce, 5, "segmented_ring", Rounds(TwiceRanks, Twice), &[Commutative, CountAtLeastRanks, PlainElements])
        .segments(&[16 * KIB, 64 * KIB, MIB], &[Commutative, CountAtLeastRanks, SegmentPerRank, PlainElements]),
    row(Allreduce, 6, "rabenseifner", Rounds(TwiceLog, Twice), &[Commutative, CountAtLeastPowerOfTwo]),
    row(Bcast, 1, "basic_linear", Rounds(Ranks, Ranks), &[]),
    row(Bcast, 2, "chain", Tree { depth: QuarterRanks, children: 4 }, &[AboveTwoRanks])
        .segments(&[0, 32 * KIB], &[AboveTwoRanks, MessageAboveSegment]),
    row(Bcast, 3, "pipeline", Tree { depth: Ranks, children: 1 }, &[AboveTwoRanks])
        .segments(&[0, 4 * KIB, 16 * KIB, 32 * KIB, 128 * KIB], &[AboveTwoRanks, MessageAboveSegment]),
    row(Bcast, 4, "split_binary_tree", Tree { depth: Log, children: 2 }, &[AboveTwoRanks, TwoSegments])
        .segments(&[0, 4 * KIB, 32 * KIB], &[AboveTwoRanks, TwoSegments]),
    row(Bcast, 5, "binary_tree", Tree { depth: Log, children: 2 }, &[AboveTwoRanks])
        .segments(&[0, 4 * KIB, 32 * KIB], &[AboveTwoRanks, MessageAboveSegment]),
    row(Bcast, 6, "binomial", Rounds(Log, Log), &[AboveTwoRanks])
        .segments(&[0, 32 * KIB], &[AboveTwoRanks, MessageAboveSegment]),
    row(Bcast, 7, "knomial", Rounds(TwiceLog, TwiceLog), &[AboveTwoRanks])
        .segments(&[0, 32 * KIB], &[AboveTwoRanks, MessageAboveSegment]),
    row(Bcast, 8, "scatter_allgather", Rounds(TwiceLog, Twice), &[BytesAtLeastRanks, WritableRoot]),
    row(Bcast, 9, "scatter_allgather_ring", Rounds(RanksAndLog, Twice), &[BytesAtLeastRanks, WritableRoot]),
    row(Allgather, 2, "bruck", Rounds(Log, Ranks), &[SomeBytes]),
    row(Allgather, 3, "recursive_doubling", Rounds(Log, Ranks), &[PowerOfTwoRanks]),
    row(Allgather, 4, "ring", Rounds(Ranks, Ranks), &[]),
    row(Allgather, 5, "neighbor", Rounds(HalfRanks, Ranks), &[EvenRanks]),
    row(Allgather, 6, "two_proc", Rounds(Once, Once), &[ExactlyTwoRanks]),
    row(Alltoall, 1, "linear", Rounds(Ranks, Ranks), &[NotInPlace]),
    row(Alltoall, 2, "pairwise", Rounds(Ranks, Ranks), &[NotInPlace]),
    row(Alltoall, 3, "modified_bruck", Rounds(Log, HalfRanksEachRound), &[NotInPlace]),
    row(Alltoall, 4, "linear_sync", Rounds(Ranks, Ranks), &[NotInPlace]),
    row(Alltoall, 5, "two_proc", Rounds(Once, Once), &[NotInPlace, ExactlyTwoRanks]),
    row(Reduce, 1, "linear", Rounds(Ranks, Ranks), &[]),
    row(Reduce, 2, "chain", Tree { depth: QuarterRanks, children: 4 }, &[AboveTwoRanks, Commutative])
        .segments(&[0, 32 * KIB], &[AboveTwoRanks, Commutative, MessageAboveSegment]),
    row(Reduce, 3, "pipeline", Tree { depth: Ranks, children: 1 }, &[AboveTwoRanks, Commutative])
        .segments(&[0, 4 * KIB, 32 * KIB], &[AboveTwoRanks, Commutative, MessageAboveSegment]),
    row(Reduce, 4, "binary", Tree { depth: Log, children: 2 }, &[AboveTwoRanks, Commutative])
        .segments(&[0, 4 * KIB, 32 * KIB], &[AboveTwoRanks, Commutative, MessageAboveSegment]),
    row(Reduce, 5, "binomial", Rounds(Log, Log), &[AboveTwoRanks, Commutative])
        .segments(&[0, 32 * KIB], &[AboveTwoRanks, Commutative, MessageAboveSegment]),
    row(Reduce, 6, "in-order_binary", Tree { depth: Log, children: 2 }, &[AboveTwoRanks])
        .segments(&[0, 32 * KIB], &[AboveTwoRanks, MessageAboveSegment]),
    row(Reduce, 7, "rabenseifner", Rounds(TwiceLog, Twice), &[Commutative, CountAtLeastPowerOfTwo]),
    row(Allgatherv, 1, "default", Rounds(RanksAndLog, TwiceRanks), &[]).alone(),
    row(Allgatherv, 2, "bruck", Rounds(Log, Ranks), &[]),
    row(Allgatherv, 3, "ring", Rounds(Ranks, Ranks), &[]),
    row(Allgatherv, 4, "neighbor", Rounds(HalfRanks, Ranks), &[EvenRanks]),
    row(Allgatherv, 5, "two_proc", Rounds(Once, Once), &[ExactlyTwoRanks]),
    row(Gather, 1, "basic_linear", Rounds(Ranks, Ranks), &[]),
    row(Gather, 3, "linear_sync", Rounds(TwiceRanks, Ranks), &[]),
    row(Scatter, 1, "basic_linear", Rounds(Ranks, Ranks), &[]),
    row(Scatter, 2, "binomial", Rounds(Log, Ranks), &[]),
    row(Scatter, 3, "linear_nb", Rounds(Ranks, Ranks), &[]),
    row(Alltoallv, 1, "basic_linear", Rounds(Ranks, Ranks), &[NotInPlace]),
    row(Alltoallv, 2, "pairwise", Rounds(Ranks, Ranks), &[NotInPlace]),
    row(ReduceScatter, 1, "non-overlapping", Rounds(RanksAndLog, Log), &[NotInPlace]).alone(),
    row(ReduceScatter, 2, "recursive_halving", Rounds(Log, Once), &[Commutative, NotInPlace]),
    row(ReduceScatter, 3, "ring", Rounds(Ranks, Once), &[Commutative, NotInPlace]),
    row(ReduceScatter, 4, "butterfly", Rounds(Log, Once), &[Commutative, NotInPlace]),
    row(ReduceScatterBlock, 1, "basic_linear", Rounds(RanksAndLog, Log), &[NotInPlace]).alone(),
    row(ReduceScatterBlock, 2, "recursive_doubling", Rounds(Log, Log), &[BuiltinOp, Commutative, NotInPlace]),
    row(ReduceScatterBlock, 3, "recursive_halving", Rounds(Log, Once), &[Commutative, NotInPlace]),
    row(ReduceScatterBlock, 4, "butterfly", Rounds(Log, Once), &[Commutative, NotInPlace]),
    row(Scan, 1, "linear", Rounds(Ranks, Ranks), &[]),
    row(Scan, 2, "recursive_doubling", Rounds(Log, Log), &[]),
    row(Exscan, 1, "linear", Rounds(Ranks, Ranks), &[]),
    row(Exscan, 2, "recursive_doubling", Rounds(Log, Log), &[]),
    row(Barrier, 1, "linear", Rounds(TwiceRanks, Once), &[]),
    row(Barrier, 2, "double_ring", Rounds(TwiceRanks, Once), &[]),
    row(Barrier, 3, "recursive_doubling", Rounds(Log, Once), &[]),
    row(Barrier, 4, "bruck", Rounds(Log, Once), &[]),
    row(Barrier, 5, "two_proc", Rounds(Once, Once), &[ExactlyTwoRanks]),
    row(Barrier, 6, "tree", Rounds(TwiceLog, Once), &[]),
];

/// The native variants of `collective`, the same in 4.1 and 5.0.
pub(super) fn variants(collective: Collective) -> Vec<Variant> {
    let has = |row: &&OpenMpiRow| row.collective == collective;
    let rows = OPENMPI.iter().filter(has);
    rows.flat_map(|row| {
        row.segsizes.iter().map(move |&segsize| Variant {
            steering: Steering::OpenMpi {
                algorithm: row.algorithm,
                alone: row.alone,
            },
            needs: if segsize > 0 {
                row.segmented_needs
            } else {
                row.needs
            }
            .to_vec(),
            shape: Some(row.shape),
            ..Variant::named(
                collective,
                VariantName::native(row.name, (segsize > 0).then_some(segsize)),
            )
        })
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::need::Facts;

    #[test]
    fn elements_without_bytes_are_gathered_by_no_bruck() {
        let all = variants(Allgather);
        let bruck = all
            .iter()
            .find(|one| one.name.to_string() == "native:bruck");
        let bruck = bruck.expect("it is in the table");
        let takes = |bytes| bruck.applies(&Facts::usual(Allgather, bytes, 8, 1));
        assert!(takes(1) && !takes(0));
    }
}
