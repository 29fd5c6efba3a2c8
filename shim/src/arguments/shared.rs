//! What all ranks of a communicator know of a call, whatever this rank's arguments are. Where MPI says that an
//! argument has no meaning on a rank, it is not looked at.

use std::ffi::c_void;

use colltune_core::catalogue::Own;
use colltune_core::classify::Layout;
use colltune_core::collective::Collective;
use colltune_core::decide::Blocks;
use colltune_core::decide::call::{SharedCall, SharedDetails};
use colltune_core::decide::rooms::Class;

use super::lists::List;
use super::{Arguments, Counted, Reduction, Side, UnevenSide};
use crate::abi::{bits, is_in_place, may_be_operation};
use crate::world::World;

/// Stands for an invalid count.
const WRONG: i64 = -1;

/// The sum of a list as a count; a wrong one where the list is.
#[inline]
pub fn total(list: List, n_ranks: u32) -> i64 {
    // SAFETY: MPI asks for a count for each rank.
    let sum = unsafe { list.sum(n_ranks as usize) };
    sum.map_or(WRONG, |sum| i64::try_from(sum).unwrap_or(i64::MAX))
}

/// One block, as this rank knows it; its signature is the same on all ranks.
#[inline(always)]
pub fn block(collective: Collective, send: Side, recv: Side) -> Side {
    match collective {
        // The receive side has a meaning at the root alone, and there in place only it has one.
        Collective::Gather if is_in_place(send.start) => recv,
        Collective::Gather => send,
        Collective::Scatter if is_in_place(recv.start) => send,
        _ => recv,
    }
}

impl Reduction {
    /// The elements of all blocks.
    #[inline(always)]
    pub fn total(&self, collective: Collective, n_ranks: u32) -> i64 {
        match (self.count, collective) {
            (Counted::All(count), Collective::ReduceScatterBlock) => {
                count.saturating_mul(n_ranks.into())
            }
            (Counted::All(count), _) => count,
            (Counted::Each(counts), _) => total(counts, n_ranks),
        }
    }

    pub fn has_no_operation(&self, world: &World) -> bool {
        [0, bits(world.handles.op_null)].contains(&bits(self.op)) || !may_be_operation(self.op)
    }

    /// Whether its result cannot depend on the order of operands.
    pub fn is_exact(&self, world: &World) -> bool {
        let facts = world.types.get(self.datatype);
        facts.is_some_and(|facts| facts.exact) && world.ops.get(self.op).is_some()
    }

    fn details(&self, world: &World, collective: Collective, n_ranks: u32) -> SharedDetails {
        let builtin_op = world.ops.get(self.op).is_some();
        let facts = world.types.get(self.datatype);
        let is_operation = !self.has_no_operation(world);
        let count = self.total(collective, n_ranks);
        let shared = SharedDetails {
            count: Some(u64::try_from(count).unwrap_or(u64::MAX)),
            commutative: builtin_op || (is_operation && world.is_commutative(self.op)),
            builtin_op,
            plain_elements: facts.is_some(),
            combines: world.combines(self.datatype, self.op),
            exact: self.is_exact(world),
            ..SharedDetails::MOVES
        };
        let Counted::Each(counts) = self.count else {
            return shared;
        };
        let n = if count == WRONG { 0 } else { n_ranks as usize };
        // SAFETY: MPI asks for a count for each rank, the same on all ranks.
        let all = || (0..n).map(|rank| unsafe { counts.at(rank) });
        // Where a rank gets nothing the libraries' algorithms are left alone: such calls count as in place.
        SharedDetails {
            equal_blocks: all().next() == all().max() && all().max() == all().min(),
            in_place: all().any(|count| count == 0),
            ..shared
        }
    }
}

impl Arguments {
    /// The call as all ranks of a communicator of so many see it.
    #[inline(always)]
    pub fn shared(&self, world: &World, collective: Collective, n_ranks: u32) -> SharedCall {
        // Between groups what a rank's place gives no meaning may be anything, and may not be asked.
        if n_ranks == 0 {
            return SharedCall::without_size(collective);
        }
        let of = |count, datatype| {
            SharedCall::of_elements(collective, count, world.type_bytes(datatype))
        };
        match *self {
            Arguments::Reduction(reduction) => {
                of(reduction.total(collective, n_ranks), reduction.datatype)
            }
            Arguments::Bcast { all, .. } => of(all.count, all.datatype),
            Arguments::Blocks { send, recv, .. } => {
                let block = block(collective, send, recv);
                of(block.count, block.datatype)
            }
            Arguments::Uneven {
                recv: UnevenSide::Each(recv),
                ..
            } if collective == Collective::Allgatherv => {
                // In bytes the counts are the same on all ranks.
                let type_bytes = recv.types.one().and_then(|one| world.type_bytes(one));
                let count = total(recv.counts, n_ranks);
                let all = SharedCall::of_elements(collective, count, type_bytes);
                SharedCall {
                    bytes: all.bytes / u64::from(n_ranks.max(1)),
                    ..all
                }
            }
            Arguments::Uneven { .. } | Arguments::Nothing => SharedCall::without_size(collective),
        }
    }

    /// What else all ranks know of it.
    #[inline]
    pub fn details(&self, world: &World, collective: Collective, n_ranks: u32) -> SharedDetails {
        use Collective::{Exscan, Gather, Gatherv, Reduce, ReduceScatter, Scan, Scatter, Scatterv};
        // Elsewhere in place is the root's alone to know, or each rank's own affair.
        let is_known = !matches!(
            collective,
            Exscan | Gather | Gatherv | Reduce | ReduceScatter | Scan | Scatter | Scatterv
        );
        let shared = match self {
            Arguments::Reduction(reduction) => reduction.details(world, collective, n_ranks),
            _ => SharedDetails::MOVES,
        };
        SharedDetails {
            in_place: shared.in_place || (is_known && is_in_place(self.sent())),
            ..shared
        }
    }

    /// The blocks that this rank receives, where each rank knows its own counts alone. The arguments are right.
    pub fn own_blocks(&self, world: &World, n_ranks: u32) -> Blocks {
        let bytes = |side: Side| {
            let bytes = world.type_bytes(side.datatype).unwrap_or(0);
            u64::try_from(side.count).unwrap_or(0).saturating_mul(bytes)
        };
        let Arguments::Uneven {
            recv: UnevenSide::Each(listed),
            ..
        } = *self
        else {
            return Blocks::default();
        };
        if listed.counts.is_null() || listed.types.is_null() {
            return Blocks::default();
        }
        let (mut all, mut longest) = (0u64, 0);
        for rank in 0..n_ranks as usize {
            // SAFETY: MPI asks for a count and a type for each rank.
            let (count, datatype) = unsafe { (listed.counts.at(rank), listed.types.at(rank)) };
            if count > 0 {
                let start = listed.start;
                let block = bytes(Side {
                    start,
                    count,
                    datatype,
                });
                all = all.saturating_add(block);
                longest = longest.max(block);
            }
        }
        Blocks {
            mean: all.div_ceil(n_ranks.max(1).into()),
            longest,
        }
    }

    /// The send buffer; null where there is none.
    fn sent(&self) -> *const c_void {
        match *self {
            Arguments::Reduction(reduction) => reduction.send,
            Arguments::Blocks { send, .. }
            | Arguments::Uneven {
                send: UnevenSide::One(send),
                ..
            } => send.start,
            Arguments::Uneven {
                send: UnevenSide::Each(send),
                ..
            } => send.start,
            Arguments::Bcast { .. } | Arguments::Nothing => std::ptr::null(),
        }
    }

    /// The calls of a variant that are alike in the room that they need. `None` where this one stands for itself: an
    /// application's own elements may lie as far apart on a rank as it likes, and otherwise in each call.
    #[inline(always)]
    pub fn class(
        &self,
        world: &World,
        own: Own,
        (variant, bytes): (u16, u64),
        layout: Layout,
    ) -> Option<Class> {
        if let Arguments::Reduction(Reduction { datatype, .. }) = *self
            && world.types.get(datatype).is_none()
            && world.pairs.get(datatype).is_none()
        {
            return None;
        }
        Some(Class {
            variant,
            root: match own.depends_on_root() {
                true => self.root() as u32,
                false => 0,
            },
            bytes,
            any_root_is_alike: own
                .is_alike_with_any_root(layout.n_ranks as usize, layout.nodes as usize),
        })
    }
}
