//! What a variant needs of a call, and whether a call has it.

use std::fmt;

use crate::collective::Collective;

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
    /// A buffer of a bcast that may be written to at its root, too: of a constant or a mapped file the other ranks
    /// know nothing, so no call is known to have it.
    WritableRoot,
    /// At most [`FEW_RANKS`]: one of them holds a block of every pair.
    FewRanks,
}

/// That many are few.
pub const FEW_RANKS: u32 = 256;

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
    /// Whether each node has as many ranks.
    pub even_nodes: bool,
    /// Whether operands have to be combined in the order of [`fixed_order`](crate::algorithm::fixed_order).
    pub fixed_order: bool,
}

impl Facts {
    /// A call as most programs make it: predefined elements of 8 bytes and an operation of MPI's, out of
    /// place, the ranks of each node together.
    pub fn usual(collective: Collective, message_bytes: u64, n_ranks: u32, nodes: u32) -> Facts {
        Facts {
            n_ranks,
            nodes,
            message_bytes,
            count: collective.is_reduction().then_some(message_bytes / 8),
            commutative: true,
            builtin_op: true,
            in_place: false,
            ranks_by_node: true,
            equal_blocks: true,
            plain_elements: true,
            even_nodes: true,
            fixed_order: false,
        }
    }
}

impl Facts {
    /// Those of the calls by which each of so many ranks of a node meets its like with its share, one rank of
    /// each node at a time; of the shortest share.
    pub(crate) fn across(&self, lanes: u64) -> Facts {
        let share = |units: u64| units / lanes.max(1);
        let element = |count: u64| self.message_bytes.checked_div(count).unwrap_or(0);
        Facts {
            n_ranks: self.nodes,
            message_bytes: match self.count {
                Some(count) => share(count).saturating_mul(element(count)),
                None => share(self.message_bytes),
            },
            count: self.count.map(share),
            ..*self
        }
    }
}

/// A need that a call does not meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unmet {
    Call(Need),
    /// One of the calls that one rank of each node makes with those of the others.
    Across(Need),
    /// The order in which operands have to be combined here.
    Order,
}

impl fmt::Display for Unmet {
    /// The restriction in words, for the person whose forced variant does not apply.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unmet::Call(need) => f.write_str(need.describe()),
            Unmet::Across(need) => write!(f, "{} between the nodes", need.describe()),
            Unmet::Order => f.write_str("additions in any order"),
        }
    }
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
            Need::WritableRoot => false,
            Need::FewRanks => facts.n_ranks <= FEW_RANKS,
        }
    }

    /// The restriction in words.
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
            Need::WritableRoot => {
                "a root's buffer that all ranks know to be writable (no call has one)"
            }
            Need::FewRanks => "at most 256 ranks",
        }
    }
}
