//! Intel MPI's algorithms.
//!
//! Source: Intel MPI Library Developer Reference for Linux, "I_MPI_ADJUST Family Environment Variables".
//! The library knows more presets than its documentation names; those are left out. So are the ones that it
//! calls "SHM-based" and "NUMA aware", and Shumilin's: they have limits that are not documented, behind which
//! something else would run under their name (4 ranks send other messages from some size on).

use super::Need::{
    Commutative, CountAtLeastPowerOfTwo, CountAtLeastRanks, EqualBlocks, NotInPlace,
    PowerOfTwoRanks, WritableRoot,
};
use super::{Need, Steering, Variant};
use crate::collective::Collective::{
    self, Allgather, Allgatherv, Allreduce, Alltoall, Alltoallv, Barrier, Bcast, Exscan, Gather,
    Gatherv, Reduce, ReduceScatter, Scan, Scatter, Scatterv,
};
use crate::shape::Growth::{HalfRanksEachRound, Log, Once, Ranks, Twice, TwiceLog, TwiceRanks};
use crate::shape::Shape;
use crate::variant::VariantName;

/// Preset numbers and the names of what they run. The library is closed: needs are those of the algorithms.
/// Of bcast those that are a scatter and an allgather elsewhere are taken to write into the root's buffer, as they do there.
/// Those that contain a reduce (allreduce's 3 and 4, reduce_scatter's 4 and 5) are left out: the library's
/// MPI_Reduce is wrong where elements have holes and a user's operation commutes, its allreduce and reduce_scatter by
/// other presets are not, and a call's types are unknown when a job starts.
#[rustfmt::skip]
const INTEL: &[(Collective, u16, &str, &[Need])] = &[
    (Allreduce, 1, "recursive_doubling", &[]),
    (Allreduce, 2, "rabenseifner", &[Commutative, CountAtLeastPowerOfTwo]),
    (Allreduce, 5, "binomial_gather+scatter", &[]),
    (Allreduce, 6, "topology_aware_binomial_gather+scatter", &[]),
    (Allreduce, 8, "ring", &[Commutative, CountAtLeastRanks]),
    (Allreduce, 9, "knomial", &[Commutative]),
    (Bcast, 1, "binomial", &[]),
    (Bcast, 2, "recursive_doubling", &[WritableRoot]),
    (Bcast, 3, "ring", &[WritableRoot]),
    (Bcast, 4, "topology_aware_binomial", &[]),
    (Bcast, 5, "topology_aware_recursive_doubling", &[WritableRoot]),
    (Bcast, 6, "topology_aware_ring", &[WritableRoot]),
    (Bcast, 8, "knomial", &[]),
    (Allgather, 1, "recursive_doubling", &[PowerOfTwoRanks]),
    (Allgather, 2, "bruck", &[]),
    (Allgather, 3, "ring", &[]),
    (Allgather, 4, "topology_aware_gatherv+bcast", &[]),
    (Allgather, 5, "knomial", &[]),
    (Alltoall, 1, "bruck", &[NotInPlace]),
    (Alltoall, 2, "isend_irecv+waitall", &[NotInPlace]),
    (Alltoall, 3, "pairwise", &[NotInPlace]),
    (Alltoall, 4, "plum", &[NotInPlace]),
    (Reduce, 2, "binomial", &[]),
    (Reduce, 4, "topology_aware_binomial", &[]),
    (Reduce, 5, "rabenseifner", &[Commutative, CountAtLeastPowerOfTwo]),
    (Reduce, 6, "topology_aware_rabenseifner", &[Commutative, CountAtLeastPowerOfTwo]),
    (Reduce, 7, "knomial", &[Commutative]),
    (Allgatherv, 1, "recursive_doubling", &[PowerOfTwoRanks]),
    (Allgatherv, 2, "bruck", &[]),
    (Allgatherv, 3, "ring", &[]),
    (Allgatherv, 4, "topology_aware_gatherv+bcast", &[]),
    (Gather, 1, "binomial", &[]),
    (Gather, 2, "topology_aware_binomial", &[]),
    (Gatherv, 1, "linear", &[]),
    (Gatherv, 2, "topology_aware_linear", &[]),
    (Gatherv, 3, "knomial", &[]),
    (Scatter, 1, "binomial", &[]),
    (Scatter, 2, "topology_aware_binomial", &[]),
    (Scatterv, 1, "linear", &[]),
    (Scatterv, 2, "topology_aware_linear", &[]),
    (Alltoallv, 1, "isend_irecv+waitall", &[NotInPlace]),
    (Alltoallv, 2, "plum", &[NotInPlace]),
    (ReduceScatter, 1, "recursive_halving", &[Commutative, NotInPlace]),
    (ReduceScatter, 2, "pairwise", &[Commutative, NotInPlace, EqualBlocks]),
    (ReduceScatter, 3, "recursive_doubling", &[NotInPlace]),
    (Scan, 1, "partial_results_gathering", &[]),
    (Scan, 2, "topology_aware_partial_results_gathering", &[]),
    (Exscan, 1, "partial_results_gathering", &[]),
    (Exscan, 2, "topology_aware_partial_results_gathering", &[]),
    (Barrier, 1, "dissemination", &[]),
    (Barrier, 2, "recursive_doubling", &[]),
    (Barrier, 3, "topology_aware_dissemination", &[]),
    (Barrier, 4, "topology_aware_recursive_doubling", &[]),
    (Barrier, 5, "binomial_gather+scatter", &[]),
    (Barrier, 6, "topology_aware_binomial_gather+scatter", &[]),
];

/// What algorithms of these names carry; `None` where that depends on the nodes, or is undocumented.
fn shape(collective: Collective, name: &str) -> Option<Shape> {
    let (messages, blocks) = match (collective, name) {
        (Allreduce, "recursive_doubling") => (Log, Log),
        (Allreduce | Reduce, "rabenseifner") => (TwiceLog, Twice),
        (Allreduce, "ring") => (TwiceRanks, Twice),
        (Bcast | Reduce, "binomial") => (Log, Log),
        (Allgather | Allgatherv, "recursive_doubling" | "bruck") => (Log, Ranks),
        (Allgather | Allgatherv, "ring") => (Ranks, Ranks),
        (Alltoall, "bruck") => (Log, HalfRanksEachRound),
        (Alltoall | Alltoallv, "isend_irecv+waitall" | "pairwise") => (Ranks, Ranks),
        (Gather | Scatter, "binomial") => (Log, Ranks),
        (Gatherv | Scatterv, "linear") => (Ranks, Ranks),
        (ReduceScatter, "recursive_halving") => (Log, Once),
        (ReduceScatter, "pairwise") => (Ranks, Once),
        (ReduceScatter, "recursive_doubling") => (Log, Log),
        (Scan | Exscan, "partial_results_gathering") => (Log, Log),
        (Barrier, "dissemination" | "recursive_doubling") => (Log, Once),
        _ => return None,
    };
    Some(Shape::Rounds(messages, blocks))
}

/// The native variants of `collective` in Intel MPI.
pub(super) fn variants(collective: Collective) -> Vec<Variant> {
    let rows = INTEL.iter().filter(|(of, ..)| *of == collective);
    rows.map(|&(_, preset, name, needs)| Variant {
        steering: Steering::Intel { preset },
        needs: needs.to_vec(),
        shape: shape(collective, name),
        ..Variant::named(collective, VariantName::native(name, None))
    })
    .collect()
}
