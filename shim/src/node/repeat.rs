//! A call like the last one, where nothing is left to decide: allreduces of a cache line on one node.
//!
//! Between two cores a line travels in about 130 ns, and finding out what to do with it took nearly as long.
//! So a communicator remembers its last such call, and one with the same arguments that is not sampled
//! goes straight to the lines. Whatever is different takes the long way, which leaves the same traces.

use std::ffi::c_int;

use colltune_core::catalogue::{OnNodes, Own};
use colltune_core::collective::Collective;
use colltune_core::node::layout::LINE_BYTES;

use super::elements::Sum;
use super::memory::NodeMemory;
use super::patience::after_call;
use super::short::Contribution;
use crate::abi::{self, Comm, bits, is_in_place};
use crate::arguments::{Counted, Reduction, View};
use crate::p2p::Schedules;
use crate::private;
use crate::world::World;

/// What was found out about the last call.
#[derive(Clone, Copy)]
pub struct Repeat {
    datatype: u64,
    op: u64,
    count: i64,
    sum: Option<Sum>,
    pub bytes: usize,
    /// The cell's place among the communicator's of this collective, and the variant among its own.
    pub place: usize,
    pub variant: u16,
}

impl Repeat {
    /// What is to be remembered of a call that was right; `None` where it is none of these.
    #[inline]
    pub fn of(world: &World, own: Own, view: &View, place: usize, variant: u16) -> Option<Repeat> {
        let (Own::Node(OnNodes::Alone), Collective::Allreduce) = (own, view.collective) else {
            return None;
        };
        let (datatype, op) = (view.unit.datatype, view.unit.combine?.op);
        // Of a type without holes, so that elements are their bytes.
        let facts = world.types.get(datatype)?;
        (view.bytes <= LINE_BYTES as u64).then_some(Repeat {
            datatype: bits(datatype),
            op: bits(op),
            count: view.block as i64,
            sum: Sum::of(world, facts, op),
            bytes: view.bytes as usize,
            place,
            variant,
        })
    }

    /// Whether a call has the arguments that the last one had, and buffers that need no check.
    #[inline(always)]
    pub fn is_like(&self, operands: &Reduction) -> bool {
        let (send, recv) = (operands.send, operands.recv);
        bits(operands.datatype) == self.datatype
            && bits(operands.op) == self.op
            && matches!(operands.count, Counted::All(count) if count == self.count)
            && !send.is_null()
            && !recv.is_null()
            && send != recv.cast_const()
            && !is_in_place(recv)
    }

    /// Runs it.
    ///
    /// # Safety
    /// The buffers are those of a right call like the last one.
    #[inline(always)]
    pub unsafe fn run(
        &self,
        world: &World,
        comm: Comm,
        (schedules, node): (&mut Schedules, &mut NodeMemory),
        operands: &Reduction,
    ) -> c_int {
        schedules.count_call();
        let NodeMemory::Open(open) = node else {
            unreachable!("a call like this ran before");
        };
        let Some(segment) = &mut open.segment else {
            unreachable!("several ranks on one node have a segment");
        };
        let own = match is_in_place(operands.send) {
            true => operands.recv.cast_const(),
            false => operands.send,
        };
        let contribution = Contribution {
            units: self.count as usize,
            bytes: self.bytes,
            sum: self.sum,
            datatype: operands.datatype,
            op: operands.op,
        };
        let result = segment.begin(world).and_then(|under_way| {
            // SAFETY: the caller promises the buffers of a right call that is like the last one: the contribution
            // lies at one, and there is room for the result at the other.
            let result = unsafe {
                segment.combine_lines(world, contribution, own.cast(), operands.recv.cast())
            };
            segment.end(under_way);
            result
        });
        after_call(world, schedules, false);
        match result {
            Ok(()) => abi::SUCCESS,
            Err(code) => private::report(world, comm, code),
        }
    }
}
