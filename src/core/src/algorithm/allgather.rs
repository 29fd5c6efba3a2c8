//! Allgather: every rank ends with every rank's block.

pub mod bruck;
pub mod circulant;
pub mod gather_bcast;
pub mod neighbour_exchange;
pub mod recursive_doubling;
pub mod ring;

use super::schedule::{Buffer, Case, Part, Step};

/// The own block, from the input to its place.
fn own_block(case: Case) -> Step {
    Step::copy(
        Part::range(Buffer::Input, 0, 1),
        Part::range(Buffer::Output, case.rank, 1),
    )
}
