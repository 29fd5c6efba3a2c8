//! The library's collectives, with counts of either width.

use std::ffi::{CString, c_int, c_void};

#[cfg(not(mpi = "openmpi"))]
use std::sync::OnceLock;

use super::{Pmpi, find, next};
#[cfg(not(mpi = "openmpi"))]
use crate::abi::{Aint, Count};
use crate::abi::{Comm, Datatype, Op};

/// The width of a collective's counts: `int`, or `MPI_Count` in the functions whose names end in `_c`.
pub trait Number: Copy + Into<i64> + 'static {
    /// Where a block begins in a buffer.
    type Place: Copy + 'static;
    /// What the functions' names end with.
    const SUFFIX: &'static str;

    /// A count that was of this width before.
    fn of(count: i64) -> Self;

    /// The next definitions; `None` where the library has no functions of this width.
    fn next() -> Option<&'static Collectives<Self>>;

    /// The library's own functions.
    fn library(pmpi: &'static Pmpi) -> Option<&'static Collectives<Self>>;
}

impl Number for c_int {
    type Place = c_int;
    const SUFFIX: &'static str = "";

    #[inline(always)]
    fn of(count: i64) -> c_int {
        count as c_int
    }

    #[inline(always)]
    fn next() -> Option<&'static Collectives<c_int>> {
        Some(&next().collectives)
    }

    #[inline(always)]
    fn library(pmpi: &'static Pmpi) -> Option<&'static Collectives<c_int>> {
        Some(&pmpi.collectives)
    }
}

#[cfg(not(mpi = "openmpi"))]
impl Number for Count {
    type Place = Aint;
    const SUFFIX: &'static str = "_c";

    #[inline(always)]
    fn of(count: i64) -> Count {
        count
    }

    #[inline]
    fn next() -> Option<&'static Collectives<Count>> {
        static NEXT: OnceLock<Option<Collectives<Count>>> = OnceLock::new();
        NEXT.get_or_init(|| Collectives::resolve("MPI_")).as_ref()
    }

    #[inline]
    fn library(_: &'static Pmpi) -> Option<&'static Collectives<Count>> {
        static LIBRARY: OnceLock<Option<Collectives<Count>>> = OnceLock::new();
        LIBRARY
            .get_or_init(|| Collectives::resolve("PMPI_"))
            .as_ref()
    }
}

macro_rules! collectives {
    ($($field:ident = $name:literal ($($kind:ty),*);)*) => {
        /// Every collective that is tuned, but the barrier, which has no counts.
        pub struct Collectives<N: Number> {
            $(pub $field: unsafe extern "C-unwind" fn($($kind,)* Comm) -> c_int,)*
        }

        impl<N: Number> Collectives<N> {
            /// `None` unless every function is there.
            pub fn resolve(prefix: &str) -> Option<Collectives<N>> {
                let symbol = |name: &str| {
                    let name = CString::new(format!("{prefix}{name}{}", N::SUFFIX)).ok()?;
                    Some(find(&name)).filter(|address| !address.is_null())
                };
                Some(Collectives { $($field: {
                    let address = symbol($name)?;
                    // SAFETY: the symbol is the MPI function of this name, whose C signature this is.
                    unsafe {
                        std::mem::transmute::<
                            *mut c_void,
                            unsafe extern "C-unwind" fn($($kind,)* Comm) -> c_int,
                        >(address)
                    }
                },)* })
            }
        }
    };
}

type In = *const c_void;
type Out = *mut c_void;
type Root = c_int;
/// The addresses of datatypes, one for each rank.
type Types = *const c_void;

collectives! {
    allreduce = "Allreduce" (In, Out, N, Datatype, Op);
    bcast = "Bcast" (Out, N, Datatype, Root);
    allgather = "Allgather" (In, N, Datatype, Out, N, Datatype);
    alltoall = "Alltoall" (In, N, Datatype, Out, N, Datatype);
    reduce = "Reduce" (In, Out, N, Datatype, Op, Root);
    allgatherv = "Allgatherv" (In, N, Datatype, Out, *const N, *const N::Place, Datatype);
    gather = "Gather" (In, N, Datatype, Out, N, Datatype, Root);
    gatherv = "Gatherv" (In, N, Datatype, Out, *const N, *const N::Place, Datatype, Root);
    scatter = "Scatter" (In, N, Datatype, Out, N, Datatype, Root);
    scatterv = "Scatterv" (In, *const N, *const N::Place, Datatype, Out, N, Datatype, Root);
    alltoallv = "Alltoallv" (
        In, *const N, *const N::Place, Datatype, Out, *const N, *const N::Place, Datatype
    );
    alltoallw = "Alltoallw" (
        In, *const N, *const N::Place, Types, Out, *const N, *const N::Place, Types
    );
    reduce_scatter = "Reduce_scatter" (In, Out, *const N, Datatype, Op);
    reduce_scatter_block = "Reduce_scatter_block" (In, Out, N, Datatype, Op);
    scan = "Scan" (In, Out, N, Datatype, Op);
    exscan = "Exscan" (In, Out, N, Datatype, Op);
}
