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

entry!("MPI_Allreduce": mpi_allreduce_, mpi_allreduce_f08_,
    (send: Buffer, recv: Buffer, count: Integer, datatype: Integer, op: Integer, comm: Integer) => allreduce);
entry!("MPI_Scan": mpi_scan_, mpi_scan_f08_,
    (send: Buffer, recv: Buffer, count: Integer, datatype: Integer, op: Integer, comm: Integer) => scan);
entry!("MPI_Exscan": mpi_exscan_, mpi_exscan_f08_,
    (send: Buffer, recv: Buffer, count: Integer, datatype: Integer, op: Integer, comm: Integer) => exscan);
entry!("MPI_Reduce_scatter_block": mpi_reduce_scatter_block_, mpi_reduce_scatter_block_f08_,
    (send: Buffer, recv: Buffer, count: Integer, datatype: Integer, op: Integer, comm: Integer)
    => reduce_scatter_block);
entry!("MPI_Reduce_scatter": mpi_reduce_scatter_, mpi_reduce_scatter_f08_,
    (send: Buffer, recv: Buffer, counts: Integer, datatype: Integer, op: Integer, comm: Integer) => reduce_scatter);
entry!("MPI_Reduce": mpi_reduce_, mpi_reduce_f08_,
    (send: Buffer, recv: Buffer, count: Integer, datatype: Integer, op: Integer, root: Integer, comm: Integer) => reduce);
entry!("MPI_Bcast": mpi_bcast_, mpi_bcast_f08_,
    (buffer: Buffer, count: Integer, datatype: Integer, root: Integer, comm: Integer) => bcast);
entry!("MPI_Allgather": mpi_allgather_, mpi_allgather_f08_,
    (send: Buffer, send_count: Integer, send_type: Integer, recv: Buffer, recv_count: Integer, recv_type: Integer,
     comm: Integer) => allgather);
entry!("MPI_Alltoall": mpi_alltoall_, mpi_alltoall_f08_,
    (send: Buffer, send_count: Integer, send_type: Integer, recv: Buffer, recv_count: Integer, recv_type: Integer,
     comm: Integer) => alltoall);
entry!("MPI_Gather": mpi_gather_, mpi_gather_f08_,
    (send: Buffer, send_count: Integer, send_type: Integer, recv: Buffer, recv_count: Integer, recv_type: Integer,
     root: Integer, comm: Integer) => gather);
entry!("MPI_Scatter": mpi_scatter_, mpi_scatter_f08_,
    (send: Buffer, send_count: Integer, send_type: Integer, recv: Buffer, recv_count: Integer, recv_type: Integer,
     root: Integer, comm: Integer) => scatter);
entry!("MPI_Allgatherv": mpi_allgatherv_, mpi_allgatherv_f08_,
    (send: Buffer, send_count: Integer, send_type: Integer, recv: Buffer, counts: Integer, places: Integer,
     recv_type: Integer, comm: Integer) => allgatherv);
entry!("MPI_Gatherv": mpi_gatherv_, mpi_gatherv_f08_,
    (send: Buffer, send_count: Integer, send_type: Integer, recv: Buffer, counts: Integer, places: Integer,
     recv_type: Integer, root: Integer, comm: Integer) => gatherv);
entry!("MPI_Scatterv": mpi_scatterv_, mpi_scatterv_f08_,
    (send: Buffer, counts: Integer, places: Integer, send_type: Integer, recv: Buffer, recv_count: Integer,
     recv_type: Integer, root: Integer, comm: Integer) => scatterv);
entry!("MPI_Alltoallv": mpi_alltoallv_, mpi_alltoallv_f08_,
    (send: Buffer, send_counts: Integer, send_places: Integer, send_type: Integer,
     recv: Buffer, recv_counts: Integer, recv_places: Integer, recv_type: Integer, comm: Integer) => alltoallv);
entry!("MPI_Alltoallw": mpi_alltoallw_, mpi_alltoallw_f08_,
    (send: Buffer, send_counts: Integer, send_places: Integer, send_types: Integer,
     recv: Buffer, recv_counts: Integer, recv_places: Integer, recv_types: Integer, comm: Integer) => alltoallw);

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

/// Defines reductions that differ in nothing but their collective.
macro_rules! reductions {
    ($($function:ident, $collective:ident;)*) => {
        $(unsafe fn $function(
            default: Default,
            send: Buffer,
            recv: Buffer,
            count: Integer,
            datatype: Integer,
            op: Integer,
            comm: Integer,
        ) -> c_int {
            tuned(default, comm, |conversion| {
                // SAFETY: every argument is passed by reference.
                unsafe { conversion.reduction(Collective::$collective, [send, recv], count, datatype, op, 0) }
            })
        })*
    };
}

reductions! {
    allreduce, Allreduce;
    scan, Scan;
    exscan, Exscan;
    reduce_scatter_block, ReduceScatterBlock;
}

#[expect(clippy::too_many_arguments, reason = "MPI_Reduce has seven")]
unsafe fn reduce(
    default: Default,
    send: Buffer,
    recv: Buffer,
    count: Integer,
    datatype: Integer,
    op: Integer,
    root: Integer,
    comm: Integer,
) -> c_int {
    tuned(default, comm, |conversion| {
        // SAFETY: every argument is passed by reference.
        unsafe {
            conversion.reduction(Collective::Reduce, [send, recv], count, datatype, op, *root)
        }
    })
}

unsafe fn reduce_scatter(
    default: Default,
    send: Buffer,
    recv: Buffer,
    counts: Integer,
    datatype: Integer,
    op: Integer,
    comm: Integer,
) -> c_int {
    tuned(default, comm, |conversion| {
        // SAFETY: every argument is passed by reference.
        unsafe {
            Some(ReduceScatter {
                send: conversion.buffer(send),
                recv: conversion.buffer(recv),
                counts,
                datatype: Conversion::handle(conversion.datatype, datatype)?,
                op: Conversion::handle(conversion.op, op)?,
            })
        }
    })
}

unsafe fn bcast(
    default: Default,
    buffer: Buffer,
    count: Integer,
    datatype: Integer,
    root: Integer,
    comm: Integer,
) -> c_int {
    tuned(default, comm, |conversion| {
        // SAFETY: every argument is passed by reference.
        unsafe {
            Some(Bcast {
                buffer: conversion.buffer(buffer),
                count: *count,
                datatype: Conversion::handle(conversion.datatype, datatype)?,
                root: *root,
            })
        }
    })
}

/// Defines collectives of equal blocks that differ in nothing but their collective.
macro_rules! exchanges {
    ($($function:ident($($root:ident)?), $collective:ident;)*) => {
        $(#[expect(clippy::too_many_arguments, reason = "they are MPI's")]
        unsafe fn $function(
            default: Default,
            send: Buffer,
            send_count: Integer,
            send_type: Integer,
            recv: Buffer,
            recv_count: Integer,
            recv_type: Integer,
            $($root: Integer,)?
            comm: Integer,
        ) -> c_int {
            tuned(default, comm, |conversion| {
                let (sent, received) = ((send, send_count, send_type), (recv, recv_count, recv_type));
                // SAFETY: every argument is passed by reference.
                unsafe {
                    let root = 0 $(+ *$root)?;
                    Some(conversion.blocks(Collective::$collective, sent, received, root))
                }
            })
        })*
    };
}

exchanges! {
    allgather(), Allgather;
    alltoall(), Alltoall;
    gather(root), Gather;
    scatter(root), Scatter;
}

/// Defines allgatherv and gatherv.
macro_rules! gatherings {
    ($($function:ident($($root:ident)?), $collective:ident;)*) => {
        $(#[expect(clippy::too_many_arguments, reason = "they are MPI's")]
        unsafe fn $function(
            default: Default,
            send: Buffer,
            send_count: Integer,
            send_type: Integer,
            recv: Buffer,
            counts: Integer,
            places: Integer,
            recv_type: Integer,
            $($root: Integer,)?
            comm: Integer,
        ) -> c_int {
            tuned(default, comm, |conversion| {
                // SAFETY: every argument is passed by reference.
                unsafe {
                    // Counts and places have a meaning at the root alone, and may be absent elsewhere.
                    let (recv, _, recv_type) = conversion.side((recv, send_count, recv_type));
                    let (send, send_count, send_type) = conversion.side((send, send_count, send_type));
                    Some(Gathered {
                        collective: Collective::$collective,
                        send,
                        send_count,
                        send_type: if send_type.is_null() { recv_type } else { send_type },
                        recv,
                        counts,
                        places,
                        recv_type,
                        root: 0 $(+ *$root)?,
                    })
                }
            })
        })*
    };
}

gatherings! {
    allgatherv(), Allgatherv;
    gatherv(root), Gatherv;
}

#[expect(clippy::too_many_arguments, reason = "MPI_Scatterv has nine")]
unsafe fn scatterv(
    default: Default,
    send: Buffer,
    counts: Integer,
    places: Integer,
    send_type: Integer,
    recv: Buffer,
    recv_count: Integer,
    recv_type: Integer,
    root: Integer,
    comm: Integer,
) -> c_int {
    tuned(default, comm, |conversion| {
        // SAFETY: every argument is passed by reference.
        unsafe {
            let (send, _, send_type) = conversion.side((send, recv_count, send_type));
            let (recv, recv_count, recv_type) = conversion.side((recv, recv_count, recv_type));
            Some(Scattered {
                send,
                counts,
                places,
                send_type,
                recv,
                recv_count,
                recv_type: if recv_type.is_null() {
                    send_type
                } else {
                    recv_type
                },
                root: *root,
            })
        }
    })
}

#[expect(clippy::too_many_arguments, reason = "MPI_Alltoallv has nine")]
unsafe fn alltoallv(
    default: Default,
    send: Buffer,
    send_counts: Integer,
    send_places: Integer,
    send_type: Integer,
    recv: Buffer,
    recv_counts: Integer,
    recv_places: Integer,
    recv_type: Integer,
    comm: Integer,
) -> c_int {
    tuned(default, comm, |conversion| {
        // SAFETY: every argument is passed by reference.
        unsafe {
            let (send, _, send_type) = conversion.side((send, send_counts, send_type));
            let (recv, _, recv_type) = conversion.side((recv, recv_counts, recv_type));
            let send_type = if send_type.is_null() {
                recv_type
            } else {
                send_type
            };
            Some(Exchanged {
                send: ListedSide {
                    buffer: send.cast_const(),
                    counts: send_counts,
                    places: send_places,
                    types: send_type,
                },
                recv: ListedSide {
                    buffer: recv,
                    counts: recv_counts,
                    places: recv_places,
                    types: recv_type,
                },
            })
        }
    })
}

/// Alltoallw's lists of types hold Fortran's handles. The library has no algorithm of its own to
/// choose there, so nobody needs them in C's terms.
#[expect(clippy::too_many_arguments, reason = "MPI_Alltoallw has nine")]
unsafe fn alltoallw(
    default: Default,
    send: Buffer,
    _: Integer,
    _: Integer,
    _: Integer,
    _: Buffer,
    _: Integer,
    _: Integer,
    _: Integer,
    comm: Integer,
) -> c_int {
    tuned(default, comm, |conversion| {
        Some(ExchangedInFortran {
            in_place: is_in_place(conversion.buffer(send)),
        })
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
