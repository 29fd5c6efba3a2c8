//! The functions that the application sees. Three moves each, no logic.

mod completing;
mod lifetime;
mod meeting;
mod passing;

use std::ffi::{c_char, c_int, c_void};

use colltune_core::collective::Collective;

#[cfg(not(mpi = "openmpi"))]
use crate::abi::{Aint, Count};
use crate::abi::{Comm, Datatype, Op};
use crate::arguments::lists::{List, Listed};
use crate::arguments::{Arguments, Counted, Side};
use crate::arguments::{UnevenSide::Each, UnevenSide::One, blocks, reduction, uneven};
use crate::fence::fence;
use crate::forms;
use crate::library::collectives::Number;
use crate::library::next;

/// `MPI_Init` as the application sees it.
///
/// # Safety
/// The caller keeps MPI's own contract for this function.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn MPI_Init(argc: *mut c_int, argv: *mut *mut *mut c_char) -> c_int {
    let before = crate::start::before();
    // SAFETY: the arguments are forwarded unchanged, so they are exactly as valid as the caller promised.
    let code = unsafe { (next().init)(argc, argv) };
    crate::start::start_up(code, before);
    code
}

/// `MPI_Init_thread` as the application sees it.
///
/// # Safety
/// The caller keeps MPI's own contract for this function.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn MPI_Init_thread(
    argc: *mut c_int,
    argv: *mut *mut *mut c_char,
    required: c_int,
    provided: *mut c_int,
) -> c_int {
    let before = crate::start::before();
    // SAFETY: the arguments are forwarded unchanged, so they are exactly as valid as the caller promised.
    let code = unsafe { (next().init_thread)(argc, argv, required, provided) };
    crate::start::start_up(code, before);
    code
}

/// `MPI_Finalize` as the application sees it.
///
/// # Safety
/// The caller keeps MPI's own contract for this function.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn MPI_Finalize() -> c_int {
    // SAFETY: there are no arguments.
    crate::start::finalize(|| unsafe { (next().finalize)() })
}

/// `MPI_Barrier` as the application sees it.
///
/// # Safety
/// The caller keeps MPI's own contract for this function.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn MPI_Barrier(comm: Comm) -> c_int {
    // SAFETY: the argument is forwarded unchanged.
    let default = move || unsafe { (next().barrier)(comm) };
    let call = (Collective::Barrier, Arguments::Nothing);
    let tuned = |tuner| forms::run::<c_int>(tuner, call, comm, default);
    let failed = |tuner, code| forms::failed(tuner, call, comm, code);
    fence(default, tuned, failed)
}

/// The library has no such function, though the program calls it: it cannot have been linked.
const ABSENT: c_int = 15;

/// The next definition of a function of this name, looked up once; `None` where there is none.
macro_rules! next_function {
    ($name:ident($($kind:ty),*)) => {{
        type Function = unsafe extern "C-unwind" fn($($kind),*) -> std::ffi::c_int;
        static NEXT: std::sync::OnceLock<Option<Function>> = std::sync::OnceLock::new();
        *NEXT.get_or_init(|| {
            let name = const { concat!(stringify!($name), "\0") };
            let address = crate::library::find(std::ffi::CStr::from_bytes_with_nul(name.as_bytes()).ok()?);
            if address.is_null() {
                return None;
            }
            // SAFETY: the symbol is the MPI function of this name, whose C signature this is.
            Some(unsafe { std::mem::transmute::<*mut std::ffi::c_void, Function>(address) })
        })
    }};
}
use next_function;

/// Defines a collective under its name and, with counts of type `MPI_Count`, under its large-count
/// name. `Elements` and `Place` stand for the types of counts and of displacements; the communicator
/// is the last argument.
macro_rules! collective {
    ($name:ident, $large:ident => $field:ident ($($argument:ident: $kind:ty),*) $collective:ident: $of:expr) => {
        const _: () = {
            type Elements = c_int;
            #[allow(dead_code, reason = "regular collectives have no displacements")]
            type Place = c_int;
            collective!(@one $name => $field ($($argument: $kind),*) $collective: $of, {
                let Some(next) = <c_int as Number>::next() else { unreachable!() };
                next
            });
        };
        // MPI 4 has them, and newer programs and mpi4py call them.
        #[cfg(not(mpi = "openmpi"))]
        const _: () = {
            type Elements = Count;
            #[allow(dead_code, reason = "regular collectives have no displacements")]
            type Place = Aint;
            collective!(@one $large => $field ($($argument: $kind),*) $collective: $of, {
                let Some(next) = <Count as Number>::next() else { return ABSENT };
                next
            });
        };
    };
    (@one $name:ident => $field:ident ($($argument:ident: $kind:ty),*) $collective:ident: $of:expr, $next:block) => {
        #[doc = concat!("`", stringify!($name), "` as the application sees it.\n\n# Safety\n\
                         The caller keeps MPI's own contract for this function.")]
        #[unsafe(no_mangle)]
        #[allow(clippy::too_many_arguments, reason = "they are MPI's")]
        pub unsafe extern "C-unwind" fn $name($($argument: $kind,)* comm: Comm) -> c_int {
            let next = $next;
            // SAFETY: the arguments are forwarded unchanged, so they are exactly as valid as the
            // caller promised.
            let default = move || unsafe { (next.$field)($($argument,)* comm) };
            let tuned = |tuner| forms::run::<Elements>(tuner, (Collective::$collective, $of), comm, default);
            let failed = |tuner, code| forms::failed(tuner, (Collective::$collective, $of), comm, code);
            fence(default, tuned, failed)
        }
    };
}

type In = *const c_void;
type Out = *mut c_void;
type Root = c_int;
/// The addresses of datatypes, one for each rank.
type Types = *const c_void;

collective!(MPI_Allreduce, MPI_Allreduce_c => allreduce
    (send: In, recv: Out, count: Elements, datatype: Datatype, op: Op)
    Allreduce: reduction((send, recv), Counted::all(count), datatype, op, 0));

collective!(MPI_Reduce, MPI_Reduce_c => reduce
    (send: In, recv: Out, count: Elements, datatype: Datatype, op: Op, root: Root)
    Reduce: reduction((send, recv), Counted::all(count), datatype, op, root));

collective!(MPI_Scan, MPI_Scan_c => scan
    (send: In, recv: Out, count: Elements, datatype: Datatype, op: Op)
    Scan: reduction((send, recv), Counted::all(count), datatype, op, 0));

collective!(MPI_Exscan, MPI_Exscan_c => exscan
    (send: In, recv: Out, count: Elements, datatype: Datatype, op: Op)
    Exscan: reduction((send, recv), Counted::all(count), datatype, op, 0));

collective!(MPI_Reduce_scatter_block, MPI_Reduce_scatter_block_c => reduce_scatter_block
    (send: In, recv: Out, count: Elements, datatype: Datatype, op: Op)
    ReduceScatterBlock: reduction((send, recv), Counted::all(count), datatype, op, 0));

collective!(MPI_Reduce_scatter, MPI_Reduce_scatter_c => reduce_scatter
    (send: In, recv: Out, counts: *const Elements, datatype: Datatype, op: Op)
    ReduceScatter: reduction((send, recv), Counted::Each(List::of(counts)), datatype, op, 0));

collective!(MPI_Bcast, MPI_Bcast_c => bcast
    (buffer: Out, count: Elements, datatype: Datatype, root: Root)
    Bcast: Arguments::Bcast { all: Side::new(buffer, count, datatype), root });

collective!(MPI_Allgather, MPI_Allgather_c => allgather
    (send: In, send_count: Elements, send_type: Datatype, recv: Out, recv_count: Elements, recv_type: Datatype)
    Allgather: blocks((send, send_count, send_type), (recv, recv_count, recv_type), 0));

collective!(MPI_Alltoall, MPI_Alltoall_c => alltoall
    (send: In, send_count: Elements, send_type: Datatype, recv: Out, recv_count: Elements, recv_type: Datatype)
    Alltoall: blocks((send, send_count, send_type), (recv, recv_count, recv_type), 0));

collective!(MPI_Gather, MPI_Gather_c => gather
    (send: In, send_count: Elements, send_type: Datatype, recv: Out, recv_count: Elements, recv_type: Datatype,
     root: Root)
    Gather: blocks((send, send_count, send_type), (recv, recv_count, recv_type), root));

collective!(MPI_Scatter, MPI_Scatter_c => scatter
    (send: In, send_count: Elements, send_type: Datatype, recv: Out, recv_count: Elements, recv_type: Datatype,
     root: Root)
    Scatter: blocks((send, send_count, send_type), (recv, recv_count, recv_type), root));

collective!(MPI_Allgatherv, MPI_Allgatherv_c => allgatherv
    (send: In, send_count: Elements, send_type: Datatype, recv: Out, counts: *const Elements, places: *const Place,
     recv_type: Datatype)
    Allgatherv: uneven(One(Side::new(send, send_count, send_type)),
        Each(Listed::new(recv, counts, places, recv_type)), 0));

collective!(MPI_Gatherv, MPI_Gatherv_c => gatherv
    (send: In, send_count: Elements, send_type: Datatype, recv: Out, counts: *const Elements, places: *const Place,
     recv_type: Datatype, root: Root)
    Gatherv: uneven(One(Side::new(send, send_count, send_type)),
        Each(Listed::new(recv, counts, places, recv_type)), root));

collective!(MPI_Scatterv, MPI_Scatterv_c => scatterv
    (send: In, counts: *const Elements, places: *const Place, send_type: Datatype, recv: Out, recv_count: Elements,
     recv_type: Datatype, root: Root)
    Scatterv: uneven(Each(Listed::new(send, counts, places, send_type)),
        One(Side::new(recv, recv_count, recv_type)), root));

collective!(MPI_Alltoallv, MPI_Alltoallv_c => alltoallv
    (send: In, send_counts: *const Elements, send_places: *const Place, send_type: Datatype,
     recv: Out, recv_counts: *const Elements, recv_places: *const Place, recv_type: Datatype)
    Alltoallv: uneven(Each(Listed::new(send, send_counts, send_places, send_type)),
        Each(Listed::new(recv, recv_counts, recv_places, recv_type)), 0));

collective!(MPI_Alltoallw, MPI_Alltoallw_c => alltoallw
    (send: In, send_counts: *const Elements, send_places: *const Place, send_types: Types,
     recv: Out, recv_counts: *const Elements, recv_places: *const Place, recv_types: Types)
    Alltoallw: Arguments::Types { send, recv, received: List::of(recv_counts) });
