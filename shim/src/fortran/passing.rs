//! Collectives of Fortran programs that pass through: nonblocking, persistent and on neighbours.

use std::ffi::c_int;
#[cfg(mpi = "openmpi")]
use std::ffi::c_void;

use colltune_core::collective::Collective;
use colltune_core::record::Manner;

#[cfg(mpi = "openmpi")]
use super::{Buffer, conversion::Conversion};
use super::{Integer, comm_of, request_of};
#[cfg(mpi = "openmpi")]
use crate::abi::{Datatype, is_in_place};
use crate::forms::Message;
use crate::watch::{self, Called};

type Request = *mut c_int;
/// Where blocks begin: integers of either width, which nobody reads.
#[cfg(mpi = "openmpi")]
type Places = *const c_void;

/// Defines the functions of one collective.
macro_rules! passes {
    ($collective:ident { $($manner:ident: $plain:ident, $f08:ident;)* }
     $arguments:tt $message:expr) => {
        $(passes!(@$manner $plain, $f08, $collective, $arguments $message);)*
    };
    (@nonblocking $plain:ident, $f08:ident, $collective:ident, $arguments:tt $message:expr) => {
        passes!(@defined Nonblocking, requesting, $plain, $f08, $collective,
                $arguments [comm: Integer, request: Request] comm [request] $message);
    };
    (@neighborhood_nonblocking $plain:ident, $f08:ident, $collective:ident, $arguments:tt $message:expr) => {
        passes!(@defined NeighborhoodNonblocking, requesting, $plain, $f08, $collective,
                $arguments [comm: Integer, request: Request] comm [request] $message);
    };
    (@neighborhood $plain:ident, $f08:ident, $collective:ident, $arguments:tt $message:expr) => {
        passes!(@defined Neighborhood, blocking, $plain, $f08, $collective,
                $arguments [comm: Integer] comm [] $message);
    };
    (@persistent $($rest:tt)*) => {
        #[cfg(persistent = "standard")]
        passes!(@prepared Persistent, $($rest)*);
    };
    (@extension $($rest:tt)*) => {
        #[cfg(persistent = "extension")]
        passes!(@prepared Persistent, $($rest)*);
    };
    (@neighborhood_persistent $($rest:tt)*) => {
        #[cfg(persistent = "standard")]
        passes!(@prepared NeighborhoodPersistent, $($rest)*);
    };
    (@neighborhood_extension $($rest:tt)*) => {
        #[cfg(persistent = "extension")]
        passes!(@prepared NeighborhoodPersistent, $($rest)*);
    };
    (@prepared $manner:ident, $plain:ident, $f08:ident, $collective:ident, $arguments:tt $message:expr) => {
        passes!(@defined $manner, requesting, $plain, $f08, $collective,
                $arguments [comm: Integer, info: Integer, request: Request] comm [request] $message);
    };
    (@defined $manner:ident, $way:ident, $plain:ident, $f08:ident, $collective:ident,
     ($($argument:ident: $kind:ty),*) [$($more:ident: $more_kind:ty),*] $comm:ident [$($request:ident)?] $message:expr) => {
        entry!("A collective": $plain, $f08, ($($argument: $kind,)* $($more: $more_kind),*), default => {
            #[allow(unused_unsafe, reason = "not every message is read from arguments")]
            // SAFETY: every argument is passed by reference, and is only read behind a call that succeeded.
            let called = || unsafe {
                Called {
                    manner: Manner::$manner,
                    collective: Collective::$collective,
                    message: $message,
                }
            };
            // SAFETY: as above; the call has written the request.
            unsafe { watch::$way(called, || comm_of($comm), default $(, || request_of($request))?) }
        });
    };
}

passes!(Barrier {
    nonblocking: mpi_ibarrier_, mpi_ibarrier_f08_;
    persistent: mpi_barrier_init_, mpi_barrier_init_f08_;
    extension: mpix_barrier_init_, mpix_barrier_init_f08_;
} () Message::<c_int>::Sizeless);

/// The collectives with buffers, which on MPICH come by as C.
#[cfg(mpi = "openmpi")]
mod with_buffers {
    use super::*;

    passes!(Allreduce {
        nonblocking: mpi_iallreduce_, mpi_iallreduce_f08_;
        persistent: mpi_allreduce_init_, mpi_allreduce_init_f08_;
        extension: mpix_allreduce_init_, mpix_allreduce_init_f08_;
    } (send: Buffer, recv: Buffer, count: Integer, datatype: Integer, op: Integer)
        elements(count, datatype));

    passes!(Reduce {
        nonblocking: mpi_ireduce_, mpi_ireduce_f08_;
        persistent: mpi_reduce_init_, mpi_reduce_init_f08_;
        extension: mpix_reduce_init_, mpix_reduce_init_f08_;
    } (send: Buffer, recv: Buffer, count: Integer, datatype: Integer, op: Integer, root: Integer)
        elements(count, datatype));

    passes!(Scan {
        nonblocking: mpi_iscan_, mpi_iscan_f08_;
        persistent: mpi_scan_init_, mpi_scan_init_f08_;
        extension: mpix_scan_init_, mpix_scan_init_f08_;
    } (send: Buffer, recv: Buffer, count: Integer, datatype: Integer, op: Integer)
        elements(count, datatype));

    passes!(Exscan {
        nonblocking: mpi_iexscan_, mpi_iexscan_f08_;
        persistent: mpi_exscan_init_, mpi_exscan_init_f08_;
        extension: mpix_exscan_init_, mpix_exscan_init_f08_;
    } (send: Buffer, recv: Buffer, count: Integer, datatype: Integer, op: Integer)
        elements(count, datatype));

    passes!(ReduceScatterBlock {
        nonblocking: mpi_ireduce_scatter_block_, mpi_ireduce_scatter_block_f08_;
        persistent: mpi_reduce_scatter_block_init_, mpi_reduce_scatter_block_init_f08_;
        extension: mpix_reduce_scatter_block_init_, mpix_reduce_scatter_block_init_f08_;
    } (send: Buffer, recv: Buffer, count: Integer, datatype: Integer, op: Integer)
        each_rank(count, datatype));

    passes!(ReduceScatter {
        nonblocking: mpi_ireduce_scatter_, mpi_ireduce_scatter_f08_;
        persistent: mpi_reduce_scatter_init_, mpi_reduce_scatter_init_f08_;
        extension: mpix_reduce_scatter_init_, mpix_reduce_scatter_init_f08_;
    } (send: Buffer, recv: Buffer, counts: Integer, datatype: Integer, op: Integer)
        Message::Sum(counts, type_of(datatype)));

    passes!(Bcast {
        nonblocking: mpi_ibcast_, mpi_ibcast_f08_;
        persistent: mpi_bcast_init_, mpi_bcast_init_f08_;
        extension: mpix_bcast_init_, mpix_bcast_init_f08_;
    } (buffer: Buffer, count: Integer, datatype: Integer, root: Integer)
        elements(count, datatype));

    passes!(Allgather {
        nonblocking: mpi_iallgather_, mpi_iallgather_f08_;
        persistent: mpi_allgather_init_, mpi_allgather_init_f08_;
        extension: mpix_allgather_init_, mpix_allgather_init_f08_;
    } (send: Buffer, send_count: Integer, send_type: Integer, recv: Buffer, recv_count: Integer, recv_type: Integer)
        elements(recv_count, recv_type));

    passes!(Alltoall {
        nonblocking: mpi_ialltoall_, mpi_ialltoall_f08_;
        persistent: mpi_alltoall_init_, mpi_alltoall_init_f08_;
        extension: mpix_alltoall_init_, mpix_alltoall_init_f08_;
    } (send: Buffer, send_count: Integer, send_type: Integer, recv: Buffer, recv_count: Integer, recv_type: Integer)
        elements(recv_count, recv_type));

    passes!(Gather {
        nonblocking: mpi_igather_, mpi_igather_f08_;
        persistent: mpi_gather_init_, mpi_gather_init_f08_;
        extension: mpix_gather_init_, mpix_gather_init_f08_;
    } (send: Buffer, send_count: Integer, send_type: Integer, recv: Buffer, recv_count: Integer, recv_type: Integer, root: Integer)
        of_sides(send, (send_count, send_type), (recv_count, recv_type)));

    passes!(Scatter {
        nonblocking: mpi_iscatter_, mpi_iscatter_f08_;
        persistent: mpi_scatter_init_, mpi_scatter_init_f08_;
        extension: mpix_scatter_init_, mpix_scatter_init_f08_;
    } (send: Buffer, send_count: Integer, send_type: Integer, recv: Buffer, recv_count: Integer, recv_type: Integer, root: Integer)
        of_sides(recv, (recv_count, recv_type), (send_count, send_type)));

    passes!(Allgatherv {
        nonblocking: mpi_iallgatherv_, mpi_iallgatherv_f08_;
        persistent: mpi_allgatherv_init_, mpi_allgatherv_init_f08_;
        extension: mpix_allgatherv_init_, mpix_allgatherv_init_f08_;
    } (send: Buffer, send_count: Integer, send_type: Integer, recv: Buffer, counts: Integer, places: Places,
         recv_type: Integer)
        Message::Mean(counts, type_of(recv_type)));

    passes!(Gatherv {
        nonblocking: mpi_igatherv_, mpi_igatherv_f08_;
        persistent: mpi_gatherv_init_, mpi_gatherv_init_f08_;
        extension: mpix_gatherv_init_, mpix_gatherv_init_f08_;
    } (send: Buffer, send_count: Integer, send_type: Integer, recv: Buffer, counts: Integer, places: Places,
         recv_type: Integer, root: Integer)
        SIZELESS);

    passes!(Scatterv {
        nonblocking: mpi_iscatterv_, mpi_iscatterv_f08_;
        persistent: mpi_scatterv_init_, mpi_scatterv_init_f08_;
        extension: mpix_scatterv_init_, mpix_scatterv_init_f08_;
    } (send: Buffer, counts: Integer, places: Places, send_type: Integer, recv: Buffer, recv_count: Integer,
         recv_type: Integer, root: Integer)
        SIZELESS);

    passes!(Alltoallv {
        nonblocking: mpi_ialltoallv_, mpi_ialltoallv_f08_;
        persistent: mpi_alltoallv_init_, mpi_alltoallv_init_f08_;
        extension: mpix_alltoallv_init_, mpix_alltoallv_init_f08_;
    } (send: Buffer, send_counts: Integer, send_places: Places, send_type: Integer,
         recv: Buffer, recv_counts: Integer, recv_places: Places, recv_type: Integer)
        SIZELESS);

    passes!(Alltoallw {
        nonblocking: mpi_ialltoallw_, mpi_ialltoallw_f08_;
        persistent: mpi_alltoallw_init_, mpi_alltoallw_init_f08_;
        extension: mpix_alltoallw_init_, mpix_alltoallw_init_f08_;
    } (send: Buffer, send_counts: Integer, send_places: Places, send_types: Integer,
         recv: Buffer, recv_counts: Integer, recv_places: Places, recv_types: Integer)
        SIZELESS);

    passes!(Allgather {
        neighborhood: mpi_neighbor_allgather_, mpi_neighbor_allgather_f08_;
        neighborhood_nonblocking: mpi_ineighbor_allgather_, mpi_ineighbor_allgather_f08_;
        neighborhood_persistent: mpi_neighbor_allgather_init_, mpi_neighbor_allgather_init_f08_;
        neighborhood_extension: mpix_neighbor_allgather_init_, mpix_neighbor_allgather_init_f08_;
    } (send: Buffer, send_count: Integer, send_type: Integer, recv: Buffer, recv_count: Integer, recv_type: Integer)
        elements(recv_count, recv_type));

    passes!(Alltoall {
        neighborhood: mpi_neighbor_alltoall_, mpi_neighbor_alltoall_f08_;
        neighborhood_nonblocking: mpi_ineighbor_alltoall_, mpi_ineighbor_alltoall_f08_;
        neighborhood_persistent: mpi_neighbor_alltoall_init_, mpi_neighbor_alltoall_init_f08_;
        neighborhood_extension: mpix_neighbor_alltoall_init_, mpix_neighbor_alltoall_init_f08_;
    } (send: Buffer, send_count: Integer, send_type: Integer, recv: Buffer, recv_count: Integer, recv_type: Integer)
        elements(recv_count, recv_type));

    passes!(Allgatherv {
        neighborhood: mpi_neighbor_allgatherv_, mpi_neighbor_allgatherv_f08_;
        neighborhood_nonblocking: mpi_ineighbor_allgatherv_, mpi_ineighbor_allgatherv_f08_;
        neighborhood_persistent: mpi_neighbor_allgatherv_init_, mpi_neighbor_allgatherv_init_f08_;
        neighborhood_extension: mpix_neighbor_allgatherv_init_, mpix_neighbor_allgatherv_init_f08_;
    } (send: Buffer, send_count: Integer, send_type: Integer, recv: Buffer, counts: Integer, places: Places,
         recv_type: Integer)
        SIZELESS);

    passes!(Alltoallv {
        neighborhood: mpi_neighbor_alltoallv_, mpi_neighbor_alltoallv_f08_;
        neighborhood_nonblocking: mpi_ineighbor_alltoallv_, mpi_ineighbor_alltoallv_f08_;
        neighborhood_persistent: mpi_neighbor_alltoallv_init_, mpi_neighbor_alltoallv_init_f08_;
        neighborhood_extension: mpix_neighbor_alltoallv_init_, mpix_neighbor_alltoallv_init_f08_;
    } (send: Buffer, send_counts: Integer, send_places: Places, send_type: Integer,
         recv: Buffer, recv_counts: Integer, recv_places: Places, recv_type: Integer)
        SIZELESS);

    passes!(Alltoallw {
        neighborhood: mpi_neighbor_alltoallw_, mpi_neighbor_alltoallw_f08_;
        neighborhood_nonblocking: mpi_ineighbor_alltoallw_, mpi_ineighbor_alltoallw_f08_;
        neighborhood_persistent: mpi_neighbor_alltoallw_init_, mpi_neighbor_alltoallw_init_f08_;
        neighborhood_extension: mpix_neighbor_alltoallw_init_, mpix_neighbor_alltoallw_init_f08_;
    } (send: Buffer, send_counts: Integer, send_places: Places, send_types: Integer,
         recv: Buffer, recv_counts: Integer, recv_places: Places, recv_types: Integer)
        SIZELESS);

    const SIZELESS: Message<c_int> = Message::Sizeless;

    /// The type in C's terms.
    ///
    /// # Safety
    /// Arguments of Fortran's are passed by reference.
    unsafe fn type_of(datatype: Integer) -> Datatype {
        // SAFETY: the type is passed by reference, as all of Fortran's arguments are.
        let handle = Conversion::find()
            .and_then(|conversion| unsafe { Conversion::handle(conversion.datatype, datatype) });
        handle.unwrap_or(std::ptr::null_mut())
    }

    /// # Safety
    /// As above.
    unsafe fn elements(count: Integer, datatype: Integer) -> Message<c_int> {
        // SAFETY: count and type are passed by reference, as all of Fortran's arguments are.
        unsafe { Message::Elements(*count, type_of(datatype)) }
    }

    /// # Safety
    /// As above.
    unsafe fn each_rank(count: Integer, datatype: Integer) -> Message<c_int> {
        // SAFETY: count and type are passed by reference, as all of Fortran's arguments are.
        unsafe { Message::EachRank(*count, type_of(datatype)) }
    }

    /// # Safety
    /// As above; what is not looked at need not be valid.
    unsafe fn of_sides(
        buffer: Buffer,
        sure: (Integer, Integer),
        otherwise: (Integer, Integer),
    ) -> Message<c_int> {
        let in_place =
            Conversion::find().is_some_and(|conversion| is_in_place(conversion.buffer(buffer)));
        let (count, datatype) = if in_place { otherwise } else { sure };
        // SAFETY: count and type of the side that is looked at are passed by reference.
        unsafe { elements(count, datatype) }
    }
}
