//! The library's predefined datatypes and operations, as it describes them itself.
//!
//! Which types there are, how long they are and what combines them differs between libraries, and between builds
//! of one: Fortran types exist where there was a Fortran compiler. So the library is asked for all of them, once.
//! An answer takes some ten nanoseconds, all together less than 50 us (Open MPI 4.1, MPICH 4.0).

use std::ffi::{CStr, c_char, c_int};

use colltune_core::datatype::Sort;

use super::{HandleTable, Pmpi, find_variable};
use crate::abi::{self, Datatype, Op};

/// The predefined operations, by their places in [`abi::OPS`], that take a datatype.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TakenBy(u16);

const _: () = assert!(abi::OPS.len() <= u16::BITS as usize);

impl TakenBy {
    #[inline]
    pub fn contains(self, op: usize) -> bool {
        self.0 >> op & 1 == 1
    }
}

/// What is known of a predefined datatype without holes.
#[derive(Clone, Copy, Debug)]
pub struct TypeFacts {
    /// Bytes; also its extent.
    pub size: u32,
    /// Whether results cannot depend on the order of the elements: integers, characters and truth values.
    pub exact: bool,
    pub sort: Sort,
    pub taken_by: TakenBy,
}

/// What the library has.
pub struct Predefined {
    /// Datatypes without holes.
    pub types: HandleTable<TypeFacts>,
    /// The pair types that have holes.
    pub pairs: HandleTable<TakenBy>,
    /// Operations, by their places in [`abi::OPS`].
    pub ops: HandleTable<usize>,
}

impl Predefined {
    /// Asks the library. Some questions are errors to it: its error handlers are to return.
    pub fn ask(pmpi: &Pmpi) -> Predefined {
        let ops: Vec<(usize, Op)> = abi::OPS
            .iter()
            .map(|op| op.handle(find_variable))
            .enumerate()
            .filter_map(|(place, op)| Some((place, op?)))
            .collect();
        let (mut types, mut pairs) = (Vec::new(), Vec::new());
        for datatype in candidates() {
            let Some((sort, shape)) = describe(pmpi, datatype) else {
                continue;
            };
            let taken_by = taken_by(pmpi, datatype, sort, &ops);
            match shape {
                Shape::Plain(size) => types.push((
                    datatype,
                    TypeFacts {
                        size,
                        exact: sort.is_exact(),
                        sort,
                        taken_by,
                    },
                )),
                Shape::Holes => pairs.push((datatype, taken_by)),
            }
        }
        Predefined {
            types: HandleTable::new(types),
            pairs: HandleTable::new(pairs),
            ops: HandleTable::new(ops.into_iter().map(|(place, op)| (op, place))),
        }
    }
}

/// All handles that may be a predefined type's.
#[cfg(mpi = "openmpi")]
fn candidates() -> impl Iterator<Item = Datatype> {
    // Fortran counts its handles from 0 on: 73 in Open MPI 4.1, of C's types, too.
    const FORTRAN_MOST: c_int = 256;
    type FromFortran = unsafe extern "C-unwind" fn(c_int) -> Datatype;
    // SAFETY: the symbol is null, which is `None`, or PMPI_Type_f2c.
    let from_fortran = unsafe {
        std::mem::transmute::<*mut std::ffi::c_void, Option<FromFortran>>(super::find(
            c"PMPI_Type_f2c",
        ))
    };
    (0..FORTRAN_MOST).filter_map(move |number| {
        // SAFETY: any number may be asked for; one that is none gives a null pointer.
        let datatype = unsafe { from_fortran?(number) };
        (!datatype.is_null()).then_some(datatype)
    })
}

/// All handles that may be a predefined type's: the numbers of the header.
#[cfg(not(mpi = "openmpi"))]
fn candidates() -> impl Iterator<Item = Datatype> {
    let null = abi::MPI_DATATYPE_NULL.handle(find_variable);
    abi::DATATYPES
        .iter()
        .filter_map(|constant| constant.handle(find_variable))
        .filter(move |datatype| null.is_none_or(|null| abi::bits(null) != abi::bits(*datatype)))
}

/// How the elements of a type lie in memory.
enum Shape {
    /// In so many bytes, one behind another.
    Plain(u32),
    Holes,
}

/// `None` unless it is a predefined type that the standard names.
fn describe(pmpi: &Pmpi, datatype: Datatype) -> Option<(Sort, Shape)> {
    let (mut integers, mut addresses, mut types, mut combiner) = (0, 0, 0, -1);
    // SAFETY: the library looks at the handle before it uses it; four numbers are written.
    let code = unsafe {
        (pmpi.type_get_envelope)(
            datatype,
            &mut integers,
            &mut addresses,
            &mut types,
            &mut combiner,
        )
    };
    if code != abi::SUCCESS || combiner != abi::MPI_COMBINER_NAMED as c_int {
        return None;
    }
    let (mut size, mut lower, mut extent, mut true_lower, mut true_extent) = (0, 0, 0, 0, 0);
    // SAFETY: the type is a predefined one; numbers are written.
    let codes = unsafe {
        [
            (pmpi.type_size)(datatype, &mut size),
            (pmpi.type_get_extent)(datatype, &mut lower, &mut extent),
            (pmpi.type_get_true_extent)(datatype, &mut true_lower, &mut true_extent),
        ]
    };
    let size = u32::try_from(size).ok().filter(|size| *size > 0)?;
    if codes != [abi::SUCCESS; 3] {
        return None;
    }
    let sort = Sort::of(&name(pmpi, datatype)?, size.into())?;
    let own = [lower, extent, true_lower, true_extent];
    let plain = own == [0, size as abi::Aint, 0, size as abi::Aint];
    let shape = if plain {
        Shape::Plain(size)
    } else {
        Shape::Holes
    };
    Some((sort, shape))
}

fn name(pmpi: &Pmpi, datatype: Datatype) -> Option<String> {
    // Libraries give at most 128 bytes.
    let mut text: [c_char; 512] = [0; 512];
    let mut length = 0;
    // SAFETY: the text is longer than MPI_MAX_OBJECT_NAME of every library.
    let code = unsafe { (pmpi.type_get_name)(datatype, text.as_mut_ptr(), &mut length) };
    // SAFETY: the last byte is 0 whatever the library wrote.
    let text = unsafe { CStr::from_ptr(text.as_ptr()) };
    (code == abi::SUCCESS).then(|| text.to_string_lossy().into_owned())
}

/// The operations that both the standard and the library define on a type: the library checks before it combines,
/// and here there is nothing to combine. MPICH ends the job where elements meet an operation that its check lets
/// pass (a logical AND of floats), so what the standard does not define is not asked for.
fn taken_by(pmpi: &Pmpi, datatype: Datatype, sort: Sort, ops: &[(usize, Op)]) -> TakenBy {
    let (from, mut into) = ([0u64; 8], [0u64; 8]);
    let mut takes = |place: usize, op: Op| {
        abi::COMBINES[place].takes(sort)
            // SAFETY: no element is read or written.
            && unsafe {
                (pmpi.reduce_local)(
                    from.as_ptr().cast(),
                    into.as_mut_ptr().cast(),
                    0,
                    datatype,
                    op,
                )
            } == abi::SUCCESS
    };
    let bits = ops
        .iter()
        .filter(|(place, op)| takes(*place, *op))
        .fold(0, |bits, (place, _)| bits | 1 << place);
    TakenBy(bits)
}
