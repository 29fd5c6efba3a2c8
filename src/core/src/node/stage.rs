//! What a rank does in a collective over the nodes: a pure function from (call, nodes, rank) to stages.
//!
//! A stage is something that the ranks of a node do together in its memory ([`Kind`]), a collective among ranks of
//! which one is on each node, or a copy. The checker of [`whole`](super::whole) runs the stages of all ranks of a
//! communicator, with the steps and the schedules in them. It compares what comes out with what the collective
//! promises; the shim runs the same stages. Variants that read the others' buffers are not defined here.

mod step;

mod direct;
mod lanes;
mod leaders;
mod moves;

use super::collected::{CollectedLayout, moves_blocks};
use super::kind::{self, Kind};
use super::map::NodeMap;
use super::on_nodes::{Crossing, OnNodes};
use crate::collective::Collective;
use direct::{allgather_direct, alltoall_direct};
use lanes::by_lanes;
pub use leaders::{Overlapping, overlapping};
use leaders::{bcast_by_leaders, reduce_by_leaders};
use moves::{allgather_by_leaders, alltoall_by_leaders, exchange_here, gather_here};
use step::INPUT;
pub use step::OUTPUT;
pub use step::{Across, Among, At, Buffer, Call, Inside, Stage};

/// Hands the stages of a call to `visit`, in order.
///
/// Errors: the first of `visit`.
#[inline]
pub fn stages<'a, E>(
    call: &Call,
    map: &'a NodeMap,
    visit: &mut impl FnMut(Stage<'a>) -> Result<(), E>,
) -> Result<(), E> {
    use Collective::{Allgather, Allreduce, Alltoall, Bcast, Reduce};
    match (call.own, call.collective) {
        (OnNodes::Leaders(_), Allgather) => allgather_by_leaders(call, map, visit),
        (OnNodes::Leaders(_), Alltoall) => alltoall_by_leaders(call, map, visit),
        (OnNodes::Leaders(Crossing::Schedule(_)), Reduce) => reduce_by_leaders(call, map, visit),
        (OnNodes::Leaders(Crossing::Schedule(_)), Bcast) => bcast_by_leaders(call, map, visit),
        // With one lane that is a node's first rank, which a root reaches over its node's memory: the library knows no
        // other leaders in a call with another root.
        (OnNodes::Leaders(crossing), _) => by_lanes(call, map, (crossing, 1), visit),
        (OnNodes::Lanes(crossing), _) => by_lanes(call, map, (crossing, map.lanes), visit),
        (OnNodes::Direct(carriers), Allgather) => allgather_direct(call, map, carriers, visit),
        (OnNodes::Direct(_), _) => alltoall_direct(call, map, visit),
        // On one node.
        (_, Allgather) => gather_here(call, map, visit),
        (_, Alltoall) => exchange_here(call, map, INPUT, visit),
        (_, collective) => {
            let (bytes, n) = (call.bytes, map.n_here());
            let root = map.place_of[call.root];
            let (kind, source) = match collective {
                Allreduce => (kind::allreduce(bytes, n), INPUT),
                Reduce => (kind::reduce(bytes, n, root), INPUT),
                _ => (Kind::Bcast { root }, OUTPUT),
            };
            visit(call.whole(kind, source, OUTPUT))
        }
    }
}

/// Units of [`Buffer::Spare`] that the stages of a call need on this rank.
pub fn spare_units(call: &Call, map: &NodeMap) -> u64 {
    match (call.own, call.own.crossing()) {
        // What the node has combined, and the result.
        (_, Some(Crossing::Library)) if call.collective == Collective::Reduce => {
            call.block.saturating_mul(2)
        }
        // The library may write into the buffer of a bcast at its root.
        (_, Some(Crossing::Library)) if call.collective == Collective::Bcast => {
            match map.here()[map.place] == call.root {
                true => call.block,
                false => 0,
            }
        }
        (_, Some(_)) if call.collective.is_reduction() => call.block,
        (OnNodes::Leaders(_), _) if moves_blocks(call.collective) => {
            CollectedLayout::new(map, call.collective, call.block).room()
        }
        // The input of a call in place. Whether a call is in place is each rank's own affair, where there are others.
        (OnNodes::Direct(_), _) if call.collective == Collective::Alltoall => {
            call.block.saturating_mul(map.n_ranks() as u64)
        }
        _ => 0,
    }
}
