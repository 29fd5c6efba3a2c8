//! The library's own functions, called with arguments as the program passed them.

use std::any::TypeId;
use std::ffi::{c_int, c_void};

use colltune_core::collective::Collective;

use crate::abi::{self, Comm, is_in_place};
use crate::arguments::{Arguments, Counted, Reduction, UnevenSide};
use crate::library::collectives::{Collectives, Number};
use crate::steer;
use crate::tune::Tuner;

/// Runs the library's own function of a collective.
///
/// # Safety
/// The arguments, whose counts have the width of `N`, are valid for this collective on `comm`.
#[inline(always)]
pub unsafe fn run<N: Number>(
    tuner: &Tuner,
    library: &Collectives<N>,
    (collective, arguments): (Collective, &Arguments),
    comm: Comm,
) -> c_int {
    let is_int = TypeId::of::<N>() == TypeId::of::<c_int>();
    // SAFETY: the caller promises valid arguments of this collective on `comm`, and each is its function; broadcasts
    // and alltoalls move the same bytes between the same ranks, see `steer`.
    unsafe {
        match *arguments {
            Arguments::Reduction(reduction) => reduce(tuner, library, collective, reduction, comm),
            Arguments::Bcast { all, root } if is_int => {
                let count = all.count as c_int;
                steer::bcast_as_bytes(tuner, all.start, count, all.datatype, root, comm)
            }
            Arguments::Bcast { all, root } => {
                (library.bcast)(all.start, N::of(all.count), all.datatype, root, comm)
            }
            Arguments::Blocks { send, recv, root } => {
                if collective == Collective::Alltoall && is_int {
                    let sent = (send.start.cast_const(), send.count as c_int, send.datatype);
                    let received = (recv.start, recv.count as c_int, recv.datatype);
                    let code = steer::alltoall_as_bytes(tuner, sent, received, comm);
                    if let Some(code) = code {
                        return code;
                    }
                }
                let (from, sent, of_sent) = (send.start, N::of(send.count), send.datatype);
                let (to, received, of_received) = (recv.start, N::of(recv.count), recv.datatype);
                let rooted = match collective {
                    Collective::Gather => library.gather,
                    Collective::Scatter => library.scatter,
                    Collective::Allgather => {
                        let function = library.allgather;
                        return function(from, sent, of_sent, to, received, of_received, comm);
                    }
                    _ => {
                        let function = library.alltoall;
                        return function(from, sent, of_sent, to, received, of_received, comm);
                    }
                };
                rooted(from, sent, of_sent, to, received, of_received, root, comm)
            }
            Arguments::Uneven { send, recv, root } => {
                exchange(library, collective, (send, recv), (root, comm))
            }
            Arguments::Types { .. } => {
                unreachable!("the library has no algorithm of its own to choose for an alltoallw")
            }
            Arguments::Nothing => (tuner.pmpi.barrier)(comm),
        }
    }
}

/// # Safety
/// As for [`run`].
#[inline(always)]
unsafe fn reduce<N: Number>(
    tuner: &Tuner,
    library: &Collectives<N>,
    collective: Collective,
    of: Reduction,
    comm: Comm,
) -> c_int {
    let (send, recv, datatype, op) = (of.send, of.recv, of.datatype, of.op);
    let count = match of.count {
        Counted::All(count) => N::of(count),
        Counted::Each(counts) => {
            let function = library.reduce_scatter;
            // SAFETY: the caller promises valid arguments of a reduce_scatter on `comm`, or the same operands elsewhere.
            let run = |send| unsafe { function(send, recv, counts.pointer(), datatype, op, comm) };
            return match is_in_place(send) {
                // SAFETY: as above.
                true => unsafe { steer::reduce_scatter_apart(tuner, of, (counts, comm), run) },
                false => run(send),
            };
        }
    };
    // One buffer for both sides, where Open MPI lets that pass, is what its own choice takes for a call in place;
    // some of its algorithms would read what they have written.
    let everywhere = matches!(collective, Collective::Allreduce | Collective::Scan);
    let send = match cfg!(mpi = "openmpi") && everywhere && send == recv.cast_const() {
        true => abi::MPI_IN_PLACE as *const c_void,
        false => send,
    };
    // SAFETY: the caller promises valid arguments of this collective on `comm`, and each is its function.
    unsafe {
        match collective {
            Collective::Allreduce => (library.allreduce)(send, recv, count, datatype, op, comm),
            Collective::Scan => (library.scan)(send, recv, count, datatype, op, comm),
            Collective::Exscan => (library.exscan)(send, recv, count, datatype, op, comm),
            Collective::ReduceScatterBlock => {
                (library.reduce_scatter_block)(send, recv, count, datatype, op, comm)
            }
            _ => (library.reduce)(send, recv, count, datatype, op, of.root, comm),
        }
    }
}

/// # Safety
/// As for [`run`].
#[inline(always)]
unsafe fn exchange<N: Number>(
    library: &Collectives<N>,
    collective: Collective,
    sides: (UnevenSide, UnevenSide),
    (root, comm): (c_int, Comm),
) -> c_int {
    use UnevenSide::{Each, One};
    // SAFETY: the caller promises valid arguments of this collective on `comm`, and each is its function; lists have
    // the width of its counts.
    unsafe {
        match sides {
            (One(send), Each(recv)) => {
                let (from, sent, of_sent) = (send.start, N::of(send.count), send.datatype);
                let (counts, places) = (recv.counts.pointer(), recv.places.pointer());
                let (to, of_received) = (recv.start, recv.datatype);
                match collective {
                    Collective::Allgatherv => (library.allgatherv)(
                        from,
                        sent,
                        of_sent,
                        to,
                        counts,
                        places,
                        of_received,
                        comm,
                    ),
                    _ => (library.gatherv)(
                        from,
                        sent,
                        of_sent,
                        to,
                        counts,
                        places,
                        of_received,
                        root,
                        comm,
                    ),
                }
            }
            (Each(send), One(recv)) => {
                let (counts, places) = (send.counts.pointer(), send.places.pointer());
                let (from, of_sent, to) = (send.start, send.datatype, recv.start);
                let (received, of_received) = (N::of(recv.count), recv.datatype);
                (library.scatterv)(
                    from,
                    counts,
                    places,
                    of_sent,
                    to,
                    received,
                    of_received,
                    root,
                    comm,
                )
            }
            (Each(send), Each(recv)) => {
                let (counts, places) = (send.counts.pointer(), send.places.pointer());
                let (received, to_places) = (recv.counts.pointer(), recv.places.pointer());
                let (from, of_sent, to) = (send.start, send.datatype, recv.start);
                let of_received = recv.datatype;
                (library.alltoallv)(
                    from,
                    counts,
                    places,
                    of_sent,
                    to,
                    received,
                    to_places,
                    of_received,
                    comm,
                )
            }
            (One(_), One(_)) => unreachable!("a collective of uneven blocks has a list of counts"),
        }
    }
}
