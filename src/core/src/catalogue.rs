//! The catalogue: every variant of every collective, in one table per MPI library.
//!
//! A new algorithm is one row; those of our own have theirs in [`registry`], for every library
//! alike. Ids, names and restrictions are those of the libraries' sources:
//! Open MPI `ompi/mca/coll/tuned` and `coll/base` (4.1.4), MPICH `src/mpi/coll/coll_algorithms.txt`
//! (4.0.2). A restriction stands here wherever the library would silently run something else, so
//! that a silent fallback never labels a sample.

use crate::algorithm::pattern::Pattern;
use crate::algorithm::registry::{self, Cut, Parameter, Row, Values};
use crate::collective::Collective;
use crate::composition::{self, Composition};
use crate::library::{Abi, Library};
use crate::node::between;
use crate::variant::{DEFAULT, Family, VariantName};

/// What a variant needs of a call; every need is a fact that all ranks of the communicator share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// A commutative operation.
    Commutative,
    /// An operation that MPI predefines.
    BuiltinOp,
    /// At least as many elements as ranks.
    CountAtLeastRanks,
    /// At least as many elements as the largest power of two that is not above the ranks.
    CountAtLeastPowerOfTwo,
    /// At least one byte for each rank.
    BytesAtLeastRanks,
    /// A message larger than the segment, else it would be the variant without segments.
    MessageAboveSegment,
    /// A message of at least two segments.
    TwoSegments,
    /// At least one segment for each rank.
    SegmentPerRank,
    /// More than one segment for each rank, else it would be the variant without segments.
    ShareAboveSegment,
    /// At least one byte: nothing of ours runs, and is timed, where there is nothing to do.
    SomeBytes,
    PowerOfTwoRanks,
    EvenRanks,
    /// At least two ranks; every family but `default` needs them.
    TwoRanks,
    ExactlyTwoRanks,
    AboveTwoRanks,
    NotInPlace,
    InPlace,
    /// Several nodes, with several ranks on at least one of them.
    Hierarchy,
    /// Ranks of a node stand together in rank order.
    RanksByNode,
    /// Blocks of one length, on all ranks.
    EqualBlocks,
    /// Elements of a predefined type without holes.
    PlainElements,
    /// All ranks on one node.
    OneNode,
}

/// The shared facts of one call that needs are checked against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts {
    pub n_ranks: u32,
    pub nodes: u32,
    pub message_bytes: u64,
    /// Elements of a reduction; `None` for other collectives, where it is no shared fact.
    pub count: Option<u64>,
    pub commutative: bool,
    pub builtin_op: bool,
    pub in_place: bool,
    /// Whether the ranks of each node stand together in rank order.
    pub ranks_by_node: bool,
    /// Whether all blocks are of one length; true where a collective has no other.
    pub equal_blocks: bool,
    /// Whether a reduction's elements are of a predefined type without holes.
    pub plain_elements: bool,
}

impl Need {
    /// Whether a call has what is needed. Total: no input overflows or panics.
    pub fn met(self, facts: &Facts, segsize: u64) -> bool {
        let n = u64::from(facts.n_ranks);
        let count = facts.count.unwrap_or(0);
        let bytes = facts.message_bytes;
        match self {
            Need::Commutative => facts.commutative,
            Need::BuiltinOp => facts.builtin_op,
            Need::CountAtLeastRanks => count >= n,
            Need::CountAtLeastPowerOfTwo => count >= n.checked_ilog2().map_or(0, |log| 1 << log),
            Need::BytesAtLeastRanks => bytes >= n,
            Need::MessageAboveSegment => bytes > segsize,
            Need::TwoSegments => bytes >= segsize.saturating_mul(2).max(2),
            Need::SegmentPerRank => bytes >= segsize.saturating_mul(n),
            Need::ShareAboveSegment => bytes > segsize.saturating_mul(n),
            Need::SomeBytes => bytes > 0,
            Need::PowerOfTwoRanks => n.is_power_of_two(),
            Need::EvenRanks => n.is_multiple_of(2),
            Need::TwoRanks => n >= 2,
            Need::ExactlyTwoRanks => n == 2,
            Need::AboveTwoRanks => n > 2,
            Need::NotInPlace => !facts.in_place,
            Need::InPlace => facts.in_place,
            Need::Hierarchy => facts.nodes > 1 && facts.n_ranks > facts.nodes,
            Need::RanksByNode => facts.ranks_by_node,
            Need::EqualBlocks => facts.equal_blocks,
            Need::PlainElements => facts.plain_elements,
            Need::OneNode => facts.nodes == 1,
        }
    }

    /// The restriction in words, for the person whose forced variant does not apply.
    pub const fn describe(self) -> &'static str {
        match self {
            Need::Commutative => "a commutative operation",
            Need::BuiltinOp => "a predefined operation",
            Need::CountAtLeastRanks => "at least as many elements as ranks",
            Need::CountAtLeastPowerOfTwo => {
                "at least as many elements as the largest power of two below the ranks"
            }
            Need::BytesAtLeastRanks => "at least one byte per rank",
            Need::MessageAboveSegment => "a message larger than one segment",
            Need::TwoSegments => "a message of at least two segments",
            Need::SegmentPerRank => "a message of at least one segment per rank",
            Need::ShareAboveSegment => "a message of more than one segment per rank",
            Need::SomeBytes => "a message of at least one byte",
            Need::PowerOfTwoRanks => "a power-of-two number of ranks",
            Need::EvenRanks => "an even number of ranks",
            Need::TwoRanks => "at least two ranks",
            Need::ExactlyTwoRanks => "exactly two ranks",
            Need::AboveTwoRanks => "more than two ranks",
            Need::NotInPlace => "a call that is not in place",
            Need::InPlace => "a call in place",
            Need::Hierarchy => "several nodes with several ranks on one of them",
            Need::RanksByNode => "ranks numbered node by node",
            Need::EqualBlocks => "blocks of one length",
            Need::PlainElements => "elements of a predefined type without holes",
            Need::OneNode => "all ranks on one node",
        }
    }
}

/// How the library is told to run a native variant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Steering {
    /// Nothing to tell.
    None,
    /// `coll_tuned_<collective>_algorithm`, captured when a communicator is made.
    OpenMpi {
        algorithm: i32,
        /// The algorithm runs other collectives of the same communicator inside, so no other
        /// collective may be steered on the communicator that carries it.
        alone: bool,
    },
    /// `MPIR_CVAR_<COLLECTIVE>_INTRA_ALGORITHM`, read at each call, by the name of its value.
    Mpich { algorithm: &'static str },
}

/// What runs a variant that is none of the library's algorithms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Own {
    /// A schedule over point-to-point messages.
    Schedule(Scheduled),
    /// Shared memory inside the nodes.
    Node(OnNodes),
    /// The library's other collectives.
    Composed(Composition),
}

impl Own {
    /// The schedule, of a variant that is nothing else.
    pub fn schedule(&self) -> Option<&Scheduled> {
        match self {
            Own::Schedule(scheduled) => Some(scheduled),
            Own::Node(_) | Own::Composed(_) => None,
        }
    }
}

/// A collective over shared memory inside each node, and over messages between the nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OnNodes {
    /// What one rank of each node runs with those of the others; `None` on a single node.
    pub between: Option<Scheduled>,
}

/// A schedule of our own with its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scheduled {
    /// Place in [`registry::ROWS`].
    place: usize,
    pub values: Values,
}

impl Scheduled {
    pub fn row(&self) -> &'static Row {
        &registry::ROWS[self.place]
    }

    /// The place of its row in [`registry::ROWS`].
    pub fn place(&self) -> usize {
        self.place
    }
}

/// One way to run one collective.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variant {
    pub collective: Collective,
    pub name: VariantName,
    pub steering: Steering,
    /// What runs it where it is none of the library's algorithms.
    pub own: Option<Own>,
    pub needs: Vec<Need>,
}

impl Variant {
    /// The first need that a call does not meet; `None` when the variant applies.
    pub fn unmet(&self, facts: &Facts) -> Option<Need> {
        let segsize = self.name.segsize.unwrap_or(0);
        if self.name.family != Family::Default && facts.n_ranks < 2 {
            return Some(Need::TwoRanks);
        }
        self.needs
            .iter()
            .copied()
            .find(|need| !need.met(facts, segsize))
    }

    pub fn applies(&self, facts: &Facts) -> bool {
        self.unmet(facts).is_none()
    }

    /// Whether some call with at most `bytes_max` bytes on `n_ranks` ranks of `nodes` nodes could
    /// run this variant. No need becomes unmet when a message grows, so the largest decides.
    pub fn possible(&self, n_ranks: u32, nodes: u32, bytes_max: u64) -> bool {
        [false, true].into_iter().any(|in_place| {
            self.applies(&Facts {
                n_ranks,
                nodes,
                message_bytes: bytes_max,
                count: Some(bytes_max),
                commutative: true,
                builtin_op: true,
                in_place,
                ranks_by_node: true,
                equal_blocks: true,
                plain_elements: true,
            })
        })
    }
}

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

use Collective::{
    Allgather, Allgatherv, Allreduce, Alltoall, Alltoallv, Barrier, Bcast, Exscan, Gather, Reduce,
    ReduceScatter, ReduceScatterBlock, Scan, Scatter,
};
use Need::{
    AboveTwoRanks, BuiltinOp, BytesAtLeastRanks, Commutative, CountAtLeastPowerOfTwo,
    CountAtLeastRanks, EqualBlocks, EvenRanks, ExactlyTwoRanks, Hierarchy, InPlace,
    MessageAboveSegment, NotInPlace, OneNode, PlainElements, PowerOfTwoRanks, RanksByNode,
    SegmentPerRank, ShareAboveSegment, SomeBytes, TwoSegments,
};

/// Open MPI's `coll/tuned`. Its forced algorithms do not check for commutative operations
/// (open-mpi/ompi issues 7765 and 8010), so the needs here do. It has nothing for gatherv, scatterv
/// and alltoallw. `linear_sync` has no segments here: each rank would cut its block by its own type.
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

/// MPICH's intra-communicator algorithms as of 4.0, by the names of `..._INTRA_ALGORITHM`. Where a
/// call has one alone, it is what `default` runs, and has no row: gather(v), scatter(v), exscan,
/// alltoallv and alltoallw. `noncommutative` steps over elements by their true extent; `pairwise` copies
/// overlapping memory in place, and as in Open MPI the rest of the buffer differs there.
const MPICH: &[(Collective, &str, &[Need])] = &[
    (Allreduce, "smp", &[Commutative, Hierarchy]),
    (Allreduce, "recursive_doubling", &[]),
    (
        Allreduce,
        "reduce_scatter_allgather",
        &[BuiltinOp, CountAtLeastPowerOfTwo],
    ),
    (Bcast, "binomial", &[]),
    (Bcast, "smp", &[Hierarchy]),
    (
        Bcast,
        "scatter_recursive_doubling_allgather",
        &[BytesAtLeastRanks],
    ),
    (Bcast, "scatter_ring_allgather", &[BytesAtLeastRanks]),
    (Allgather, "brucks", &[]),
    (Allgather, "recursive_doubling", &[PowerOfTwoRanks]),
    (Allgather, "ring", &[]),
    (Alltoall, "brucks", &[NotInPlace]),
    (Alltoall, "pairwise", &[NotInPlace]),
    (Alltoall, "pairwise_sendrecv_replace", &[InPlace]),
    (Alltoall, "scattered", &[NotInPlace]),
    (Reduce, "binomial", &[]),
    (Reduce, "smp", &[Commutative, Hierarchy]),
    (
        Reduce,
        "reduce_scatter_gather",
        &[BuiltinOp, CountAtLeastPowerOfTwo],
    ),
    (Allgatherv, "brucks", &[]),
    (Allgatherv, "recursive_doubling", &[PowerOfTwoRanks]),
    (Allgatherv, "ring", &[]),
    (
        ReduceScatter,
        "noncommutative",
        &[NotInPlace, PowerOfTwoRanks, EqualBlocks, PlainElements],
    ),
    (ReduceScatter, "pairwise", &[Commutative, NotInPlace]),
    (ReduceScatter, "recursive_doubling", &[NotInPlace]),
    (
        ReduceScatter,
        "recursive_halving",
        &[Commutative, NotInPlace],
    ),
    (
        ReduceScatterBlock,
        "noncommutative",
        &[NotInPlace, PowerOfTwoRanks, PlainElements],
    ),
    (ReduceScatterBlock, "pairwise", &[Commutative, NotInPlace]),
    (ReduceScatterBlock, "recursive_doubling", &[NotInPlace]),
    (
        ReduceScatterBlock,
        "recursive_halving",
        &[Commutative, NotInPlace],
    ),
    (Scan, "smp", &[Commutative, Hierarchy, RanksByNode]),
    (Scan, "recursive_doubling", &[]),
    (Barrier, "dissemination", &[]),
    (Barrier, "smp", &[Hierarchy]),
];

/// Every variant of `collective` that `library` can run, `default` first.
pub fn variants(library: Library, collective: Collective) -> Vec<Variant> {
    let default = Variant {
        collective,
        name: VariantName::default_choice(),
        steering: Steering::None,
        own: None,
        needs: Vec::new(),
    };
    let native = match library.abi {
        Abi::OpenMpi => openmpi(collective),
        Abi::Mpich => mpich(collective),
    };
    std::iter::once(default)
        .chain(native)
        .chain(mockups(collective))
        .chain(p2p(collective))
        .chain(on_nodes(collective))
        .collect()
}

/// Every variant of every collective that `library` can run.
pub fn all(library: Library) -> Vec<Variant> {
    Collective::ALL
        .into_iter()
        .flat_map(|collective| variants(library, collective))
        .collect()
}

/// The variant of that name, if `library` has it.
pub fn find(library: Library, collective: Collective, name: &str) -> Option<Variant> {
    variants(library, collective)
        .into_iter()
        .find(|variant| variant.name.to_string() == name)
}

fn openmpi(collective: Collective) -> Vec<Variant> {
    let rows = OPENMPI.iter().filter(|row| row.collective == collective);
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
        })
    })
    .collect()
}

fn mpich(collective: Collective) -> Vec<Variant> {
    let rows = MPICH.iter().filter(|(of, _, _)| *of == collective);
    rows.map(|&(_, algorithm, needs)| Variant {
        collective,
        name: VariantName::native(algorithm, None),
        steering: Steering::Mpich { algorithm },
        own: None,
        needs: needs.to_vec(),
    })
    .collect()
}

/// Compositions of the library's collectives, for every library alike.
fn mockups(collective: Collective) -> impl Iterator<Item = Variant> {
    composition::rows(collective).map(move |row| Variant {
        collective,
        name: VariantName {
            family: Family::Mockup,
            ..VariantName::native(row.name, None)
        },
        steering: Steering::None,
        own: Some(Own::Composed(row.composition)),
        needs: std::iter::once(SomeBytes)
            .chain(row.needs.iter().copied())
            .collect(),
    })
}

/// Our own schedules, for every library alike.
fn p2p(collective: Collective) -> Vec<Variant> {
    let pattern = Pattern::of(collective);
    let rows = registry::ROWS.iter().enumerate();
    rows.filter(|(_, row)| Some(row.pattern) == pattern)
        .flat_map(|(place, row)| {
            row.values()
                .into_iter()
                .map(move |values| scheduled(collective, place, row, values))
        })
        .collect()
}

fn scheduled(collective: Collective, place: usize, row: &Row, values: Values) -> Variant {
    let mut name = VariantName {
        family: Family::P2p,
        algorithm: row.name.to_owned(),
        segsize: None,
        radix: None,
        window: None,
    };
    let mut needs = vec![SomeBytes];
    needs.extend_from_slice(row.needs);
    for parameter in row.parameters {
        match parameter {
            Parameter::Segsize(..) if values.segsize == 0 => {}
            Parameter::Segsize(cut, _) => {
                name.segsize = Some(values.segsize);
                needs.push(match cut {
                    Cut::Message => MessageAboveSegment,
                    Cut::Share => ShareAboveSegment,
                });
            }
            Parameter::Radix(_) => name.radix = u32::try_from(values.radix).ok(),
            Parameter::Window(_) => name.window = u32::try_from(values.window).ok(),
        }
    }
    Variant {
        collective,
        name,
        steering: Steering::None,
        own: Some(Own::Schedule(Scheduled { place, values })),
        needs,
    }
}

/// Shared memory inside the nodes, for every library alike.
fn on_nodes(collective: Collective) -> Vec<Variant> {
    let name = |algorithm: String, segsize: u64| VariantName {
        family: Family::Node,
        algorithm,
        segsize: (segsize > 0).then_some(segsize),
        radix: None,
        window: None,
    };
    let variant = |name, between, needs| Variant {
        collective,
        name,
        steering: Steering::None,
        own: Some(Own::Node(OnNodes { between })),
        needs,
    };
    // A barrier has no bytes and is none the less for it.
    let some = || (collective != Barrier).then_some(SomeBytes);
    let needs = |need| some().into_iter().chain([need]).collect::<Vec<_>>();
    let alone = between::on_one_node(collective)
        .then(|| variant(name("shm".to_owned(), 0), None, needs(OneNode)));
    let several = between::between(collective).iter();
    let several = several.filter_map(|&(algorithm, segsize)| {
        let pattern = between::pattern(collective)?;
        let place = registry::ROWS
            .iter()
            .position(|row| row.pattern == pattern && row.name == algorithm)?;
        let row = &registry::ROWS[place];
        let values = row.values().into_iter().find(|v| v.segsize == segsize)?;
        let mut needs = needs(Hierarchy);
        // The ranks of a node need not follow one another, so operands change places.
        needs.extend(collective.is_reduction().then_some(Commutative));
        let between = Some(Scheduled { place, values });
        Some(variant(
            name(format!("shm+{algorithm}"), segsize),
            between,
            needs,
        ))
    });
    alone.into_iter().chain(several).collect()
}

/// Whether `name` is the library's own choice.
pub fn is_default(name: &str) -> bool {
    name == DEFAULT
}

#[cfg(test)]
mod tests {
    use super::*;

    fn libraries() -> [Library; 2] {
        [
            Library {
                abi: Abi::OpenMpi,
                version: (4, 1, 4),
            },
            Library {
                abi: Abi::Mpich,
                version: (4, 0, 2),
            },
        ]
    }

    const FACTS: Facts = Facts {
        n_ranks: 8,
        nodes: 4,
        message_bytes: 4096,
        count: Some(512),
        commutative: true,
        builtin_op: true,
        in_place: false,
        ranks_by_node: true,
        equal_blocks: true,
        plain_elements: true,
    };

    #[test]
    fn names_are_unique_readable_and_begin_with_default() {
        for library in libraries() {
            for collective in Collective::ALL {
                let variants = variants(library, collective);
                assert!(is_default(&variants[0].name.to_string()));
                let names: std::collections::BTreeSet<_> =
                    variants.iter().map(|v| v.name.to_string()).collect();
                assert_eq!(names.len(), variants.len());
                for variant in &variants {
                    assert_eq!(
                        variant.name.to_string().parse::<VariantName>().unwrap(),
                        variant.name
                    );
                    assert_eq!(
                        find(library, collective, &variant.name.to_string()).as_ref(),
                        Some(variant)
                    );
                }
            }
        }
    }

    #[test]
    fn the_default_applies_to_every_call_and_natives_to_none_on_one_rank() {
        for library in libraries() {
            for variant in all(library) {
                let lone = Facts {
                    n_ranks: 1,
                    nodes: 1,
                    ..FACTS
                };
                assert_eq!(
                    variant.applies(&lone),
                    variant.name.family == Family::Default
                );
            }
        }
    }

    #[test]
    fn needs_are_total_and_mean_what_they_say() {
        let applies = |name: &str, facts: Facts| {
            let library = libraries()[0];
            let collective = if facts.count.is_some() {
                Allreduce
            } else {
                Bcast
            };
            find(library, collective, name).unwrap().applies(&facts)
        };
        assert!(applies("native:ring", FACTS));
        assert!(!applies(
            "native:ring",
            Facts {
                count: Some(7),
                ..FACTS
            }
        ));
        assert!(!applies(
            "native:ring",
            Facts {
                commutative: false,
                ..FACTS
            }
        ));
        assert!(applies(
            "native:rabenseifner",
            Facts {
                n_ranks: 7,
                count: Some(4),
                ..FACTS
            }
        ));
        assert!(!applies(
            "native:rabenseifner",
            Facts {
                n_ranks: 7,
                count: Some(3),
                ..FACTS
            }
        ));
        assert!(!applies(
            "native:segmented_ring:segsize=64KiB",
            Facts {
                message_bytes: 8 * 65536 - 1,
                ..FACTS
            }
        ));
        assert!(applies(
            "native:segmented_ring:segsize=64KiB",
            Facts {
                message_bytes: 8 * 65536,
                ..FACTS
            }
        ));
        let bcast = Facts {
            count: None,
            ..FACTS
        };
        assert!(!applies("native:pipeline:segsize=4KiB", bcast));
        assert!(applies(
            "native:pipeline:segsize=4KiB",
            Facts {
                message_bytes: 4097,
                ..bcast
            }
        ));
        for n_ranks in [0, 1, 2, u32::MAX] {
            for value in [0, 1, u64::MAX] {
                let facts = Facts {
                    n_ranks,
                    message_bytes: value,
                    count: Some(value),
                    ..FACTS
                };
                for library in libraries() {
                    for variant in all(library) {
                        let _ = variant.applies(&facts);
                    }
                }
            }
        }
    }
}
