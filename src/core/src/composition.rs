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
    Allgather, Allreduce, Alltoall, Barrier, Bcast, Gather, Reduce, ReduceScatter,
    ReduceScatterBlock, Scan, Scatter,
};
use Composition as Is;
use Need::{BytesAtLeastRanks, CommutativeOrPlain, CountAtLeastRanks, NotInPlace};

/// One composition of one collective.
#[derive(Clone, Copy, Debug)]
pub struct ComposedRow {
    pub collective: Collective,
    /// The algorithm's part of the name, as in `mockup:reduce+bcast`.
    pub name: &'static str,
    pub composition: Composition,
    /// Beside at least one byte, where calls have any.
    pub needs: &'static [Need],
}

const fn row(
    collective: Collective,
    name: &'static str,
    composition: Composition,
    needs: &'static [Need],
) -> ComposedRow {
    ComposedRow {
        collective,
        name,
        composition,
        needs,
    }
}

/// What a composition needs whose part is a reduce_scatter(_block): in MPICH that steps over elements
/// by their true extent where the operation does not commute.
const BY_REDUCE_SCATTER: &[Need] = &[CountAtLeastRanks, CommutativeOrPlain];

/// Every composition, in the order of collectives.
#[rustfmt::skip]
pub const ROWS: &[ComposedRow] = &[
    row(Allreduce, "reduce+bcast", Is::AllreduceReduceBcast, &[]),
    row(Allreduce, "reduce_scatter_block+allgather", Is::AllreduceReduceScatterBlockAllgather, BY_REDUCE_SCATTER),
    row(Allreduce, "reduce_scatter+allgatherv", Is::AllreduceReduceScatterAllgatherv, BY_REDUCE_SCATTER),
    row(Bcast, "scatter+allgather", Is::BcastScatterAllgather, &[BytesAtLeastRanks]),
    row(Bcast, "allgatherv", Is::BcastAllgatherv, &[]),
    row(Allgather, "allgatherv", Is::AllgatherAllgatherv, &[]),
    row(Allgather, "gather+bcast", Is::AllgatherGatherBcast, &[]),
    row(Allgather, "alltoall", Is::AllgatherAlltoall, &[]),
    row(Allgather, "allreduce", Is::AllgatherAllreduce, &[]),
    row(Alltoall, "alltoallv", Is::AlltoallAlltoallv, &[]),
    row(Reduce, "allreduce", Is::ReduceAllreduce, &[]),
    row(Reduce, "reduce_scatter_block+gather", Is::ReduceReduceScatterBlockGather, BY_REDUCE_SCATTER),
    row(Reduce, "reduce_scatter+gatherv", Is::ReduceReduceScatterGatherv, BY_REDUCE_SCATTER),
    row(Reduce, "reduce_scatter", Is::ReduceReduceScatter, &[CommutativeOrPlain]),
    row(Gather, "allgather", Is::GatherAllgather, &[]),
    row(Gather, "gatherv", Is::GatherGatherv, &[]),
    row(Gather, "reduce", Is::GatherReduce, &[]),
    row(Scatter, "bcast", Is::ScatterBcast, &[]),
    row(Scatter, "scatterv", Is::ScatterScatterv, &[]),
    row(ReduceScatterBlock, "reduce+scatter", Is::ReduceScatterBlockReduceThenScatter, &[]),
    row(
        ReduceScatterBlock,
        "reduce_scatter",
        Is::ReduceScatterBlockReduceScatter,
        // In place the library's reduce_scatter writes behind the result, its reduce_scatter_block does not.
        &[CommutativeOrPlain, NotInPlace],
    ),
    row(ReduceScatterBlock, "allreduce", Is::ReduceScatterBlockAllreduce, &[]),
    row(ReduceScatter, "reduce+scatterv", Is::ReduceScatterReduceThenScatterv, &[]),
    row(ReduceScatter, "allreduce", Is::ReduceScatterAllreduce, &[]),
    row(Scan, "exscan+reduce_local", Is::ScanExscan, &[]),
    row(Barrier, "allreduce", Is::BarrierAllreduce, &[]),
];

/// The rows of one collective.
pub fn rows(collective: Collective) -> impl Iterator<Item = &'static ComposedRow> {
    ROWS.iter().filter(move |row| row.collective == collective)
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
