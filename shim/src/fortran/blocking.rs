//! Blocking collectives of Fortran programs on Open MPI.

use std::ffi::c_int;

use colltune_core::collective::Collective;
use colltune_core::decide::call::{SharedCall, SharedDetails};

use super::conversion::Conversion;
use super::{Buffer, Default, Integer};
use crate::abi::{Comm, is_in_place};
use crate::arguments::Arguments;
use crate::fence::fence;
use crate::forms::{self, Bcast, Exchanged, Form, Gathered, ListedSide, ReduceScatter, Scattered};
use crate::library::collectives::Collectives;
use crate::tune::Tuner;
use crate::world::World;

/// Tunes a call whose arguments `form` turns into C's; without a form, and without a communicator
/// that is one, the library runs it.
fn tuned<F: Form>(
    default: Default,
    comm: Integer,
    form: impl Fn(&Conversion) -> Option<F>,
) -> c_int {
    let converted = || {
        let conversion = Conversion::find()?;
        // SAFETY: every argument of Fortran's is passed by reference.
        let comm = unsafe { Conversion::handle(conversion.comm, comm) }?;
        Some((form(conversion)?, comm))
    };
    let tuned = |tuner| {
        let (form, comm) = converted()?;
        forms::run(tuner, form, comm, default)
    };
    let failed = |tuner, code| {
        if let Some((form, comm)) = converted() {
            forms::failed(tuner, form, comm, code);
        }
    };
    fence(default, tuned, failed)
}

/// Defines a collective, whose last argument is the communicator. The form gets what converts the arguments, or gives
/// `None` for what the library itself should refuse.
macro_rules! collective {
    ($mpi:literal: $plain:ident, $f08:ident, ($($argument:ident: $kind:ty),*), $conversion:ident => $form:expr) => {
        entry!($mpi: $plain, $f08, ($($argument: $kind,)* comm: Integer), default => {
            #[allow(unused_unsafe, reason = "not every form reads arguments")]
            // SAFETY: every argument is passed by reference.
            tuned(&default, comm, |$conversion| unsafe { $form })
        });
    };
}

collective!("MPI_Allreduce": mpi_allreduce_, mpi_allreduce_f08_,
    (send: Buffer, recv: Buffer, count: Integer, datatype: Integer, op: Integer),
    by => by.reduction(Collective::Allreduce, [send, recv], count, datatype, op, 0));
collective!("MPI_Scan": mpi_scan_, mpi_scan_f08_,
    (send: Buffer, recv: Buffer, count: Integer, datatype: Integer, op: Integer),
    by => by.reduction(Collective::Scan, [send, recv], count, datatype, op, 0));
collective!("MPI_Exscan": mpi_exscan_, mpi_exscan_f08_,
    (send: Buffer, recv: Buffer, count: Integer, datatype: Integer, op: Integer),
    by => by.reduction(Collective::Exscan, [send, recv], count, datatype, op, 0));
collective!("MPI_Reduce_scatter_block": mpi_reduce_scatter_block_, mpi_reduce_scatter_block_f08_,
    (send: Buffer, recv: Buffer, count: Integer, datatype: Integer, op: Integer),
    by => by.reduction(Collective::ReduceScatterBlock, [send, recv], count, datatype, op, 0));
collective!("MPI_Reduce": mpi_reduce_, mpi_reduce_f08_,
    (send: Buffer, recv: Buffer, count: Integer, datatype: Integer, op: Integer, root: Integer),
    by => by.reduction(Collective::Reduce, [send, recv], count, datatype, op, *root));
collective!("MPI_Reduce_scatter": mpi_reduce_scatter_, mpi_reduce_scatter_f08_,
(send: Buffer, recv: Buffer, counts: Integer, datatype: Integer, op: Integer),
by => Some(ReduceScatter {
    send: by.buffer(send),
    recv: by.buffer(recv),
    counts,
    datatype: Conversion::handle(by.datatype, datatype)?,
    op: Conversion::handle(by.op, op)?,
}));
collective!("MPI_Bcast": mpi_bcast_, mpi_bcast_f08_,
(buffer: Buffer, count: Integer, datatype: Integer, root: Integer),
by => Some(Bcast {
    buffer: by.buffer(buffer),
    count: *count,
    datatype: Conversion::handle(by.datatype, datatype)?,
    root: *root,
}));

collective!("MPI_Allgather": mpi_allgather_, mpi_allgather_f08_,
    (send: Buffer, send_count: Integer, send_type: Integer, recv: Buffer, recv_count: Integer, recv_type: Integer),
    by => by.blocks(Collective::Allgather, (send, send_count, send_type), (recv, recv_count, recv_type), 0));
collective!("MPI_Alltoall": mpi_alltoall_, mpi_alltoall_f08_,
    (send: Buffer, send_count: Integer, send_type: Integer, recv: Buffer, recv_count: Integer, recv_type: Integer),
    by => by.blocks(Collective::Alltoall, (send, send_count, send_type), (recv, recv_count, recv_type), 0));
collective!("MPI_Gather": mpi_gather_, mpi_gather_f08_,
    (send: Buffer, send_count: Integer, send_type: Integer, recv: Buffer, recv_count: Integer, recv_type: Integer,
     root: Integer),
    by => by.blocks(Collective::Gather, (send, send_count, send_type), (recv, recv_count, recv_type), *root));
collective!("MPI_Scatter": mpi_scatter_, mpi_scatter_f08_,
    (send: Buffer, send_count: Integer, send_type: Integer, recv: Buffer, recv_count: Integer, recv_type: Integer,
     root: Integer),
    by => by.blocks(Collective::Scatter, (send, send_count, send_type), (recv, recv_count, recv_type), *root));

// Counts and places have a meaning at the root alone, and may be absent elsewhere.
collective!("MPI_Allgatherv": mpi_allgatherv_, mpi_allgatherv_f08_,
    (send: Buffer, send_count: Integer, send_type: Integer, recv: Buffer, counts: Integer, places: Integer,
     recv_type: Integer),
    by => gathered(Collective::Allgatherv,
        by.sides((send, send_count, send_type), (recv, send_count, recv_type)), (counts, places), 0));
collective!("MPI_Gatherv": mpi_gatherv_, mpi_gatherv_f08_,
    (send: Buffer, send_count: Integer, send_type: Integer, recv: Buffer, counts: Integer, places: Integer,
     recv_type: Integer, root: Integer),
    by => gathered(Collective::Gatherv,
        by.sides((send, send_count, send_type), (recv, send_count, recv_type)), (counts, places), *root));
collective!("MPI_Scatterv": mpi_scatterv_, mpi_scatterv_f08_,
(send: Buffer, counts: Integer, places: Integer, send_type: Integer, recv: Buffer, recv_count: Integer,
 recv_type: Integer, root: Integer),
by => {
    let [sent, received] = by.sides((send, recv_count, send_type), (recv, recv_count, recv_type));
    let ((send, _, send_type), (recv, recv_count, recv_type)) = (sent, received);
    Some(Scattered { send, counts, places, send_type, recv, recv_count, recv_type, root: *root })
});
collective!("MPI_Alltoallv": mpi_alltoallv_, mpi_alltoallv_f08_,
(send: Buffer, send_counts: Integer, send_places: Integer, send_type: Integer,
 recv: Buffer, recv_counts: Integer, recv_places: Integer, recv_type: Integer),
by => {
    let [sent, received] = by.sides((send, send_counts, send_type), (recv, recv_counts, recv_type));
    Some(Exchanged {
        send: ListedSide { buffer: sent.0.cast_const(), counts: send_counts, places: send_places, types: sent.2 },
        recv: ListedSide { buffer: received.0, counts: recv_counts, places: recv_places, types: received.2 },
    })
});
// Alltoallw's lists of types hold Fortran's handles. The library has no algorithm of its own to
// choose there, so nobody needs them in C's terms.
collective!("MPI_Alltoallw": mpi_alltoallw_, mpi_alltoallw_f08_,
    (send: Buffer, send_counts: Integer, send_places: Integer, send_types: Integer,
     recv: Buffer, recv_counts: Integer, recv_places: Integer, recv_types: Integer),
    by => Some(ExchangedInFortran { in_place: is_in_place(by.buffer(send)) }));

/// Allgatherv and gatherv.
fn gathered(
    collective: Collective,
    [(send, send_count, send_type), (recv, _, recv_type)]: [super::conversion::ConvertedSide; 2],
    (counts, places): (Integer, Integer),
    root: c_int,
) -> Option<Gathered<c_int>> {
    Some(Gathered {
        collective,
        send,
        send_count,
        send_type,
        recv,
        counts,
        places,
        recv_type,
        root,
    })
}

/// An alltoallw of a Fortran program.
#[derive(Clone, Copy)]
struct ExchangedInFortran {
    in_place: bool,
}

impl Form for ExchangedInFortran {
    type Number = c_int;

    fn shared(&self, _: &World, _: u32) -> SharedCall {
        SharedCall::without_size(Collective::Alltoallw)
    }

    fn details(&self, _: &World, _: u32) -> SharedDetails {
        SharedDetails {
            in_place: self.in_place,
            ..SharedDetails::MOVES
        }
    }

    fn is_refused(&self, _: &World, _: Comm, _: u32) -> bool {
        false
    }

    fn arguments(&self) -> Arguments {
        Arguments::Nothing
    }

    unsafe fn native(&self, _: &Tuner, _: &Collectives<c_int>, _: Comm) -> c_int {
        unreachable!("the library has no algorithm of its own to choose there")
    }
}
