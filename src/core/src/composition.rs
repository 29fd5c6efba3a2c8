//! Collectives as compositions of the library's other ones: the family `mockup`.
//!
//! Where a library has tuned one collective better than another, its own parts make the better whole.
//! Each part runs as the library chooses. A new composition is one row here and one function in the
//! shim. Source: Hunold & Carpen-Amarie, IEEE TPDS 29(9), 2018, which calls them mock-ups.

use crate::collective::Collective;
use crate::need::Need;

/// What a collective is composed of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Composition {
    AllreduceReduceBcast,
    /// What the ranks do not divide is reduced by itself.
    AllreduceReduceScatterBlockAllgather,
    AllreduceReduceScatterAllgatherv,
    /// What the ranks do not divide is broadcast by itself.
    BcastScatterAllgather,
    /// Every rank but the root contributes nothing.
    BcastAllgatherv,
    ReduceAllreduce,
    /// What the ranks do not divide is reduced by itself.
    ReduceReduceScatterBlockGather,
    ReduceReduceScatterGatherv,
    AllgatherAllgatherv,
    AllgatherGatherBcast,
    /// Every rank sends its block to each.
    AllgatherAlltoall,
    /// A bitwise or of blocks that are zero but at home.
    AllgatherAllreduce,
    AlltoallAlltoallv,
    /// The root's counts are all, the others' nothing.
    ReduceReduceScatter,
    /// Every rank gets what the root alone needs.
    GatherAllgather,
    GatherGatherv,
    /// A bitwise or of blocks that are zero but at home.
    GatherReduce,
    /// Every rank gets all blocks and keeps its own.
    ScatterBcast,
    ScatterScatterv,
    ReduceScatterBlockReduceThenScatter,
    ReduceScatterBlockReduceScatter,
    ReduceScatterBlockAllreduce,
    ReduceScatterReduceThenScatterv,
    ReduceScatterAllreduce,
    ScanExscan,
    /// Of one byte.
    BarrierAllreduce,
}

use Collective::{
    Allgather, Allgatherv, Allreduce, Alltoall, Alltoallv, Barrier, Bcast, Exscan, Gather, Gatherv,
    Reduce, ReduceScatter, ReduceScatterBlock, Scan, Scatter, Scatterv,
};
use Composition as Is;
use Need::{BytesAtLeastRanks, CommutativeOrPlain, CountAtLeastRanks, NotInPlace};
use Share::{OfAll, OfRank, Whole};

/// How many bytes a part's call has, of the whole's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Share {
    Whole,
    Half,
    /// One rank's part of a message.
    OfRank,
    /// All ranks' blocks together.
    OfAll,
}

impl Share {
    pub fn of(self, bytes: u64, n_ranks: u32) -> u64 {
        let n_ranks = u64::from(n_ranks.max(1));
        match self {
            Share::Whole => bytes,
            Share::Half => bytes.div_ceil(2),
            Share::OfRank => bytes.div_ceil(n_ranks),
            Share::OfAll => bytes.saturating_mul(n_ranks),
        }
    }
}

/// One composition of one collective.
#[derive(Clone, Copy, Debug)]
pub struct ComposedRow {
    pub collective: Collective,
    /// The algorithm's part of the name, as in `mockup:reduce+bcast`.
    pub name: &'static str,
    pub composition: Composition,
    /// The collectives that it calls one after another, and with how many bytes.
    pub parts: &'static [(Collective, Share)],
    /// Beside at least one byte, where calls have any.
    pub needs: &'static [Need],
}

const fn row(
    collective: Collective,
    name: &'static str,
    composition: Composition,
    parts: &'static [(Collective, Share)],
) -> ComposedRow {
    ComposedRow {
        collective,
        name,
        composition,
        parts,
        needs: &[],
    }
}

impl ComposedRow {
    const fn needs(self, needs: &'static [Need]) -> ComposedRow {
        ComposedRow { needs, ..self }
    }
}

/// What a composition needs whose part is a reduce_scatter(_block): in MPICH that steps over elements
/// by their true extent where the operation does not commute.
const BY_REDUCE_SCATTER: &[Need] = &[CountAtLeastRanks, CommutativeOrPlain];

/// Every composition, in the order of collectives.
#[rustfmt::skip]
pub const ROWS: &[ComposedRow] = &[
    row(Allreduce, "reduce+bcast", Is::AllreduceReduceBcast, &[(Reduce, Whole), (Bcast, Whole)]),
    row(Allreduce, "reduce_scatter_block+allgather", Is::AllreduceReduceScatterBlockAllgather,
        &[(ReduceScatterBlock, Whole), (Allgather, OfRank)]).needs(BY_REDUCE_SCATTER),
    row(Allreduce, "reduce_scatter+allgatherv", Is::AllreduceReduceScatterAllgatherv,
        &[(ReduceScatter, Whole), (Allgatherv, OfRank)]).needs(BY_REDUCE_SCATTER),
    row(Bcast, "scatter+allgather", Is::BcastScatterAllgather, &[(Scatter, OfRank), (Allgather, OfRank)])
        .needs(&[BytesAtLeastRanks]),
    // One block travels as the message of a bcast does.
    row(Bcast, "allgatherv", Is::BcastAllgatherv, &[(Bcast, Whole)]),
    row(Allgather, "allgatherv", Is::AllgatherAllgatherv, &[(Allgatherv, Whole)]),
    row(Allgather, "gather+bcast", Is::AllgatherGatherBcast, &[(Gather, Whole), (Bcast, OfAll)]),
    row(Allgather, "alltoall", Is::AllgatherAlltoall, &[(Alltoall, Whole)]),
    row(Allgather, "allreduce", Is::AllgatherAllreduce, &[(Allreduce, OfAll)]),
    row(Alltoall, "alltoallv", Is::AlltoallAlltoallv, &[(Alltoallv, Whole)]),
    row(Reduce, "allreduce", Is::ReduceAllreduce, &[(Allreduce, Whole)]),
    row(Reduce, "reduce_scatter_block+gather", Is::ReduceReduceScatterBlockGather,
        &[(ReduceScatterBlock, Whole), (Gather, OfRank)]).needs(BY_REDUCE_SCATTER),
    row(Reduce, "reduce_scatter+gatherv", Is::ReduceReduceScatterGatherv, &[(ReduceScatter, Whole), (Gatherv, OfRank)])
        .needs(BY_REDUCE_SCATTER),
    row(Reduce, "reduce_scatter", Is::ReduceReduceScatter, &[(ReduceScatter, Whole)]).needs(&[CommutativeOrPlain]),
    row(Gather, "allgather", Is::GatherAllgather, &[(Allgather, Whole)]),
    row(Gather, "gatherv", Is::GatherGatherv, &[(Gatherv, Whole)]),
    row(Gather, "reduce", Is::GatherReduce, &[(Reduce, OfAll)]),
    row(Scatter, "bcast", Is::ScatterBcast, &[(Bcast, OfAll)]),
    row(Scatter, "scatterv", Is::ScatterScatterv, &[(Scatterv, Whole)]),
    row(ReduceScatterBlock, "reduce+scatter", Is::ReduceScatterBlockReduceThenScatter,
        &[(Reduce, Whole), (Scatter, OfRank)]),
    row(ReduceScatterBlock, "reduce_scatter", Is::ReduceScatterBlockReduceScatter, &[(ReduceScatter, Whole)])
        // In place the library's reduce_scatter writes behind the result, its reduce_scatter_block does not.
        .needs(&[CommutativeOrPlain, NotInPlace]),
    row(ReduceScatterBlock, "allreduce", Is::ReduceScatterBlockAllreduce, &[(Allreduce, Whole)]),
    row(ReduceScatter, "reduce+scatterv", Is::ReduceScatterReduceThenScatterv, &[(Reduce, Whole), (Scatterv, OfRank)]),
    row(ReduceScatter, "allreduce", Is::ReduceScatterAllreduce, &[(Allreduce, Whole)]),
    row(Scan, "exscan+reduce_local", Is::ScanExscan, &[(Exscan, Whole)]),
    row(Barrier, "allreduce", Is::BarrierAllreduce, &[(Allreduce, Whole)]),
];

/// The rows of one collective.
pub fn rows(collective: Collective) -> impl Iterator<Item = &'static ComposedRow> {
    ROWS.iter().filter(move |row| row.collective == collective)
}

impl Composition {
    /// The collectives that it calls one after another, and with how many bytes; `None` for one that has no row.
    pub fn parts(self) -> Option<&'static [(Collective, Share)]> {
        let row = ROWS.iter().find(|row| row.composition == self);
        row.map(|row| row.parts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_composition_stands_twice_and_none_is_of_its_own_collective_alone() {
        let mut seen = std::collections::HashSet::new();
        for row in ROWS {
            assert!(seen.insert(row.composition), "{} stands twice", row.name);
            assert_ne!(row.name, row.collective.name());
        }
    }
}
