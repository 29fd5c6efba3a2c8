//! One side of a call as its arguments say it, and elements in memory.

use std::ffi::c_void;

use crate::abi::{Datatype, bits};
use crate::world::World;

/// Elements of a type: where the first is, how many there are.
#[derive(Clone, Copy)]
pub struct Typed {
    pub start: *mut u8,
    pub count: u64,
    pub datatype: Datatype,
}

/// One block of a call, or one of several equal ones, as its arguments say it.
#[derive(Clone, Copy)]
pub struct Side {
    pub start: *mut c_void,
    pub count: i64,
    pub datatype: Datatype,
}

impl Side {
    #[inline(always)]
    pub fn new(start: *const c_void, count: impl Into<i64>, datatype: Datatype) -> Side {
        Side {
            start: start.cast_mut(),
            count: count.into(),
            datatype,
        }
    }

    /// Of one that is right.
    pub fn typed(self) -> Typed {
        Typed {
            start: self.start.cast(),
            count: self.count as u64,
            datatype: self.datatype,
        }
    }

    /// Whether both are the same bytes. Two types over one address may name different ones.
    pub(super) fn is(self, other: Side, world: &World) -> bool {
        let plain = |side: Side| world.types.get(side.datatype).is_some();
        let one_type = bits(self.datatype) == bits(other.datatype) && self.count == other.count;
        self.start == other.start && (one_type || (plain(self) && plain(other)))
    }
}
