//! What Fortran programs on Open MPI see: `mpif.h` and `use mpi` call `mpi_allreduce_`, `use mpi_f08`
//! calls `mpi_allreduce_f08_`. Both go to the library's `PMPI_Allreduce`, past the C wrappers.
//!
//! `default` is the next function of the same name with the arguments untouched. Only a steered call
//! needs C's handles and addresses. The two names take the same arguments, all by reference; with
//! `mpi_f08` the error argument may be absent, which arrives as a null pointer.
//!
//! MPICH's `mpi_allreduce_` calls the C function, so it needs nothing; its `mpi_f08` hands buffers over
//! as array descriptors, which this shim does not read: such calls run untuned.

use std::ffi::{CStr, c_int, c_void};
use std::sync::OnceLock;

use colltune_core::collective::Collective;

use crate::abi::{self, Datatype, Handle, is_in_place};
use crate::fence::fence;
use crate::forms::{
    self, Barrier, Bcast, Blocks, Exchanged, Form, Gathered, ReduceScatter, Reduction, Scattered,
    Side,
};
use crate::library::find;
use crate::p2p;

/// A Fortran INTEGER argument, or a handle, which holds one.
type Integer = *const c_int;
/// The error argument; null where the caller left it out.
type Error = *mut c_int;
type Buffer = *mut c_void;
type FromFortran = unsafe extern "C" fn(c_int) -> Handle;

/// What turns Fortran's arguments into C's.
struct Conversion {
    comm: FromFortran,
    datatype: FromFortran,
    op: FromFortran,
    in_place: usize,
    bottom: usize,
}

impl Conversion {
    fn find() -> Option<&'static Conversion> {
        static FOUND: OnceLock<Option<Conversion>> = OnceLock::new();
        let function = |name: &CStr| {
            let address = find(name);
            // SAFETY: the three symbols are MPI's functions from a Fortran handle to a C handle.
            (!address.is_null())
                .then(|| unsafe { std::mem::transmute::<*mut c_void, FromFortran>(address) })
        };
        let resolve = || {
            Some(Conversion {
                comm: function(c"PMPI_Comm_f2c")?,
                datatype: function(c"PMPI_Type_f2c")?,
                op: function(c"PMPI_Op_f2c")?,
                in_place: common_block(c"mpi_fortran_in_place_"),
                bottom: common_block(c"mpi_fortran_bottom_"),
            })
        };
        FOUND.get_or_init(resolve).as_ref()
    }

    /// The C handle; `None` for what the library itself should refuse.
    ///
    /// # Safety
    /// The caller's arguments are valid, as MPI demands.
    unsafe fn handle(convert: FromFortran, handle: Integer) -> Option<Handle> {
        // SAFETY: a Fortran handle is an integer that is passed by reference.
        let handle = unsafe { convert(*handle) };
        (!handle.is_null()).then_some(handle)
    }

    /// A buffer's address, with C's constants for Fortran's, which are addresses of common blocks.
    fn buffer(&self, buffer: Buffer) -> Buffer {
        match buffer as usize {
            address if address == self.in_place => abi::MPI_IN_PLACE as Buffer,
            address if address == self.bottom => std::ptr::null_mut(),
            _ => buffer,
        }
    }
}

/// The address of a common block as the program itself sees it, or one that no buffer has.
fn common_block(name: &CStr) -> usize {
    // SAFETY: dlsym takes a NUL-terminated name.
    let address = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    if address.is_null() {
        usize::MAX
    } else {
        address as usize
    }
}

/// The next function of a name. It exists, since a program that calls it was linked against one.
fn next(name: &CStr) -> *mut c_void {
    let address = find(name);
    if address.is_null() {
        crate::warn::say("a Fortran MPI function was called, but no MPI library is loaded");
        std::process::abort();
    }
    address
}

/// Hands a code to the caller, if it asked for it.
///
/// # Safety
/// `error` is null or points to an INTEGER.
unsafe fn give(error: Error, code: c_int) {
    if !error.is_null() {
        // SAFETY: the caller's promise.
        unsafe { *error = code };
    }
}

/// Defines the function under both names. `$body` gets the next function, which takes the arguments
/// and a place for the error, and returns the code.
macro_rules! entry {
    ($mpi:literal: $plain:ident, $f08:ident, ($($argument:ident: $kind:ty),*) => $body:path) => {
        entry!(@one $mpi, $plain, ($($argument: $kind),*) => $body);
        entry!(@one $mpi, $f08, ($($argument: $kind),*) => $body);
    };
    (@one $mpi:literal, $name:ident, ($($argument:ident: $kind:ty),*) => $body:path) => {
        #[doc = concat!("`", $mpi, "` as Fortran sees it under this name.\n\n# Safety\n\
                         The caller keeps MPI's own contract for this function.")]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($argument: $kind,)* error: Error) {
            static NEXT: OnceLock<unsafe extern "C" fn($($kind,)* Error)> = OnceLock::new();
            // SAFETY: the next definition of this name has the same signature.
            let next = *NEXT.get_or_init(|| unsafe {
                let name = concat!(stringify!($name), "\0");
                let name = CStr::from_bytes_with_nul_unchecked(name.as_bytes());
                std::mem::transmute::<*mut c_void, unsafe extern "C" fn($($kind,)* Error)>(next(name))
            });
            let default = move || {
                let mut code = abi::SUCCESS;
                // SAFETY: the arguments are forwarded unchanged; the error's place is ours.
                unsafe { next($($argument,)* &mut code) };
                code
            };
            // SAFETY: the arguments are exactly as valid as the caller promised.
            unsafe { give(error, $body(&default, $($argument),*)) };
        }
    };
}

entry!("MPI_Init": mpi_init_, mpi_init_f08_, () => init);
entry!("MPI_Init_thread": mpi_init_thread_, mpi_init_thread_f08_, (required: Integer, provided: *mut c_int) => init_thread);
entry!("MPI_Finalize": mpi_finalize_, mpi_finalize_f08_, () => finalize);
entry!("MPI_Barrier": mpi_barrier_, mpi_barrier_f08_, (comm: Integer) => barrier);
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

unsafe fn init(default: &dyn Fn() -> c_int) -> c_int {
    let code = default();
    crate::start::start_up(code);
    code
}

unsafe fn init_thread(default: &dyn Fn() -> c_int, _: Integer, _: *mut c_int) -> c_int {
    // SAFETY: as in `init`; the arguments are the library's business.
    unsafe { init(default) }
}

unsafe fn finalize(default: &dyn Fn() -> c_int) -> c_int {
    crate::start::wind_down();
    default()
}

type Default<'a> = &'a dyn Fn() -> c_int;

/// Tunes a call whose arguments `form` turns into C's; without a form, and without a communicator
/// that is one, the library runs it.
fn tuned<F: Form>(
    name: &'static str,
    default: Default,
    comm: Integer,
    form: impl FnOnce(&Conversion) -> Option<F>,
) -> c_int {
    fence(name, default, |tuner| {
        let conversion = Conversion::find()?;
        // SAFETY: every argument of Fortran's is passed by reference.
        let comm = unsafe { Conversion::handle(conversion.comm, comm) }?;
        forms::run(tuner, form(conversion)?, comm, default)
    })
}

unsafe fn barrier(default: Default, comm: Integer) -> c_int {
    tuned("MPI_Barrier", default, comm, |_| Some(Barrier))
}

/// Defines reductions that differ in nothing but their name and collective.
macro_rules! reductions {
    ($($name:literal: $function:ident, $collective:ident;)*) => {
        $(unsafe fn $function(
            default: Default,
            send: Buffer,
            recv: Buffer,
            count: Integer,
            datatype: Integer,
            op: Integer,
            comm: Integer,
        ) -> c_int {
            tuned($name, default, comm, |conversion| {
                // SAFETY: every argument is passed by reference.
                unsafe { conversion.reduction(Collective::$collective, [send, recv], count, datatype, op, 0) }
            })
        })*
    };
}

reductions! {
    "MPI_Allreduce": allreduce, Allreduce;
    "MPI_Scan": scan, Scan;
    "MPI_Exscan": exscan, Exscan;
    "MPI_Reduce_scatter_block": reduce_scatter_block, ReduceScatterBlock;
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
    tuned("MPI_Reduce", default, comm, |conversion| {
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
    tuned("MPI_Reduce_scatter", default, comm, |conversion| {
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
    tuned("MPI_Bcast", default, comm, |conversion| {
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

impl Conversion {
    /// # Safety
    /// The caller's arguments are valid, as MPI demands.
    unsafe fn reduction(
        &self,
        collective: Collective,
        [send, recv]: [Buffer; 2],
        count: Integer,
        datatype: Integer,
        op: Integer,
        root: c_int,
    ) -> Option<Reduction<c_int>> {
        // SAFETY: every argument is passed by reference.
        unsafe {
            Some(Reduction {
                collective,
                send: self.buffer(send),
                recv: self.buffer(recv),
                count: *count,
                datatype: Conversion::handle(self.datatype, datatype)?,
                op: Conversion::handle(self.op, op)?,
                root,
            })
        }
    }

    /// One side of a call with equal blocks: buffer, count and type. What has no meaning on this rank
    /// need not be a type: it becomes null, which a form refuses where it looks at it.
    ///
    /// # Safety
    /// As above; in place, count and type need not be valid.
    unsafe fn side(&self, (buffer, count, datatype): Arguments) -> (Buffer, c_int, Datatype) {
        let buffer = self.buffer(buffer);
        if is_in_place(buffer) {
            return (buffer, 0, std::ptr::null_mut());
        }
        // SAFETY: every argument is passed by reference.
        unsafe { (buffer, *count, (self.datatype)(*datatype)) }
    }

    /// # Safety
    /// As above.
    unsafe fn blocks(
        &self,
        collective: Collective,
        send: Arguments,
        recv: Arguments,
        root: c_int,
    ) -> Blocks<c_int> {
        // SAFETY: the caller's promise is passed on.
        let (sent, received) = unsafe { (self.side(send), self.side(recv)) };
        Blocks {
            collective,
            send: sent.0,
            send_count: sent.1,
            // In place there is no type to send, and the library wants one.
            send_type: if sent.2.is_null() { received.2 } else { sent.2 },
            recv: received.0,
            recv_count: received.1,
            recv_type: if received.2.is_null() {
                sent.2
            } else {
                received.2
            },
            root,
        }
    }
}

/// Buffer, count and type of one side.
type Arguments = (Buffer, Integer, Integer);

/// Defines collectives of equal blocks that differ in nothing but their name and collective.
macro_rules! exchanges {
    ($($name:literal: $function:ident($($root:ident)?), $collective:ident;)*) => {
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
            tuned($name, default, comm, |conversion| {
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
    "MPI_Allgather": allgather(), Allgather;
    "MPI_Alltoall": alltoall(), Alltoall;
    "MPI_Gather": gather(root), Gather;
    "MPI_Scatter": scatter(root), Scatter;
}

/// Defines allgatherv and gatherv.
macro_rules! gatherings {
    ($($name:literal: $function:ident($($root:ident)?), $collective:ident;)*) => {
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
            tuned($name, default, comm, |conversion| {
                // SAFETY: every argument is passed by reference.
                unsafe {
                    let (send, send_count, send_type) = conversion.side((send, send_count, send_type));
                    let (recv, _, recv_type) = conversion.side((recv, counts, recv_type));
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
    "MPI_Allgatherv": allgatherv(), Allgatherv;
    "MPI_Gatherv": gatherv(root), Gatherv;
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
    tuned("MPI_Scatterv", default, comm, |conversion| {
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
    tuned("MPI_Alltoallv", default, comm, |conversion| {
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
                send: Side {
                    buffer: send.cast_const(),
                    counts: send_counts,
                    places: send_places,
                    types: send_type,
                },
                recv: Side {
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
    fence("MPI_Alltoallw", default, |tuner| {
        let conversion = Conversion::find()?;
        // SAFETY: every argument is passed by reference.
        let comm = unsafe { Conversion::handle(conversion.comm, comm) }?;
        let in_place = is_in_place(conversion.buffer(send));
        let call = tuner.moving(Collective::Alltoallw, comm, in_place, |_| Some(0))?;
        Some(tuner.run(call, p2p::Arguments::Nothing, default, |_| default()))
    })
}
