//! The application's buffers, datatypes and operations, as far as they can be asked locally.

use std::ffi::c_void;

use super::lists::{Listed, Located};
use super::{Combine, Input, Members, Memory, Side, Typed, Unit};
use crate::abi::{self, Aint, Datatype, Op, is_in_place};
use crate::world::World;

impl World {
    /// `None` for a buffer that cannot be one. The null pointer is MPI_BOTTOM, which only derived
    /// types can stand on, or that of a buffer without elements.
    pub fn memory(&self, start: *mut c_void, count: i64, datatype: Datatype) -> Option<Memory> {
        let plain = self.types.get(datatype).is_some();
        if is_in_place(start) || (start.is_null() && plain && count > 0) {
            return None;
        }
        if !plain && !self.is_usable(datatype) {
            return None;
        }
        Some(Memory {
            start: start.cast(),
            count: u64::try_from(count).ok()?,
            datatype,
            plain,
        })
    }

    /// This rank's block of a buffer with one for each rank.
    pub fn own_block(&self, all: Memory, members: Members) -> Memory {
        let count = all.count / members.n_ranks as u64;
        let stride = self.stride(all.datatype).unwrap_or(0);
        let skip = (members.rank as u64 * count) as isize * stride;
        let start = all.start.wrapping_offset(skip);
        Memory {
            start,
            count,
            ..all
        }
    }

    /// A buffer of listed blocks; `None` where it cannot be one.
    pub fn located(&self, listed: Listed) -> Option<Located> {
        if listed.counts.is_null() || listed.places.is_null() {
            return None;
        }
        let datatype = listed.types.one()?;
        self.memory(listed.start, 0, datatype)?;
        Some(Located {
            listed,
            stride: self.stride(datatype)?,
            plain: self.types.get(datatype).is_some(),
        })
    }

    /// The same of blocks with a type each, and places in bytes.
    fn located_apart(&self, listed: Listed, n_ranks: usize) -> Option<Located> {
        let Listed { counts, types, .. } = listed;
        let is_nowhere = counts.is_null() || listed.places.is_null() || types.is_null();
        if is_nowhere || is_in_place(listed.start) {
            return None;
        }
        let (mut plain, mut last) = (true, None);
        for rank in 0..n_ranks {
            // SAFETY: MPI asks for a count and a type for each rank.
            let (count, datatype) = unsafe { (counts.at(rank), types.at(rank)) };
            if count == 0 || last == Some(datatype) {
                continue;
            }
            last = Some(datatype);
            // One that is not committed is refused before.
            plain &= self.types.get(datatype).is_some();
        }
        Some(Located {
            listed,
            stride: 1,
            plain,
        })
    }

    /// The same with blocks whose lengths this rank alone knows.
    pub fn blocks(&self, listed: Listed, n_ranks: usize) -> Option<Located> {
        let located = match listed.types.one() {
            Some(_) => self.located(listed)?,
            None => self.located_apart(listed, n_ranks)?,
        };
        // SAFETY: MPI asks for a count and a place for each rank.
        let (count, may_hold) = unsafe { (listed.counts.sum(n_ranks)?, located.may_hold(n_ranks)) };
        (may_hold && i64::try_from(count).is_ok()).then_some(located)
    }

    /// What a rank hands over, if it is `bytes` packed bytes.
    pub fn given(
        &self,
        Side {
            start,
            count,
            datatype,
        }: Side,
        bytes: u64,
    ) -> Option<Input> {
        let memory = self.memory(start, count, datatype)?;
        (self.packed_bytes(memory.typed())? == bytes).then_some(Input::User(memory))
    }

    /// Whether the library takes a derived type in a message: it is committed. Asked by packing
    /// nothing, on a communicator that returns errors.
    pub fn is_usable(&self, datatype: Datatype) -> bool {
        let Some(comm) = self.messages.comm() else {
            return false;
        };
        let (mut nothing, mut position) = ([0u64; 2], 0);
        let place = nothing.as_mut_ptr().cast::<c_void>();
        abi::bits(datatype) != abi::bits(self.handles.datatype_null)
            // SAFETY: no element is read, and no byte written.
            && unsafe { (self.pmpi.pack)(place, 0, datatype, place, 0, &mut position, comm) }
                == abi::SUCCESS
    }

    /// The bytes that elements pack into.
    pub fn packed_bytes(&self, elements: Typed) -> Option<u64> {
        elements
            .count
            .checked_mul(self.type_bytes(elements.datatype)?)
    }

    /// Bytes from one element to the next.
    pub fn stride(&self, datatype: Datatype) -> Option<Aint> {
        if let Some(facts) = self.types.get(datatype) {
            return Some(facts.size as Aint);
        }
        let (mut lower, mut stride) = (0, 0);
        // SAFETY: the application passed the handle as a datatype; two numbers are written.
        let code = unsafe { (self.pmpi.type_get_extent)(datatype, &mut lower, &mut stride) };
        (code == abi::SUCCESS).then_some(stride)
    }

    pub fn byte(&self) -> Unit {
        Unit {
            datatype: self.handles.byte,
            stride: 1,
            true_lower: 0,
            true_extent: 1,
            plain: true,
            combine: None,
        }
    }

    pub fn element(&self, datatype: Datatype, op: Op) -> Option<Unit> {
        let combine = Combine {
            op,
            // Where the order is fixed no two operands change places.
            commutative: !self.fixed_order
                && (self.ops.get(op).is_some() || self.is_commutative(op)),
        };
        if let Some(facts) = self.types.get(datatype) {
            let size = facts.size as Aint;
            return Some(Unit {
                datatype,
                stride: size,
                true_lower: 0,
                true_extent: size,
                plain: true,
                combine: Some(combine),
            });
        }
        let (mut lower, mut stride, mut true_lower, mut true_extent) = (0, 0, 0, 0);
        // SAFETY: the application passed the handle as a datatype; each call writes two numbers.
        let codes = unsafe {
            [
                (self.pmpi.type_get_extent)(datatype, &mut lower, &mut stride),
                (self.pmpi.type_get_true_extent)(datatype, &mut true_lower, &mut true_extent),
            ]
        };
        (codes == [abi::SUCCESS; 2]).then_some(Unit {
            datatype,
            stride,
            true_lower,
            true_extent,
            plain: false,
            combine: Some(combine),
        })
    }

    /// Whether our reductions may combine such elements: standard and library define the predefined
    /// operation on the type, or the operation is the program's own. Otherwise the library shall
    /// report the error before anything is sent.
    pub fn combines(&self, datatype: Datatype, op: Op) -> bool {
        let Some(place) = self.ops.get(op) else {
            return !self.is_one_sided(op);
        };
        let taken_by = match self.types.get(datatype) {
            Some(facts) => Some(facts.taken_by),
            None => self.pairs.get(datatype).copied(),
        };
        taken_by.is_some_and(|ops| ops.contains(*place))
    }
}
