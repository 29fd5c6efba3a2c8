//! The functions that the application sees. Three moves each, no logic.

use std::ffi::{c_char, c_int, c_void};

use colltune_core::collective::Collective;

use crate::abi::{Comm, Datatype, Op, is_in_place};
use crate::fence::fence;
use crate::library::next;
use crate::p2p::Arguments;

/// `MPI_Init` as the application sees it.
///
/// # Safety
/// The caller keeps MPI's own contract for this function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn MPI_Init(argc: *mut c_int, argv: *mut *mut *mut c_char) -> c_int {
    // SAFETY: the arguments are forwarded unchanged, so they are exactly as valid as the caller promised.
    let code = unsafe { (next().init)(argc, argv) };
    crate::start::start_up(code);
    code
}

/// `MPI_Init_thread` as the application sees it.
///
/// # Safety
/// The caller keeps MPI's own contract for this function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn MPI_Init_thread(
    argc: *mut c_int,
    argv: *mut *mut *mut c_char,
    required: c_int,
    provided: *mut c_int,
) -> c_int {
    // SAFETY: the arguments are forwarded unchanged, so they are exactly as valid as the caller promised.
    let code = unsafe { (next().init_thread)(argc, argv, required, provided) };
    crate::start::start_up(code);
    code
}

/// `MPI_Finalize` as the application sees it.
///
/// # Safety
/// The caller keeps MPI's own contract for this function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn MPI_Finalize() -> c_int {
    crate::start::wind_down();
    // SAFETY: there are no arguments.
    unsafe { (next().finalize)() }
}

/// Whether the library refuses these buffers of a reduction: it must report that itself, on the
/// communicator and as often as ever. No right call is among them, so ranks need not agree here.
pub fn is_refused(send: *const c_void, recv: *mut c_void, count: i64) -> bool {
    is_in_place(recv) || (send == recv.cast_const() && count != 0)
}

/// `MPI_Allreduce` as the application sees it.
///
/// # Safety
/// The caller keeps MPI's own contract for this function; no buffer is read here.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn MPI_Allreduce(
    send: *const c_void,
    recv: *mut c_void,
    count: c_int,
    datatype: Datatype,
    op: Op,
    comm: Comm,
) -> c_int {
    // SAFETY: the arguments are forwarded unchanged, so they are exactly as valid as the caller promised.
    let default = move || unsafe { (next().allreduce)(send, recv, count, datatype, op, comm) };
    fence("MPI_Allreduce", default, |tuner| {
        if is_refused(send, recv, count.into()) {
            return None;
        }
        let call = tuner.reduction(
            Collective::Allreduce,
            count.into(),
            datatype,
            op,
            comm,
            is_in_place(send),
        )?;
        // SAFETY: only the communicator differs, and it has the same members in the same order.
        Some(tuner.run(
            call,
            Arguments::Reduction {
                send,
                recv,
                count: count.into(),
                datatype,
                op,
                root: 0,
            },
            default,
            move |comm| unsafe { (tuner.pmpi().allreduce)(send, recv, count, datatype, op, comm) },
        ))
    })
}

/// `MPI_Bcast` as the application sees it.
///
/// # Safety
/// The caller keeps MPI's own contract for this function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn MPI_Bcast(
    buffer: *mut c_void,
    count: c_int,
    datatype: Datatype,
    root: c_int,
    comm: Comm,
) -> c_int {
    // SAFETY: the arguments are forwarded unchanged, so they are exactly as valid as the caller promised.
    let default = move || unsafe { (next().bcast)(buffer, count, datatype, root, comm) };
    fence("MPI_Bcast", default, |tuner| {
        let call = tuner.movement(Collective::Bcast, count.into(), datatype, comm, false)?;
        // SAFETY: the same bytes move between the same ranks; see `Tuner::bcast_as_bytes`.
        Some(tuner.run(
            call,
            Arguments::Bcast {
                buffer,
                count: count.into(),
                datatype,
                root,
            },
            default,
            move |comm| unsafe { tuner.bcast_as_bytes(buffer, count, datatype, root, comm) },
        ))
    })
}

/// `MPI_Allgather` as the application sees it.
///
/// # Safety
/// The caller keeps MPI's own contract for this function; no buffer is read here.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn MPI_Allgather(
    send: *const c_void,
    send_count: c_int,
    send_type: Datatype,
    recv: *mut c_void,
    recv_count: c_int,
    recv_type: Datatype,
    comm: Comm,
) -> c_int {
    // SAFETY: the arguments are forwarded unchanged, so they are exactly as valid as the caller promised.
    let default = move || unsafe {
        (next().allgather)(
            send, send_count, send_type, recv, recv_count, recv_type, comm,
        )
    };
    fence("MPI_Allgather", default, |tuner| {
        if is_in_place(recv) {
            return None;
        }
        let call = tuner.movement(
            Collective::Allgather,
            recv_count.into(),
            recv_type,
            comm,
            is_in_place(send),
        )?;
        let native = tuner.pmpi().allgather;
        // SAFETY: only the communicator differs, and it has the same members in the same order.
        Some(tuner.run(
            call,
            Arguments::Blocks {
                send,
                send_count: send_count.into(),
                send_type,
                recv,
                recv_count: recv_count.into(),
                recv_type,
            },
            default,
            move |comm| unsafe {
                native(
                    send, send_count, send_type, recv, recv_count, recv_type, comm,
                )
            },
        ))
    })
}

/// `MPI_Alltoall` as the application sees it.
///
/// # Safety
/// The caller keeps MPI's own contract for this function; no buffer is read here.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn MPI_Alltoall(
    send: *const c_void,
    send_count: c_int,
    send_type: Datatype,
    recv: *mut c_void,
    recv_count: c_int,
    recv_type: Datatype,
    comm: Comm,
) -> c_int {
    // SAFETY: the arguments are forwarded unchanged, so they are exactly as valid as the caller promised.
    let default = move || unsafe {
        (next().alltoall)(
            send, send_count, send_type, recv, recv_count, recv_type, comm,
        )
    };
    fence("MPI_Alltoall", default, |tuner| {
        if is_in_place(recv) {
            return None;
        }
        let call = tuner.movement(
            Collective::Alltoall,
            recv_count.into(),
            recv_type,
            comm,
            is_in_place(send),
        )?;
        let native = tuner.pmpi().alltoall;
        // SAFETY: only the communicator differs, and it has the same members in the same order.
        Some(tuner.run(
            call,
            Arguments::Blocks {
                send,
                send_count: send_count.into(),
                send_type,
                recv,
                recv_count: recv_count.into(),
                recv_type,
            },
            default,
            move |comm| unsafe {
                native(
                    send, send_count, send_type, recv, recv_count, recv_type, comm,
                )
            },
        ))
    })
}

/// `MPI_Reduce` as the application sees it.
///
/// # Safety
/// The caller keeps MPI's own contract for this function; no buffer is read here.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn MPI_Reduce(
    send: *const c_void,
    recv: *mut c_void,
    count: c_int,
    datatype: Datatype,
    op: Op,
    root: c_int,
    comm: Comm,
) -> c_int {
    // SAFETY: the arguments are forwarded unchanged, so they are exactly as valid as the caller promised.
    let default = move || unsafe { (next().reduce)(send, recv, count, datatype, op, root, comm) };
    fence("MPI_Reduce", default, |tuner| {
        // In place at the root is no shared fact, so it decides nothing.
        let call = tuner.reduction(Collective::Reduce, count.into(), datatype, op, comm, false)?;
        let native = tuner.pmpi().reduce;
        // SAFETY: only the communicator differs, and it has the same members in the same order.
        Some(tuner.run(
            call,
            Arguments::Reduction {
                send,
                recv,
                count: count.into(),
                datatype,
                op,
                root,
            },
            default,
            move |comm| unsafe { native(send, recv, count, datatype, op, root, comm) },
        ))
    })
}

#[cfg(mpi = "mpich")]
mod large_count {
    //! The large-count functions of MPI 4, which newer programs and mpi4py call.

    use super::*;
    use crate::abi::Count;
    use crate::library::large::{next, pmpi};

    /// The library has no such function, though the program calls it: it cannot have been linked.
    const ABSENT: c_int = 15;

    /// `MPI_Allreduce_c` as the application sees it.
    ///
    /// # Safety
    /// The caller keeps MPI's own contract for this function; no buffer is read here.
    #[unsafe(no_mangle)]
    pub unsafe extern "C" fn MPI_Allreduce_c(
        send: *const c_void,
        recv: *mut c_void,
        count: Count,
        datatype: Datatype,
        op: Op,
        comm: Comm,
    ) -> c_int {
        let Some(next) = next() else { return ABSENT };
        // SAFETY: the arguments are forwarded unchanged, so they are exactly as valid as the caller promised.
        let default = move || unsafe { (next.allreduce)(send, recv, count, datatype, op, comm) };
        fence("MPI_Allreduce_c", default, |tuner| {
            if is_refused(send, recv, count) {
                return None;
            }
            let native = pmpi()?.allreduce;
            let call = tuner.reduction(
                Collective::Allreduce,
                count,
                datatype,
                op,
                comm,
                is_in_place(send),
            )?;
            // SAFETY: only the communicator differs, and it has the same members in the same order.
            Some(tuner.run(
                call,
                Arguments::Reduction {
                    send,
                    recv,
                    count,
                    datatype,
                    op,
                    root: 0,
                },
                default,
                move |comm| unsafe { native(send, recv, count, datatype, op, comm) },
            ))
        })
    }

    /// `MPI_Bcast_c` as the application sees it.
    ///
    /// # Safety
    /// The caller keeps MPI's own contract for this function; no buffer is read here.
    #[unsafe(no_mangle)]
    pub unsafe extern "C" fn MPI_Bcast_c(
        buffer: *mut c_void,
        count: Count,
        datatype: Datatype,
        root: c_int,
        comm: Comm,
    ) -> c_int {
        let Some(next) = next() else { return ABSENT };
        // SAFETY: the arguments are forwarded unchanged, so they are exactly as valid as the caller promised.
        let default = move || unsafe { (next.bcast)(buffer, count, datatype, root, comm) };
        fence("MPI_Bcast_c", default, |tuner| {
            let native = pmpi()?.bcast;
            let call = tuner.movement(Collective::Bcast, count, datatype, comm, false)?;
            // SAFETY: only the communicator differs, and it has the same members in the same order.
            Some(tuner.run(
                call,
                Arguments::Bcast {
                    buffer,
                    count,
                    datatype,
                    root,
                },
                default,
                move |comm| unsafe { native(buffer, count, datatype, root, comm) },
            ))
        })
    }

    /// `MPI_Allgather_c` as the application sees it.
    ///
    /// # Safety
    /// The caller keeps MPI's own contract for this function; no buffer is read here.
    #[unsafe(no_mangle)]
    pub unsafe extern "C" fn MPI_Allgather_c(
        send: *const c_void,
        send_count: Count,
        send_type: Datatype,
        recv: *mut c_void,
        recv_count: Count,
        recv_type: Datatype,
        comm: Comm,
    ) -> c_int {
        let Some(next) = next() else { return ABSENT };
        // SAFETY: the arguments are forwarded unchanged, so they are exactly as valid as the caller promised.
        let default = move || unsafe {
            (next.allgather)(
                send, send_count, send_type, recv, recv_count, recv_type, comm,
            )
        };
        fence("MPI_Allgather_c", default, |tuner| {
            if is_in_place(recv) {
                return None;
            }
            let native = pmpi()?.allgather;
            let call = tuner.movement(
                Collective::Allgather,
                recv_count,
                recv_type,
                comm,
                is_in_place(send),
            )?;
            // SAFETY: only the communicator differs, and it has the same members in the same order.
            Some(tuner.run(
                call,
                Arguments::Blocks {
                    send,
                    send_count,
                    send_type,
                    recv,
                    recv_count,
                    recv_type,
                },
                default,
                move |comm| unsafe {
                    native(
                        send, send_count, send_type, recv, recv_count, recv_type, comm,
                    )
                },
            ))
        })
    }

    /// `MPI_Alltoall_c` as the application sees it.
    ///
    /// # Safety
    /// The caller keeps MPI's own contract for this function; no buffer is read here.
    #[unsafe(no_mangle)]
    pub unsafe extern "C" fn MPI_Alltoall_c(
        send: *const c_void,
        send_count: Count,
        send_type: Datatype,
        recv: *mut c_void,
        recv_count: Count,
        recv_type: Datatype,
        comm: Comm,
    ) -> c_int {
        let Some(next) = next() else { return ABSENT };
        // SAFETY: the arguments are forwarded unchanged, so they are exactly as valid as the caller promised.
        let default = move || unsafe {
            (next.alltoall)(
                send, send_count, send_type, recv, recv_count, recv_type, comm,
            )
        };
        fence("MPI_Alltoall_c", default, |tuner| {
            if is_in_place(recv) {
                return None;
            }
            let native = pmpi()?.alltoall;
            let call = tuner.movement(
                Collective::Alltoall,
                recv_count,
                recv_type,
                comm,
                is_in_place(send),
            )?;
            // SAFETY: only the communicator differs, and it has the same members in the same order.
            Some(tuner.run(
                call,
                Arguments::Blocks {
                    send,
                    send_count,
                    send_type,
                    recv,
                    recv_count,
                    recv_type,
                },
                default,
                move |comm| unsafe {
                    native(
                        send, send_count, send_type, recv, recv_count, recv_type, comm,
                    )
                },
            ))
        })
    }

    /// `MPI_Reduce_c` as the application sees it.
    ///
    /// # Safety
    /// The caller keeps MPI's own contract for this function; no buffer is read here.
    #[unsafe(no_mangle)]
    pub unsafe extern "C" fn MPI_Reduce_c(
        send: *const c_void,
        recv: *mut c_void,
        count: Count,
        datatype: Datatype,
        op: Op,
        root: c_int,
        comm: Comm,
    ) -> c_int {
        let Some(next) = next() else { return ABSENT };
        // SAFETY: the arguments are forwarded unchanged, so they are exactly as valid as the caller promised.
        let default = move || unsafe { (next.reduce)(send, recv, count, datatype, op, root, comm) };
        fence("MPI_Reduce_c", default, |tuner| {
            let native = pmpi()?.reduce;
            let call = tuner.reduction(Collective::Reduce, count, datatype, op, comm, false)?;
            // SAFETY: only the communicator differs, and it has the same members in the same order.
            Some(tuner.run(
                call,
                Arguments::Reduction {
                    send,
                    recv,
                    count,
                    datatype,
                    op,
                    root,
                },
                default,
                move |comm| unsafe { native(send, recv, count, datatype, op, root, comm) },
            ))
        })
    }
}
