//! A call as all ranks of its communicator see it, whatever this rank's own arguments are.

use crate::collective::Collective;

/// A call of a tuned function. There is one for every call, be its arguments as wrong as they may: what a rank cannot
/// tell counts as the largest, and what the library refuses is taken back afterwards
/// ([`Decider::take_back`](crate::decide::Decider::take_back)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharedCall {
    pub collective: Collective,
    /// The bytes that cells go by (see [`Collective::size`]).
    pub bytes: u64,
}

impl SharedCall {
    /// A call of so many elements. An unknown size, as of types that are too long for the library's own numbers, is
    /// the largest, unless there are no elements. A negative count is the largest, too.
    #[inline(always)]
    pub fn of_elements(collective: Collective, count: i64, type_bytes: Option<u64>) -> SharedCall {
        let count = u64::try_from(count).unwrap_or(u64::MAX);
        SharedCall {
            collective,
            bytes: count.saturating_mul(type_bytes.unwrap_or(u64::MAX)),
        }
    }

    /// A call without a size, or of which no rank knows the others' yet.
    pub const fn without_size(collective: Collective) -> SharedCall {
        SharedCall {
            collective,
            bytes: 0,
        }
    }
}

/// What else all ranks know of a call; asked for only where a variant has to be judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharedDetails {
    /// Elements of a reduction; `None` for other collectives, where it is no shared fact.
    pub count: Option<u64>,
    pub commutative: bool,
    pub builtin_op: bool,
    pub in_place: bool,
    /// Whether all blocks are of one length; true where a collective has no other.
    pub equal_blocks: bool,
    /// Whether a reduction's elements are of a predefined type without holes.
    pub plain_elements: bool,
    /// Whether our own algorithms can combine the elements; true where nothing is combined.
    pub combines: bool,
    /// Whether the result is the same bits in whatever order operands are combined.
    pub exact: bool,
}

impl SharedDetails {
    /// Those of a call that only moves data.
    pub const MOVES: SharedDetails = SharedDetails {
        count: None,
        commutative: true,
        builtin_op: true,
        in_place: false,
        equal_blocks: true,
        plain_elements: true,
        combines: true,
        exact: true,
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_call_has_a_size_and_none_without_elements() {
        let bytes =
            |count, type_bytes| SharedCall::of_elements(Collective::Bcast, count, type_bytes).bytes;
        assert_eq!(bytes(3, Some(8)), 24);
        assert_eq!(
            bytes(0, None),
            0,
            "a type of 4 GiB of which nothing is sent"
        );
        assert_eq!(bytes(1, None), u64::MAX);
        assert_eq!(bytes(-1, Some(4)), u64::MAX);
        assert_eq!(bytes(i64::MAX, Some(1 << 40)), u64::MAX);
    }
}
