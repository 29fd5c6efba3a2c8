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

use crate::abi::{self, Comm, Datatype, Handle, Op, is_in_place};
use crate::fence::fence;
use crate::intercept::is_refused;
use crate::library::find;
use crate::p2p::Arguments;

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
entry!("MPI_Allreduce": mpi_allreduce_, mpi_allreduce_f08_,
    (send: Buffer, recv: Buffer, count: Integer, datatype: Integer, op: Integer, comm: Integer) => allreduce);
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

/// A reduction's arguments in C's terms.
struct Reduction {
    send: Buffer,
    recv: Buffer,
    count: c_int,
    datatype: Datatype,
    op: Op,
    comm: Comm,
}

impl Reduction {
    /// # Safety
    /// The caller's arguments are valid, as MPI demands.
    unsafe fn convert(
        send: Buffer,
        recv: Buffer,
        count: Integer,
        datatype: Integer,
        op: Integer,
        comm: Integer,
    ) -> Option<Reduction> {
        let conversion = Conversion::find()?;
        // SAFETY: every argument is passed by reference.
        unsafe {
            Some(Reduction {
                send: conversion.buffer(send),
                recv: conversion.buffer(recv),
                count: *count,
                datatype: Conversion::handle(conversion.datatype, datatype)?,
                op: Conversion::handle(conversion.op, op)?,
                comm: Conversion::handle(conversion.comm, comm)?,
            })
        }
    }

    fn arguments(&self, root: c_int) -> Arguments {
        Arguments::Reduction {
            send: self.send,
            recv: self.recv,
            count: self.count.into(),
            datatype: self.datatype,
            op: self.op,
            root,
        }
    }
}

unsafe fn allreduce(
    default: &dyn Fn() -> c_int,
    send: Buffer,
    recv: Buffer,
    count: Integer,
    datatype: Integer,
    op: Integer,
    comm: Integer,
) -> c_int {
    fence("MPI_Allreduce", default, |tuner| {
        // SAFETY: the caller's arguments.
        let c = unsafe { Reduction::convert(send, recv, count, datatype, op, comm) }?;
        if is_refused(c.send, c.recv, c.count.into()) {
            return None;
        }
        let in_place = is_in_place(c.send);
        let which = Collective::Allreduce;
        let call = tuner.reduction(which, c.count.into(), c.datatype, c.op, c.comm, in_place)?;
        let native = tuner.pmpi().allreduce;
        // SAFETY: only the communicator differs, and it has the same members in the same order.
        Some(tuner.run(call, c.arguments(0), default, |comm| unsafe {
            native(c.send, c.recv, c.count, c.datatype, c.op, comm)
        }))
    })
}

#[expect(clippy::too_many_arguments, reason = "MPI_Reduce has seven")]
unsafe fn reduce(
    default: &dyn Fn() -> c_int,
    send: Buffer,
    recv: Buffer,
    count: Integer,
    datatype: Integer,
    op: Integer,
    root: Integer,
    comm: Integer,
) -> c_int {
    fence("MPI_Reduce", default, |tuner| {
        // SAFETY: the caller's arguments.
        let (c, root) = unsafe {
            let converted = Reduction::convert(send, recv, count, datatype, op, comm)?;
            (converted, *root)
        };
        let which = Collective::Reduce;
        let call = tuner.reduction(which, c.count.into(), c.datatype, c.op, c.comm, false)?;
        let native = tuner.pmpi().reduce;
        // SAFETY: only the communicator differs, and it has the same members in the same order.
        Some(tuner.run(call, c.arguments(root), default, |comm| unsafe {
            native(c.send, c.recv, c.count, c.datatype, c.op, root, comm)
        }))
    })
}

unsafe fn bcast(
    default: &dyn Fn() -> c_int,
    buffer: Buffer,
    count: Integer,
    datatype: Integer,
    root: Integer,
    comm: Integer,
) -> c_int {
    fence("MPI_Bcast", default, |tuner| {
        let conversion = Conversion::find()?;
        let buffer = conversion.buffer(buffer);
        // SAFETY: every argument is passed by reference.
        let (count, root, datatype, comm) = unsafe {
            let datatype = Conversion::handle(conversion.datatype, datatype)?;
            let comm = Conversion::handle(conversion.comm, comm)?;
            (*count, *root, datatype, comm)
        };
        let call = tuner.movement(Collective::Bcast, count.into(), datatype, comm, false)?;
        let arguments = Arguments::Bcast {
            buffer,
            count: count.into(),
            datatype,
            root,
        };
        // SAFETY: the same bytes move between the same ranks; see `Tuner::bcast_as_bytes`.
        Some(tuner.run(call, arguments, default, |comm| unsafe {
            tuner.bcast_as_bytes(buffer, count, datatype, root, comm)
        }))
    })
}

/// The arguments of allgather and alltoall as Fortran passes them.
struct Blocks {
    send: Buffer,
    send_count: Integer,
    send_type: Integer,
    recv: Buffer,
    recv_count: Integer,
    recv_type: Integer,
    comm: Integer,
}

impl Blocks {
    /// # Safety
    /// The caller's arguments are valid, as MPI demands.
    unsafe fn run(&self, collective: Collective, default: &dyn Fn() -> c_int) -> c_int {
        fence("an exchange of blocks", default, |tuner| {
            let conversion = Conversion::find()?;
            let (send, recv) = (conversion.buffer(self.send), conversion.buffer(self.recv));
            if is_in_place(recv) {
                return None;
            }
            let in_place = is_in_place(send);
            // SAFETY: every argument is passed by reference. In place, those of the send buffer are
            // not significant and need not be valid.
            let (recv_count, recv_type, send_count, send_type, comm) = unsafe {
                let recv_type = Conversion::handle(conversion.datatype, self.recv_type)?;
                let (send_count, send_type) = if in_place {
                    (0, recv_type)
                } else {
                    let send_type = Conversion::handle(conversion.datatype, self.send_type)?;
                    (*self.send_count, send_type)
                };
                let comm = Conversion::handle(conversion.comm, self.comm)?;
                (*self.recv_count, recv_type, send_count, send_type, comm)
            };
            let call = tuner.movement(collective, recv_count.into(), recv_type, comm, in_place)?;
            let arguments = Arguments::Blocks {
                send,
                send_count: send_count.into(),
                send_type,
                recv,
                recv_count: recv_count.into(),
                recv_type,
            };
            let native = match collective {
                Collective::Allgather => tuner.pmpi().allgather,
                _ => tuner.pmpi().alltoall,
            };
            // SAFETY: only the communicator differs, and it has the same members in the same order.
            Some(tuner.run(call, arguments, default, |comm| unsafe {
                native(
                    send, send_count, send_type, recv, recv_count, recv_type, comm,
                )
            }))
        })
    }
}

#[expect(clippy::too_many_arguments, reason = "MPI_Allgather has seven")]
unsafe fn allgather(
    default: &dyn Fn() -> c_int,
    send: Buffer,
    send_count: Integer,
    send_type: Integer,
    recv: Buffer,
    recv_count: Integer,
    recv_type: Integer,
    comm: Integer,
) -> c_int {
    #[rustfmt::skip]
    let blocks = Blocks { send, send_count, send_type, recv, recv_count, recv_type, comm };
    // SAFETY: the caller's arguments.
    unsafe { blocks.run(Collective::Allgather, default) }
}

#[expect(clippy::too_many_arguments, reason = "MPI_Alltoall has seven")]
unsafe fn alltoall(
    default: &dyn Fn() -> c_int,
    send: Buffer,
    send_count: Integer,
    send_type: Integer,
    recv: Buffer,
    recv_count: Integer,
    recv_type: Integer,
    comm: Integer,
) -> c_int {
    #[rustfmt::skip]
    let blocks = Blocks { send, send_count, send_type, recv, recv_count, recv_type, comm };
    // SAFETY: the caller's arguments.
    unsafe { blocks.run(Collective::Alltoall, default) }
}
