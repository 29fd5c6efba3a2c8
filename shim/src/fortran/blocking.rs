//! Blocking collectives of Fortran programs on Open MPI.

use std::ffi::c_int;

use colltune_core::collective::Collective;

use super::conversion::Conversion;
use super::{Buffer, Default, Integer};
use crate::arguments::lists::{List, Listed};
use crate::arguments::{Arguments, Counted, Side, UnevenSide::Each, UnevenSide::One, uneven};
use crate::fence::fence;
use crate::forms;

/// Tunes a call whose arguments `convert` turns into C's; without them, and without a communicator
/// that is one, the library runs it.
fn tuned(
    default: Default,
    (collective, comm): (Collective, Integer),
    convert: impl Fn(&Conversion) -> Option<Arguments>,
) -> c_int {
    let converted = || {
        let conversion = Conversion::find()?;
        // SAFETY: every argument of Fortran's is passed by reference.
        let comm = unsafe { Conversion::handle(conversion.comm, comm) }?;
        Some(((collective, convert(conversion)?), comm))
    };
    let tuned = |tuner| {
        let (call, comm) = converted()?;
        forms::run::<c_int>(tuner, call, comm, default)
    };
    let failed = |tuner, code| {
        if let Some((call, comm)) = converted() {
            forms::failed(tuner, call, comm, code);
        }
    };
    fence(default, tuned, failed)
}

/// Defines a collective, whose last argument is the communicator. `by` is what converts the arguments, which become
/// C's, or `None` for what the library itself should refuse.
macro_rules! collective {
    ($mpi:literal: $plain:ident, $f08:ident, $collective:ident,
     ($($argument:ident: $kind:ty),*), $by:ident => $of:expr) => {
        entry!($mpi: $plain, $f08, ($($argument: $kind,)* comm: Integer), default => {
            #[allow(unused_unsafe, reason = "not all arguments are read")]
            // SAFETY: every argument is passed by reference.
            tuned(&default, (Collective::$collective, comm), |$by| unsafe { $of })
        });
    };
}

collective!("MPI_Allreduce": mpi_allreduce_, mpi_allreduce_f08_, Allreduce,
    (send: Buffer, recv: Buffer, count: Integer, datatype: Integer, op: Integer),
    by => by.reduction([send, recv], Counted::all(*count), datatype, op, 0));
collective!("MPI_Scan": mpi_scan_, mpi_scan_f08_, Scan,
    (send: Buffer, recv: Buffer, count: Integer, datatype: Integer, op: Integer),
    by => by.reduction([send, recv], Counted::all(*count), datatype, op, 0));
collective!("MPI_Exscan": mpi_exscan_, mpi_exscan_f08_, Exscan,
    (send: Buffer, recv: Buffer, count: Integer, datatype: Integer, op: Integer),
    by => by.reduction([send, recv], Counted::all(*count), datatype, op, 0));
collective!("MPI_Reduce_scatter_block": mpi_reduce_scatter_block_, mpi_reduce_scatter_block_f08_, ReduceScatterBlock,
    (send: Buffer, recv: Buffer, count: Integer, datatype: Integer, op: Integer),
    by => by.reduction([send, recv], Counted::all(*count), datatype, op, 0));
collective!("MPI_Reduce": mpi_reduce_, mpi_reduce_f08_, Reduce,
    (send: Buffer, recv: Buffer, count: Integer, datatype: Integer, op: Integer, root: Integer),
    by => by.reduction([send, recv], Counted::all(*count), datatype, op, *root));
collective!("MPI_Reduce_scatter": mpi_reduce_scatter_, mpi_reduce_scatter_f08_, ReduceScatter,
(send: Buffer, recv: Buffer, counts: Integer, datatype: Integer, op: Integer),
by => by.reduction([send, recv], Counted::Each(List::of(counts)), datatype, op, 0));
collective!("MPI_Bcast": mpi_bcast_, mpi_bcast_f08_, Bcast,
(buffer: Buffer, count: Integer, datatype: Integer, root: Integer),
by => {
        let datatype = Conversion::handle(by.datatype, datatype)?;
        Some(Arguments::Bcast { all: Side::new(by.buffer(buffer), *count, datatype), root: *root })
    });

collective!("MPI_Allgather": mpi_allgather_, mpi_allgather_f08_, Allgather,
    (send: Buffer, send_count: Integer, send_type: Integer, recv: Buffer, recv_count: Integer, recv_type: Integer),
    by => by.blocks((send, send_count, send_type), (recv, recv_count, recv_type), 0));
collective!("MPI_Alltoall": mpi_alltoall_, mpi_alltoall_f08_, Alltoall,
    (send: Buffer, send_count: Integer, send_type: Integer, recv: Buffer, recv_count: Integer, recv_type: Integer),
    by => by.blocks((send, send_count, send_type), (recv, recv_count, recv_type), 0));
collective!("MPI_Gather": mpi_gather_, mpi_gather_f08_, Gather,
    (send: Buffer, send_count: Integer, send_type: Integer, recv: Buffer, recv_count: Integer, recv_type: Integer,
     root: Integer),
    by => by.blocks((send, send_count, send_type), (recv, recv_count, recv_type), *root));
collective!("MPI_Scatter": mpi_scatter_, mpi_scatter_f08_, Scatter,
    (send: Buffer, send_count: Integer, send_type: Integer, recv: Buffer, recv_count: Integer, recv_type: Integer,
     root: Integer),
    by => by.blocks((send, send_count, send_type), (recv, recv_count, recv_type), *root));

// Counts and places have a meaning at the root alone, and may be absent elsewhere.
collective!("MPI_Allgatherv": mpi_allgatherv_, mpi_allgatherv_f08_, Allgatherv,
(send: Buffer, send_count: Integer, send_type: Integer, recv: Buffer, counts: Integer, places: Integer,
 recv_type: Integer),
by => {
    let [send, recv] = by.sides((send, send_count, send_type), (recv, send_count, recv_type));
    Some(uneven(One(send), Each(Listed::new(recv.start, counts, places, recv.datatype)), 0))
});
collective!("MPI_Gatherv": mpi_gatherv_, mpi_gatherv_f08_, Gatherv,
(send: Buffer, send_count: Integer, send_type: Integer, recv: Buffer, counts: Integer, places: Integer,
 recv_type: Integer, root: Integer),
by => {
    let [send, recv] = by.sides((send, send_count, send_type), (recv, send_count, recv_type));
    Some(uneven(One(send), Each(Listed::new(recv.start, counts, places, recv.datatype)), *root))
});
collective!("MPI_Scatterv": mpi_scatterv_, mpi_scatterv_f08_, Scatterv,
(send: Buffer, counts: Integer, places: Integer, send_type: Integer, recv: Buffer, recv_count: Integer,
 recv_type: Integer, root: Integer),
by => {
    let [send, recv] = by.sides((send, recv_count, send_type), (recv, recv_count, recv_type));
    Some(uneven(Each(Listed::new(send.start, counts, places, send.datatype)), One(recv), *root))
});
collective!("MPI_Alltoallv": mpi_alltoallv_, mpi_alltoallv_f08_, Alltoallv,
(send: Buffer, send_counts: Integer, send_places: Integer, send_type: Integer,
 recv: Buffer, recv_counts: Integer, recv_places: Integer, recv_type: Integer),
by => {
    let [send, recv] = by.sides((send, send_counts, send_type), (recv, recv_counts, recv_type));
    Some(uneven(Each(Listed::new(send.start, send_counts, send_places, send.datatype)),
        Each(Listed::new(recv.start, recv_counts, recv_places, recv.datatype)), 0))
});
collective!("MPI_Alltoallw": mpi_alltoallw_, mpi_alltoallw_f08_, Alltoallw,
    (send: Buffer, send_counts: Integer, send_places: Integer, send_types: Integer,
     recv: Buffer, recv_counts: Integer, recv_places: Integer, recv_types: Integer),
    by => Some(Arguments::Types { send: by.buffer(send), recv: by.buffer(recv), received: List::of(recv_counts) }));
