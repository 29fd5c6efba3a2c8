//! Lists of counts and of places, with one number for each rank, in either width.

use std::ffi::{c_int, c_void};

use super::Side;
#[cfg(mpi = "openmpi")]
use crate::abi::Handle;
use crate::abi::{Aint, Datatype, HANDLE_BYTES, NO_HANDLE, handle_at};

/// The application's numbers, one for each rank.
#[derive(Clone, Copy)]
pub enum List {
    Ints(*const c_int),
    Longs(*const i64),
}

/// Blocks of one buffer, each with its count and its place.
#[derive(Clone, Copy)]
pub struct Listed {
    pub start: *mut c_void,
    pub counts: List,
    /// Counted in extents of the type; in bytes where each block has its own type.
    pub places: List,
    pub types: Types,
}

/// The types of blocks.
#[derive(Clone, Copy)]
pub enum Types {
    /// One for all.
    One(Datatype),
    /// One for each rank, as handles stand in memory.
    Each(*const c_void),
    /// The same as Fortran's handles, and what turns one into C's.
    #[cfg(mpi = "openmpi")]
    EachOfFortran(*const c_int, FromFortran),
}

/// The parameter is an `int`, or wider where an INTEGER has eight bytes: a whole register serves both.
#[cfg(mpi = "openmpi")]
pub type FromFortran = unsafe extern "C-unwind" fn(i64) -> Handle;

/// The blocks of an alltoallw.
#[inline(always)]
pub fn typed<N, P>(
    start: *const c_void,
    counts: *const N,
    places: *const P,
    types: *const c_void,
) -> Listed {
    Listed {
        types: Types::Each(types),
        ..Listed::new(start, counts, places, NO_HANDLE)
    }
}

impl Listed {
    #[inline(always)]
    pub fn new<N, P>(
        start: *const c_void,
        counts: *const N,
        places: *const P,
        datatype: Datatype,
    ) -> Listed {
        Listed {
            start: start.cast_mut(),
            counts: List::of(counts),
            places: List::of(places),
            types: Types::One(datatype),
        }
    }
}

/// The same, with what must be asked of the library.
#[derive(Clone, Copy)]
pub struct Located {
    pub listed: Listed,
    /// Bytes from one place to the next.
    pub stride: Aint,
    /// Whether all blocks are the packed bytes of their elements.
    pub plain: bool,
}

impl Located {
    /// Whether blocks may be there, all or one of so many ranks. The null pointer is MPI_BOTTOM: derived types stand on it,
    /// and blocks of others whose places are addresses, for which 32 bits are too few.
    ///
    /// # Safety
    /// The lists have `n_ranks` numbers.
    pub unsafe fn may_hold(&self, n_ranks: usize) -> bool {
        let reaches_all = matches!(self.listed.places, List::Longs(_));
        let is_somewhere = |rank| {
            // SAFETY: the caller promises numbers for all of these ranks.
            let block = unsafe { self.side(rank) };
            block.count == 0 || (reaches_all && !block.start.is_null())
        };
        !self.plain || !self.listed.start.is_null() || (0..n_ranks).all(is_somewhere)
    }

    /// A rank's block.
    ///
    /// # Safety
    /// The lists have a number for that rank.
    #[inline]
    pub unsafe fn side(&self, rank: usize) -> Side {
        let Listed {
            start,
            counts,
            places,
            types,
        } = self.listed;
        // SAFETY: all lists have a number for that rank, as the caller promises.
        let (place, count, datatype) =
            unsafe { (places.at(rank), counts.at(rank), types.at(rank)) };
        let distance = (place as Aint).wrapping_mul(self.stride);
        Side {
            start: start.wrapping_byte_offset(distance),
            count,
            datatype,
        }
    }

    /// Where the blocks begin, if they lie one behind another.
    ///
    /// # Safety
    /// The lists have `n_ranks` numbers.
    pub unsafe fn in_one_piece(&self, n_ranks: usize) -> Option<*mut c_void> {
        let (mut first, mut before) = (None, 0i64);
        for rank in 0..n_ranks {
            // SAFETY: the caller promises `n_ranks` numbers in each list, and only smaller places are asked for.
            let (count, place) = unsafe {
                let Listed { counts, places, .. } = self.listed;
                (counts.at(rank), places.at(rank))
            };
            let from = place.wrapping_sub(before);
            if count > 0 && *first.get_or_insert(from) != from {
                return None;
            }
            before = before.saturating_add(count);
        }
        let distance = (first.unwrap_or(0) as Aint).wrapping_mul(self.stride);
        Some(self.listed.start.wrapping_byte_offset(distance))
    }
}

impl Types {
    /// That of a rank's block.
    ///
    /// # Safety
    /// There is one for that rank.
    #[inline]
    pub unsafe fn at(self, rank: usize) -> Datatype {
        // SAFETY: a list has a type for that rank, as the caller promises; the function takes any handle of Fortran's.
        unsafe {
            match self {
                Types::One(datatype) => datatype,
                Types::Each(list) => handle_at(list.byte_add(rank * HANDLE_BYTES)),
                #[cfg(mpi = "openmpi")]
                Types::EachOfFortran(list, convert) => convert(list.add(rank).read().into()),
            }
        }
    }

    /// The type of all blocks, where there is one.
    pub fn one(self) -> Option<Datatype> {
        match self {
            Types::One(datatype) => Some(datatype),
            _ => None,
        }
    }

    pub fn is_null(self) -> bool {
        match self {
            Types::One(_) => false,
            Types::Each(list) => list.is_null(),
            #[cfg(mpi = "openmpi")]
            Types::EachOfFortran(list, _) => list.is_null(),
        }
    }
}

impl List {
    /// The list of a function of MPI; its numbers are of four or eight bytes.
    pub fn of<N>(list: *const N) -> List {
        match size_of::<N>() {
            4 => List::Ints(list.cast()),
            _ => List::Longs(list.cast()),
        }
    }

    /// As the function that it was passed to takes it.
    pub fn pointer<N>(self) -> *const N {
        match self {
            List::Ints(list) => list.cast(),
            List::Longs(list) => list.cast(),
        }
    }

    pub fn is_null(self) -> bool {
        match self {
            List::Ints(list) => list.is_null(),
            List::Longs(list) => list.is_null(),
        }
    }

    /// The number of a rank.
    ///
    /// # Safety
    /// The list has a number for that rank.
    #[inline]
    pub unsafe fn at(self, rank: usize) -> i64 {
        // SAFETY: the caller promises that the list has a number for that rank, of the width that the variant names.
        unsafe {
            match self {
                List::Ints(list) => list.add(rank).read().into(),
                List::Longs(list) => list.add(rank).read(),
            }
        }
    }

    /// The sum of the first `n_ranks` numbers; `None` where one of them is negative.
    ///
    /// # Safety
    /// The list is null or has so many numbers.
    pub unsafe fn sum(self, n_ranks: usize) -> Option<u64> {
        if self.is_null() {
            return None;
        }
        (0..n_ranks).try_fold(0u64, |sum, rank| {
            // SAFETY: a list that is not null has a number for each rank that is asked for, as the caller promises.
            let number = unsafe { self.at(rank) };
            sum.checked_add(u64::try_from(number).ok()?)
        })
    }
}
