//! Every algorithm of our own, in one table. A new algorithm is one file and one row.

pub use super::row::{
    BlockOrder, Cut, FixedOrder, InPlace, Lengths, Parameter, Row, SEGMENTS_MAX, Values,
};

use super::pattern::Pattern;
use super::row::row;
use super::simulate::symmetry::Symmetry;
use super::{allgather, allreduce, alltoall, barrier, bcast, gather, reduce, reduce_scatter};
use super::{scan, scatter};
use crate::need::Need;

/// The row of that name.
pub fn find(pattern: Pattern, name: &str) -> Option<&'static Row> {
    ROWS.iter()
        .find(|row| row.pattern == pattern && row.name == name)
}

/// The rows of one pattern.
pub fn rows(pattern: Pattern) -> impl Iterator<Item = &'static Row> {
    ROWS.iter().filter(move |row| row.pattern == pattern)
}

/// A schedule of our own with its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scheduled {
    /// Place in [`ROWS`].
    place: usize,
    pub values: Values,
}

impl Scheduled {
    pub(crate) fn new(place: usize, values: Values) -> Scheduled {
        Scheduled { place, values }
    }

    pub fn row(&self) -> &'static Row {
        &ROWS[self.place]
    }

    /// The place of its row in [`ROWS`].
    pub fn place(&self) -> usize {
        self.place
    }
}

use Need::{Commutative, EvenRanks, FewRanks, PowerOfTwoRanks};
use Parameter::{Radix, Segsize, Window};
use Pattern::{
    Allgather, Allreduce, Alltoall, Barrier, Bcast, Exscan, Gather, Reduce, ReduceScatter, Scan,
    Scatter,
};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

const SEGMENTED_SHARE: &[Parameter] = &[Segsize(Cut::Share, &[16 * KIB, 64 * KIB, 256 * KIB, MIB])];
const SHORT_SHARE: &[Parameter] = &[Segsize(Cut::Share, &[16 * KIB, 64 * KIB])];
const SEGMENTED: &[Parameter] = &[Segsize(
    Cut::Message,
    &[4 * KIB, 16 * KIB, 64 * KIB, 256 * KIB],
)];
const RADIX: &[Parameter] = &[Radix(&[2, 4, 8])];
const HIGH_RADIX: &[Parameter] = &[Radix(&[4, 8])];
const WINDOWS: &[Parameter] = &[Window(&[4, 16, 64])];

const THAKUR: &str = "Thakur, Rabenseifner & Gropp, IJHPCA 19(1), 2005";
const WILKINS: &str = "Wilkins et al., Generalized collective algorithms, CLUSTER 2023";
const TRAEFF: &str = "Traeff, arXiv 2410.14234";
const PJESIVAC: &str = "Pjesivac-Grbovic et al., Cluster Computing 10(2), 2007";
const HILLIS: &str = "Hillis & Steele, CACM 29(12), 1986";
const RING: &str = "Patarasuk & Yuan, JPDC 69(2), 2009";
const BINE: &str = "De Sensi et al., Bine trees, SC 2025";
const BRUCK: &str = "Bruck et al., IEEE TPDS 8(11), 1997";

/// Every algorithm, in the order of collectives and of value.
#[rustfmt::skip]
pub const ROWS: &[Row] = &[
    row(Allreduce, "recursive_doubling", allreduce::recursive_doubling::schedule, THAKUR)
        .in_fixed_order()
        .symmetric(Symmetry::Exchange(1)),
    row(Allreduce, "ring", allreduce::ring::schedule, RING)
        .needs(&[Commutative])
        .copied_in_place()
        .own_block_first()
        .symmetric(Symmetry::Rotation(1)),
    row(Allreduce, "segmented_ring", allreduce::ring::schedule, RING)
        .parameters(SEGMENTED_SHARE)
        .needs(&[Commutative])
        .copied_in_place()
        .own_block_first()
        .symmetric(Symmetry::Rotation(1)),
    row(Allreduce, "rabenseifner", allreduce::rabenseifner::schedule, THAKUR)
        .in_fixed_order()
        .symmetric(Symmetry::Exchange(1)),
    row(Allreduce, "direct", allreduce::direct::allreduce, PJESIVAC)
        .parameters(SHORT_SHARE)
        .needs(&[FewRanks])
        .copied_in_place()
        .for_fixed_order(),
    row(Allreduce, "circulant", allreduce::circulant::schedule, TRAEFF)
        .needs(&[Commutative])
        .copied_in_place()
        .symmetric(Symmetry::Rotation(1)),
    row(
        Allreduce,
        "recursive_multiplying",
        allreduce::recursive_multiplying::schedule,
        "Ruefenacht, Bull & Booth, Parallel Computing 69, 2017",
    )
    .parameters(HIGH_RADIX)
    .symmetric(Symmetry::Exchange(8)),
    row(Allreduce, "reduce_bcast", allreduce::reduce_bcast::schedule, WILKINS).parameters(RADIX).in_fixed_order(),
    row(Bcast, "binomial", bcast::knomial::schedule, THAKUR),
    row(Bcast, "binomial_doubling", bcast::doubling::schedule, BINE),
    row(Bcast, "knomial", bcast::knomial::schedule, WILKINS).parameters(HIGH_RADIX),
    row(Bcast, "chain", bcast::chain::schedule, PJESIVAC).parameters(SEGMENTED),
    row(Bcast, "binary_tree", bcast::binary_tree::schedule, PJESIVAC).parameters(SEGMENTED),
    row(Bcast, "scatter_allgather", bcast::scatter_allgather::recursive_doubling, THAKUR).needs(&[PowerOfTwoRanks]),
    row(Bcast, "scatter_allgather_ring", bcast::scatter_allgather::ring, THAKUR),
    row(Reduce, "binomial", reduce::knomial::schedule, THAKUR).needs(&[Commutative]).copied_in_place(),
    row(Reduce, "binomial_doubling", reduce::doubling::schedule, BINE).needs(&[Commutative]).copied_in_place(),
    row(Reduce, "knomial", reduce::knomial::schedule, WILKINS)
        .parameters(HIGH_RADIX)
        .needs(&[Commutative])
        .copied_in_place(),
    row(Reduce, "chain", reduce::chain::schedule, PJESIVAC)
        .parameters(SEGMENTED)
        .needs(&[Commutative])
        .copied_in_place(),
    row(Reduce, "rabenseifner", reduce::rabenseifner::schedule, THAKUR).needs(&[Commutative]),
    row(Reduce, "binomial_in_order", reduce::binomial_in_order::schedule, THAKUR)
        .parameters(&[Segsize(Cut::Message, &[0, 16 * KIB])])
        .copied_in_place()
        .for_fixed_order(),
    row(Reduce, "direct", allreduce::direct::reduce, PJESIVAC)
        .parameters(SHORT_SHARE)
        .needs(&[FewRanks])
        .copied_in_place()
        .for_fixed_order(),
    row(Reduce, "in_order", reduce::in_order::schedule, PJESIVAC)
        .parameters(&[Segsize(Cut::Message, &[0, 16 * KIB, 64 * KIB])])
        .copied_in_place(),
    row(Allgather, "ring", allgather::ring::schedule, THAKUR).any_lengths().symmetric(Symmetry::Rotation(1)),
    row(Allgather, "recursive_doubling", allgather::recursive_doubling::schedule, THAKUR)
        .needs(&[PowerOfTwoRanks])
        .any_lengths()
        .symmetric(Symmetry::Exchange(1)),
    row(Allgather, "bruck", allgather::bruck::schedule, BRUCK)
        .parameters(RADIX)
        .any_lengths()
        .symmetric(Symmetry::Rotation(1)),
    row(Allgather, "neighbour_exchange", allgather::neighbour_exchange::schedule, "Chen, Zhang & Wang, HPC Asia 2005")
        .needs(&[EvenRanks])
        .any_lengths()
        .symmetric(Symmetry::Rotation(2)),
    row(Allgather, "circulant", allgather::circulant::schedule, TRAEFF).any_lengths().symmetric(Symmetry::Rotation(1)),
    row(Allgather, "gather_bcast", allgather::gather_bcast::schedule, WILKINS).parameters(RADIX).any_lengths(),
    row(Alltoall, "pairwise", alltoall::scattered::pairwise, THAKUR)
        .any_lengths()
        .copied_in_place()
        .symmetric(Symmetry::Rotation(1)),
    row(Alltoall, "bruck", alltoall::bruck::schedule, BRUCK).parameters(RADIX).symmetric(Symmetry::Rotation(1)),
    row(Alltoall, "gather_scatter", alltoall::gather_scatter::schedule, WILKINS)
        .parameters(RADIX)
        .needs(&[FewRanks])
        .copied_in_place(),
    row(Alltoall, "scattered", alltoall::scattered::schedule, THAKUR)
        .parameters(WINDOWS)
        .any_lengths()
        .copied_in_place()
        .symmetric(Symmetry::Rotation(1)),
    row(ReduceScatter, "recursive_halving", reduce_scatter::recursive_halving::schedule, THAKUR)
        .any_lengths()
        .copied_in_place()
        .in_fixed_order()
        .symmetric(Symmetry::Exchange(1)),
    row(ReduceScatter, "pairwise", reduce_scatter::pairwise::schedule, THAKUR)
        .needs(&[Commutative])
        .any_lengths()
        .copied_in_place()
        .symmetric(Symmetry::Rotation(1)),
    row(ReduceScatter, "circulant", reduce_scatter::circulant::schedule, TRAEFF)
        .needs(&[Commutative])
        .any_lengths()
        .copied_in_place()
        .symmetric(Symmetry::Rotation(1)),
    row(Gather, "linear", gather::linear::schedule, "MPI standard, section on gather")
        .parameters(WINDOWS)
        .any_lengths(),
    row(Gather, "binomial", gather::binomial::schedule, THAKUR),
    row(Scatter, "linear", scatter::linear::schedule, "MPI standard, section on scatter")
        .parameters(WINDOWS)
        .any_lengths(),
    row(Scatter, "binomial", scatter::binomial::schedule, THAKUR),
    row(Scan, "recursive_doubling", scan::recursive_doubling::inclusive, HILLIS),
    row(Scan, "linear", scan::linear::inclusive, "MPI standard, section on scan")
        .parameters(&[Segsize(Cut::Message, &[0, 16 * KIB])])
        .in_fixed_order(),
    row(Exscan, "recursive_doubling", scan::recursive_doubling::exclusive, HILLIS),
    row(Exscan, "linear", scan::linear::exclusive, "MPI standard, section on scan")
        .parameters(&[Segsize(Cut::Message, &[0, 16 * KIB])])
        .in_fixed_order(),
    row(Barrier, "dissemination", barrier::dissemination::schedule, "Hensgen, Finkel & Manber, IJPP 17(1), 1988")
        .parameters(RADIX)
        .symmetric(Symmetry::Rotation(1)),
    row(Barrier, "tree", barrier::tree::schedule, "Mellor-Crummey & Scott, ACM TOCS 9(1), 1991").parameters(HIGH_RADIX),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::variant::Family;

    #[test]
    fn names_are_unique_and_of_the_form_that_is_stored() {
        let mut seen = std::collections::HashSet::new();
        for row in ROWS {
            assert!(
                seen.insert((row.pattern, row.name)),
                "{} stands twice",
                row.name
            );
            let well_named = |c: char| c.is_ascii_lowercase() || c == '_';
            assert!(row.name.chars().all(well_named), "{}", row.name);
            let variants: Vec<_> = row.values().into_iter().map(|v| row.variant(v)).collect();
            let distinct: std::collections::HashSet<_> = variants.iter().collect();
            assert_eq!(distinct.len(), variants.len(), "{variants:?}");
            assert_eq!(variants[0].family, Family::P2p);
            assert_eq!(
                find(row.pattern, row.name).map(|found| found.name),
                Some(row.name)
            );
        }
        assert_eq!(
            find(Pattern::Allreduce, "neighbour_exchange").map(|row| row.name),
            None
        );
    }

    #[test]
    fn every_pattern_has_an_algorithm_that_every_call_may_use() {
        for pattern in Pattern::ALL {
            assert!(rows(pattern).any(|row| row.needs.is_empty()));
        }
    }
}
