//! When a leader does what for its node while it runs a schedule with the other leaders.
//!
//! Before the schedule reads a part of the leader's input, the node combines it; once a part of the output is final, the
//! node gets it, where there is room, and else later: the leader never waits for that, because a rank of its node may
//! still wait for what the leader has yet to combine. The steps of each rank in its node's memory are those of one phase
//! after the other.

use super::phase::Phase;
use crate::algorithm::lengths::Lengths;
use crate::algorithm::program::{Program, Span};

/// From so many bytes on what happens inside the nodes and between them goes on at once.
pub const OVERLAPPED_ABOVE: u64 = 8 << 10;

/// How many pieces the node has to have combined before a schedule reads a span of its input.
pub fn wanted(combining: &Phase, lengths: &Lengths, span: &Span) -> u64 {
    let (first, behind) = (u64::from(span.first), u64::from(span.first + span.len));
    let (start, end) = (lengths.start(first), lengths.start(behind));
    match start < end {
        true => combining.taken_with(start, end),
        false => 0,
    }
}

/// The place of the last operation that writes one of these units of the output.
pub fn final_at(program: &Program, lengths: &Lengths, (start, end): (u64, u64)) -> u32 {
    let all = &program.final_at;
    let begins = |chunk: usize| lengths.start(chunk as u64);
    // The first chunk that ends behind the start.
    let (mut low, mut high) = (0, all.len());
    while low < high {
        let middle = (low + high) / 2;
        if begins(middle + 1) > start {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    let within = (low..all.len()).take_while(|chunk| begins(*chunk) < end);
    within.map(|chunk| all[chunk]).max().unwrap_or(0)
}
