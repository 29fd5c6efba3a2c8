//! Bcast: every rank ends with the root's message.

pub mod binary_tree;
pub mod chain;
pub mod doubling;
pub mod knomial;
pub mod scatter_allgather;

use super::schedule::{Buffer, Part, Step};
use super::tree::Node;

/// Segment by segment from the parent to the children, in `Output`.
pub fn down(
    segments: usize,
    node: Node,
    rank_at: impl Fn(usize) -> usize + Copy + 'static,
) -> impl Iterator<Item = Step> {
    (0..segments).flat_map(move |segment| {
        let chunk = Part::range(Buffer::Output, segment, 1);
        let receive = node
            .parent
            .map(|parent| Step::receive(rank_at(parent), chunk));
        let children = node.children.clone().into_iter();
        let send = children.map(move |child| Step::send(rank_at(child), chunk));
        receive.into_iter().chain(send)
    })
}
