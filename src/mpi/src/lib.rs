//! The functions and constants of MPI that this project's own programs call, of one library.
//!
//! `constants.c` declares the same functions, so that the compiler compares them with the library's `mpi.h`, and asserts
//! the sizes. A handle is a pointer in Open MPI and a number in MPICH. Errors are the library's codes; the rules of a call
//! are MPI's own.
#![allow(
    non_camel_case_types,
    non_snake_case,
    reason = "the names of the standard"
)]

pub use std::ffi::{c_char, c_int, c_void};

#[cfg(feature = "mpich")]
type Handle = c_int;
#[cfg(not(feature = "mpich"))]
type Handle = *mut c_void;

macro_rules! handles {
    ($($name:ident)*) => {
        $(
            #[derive(Clone, Copy, Debug, PartialEq, Eq)]
            #[repr(transparent)]
            pub struct $name(Handle);
        )*
    };
}
handles!(MPI_Comm MPI_Datatype MPI_Info MPI_Op MPI_Request);

/// What the library says of a message; all zero is a value.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
#[cfg(feature = "mpich")]
pub struct MPI_Status([c_int; 5]);

/// What the library says of a message; all zero is a value.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
#[cfg(not(feature = "mpich"))]
pub struct MPI_Status([c_int; 4], usize);

unsafe extern "C" {
    #[link_name = "colltune_COMM_WORLD"]
    pub static COMM_WORLD: MPI_Comm;
    #[link_name = "colltune_COMM_SELF"]
    pub static COMM_SELF: MPI_Comm;
    #[link_name = "colltune_REQUEST_NULL"]
    pub static REQUEST_NULL: MPI_Request;
    #[link_name = "colltune_INFO_NULL"]
    pub static INFO_NULL: MPI_Info;
    #[link_name = "colltune_STATUS_IGNORE"]
    pub static STATUS_IGNORE: *mut MPI_Status;
    #[link_name = "colltune_COMM_TYPE_SHARED"]
    pub static COMM_TYPE_SHARED: c_int;
    #[link_name = "colltune_IN_PLACE"]
    pub static IN_PLACE: *const c_void;
    #[link_name = "colltune_UINT8_T"]
    pub static UINT8_T: MPI_Datatype;
    #[link_name = "colltune_INT32_T"]
    pub static INT32_T: MPI_Datatype;
    #[link_name = "colltune_INT64_T"]
    pub static INT64_T: MPI_Datatype;
    #[link_name = "colltune_UINT64_T"]
    pub static UINT64_T: MPI_Datatype;
    #[link_name = "colltune_DOUBLE"]
    pub static DOUBLE: MPI_Datatype;
    #[link_name = "colltune_SUM"]
    pub static SUM: MPI_Op;
    #[link_name = "colltune_MIN"]
    pub static MIN: MPI_Op;
    #[link_name = "colltune_MAX"]
    pub static MAX: MPI_Op;
    #[link_name = "colltune_BXOR"]
    pub static BXOR: MPI_Op;

    pub fn MPI_Init(_: *mut c_int, _: *mut *mut *mut c_char) -> c_int;
    pub fn MPI_Finalize() -> c_int;
    pub fn MPI_Abort(_: MPI_Comm, _: c_int) -> c_int;
    pub fn MPI_Get_library_version(_: *mut c_char, _: *mut c_int) -> c_int;
    pub fn MPI_Comm_rank(_: MPI_Comm, _: *mut c_int) -> c_int;
    pub fn MPI_Comm_size(_: MPI_Comm, _: *mut c_int) -> c_int;
    pub fn MPI_Comm_split(_: MPI_Comm, _: c_int, _: c_int, _: *mut MPI_Comm) -> c_int;
    pub fn MPI_Comm_free(_: *mut MPI_Comm) -> c_int;
    pub fn PMPI_Comm_split_type(
        _: MPI_Comm,
        _: c_int,
        _: c_int,
        _: MPI_Info,
        _: *mut MPI_Comm,
    ) -> c_int;
    pub fn PMPI_Comm_free(_: *mut MPI_Comm) -> c_int;

    pub fn MPI_Allgather(
        _: *const c_void,
        _: c_int,
        _: MPI_Datatype,
        _: *mut c_void,
        _: c_int,
        _: MPI_Datatype,
        _: MPI_Comm,
    ) -> c_int;
    pub fn MPI_Allgatherv(
        _: *const c_void,
        _: c_int,
        _: MPI_Datatype,
        _: *mut c_void,
        _: *const c_int,
        _: *const c_int,
        _: MPI_Datatype,
        _: MPI_Comm,
    ) -> c_int;
    pub fn MPI_Allreduce(
        _: *const c_void,
        _: *mut c_void,
        _: c_int,
        _: MPI_Datatype,
        _: MPI_Op,
        _: MPI_Comm,
    ) -> c_int;
    pub fn MPI_Alltoall(
        _: *const c_void,
        _: c_int,
        _: MPI_Datatype,
        _: *mut c_void,
        _: c_int,
        _: MPI_Datatype,
        _: MPI_Comm,
    ) -> c_int;
    pub fn MPI_Alltoallv(
        _: *const c_void,
        _: *const c_int,
        _: *const c_int,
        _: MPI_Datatype,
        _: *mut c_void,
        _: *const c_int,
        _: *const c_int,
        _: MPI_Datatype,
        _: MPI_Comm,
    ) -> c_int;
    pub fn MPI_Alltoallw(
        _: *const c_void,
        _: *const c_int,
        _: *const c_int,
        _: *const MPI_Datatype,
        _: *mut c_void,
        _: *const c_int,
        _: *const c_int,
        _: *const MPI_Datatype,
        _: MPI_Comm,
    ) -> c_int;
    pub fn MPI_Barrier(_: MPI_Comm) -> c_int;
    pub fn MPI_Bcast(_: *mut c_void, _: c_int, _: MPI_Datatype, _: c_int, _: MPI_Comm) -> c_int;
    pub fn MPI_Exscan(
        _: *const c_void,
        _: *mut c_void,
        _: c_int,
        _: MPI_Datatype,
        _: MPI_Op,
        _: MPI_Comm,
    ) -> c_int;
    pub fn MPI_Gather(
        _: *const c_void,
        _: c_int,
        _: MPI_Datatype,
        _: *mut c_void,
        _: c_int,
        _: MPI_Datatype,
        _: c_int,
        _: MPI_Comm,
    ) -> c_int;
    pub fn MPI_Gatherv(
        _: *const c_void,
        _: c_int,
        _: MPI_Datatype,
        _: *mut c_void,
        _: *const c_int,
        _: *const c_int,
        _: MPI_Datatype,
        _: c_int,
        _: MPI_Comm,
    ) -> c_int;
    pub fn MPI_Reduce(
        _: *const c_void,
        _: *mut c_void,
        _: c_int,
        _: MPI_Datatype,
        _: MPI_Op,
        _: c_int,
        _: MPI_Comm,
    ) -> c_int;
    pub fn MPI_Reduce_scatter(
        _: *const c_void,
        _: *mut c_void,
        _: *const c_int,
        _: MPI_Datatype,
        _: MPI_Op,
        _: MPI_Comm,
    ) -> c_int;
    pub fn MPI_Reduce_scatter_block(
        _: *const c_void,
        _: *mut c_void,
        _: c_int,
        _: MPI_Datatype,
        _: MPI_Op,
        _: MPI_Comm,
    ) -> c_int;
    pub fn MPI_Scan(
        _: *const c_void,
        _: *mut c_void,
        _: c_int,
        _: MPI_Datatype,
        _: MPI_Op,
        _: MPI_Comm,
    ) -> c_int;
    pub fn MPI_Scatter(
        _: *const c_void,
        _: c_int,
        _: MPI_Datatype,
        _: *mut c_void,
        _: c_int,
        _: MPI_Datatype,
        _: c_int,
        _: MPI_Comm,
    ) -> c_int;
    pub fn MPI_Scatterv(
        _: *const c_void,
        _: *const c_int,
        _: *const c_int,
        _: MPI_Datatype,
        _: *mut c_void,
        _: c_int,
        _: MPI_Datatype,
        _: c_int,
        _: MPI_Comm,
    ) -> c_int;
    pub fn PMPI_Allgather(
        _: *const c_void,
        _: c_int,
        _: MPI_Datatype,
        _: *mut c_void,
        _: c_int,
        _: MPI_Datatype,
        _: MPI_Comm,
    ) -> c_int;
    pub fn PMPI_Allreduce(
        _: *const c_void,
        _: *mut c_void,
        _: c_int,
        _: MPI_Datatype,
        _: MPI_Op,
        _: MPI_Comm,
    ) -> c_int;
    pub fn PMPI_Barrier(_: MPI_Comm) -> c_int;
    pub fn PMPI_Ibarrier(_: MPI_Comm, _: *mut MPI_Request) -> c_int;
    pub fn PMPI_Reduce_local(
        _: *const c_void,
        _: *mut c_void,
        _: c_int,
        _: MPI_Datatype,
        _: MPI_Op,
    ) -> c_int;

    pub fn MPI_Send(
        _: *const c_void,
        _: c_int,
        _: MPI_Datatype,
        _: c_int,
        _: c_int,
        _: MPI_Comm,
    ) -> c_int;
    pub fn MPI_Isend(
        _: *const c_void,
        _: c_int,
        _: MPI_Datatype,
        _: c_int,
        _: c_int,
        _: MPI_Comm,
        _: *mut MPI_Request,
    ) -> c_int;
    pub fn MPI_Irecv(
        _: *mut c_void,
        _: c_int,
        _: MPI_Datatype,
        _: c_int,
        _: c_int,
        _: MPI_Comm,
        _: *mut MPI_Request,
    ) -> c_int;
    pub fn MPI_Wait(_: *mut MPI_Request, _: *mut MPI_Status) -> c_int;
    pub fn MPI_Waitall(_: c_int, _: *mut MPI_Request, _: *mut MPI_Status) -> c_int;
    pub fn MPI_Waitany(_: c_int, _: *mut MPI_Request, _: *mut c_int, _: *mut MPI_Status) -> c_int;
    pub fn MPI_Request_get_status(_: MPI_Request, _: *mut c_int, _: *mut MPI_Status) -> c_int;
    pub fn MPI_Get_count(_: *const MPI_Status, _: MPI_Datatype, _: *mut c_int) -> c_int;
    pub fn PMPI_Send(
        _: *const c_void,
        _: c_int,
        _: MPI_Datatype,
        _: c_int,
        _: c_int,
        _: MPI_Comm,
    ) -> c_int;
    pub fn PMPI_Recv(
        _: *mut c_void,
        _: c_int,
        _: MPI_Datatype,
        _: c_int,
        _: c_int,
        _: MPI_Comm,
        _: *mut MPI_Status,
    ) -> c_int;
    pub fn PMPI_Isend(
        _: *const c_void,
        _: c_int,
        _: MPI_Datatype,
        _: c_int,
        _: c_int,
        _: MPI_Comm,
        _: *mut MPI_Request,
    ) -> c_int;
    pub fn PMPI_Test(_: *mut MPI_Request, _: *mut c_int, _: *mut MPI_Status) -> c_int;
    pub fn PMPI_Wait(_: *mut MPI_Request, _: *mut MPI_Status) -> c_int;
    pub fn PMPI_Waitall(_: c_int, _: *mut MPI_Request, _: *mut MPI_Status) -> c_int;
}
