//! Collectives that pass through, as the application sees them: nonblocking, persistent and on the
//! neighbours of a topology. Three moves each, no logic.

use std::ffi::{c_int, c_void};

use colltune_core::collective::Collective;
use colltune_core::record::Manner;

use super::{ABSENT, In, Out, Root, Types, next_function};
#[cfg(not(mpi = "openmpi"))]
use crate::abi::Count;
use crate::abi::{Aint, Comm, Datatype, Info, Op, Request, request_bits};
use crate::forms::Message;
use crate::watch::{self, Called};

/// Where blocks begin, in numbers of the width of the counts or in bytes.
type Places = *const c_void;

/// Defines the functions of one collective. `Elements` stands for the type of counts.
macro_rules! passes {
    ($collective:ident { $($manner:ident: $name:ident $(, $large:ident)?;)* } $arguments:tt $message:expr) => { $(
        const _: () = {
            #[allow(dead_code, reason = "a barrier has no counts, a library not all manners")]
            type Elements = c_int;
            passes!(@$manner $name, $collective, $arguments $message);
        };
        $(
            #[cfg(not(mpi = "openmpi"))]
            const _: () = {
                type Elements = Count;
                passes!(@$manner $large, $collective, $arguments $message);
            };
        )?
    )* };
    (@nonblocking $name:ident, $($rest:tt)*) => {
        passes!(@requesting Nonblocking, $name, $($rest)*);
    };
    (@neighborhood_nonblocking $name:ident, $($rest:tt)*) => {
        passes!(@requesting NeighborhoodNonblocking, $name, $($rest)*);
    };
    (@persistent $name:ident, $($rest:tt)*) => {
        passes!(@prepared Persistent, $name, $($rest)*);
    };
    (@neighborhood_persistent $name:ident, $($rest:tt)*) => {
        passes!(@prepared NeighborhoodPersistent, $name, $($rest)*);
    };
    (@extension $name:ident, $collective:ident, $arguments:tt $message:expr) => {
        #[cfg(persistent = "extension")]
        passes!(@defined Persistent, requesting, $name, $collective, $arguments [info: Info, request: *mut Request] [request] $message);
    };
    (@neighborhood_extension $name:ident, $collective:ident, $arguments:tt $message:expr) => {
        #[cfg(persistent = "extension")]
        passes!(@defined NeighborhoodPersistent, requesting, $name, $collective, $arguments [info: Info, request: *mut Request] [request] $message);
    };
    (@neighborhood $name:ident, $collective:ident, $arguments:tt $message:expr) => {
        passes!(@defined Neighborhood, blocking, $name, $collective, $arguments [] [] $message);
    };
    (@requesting $manner:ident, $name:ident, $collective:ident, $arguments:tt $message:expr) => {
        passes!(@defined $manner, requesting, $name, $collective, $arguments [request: *mut Request] [request] $message);
    };
    (@prepared $manner:ident, $name:ident, $collective:ident, $arguments:tt $message:expr) => {
        #[cfg(persistent = "standard")]
        passes!(@defined $manner, requesting, $name, $collective, $arguments [info: Info, request: *mut Request] [request] $message);
    };
    (@defined $manner:ident, $way:ident, $name:ident, $collective:ident,
     ($($argument:ident: $kind:ty),*) [$($more:ident: $more_kind:ty),*] [$($request:ident)?] $message:expr) => {
        #[doc = concat!("`", stringify!($name), "` as the application sees it.\n\n# Safety\n\
                         The caller keeps MPI's own contract for this function.")]
        #[unsafe(no_mangle)]
        #[allow(clippy::too_many_arguments, reason = "they are MPI's")]
        pub unsafe extern "C-unwind" fn $name(
            $($argument: $kind,)* comm: Comm $(, $more: $more_kind)*
        ) -> c_int {
            let Some(next) = next_function!($name($($kind,)* Comm $(, $more_kind)*)) else {
                return ABSENT;
            };
            let called = || Called {
                manner: Manner::$manner,
                collective: Collective::$collective,
                message: $message,
            };
            // SAFETY: the arguments are forwarded unchanged, so they are exactly as valid as the
            // caller promised.
            let call = move || unsafe { next($($argument,)* comm $(, $more)*) };
            // SAFETY: what is watched is this call; where it succeeds, it has written the request.
            unsafe { watch::$way(called, || Some(comm), call $(, || request_bits(*$request))?) }
        }
    };
}

/// No data, or counts that each rank knows for itself.
const SIZELESS: Message<c_int> = Message::Sizeless;

passes!(Allreduce {
    nonblocking: MPI_Iallreduce, MPI_Iallreduce_c;
    persistent: MPI_Allreduce_init, MPI_Allreduce_init_c;
    extension: MPIX_Allreduce_init;
} (send: In, recv: Out, count: Elements, datatype: Datatype, op: Op)
    Message::Elements(count, datatype));

passes!(Reduce {
    nonblocking: MPI_Ireduce, MPI_Ireduce_c;
    persistent: MPI_Reduce_init, MPI_Reduce_init_c;
    extension: MPIX_Reduce_init;
} (send: In, recv: Out, count: Elements, datatype: Datatype, op: Op, root: Root)
    Message::Elements(count, datatype));

passes!(Scan {
    nonblocking: MPI_Iscan, MPI_Iscan_c;
    persistent: MPI_Scan_init, MPI_Scan_init_c;
    extension: MPIX_Scan_init;
} (send: In, recv: Out, count: Elements, datatype: Datatype, op: Op)
    Message::Elements(count, datatype));

passes!(Exscan {
    nonblocking: MPI_Iexscan, MPI_Iexscan_c;
    persistent: MPI_Exscan_init, MPI_Exscan_init_c;
    extension: MPIX_Exscan_init;
} (send: In, recv: Out, count: Elements, datatype: Datatype, op: Op)
    Message::Elements(count, datatype));

passes!(ReduceScatterBlock {
    nonblocking: MPI_Ireduce_scatter_block, MPI_Ireduce_scatter_block_c;
    persistent: MPI_Reduce_scatter_block_init, MPI_Reduce_scatter_block_init_c;
    extension: MPIX_Reduce_scatter_block_init;
} (send: In, recv: Out, count: Elements, datatype: Datatype, op: Op)
    Message::EachRank(count, datatype));

passes!(ReduceScatter {
    nonblocking: MPI_Ireduce_scatter, MPI_Ireduce_scatter_c;
    persistent: MPI_Reduce_scatter_init, MPI_Reduce_scatter_init_c;
    extension: MPIX_Reduce_scatter_init;
} (send: In, recv: Out, counts: *const Elements, datatype: Datatype, op: Op)
    Message::Sum(counts, datatype));

passes!(Bcast {
    nonblocking: MPI_Ibcast, MPI_Ibcast_c;
    persistent: MPI_Bcast_init, MPI_Bcast_init_c;
    extension: MPIX_Bcast_init;
} (buffer: Out, count: Elements, datatype: Datatype, root: Root)
    Message::Elements(count, datatype));

passes!(Allgather {
    nonblocking: MPI_Iallgather, MPI_Iallgather_c;
    persistent: MPI_Allgather_init, MPI_Allgather_init_c;
    extension: MPIX_Allgather_init;
} (send: In, send_count: Elements, send_type: Datatype, recv: Out, recv_count: Elements, recv_type: Datatype)
    Message::Elements(recv_count, recv_type));

passes!(Alltoall {
    nonblocking: MPI_Ialltoall, MPI_Ialltoall_c;
    persistent: MPI_Alltoall_init, MPI_Alltoall_init_c;
    extension: MPIX_Alltoall_init;
} (send: In, send_count: Elements, send_type: Datatype, recv: Out, recv_count: Elements, recv_type: Datatype)
    Message::Elements(recv_count, recv_type));

passes!(Gather {
    nonblocking: MPI_Igather, MPI_Igather_c;
    persistent: MPI_Gather_init, MPI_Gather_init_c;
    extension: MPIX_Gather_init;
} (send: In, send_count: Elements, send_type: Datatype, recv: Out, recv_count: Elements, recv_type: Datatype,
     root: Root)
    Message::of_sides(send, (send_count, send_type), (recv_count, recv_type)));

passes!(Scatter {
    nonblocking: MPI_Iscatter, MPI_Iscatter_c;
    persistent: MPI_Scatter_init, MPI_Scatter_init_c;
    extension: MPIX_Scatter_init;
} (send: In, send_count: Elements, send_type: Datatype, recv: Out, recv_count: Elements, recv_type: Datatype,
     root: Root)
    Message::of_sides(recv, (recv_count, recv_type), (send_count, send_type)));

passes!(Allgatherv {
    nonblocking: MPI_Iallgatherv, MPI_Iallgatherv_c;
    persistent: MPI_Allgatherv_init, MPI_Allgatherv_init_c;
    extension: MPIX_Allgatherv_init;
} (send: In, send_count: Elements, send_type: Datatype, recv: Out, counts: *const Elements, places: Places,
     recv_type: Datatype)
    Message::Mean(counts, recv_type));

passes!(Gatherv {
    nonblocking: MPI_Igatherv, MPI_Igatherv_c;
    persistent: MPI_Gatherv_init, MPI_Gatherv_init_c;
    extension: MPIX_Gatherv_init;
} (send: In, send_count: Elements, send_type: Datatype, recv: Out, counts: *const Elements, places: Places,
     recv_type: Datatype, root: Root)
    SIZELESS);

passes!(Scatterv {
    nonblocking: MPI_Iscatterv, MPI_Iscatterv_c;
    persistent: MPI_Scatterv_init, MPI_Scatterv_init_c;
    extension: MPIX_Scatterv_init;
} (send: In, counts: *const Elements, places: Places, send_type: Datatype, recv: Out, recv_count: Elements,
     recv_type: Datatype, root: Root)
    SIZELESS);

passes!(Alltoallv {
    nonblocking: MPI_Ialltoallv, MPI_Ialltoallv_c;
    persistent: MPI_Alltoallv_init, MPI_Alltoallv_init_c;
    extension: MPIX_Alltoallv_init;
} (send: In, send_counts: *const Elements, send_places: Places, send_type: Datatype,
     recv: Out, recv_counts: *const Elements, recv_places: Places, recv_type: Datatype)
    SIZELESS);

passes!(Alltoallw {
    nonblocking: MPI_Ialltoallw, MPI_Ialltoallw_c;
    persistent: MPI_Alltoallw_init, MPI_Alltoallw_init_c;
    extension: MPIX_Alltoallw_init;
} (send: In, send_counts: *const Elements, send_places: Places, send_types: Types,
     recv: Out, recv_counts: *const Elements, recv_places: Places, recv_types: Types)
    SIZELESS);

passes!(Barrier {
    nonblocking: MPI_Ibarrier;
    persistent: MPI_Barrier_init;
    extension: MPIX_Barrier_init;
} () SIZELESS);

passes!(Allgather {
    neighborhood: MPI_Neighbor_allgather, MPI_Neighbor_allgather_c;
    neighborhood_nonblocking: MPI_Ineighbor_allgather, MPI_Ineighbor_allgather_c;
    neighborhood_persistent: MPI_Neighbor_allgather_init, MPI_Neighbor_allgather_init_c;
    neighborhood_extension: MPIX_Neighbor_allgather_init;
} (send: In, send_count: Elements, send_type: Datatype, recv: Out, recv_count: Elements, recv_type: Datatype)
    Message::Elements(recv_count, recv_type));

passes!(Alltoall {
    neighborhood: MPI_Neighbor_alltoall, MPI_Neighbor_alltoall_c;
    neighborhood_nonblocking: MPI_Ineighbor_alltoall, MPI_Ineighbor_alltoall_c;
    neighborhood_persistent: MPI_Neighbor_alltoall_init, MPI_Neighbor_alltoall_init_c;
    neighborhood_extension: MPIX_Neighbor_alltoall_init;
} (send: In, send_count: Elements, send_type: Datatype, recv: Out, recv_count: Elements, recv_type: Datatype)
    Message::Elements(recv_count, recv_type));

passes!(Allgatherv {
    neighborhood: MPI_Neighbor_allgatherv, MPI_Neighbor_allgatherv_c;
    neighborhood_nonblocking: MPI_Ineighbor_allgatherv, MPI_Ineighbor_allgatherv_c;
    neighborhood_persistent: MPI_Neighbor_allgatherv_init, MPI_Neighbor_allgatherv_init_c;
    neighborhood_extension: MPIX_Neighbor_allgatherv_init;
} (send: In, send_count: Elements, send_type: Datatype, recv: Out, counts: *const Elements, places: Places,
     recv_type: Datatype)
    SIZELESS);

passes!(Alltoallv {
    neighborhood: MPI_Neighbor_alltoallv, MPI_Neighbor_alltoallv_c;
    neighborhood_nonblocking: MPI_Ineighbor_alltoallv, MPI_Ineighbor_alltoallv_c;
    neighborhood_persistent: MPI_Neighbor_alltoallv_init, MPI_Neighbor_alltoallv_init_c;
    neighborhood_extension: MPIX_Neighbor_alltoallv_init;
} (send: In, send_counts: *const Elements, send_places: Places, send_type: Datatype,
     recv: Out, recv_counts: *const Elements, recv_places: Places, recv_type: Datatype)
    SIZELESS);

passes!(Alltoallw {
    neighborhood: MPI_Neighbor_alltoallw, MPI_Neighbor_alltoallw_c;
    neighborhood_nonblocking: MPI_Ineighbor_alltoallw, MPI_Ineighbor_alltoallw_c;
    neighborhood_persistent: MPI_Neighbor_alltoallw_init, MPI_Neighbor_alltoallw_init_c;
    neighborhood_extension: MPIX_Neighbor_alltoallw_init;
} (send: In, send_counts: *const Elements, send_places: *const Aint, send_types: Types,
     recv: Out, recv_counts: *const Elements, recv_places: *const Aint, recv_types: Types)
    SIZELESS);
