//! Units of a call on their way into shared memory and out of it, and how they are combined.
//!
//! Shared memory holds packed bytes, because a type may lie otherwise in each rank's memory. Of a
//! type without holes the elements are these bytes, so most reductions work on them where they are.

use std::ffi::c_int;

use colltune_core::datatype::Sort;
use colltune_core::node::phase::Units;

use crate::abi::{self, Op};
use crate::arguments::{Unit, View};
use crate::library::TypeFacts;
use crate::p2p::endpoint::{Endpoint, check};
use crate::world::World;

/// How the units of a call are moved and combined.
pub struct Elements<'a> {
    pub world: &'a World,
    pub unit: Unit,
    /// Bytes of a packed unit.
    pub unit_bytes: u64,
    pub sum: Option<Sum>,
    /// Only for units with holes: what the memory of this rank looks like.
    pub holed: Option<Holed<'a>>,
}

/// What units with holes need.
pub struct Holed<'a> {
    pub endpoint: Endpoint<'a>,
    /// Room for the units of a piece, twice, as addresses of unit 0.
    pub spare: [*mut u8; 2],
}

/// Types whose sums are made here: a call of the library takes longer than a few additions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sum {
    F64,
    F32,
    I64,
    I32,
}

/// From so many bytes on the library's own loops are at least as fast.
const SUM_BYTES_MOST: u64 = 256;

impl Sum {
    /// `None` where the library shall combine.
    #[inline]
    pub fn of(world: &World, facts: &TypeFacts, op: Op) -> Option<Sum> {
        if abi::bits(op) != abi::bits(world.handles.sum) {
            return None;
        }
        match (facts.sort, facts.size) {
            (Sort::Floating, 8) => Some(Sum::F64),
            (Sort::Floating, 4) => Some(Sum::F32),
            (Sort::Integer | Sort::Whole, 8) => Some(Sum::I64),
            (Sort::Integer | Sort::Whole, 4) => Some(Sum::I32),
            _ => None,
        }
    }

    /// Adds units to others.
    ///
    /// # Safety
    /// Both places hold so many numbers of the type and do not overlap.
    #[inline(always)]
    pub unsafe fn add(self, from: *const u8, into: *mut u8, units: usize) {
        macro_rules! each {
            ($number:ty, $sum:expr) => {
                for place in 0..units {
                    let (from, into) = (from.cast::<$number>(), into.cast::<$number>());
                    // SAFETY: the caller promises so many numbers at both places; no alignment is asked for.
                    unsafe {
                        let (a, b) = (from.add(place), into.add(place));
                        b.write_unaligned($sum(a.read_unaligned(), b.read_unaligned()));
                    }
                }
            };
        }
        match self {
            Sum::F64 => each!(f64, |a, b| a + b),
            Sum::F32 => each!(f32, |a, b| a + b),
            Sum::I64 => each!(i64, i64::wrapping_add),
            Sum::I32 => each!(i32, i32::wrapping_add),
        }
    }
}

impl<'a> Elements<'a> {
    #[inline]
    pub fn new(world: &'a World, view: &View, holed: Option<Holed<'a>>) -> Elements<'a> {
        let unit = view.unit;
        let combine = unit.combine.filter(|_| unit.plain);
        Elements {
            world,
            unit,
            unit_bytes: view.unit_bytes(),
            sum: combine
                .and_then(|combine| Sum::of(world, world.types.get(unit.datatype)?, combine.op)),
            holed,
        }
    }

    /// The address of a unit.
    #[inline]
    pub fn at(&self, base: *mut u8, unit: u64) -> *mut u8 {
        self.unit.at(base, unit)
    }

    /// Copies units from one place of a step to another.
    ///
    /// # Safety
    /// The units lie at the first, in the form that they have there, and the second has room for them.
    #[inline(always)]
    pub unsafe fn transfer(
        &self,
        (from, start): (Units, *mut u8),
        units: u64,
        (into, end): (Units, *mut u8),
    ) -> Result<(), c_int> {
        // SAFETY: the caller promises both places; what lies in a cell is packed.
        unsafe {
            match (from, into) {
                (Units::Cell { .. }, _) => self.load(start, units, end),
                (_, Units::Cell { .. }) => self.store(start, units, end),
                _ => self.copy(start, units, end),
            }
        }
    }

    /// Combines units of a lower rank, in a place of a step, with what lies in `into`.
    ///
    /// # Safety
    /// The units lie at both places, those of a cell packed, the others in this rank's form.
    #[inline(always)]
    pub unsafe fn combine_from(
        &self,
        (from, start): (Units, *mut u8),
        units: u64,
        into: *mut u8,
    ) -> Result<(), c_int> {
        // SAFETY: the caller promises both places.
        unsafe {
            match from {
                Units::Cell { .. } => self.combine(start, units, into),
                _ => self.combine_own(start, units, into),
            }
        }
    }

    /// Copies units into shared memory.
    ///
    /// # Safety
    /// The units lie at `from`, and `to` has room for their packed bytes.
    #[inline]
    pub unsafe fn store(&self, from: *mut u8, units: u64, to: *mut u8) -> Result<(), c_int> {
        match &self.holed {
            None => {
                // SAFETY: units without holes are their bytes, for which the caller promises both places.
                unsafe { std::ptr::copy_nonoverlapping(from, to, self.bytes(units)) };
                Ok(())
            }
            // SAFETY: the caller promises the units at `from`, and room for their packed bytes at `to`.
            Some(holed) => unsafe {
                let bytes = self.bytes(units) as u64;
                holed.endpoint.pack(self.unit.typed(from, units), to, bytes)
            },
        }
    }

    /// Copies units out of shared memory.
    ///
    /// # Safety
    /// The packed units lie at `from`, and `to` has room for them.
    #[inline]
    pub unsafe fn load(&self, from: *mut u8, units: u64, to: *mut u8) -> Result<(), c_int> {
        match &self.holed {
            None => {
                // SAFETY: units without holes are their packed bytes, for which the caller promises both places.
                unsafe { std::ptr::copy_nonoverlapping(from, to, self.bytes(units)) };
                Ok(())
            }
            // SAFETY: the caller promises the packed units at `from`, and room for them at `to`.
            Some(holed) => unsafe {
                let bytes = self.bytes(units) as u64;
                holed
                    .endpoint
                    .unpack(from, bytes, self.unit.typed(to, units))
            },
        }
    }

    /// Combines packed units of a lower rank with what lies in `into`: operands keep their order.
    ///
    /// # Safety
    /// The packed units lie at `from`, the others in this rank's form at `into`.
    #[inline]
    pub unsafe fn combine(&self, from: *mut u8, units: u64, into: *mut u8) -> Result<(), c_int> {
        match &self.holed {
            // SAFETY: without holes both forms are one.
            None => unsafe { self.combine_own(from, units, into) },
            Some(holed) => {
                let spare = holed.spare[1];
                // SAFETY: the spare room holds the units of a piece.
                unsafe {
                    self.load(from, units, spare)?;
                    self.combine_own(spare, units, into)
                }
            }
        }
    }

    /// The same with units that lie in this rank's form.
    ///
    /// # Safety
    /// The units lie at both places, which do not overlap.
    #[inline]
    pub unsafe fn combine_own(
        &self,
        from: *mut u8,
        units: u64,
        into: *mut u8,
    ) -> Result<(), c_int> {
        if let Some(sum) = self.sum
            && self.bytes(units) as u64 <= SUM_BYTES_MOST
        {
            // SAFETY: the type is a number of that kind; the caller promises the units at both places.
            unsafe { sum.add(from, into, units as usize) };
            return Ok(());
        }
        let Some(combine) = self.unit.combine.filter(|_| units > 0) else {
            return Ok(());
        };
        // SAFETY: the caller promises the units at both places, which do not overlap.
        check(unsafe {
            (self.world.pmpi.reduce_local)(
                from.cast(),
                into.cast(),
                units as c_int,
                self.unit.datatype,
                combine.op,
            )
        })
    }

    /// Copies units within this rank's memory.
    ///
    /// # Safety
    /// The units lie at `from`, and `to` has room for them.
    pub unsafe fn copy(&self, from: *mut u8, units: u64, to: *mut u8) -> Result<(), c_int> {
        let Some(holed) = &self.holed else {
            // SAFETY: units without holes are their bytes, for which the caller promises both places.
            unsafe { std::ptr::copy(from, to, self.bytes(units)) };
            return Ok(());
        };
        let (from, to) = (self.unit.typed(from, units), self.unit.typed(to, units));
        // SAFETY: the caller promises the units at `from`, and room for them at `to`.
        unsafe { holed.endpoint.message_to_self(from, to) }
    }

    #[inline]
    pub fn bytes(&self, units: u64) -> usize {
        (units * self.unit_bytes) as usize
    }
}
