//! What every rank must hold at the end, per pattern.

use super::geometry::{Content, Fault, Geometry, Wrong};
use super::world::World;
use crate::algorithm::pattern::{Holds, Pattern};
use crate::algorithm::schedule::Buffer;

/// Whether a reduction must combine contributions in the order of ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operands {
    /// As for an operation that does not commute.
    InRankOrder,
    AnyOrder,
}

/// The chunk of the message that chunk `index` of the rank's output must be, and whose
/// contributions it must combine; `None` where the standard leaves the content undefined.
fn expected(geometry: &Geometry, rank: usize, index: usize) -> Option<(usize, Vec<u8>)> {
    let (n, parts) = (geometry.n_ranks, geometry.parts_per_block);
    let all = |ranks: std::ops::Range<usize>| ranks.map(|rank| rank as u8).collect::<Vec<_>>();
    let own = rank * parts + index;
    match geometry.pattern {
        Pattern::Allreduce | Pattern::Reduce => Some((index, all(0..n))),
        Pattern::Bcast => Some((index, vec![geometry.root as u8])),
        Pattern::Allgather | Pattern::Gather => Some((index, vec![(index / parts) as u8])),
        Pattern::Alltoall => Some((
            own_of_source(rank, index, parts),
            vec![(index / parts) as u8],
        )),
        Pattern::ReduceScatter => Some((own, all(0..n))),
        Pattern::Scatter => Some((own, vec![geometry.root as u8])),
        Pattern::Scan => Some((index, all(0..rank + 1))),
        Pattern::Exscan => (rank > 0).then(|| (index, all(0..rank))),
        Pattern::Barrier => None,
    }
}

/// In what source `index / parts` sent to `rank`, the chunk is the part of `rank`'s block.
fn own_of_source(rank: usize, index: usize, parts: usize) -> usize {
    rank * parts + index % parts
}

/// The chunk of the message as which chunk `index` of the rank's output is measured.
fn own(geometry: &Geometry, rank: usize, index: usize) -> usize {
    match geometry.pattern.output(rank, geometry.root) {
        Holds::OwnBlock => rank * geometry.parts_per_block + index,
        Holds::Message | Holds::Nothing => index,
    }
}

/// Compares the final state with what the collective promises. The result of an allreduce is one for all ranks, to the
/// bit: all have it by the same operations. Results of the other reductions are of one rank each: of a reduce the
/// root's, of a reduce_scatter the block's, and the prefixes of a scan are all different sums.
pub fn check(world: &World, geometry: &Geometry, operands: Operands) -> Result<(), Fault> {
    for rank in 0..geometry.n_ranks {
        let fault = |at| Fault {
            rank,
            at,
            what: Wrong::Postcondition,
        };
        if geometry.pattern == Pattern::Barrier
            && let Some(other) = (0..geometry.n_ranks).find(|&other| !world.has_heard(rank, other))
        {
            return Err(fault(other));
        }
        if geometry.pattern.output(rank, geometry.root) == Holds::Nothing {
            continue;
        }
        for (index, content) in world.output(rank).iter().enumerate() {
            let Some((chunk, from)) = expected(geometry, rank, index) else {
                continue;
            };
            let right = |content: &Content| {
                let mut found = content.sum.operands();
                if operands == Operands::AnyOrder {
                    found.sort_unstable();
                }
                content.chunk == chunk && found == from
            };
            let held = content.as_ref().is_some_and(right);
            if geometry.place_len(rank, Buffer::Output, own(geometry, rank, index)) > 0 && !held {
                return Err(fault(index));
            }
            let first = world.output(0).get(index).and_then(Option::as_ref);
            if held && geometry.pattern == Pattern::Allreduce && content.as_ref() != first {
                return Err(Fault {
                    what: Wrong::Association,
                    ..fault(index)
                });
            }
        }
    }
    Ok(())
}
