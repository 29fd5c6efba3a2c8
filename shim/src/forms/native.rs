//! The library's own functions, called with arguments as the program passed them, or as its algorithms can take them.

use std::any::TypeId;
use std::ffi::{c_int, c_void};

use colltune_core::collective::Collective;

use crate::abi::{self, Comm, is_in_place};
use crate::arguments::{Arguments, Counted, Reduction, own_rank_at_root};
use crate::library::collectives::{Collectives, Number};
use crate::steer;
use crate::world::World;

/// Runs the library's own function of a collective. `as_it_came` does so with the program's arguments.
///
/// # Safety
/// The arguments, whose counts have the width of `N`, are valid for this collective on `comm`.
#[inline(always)]
pub unsafe fn run<N: Number>(
    world: &World,
    library: &Collectives<N>,
    (collective, arguments): (Collective, &Arguments),
    comm: Comm,
    as_it_came: impl Fn() -> c_int,
) -> c_int {
    let is_int = TypeId::of::<N>() == TypeId::of::<c_int>();
    // SAFETY: the caller promises valid arguments of this collective on `comm`; broadcasts, alltoalls and allgathers move the
    // same bytes between the same ranks, see `steer`.
    let otherwise = unsafe {
        match *arguments {
            Arguments::Reduction(of) => reduce(world, library, collective, of, comm),
            Arguments::Bcast { all, root } if is_int => {
                Some(steer::bcast_as_bytes(world, all, root, comm))
            }
            Arguments::Blocks { send, recv, .. } if is_int => {
                steer::blocks_as_bytes(world, collective, (send, recv), comm)
            }
            _ => None,
        }
    };
    otherwise.unwrap_or_else(as_it_came)
}

/// Reductions that are not run as they came.
///
/// # Safety
/// As for [`run`].
#[inline(always)]
unsafe fn reduce<N: Number>(
    world: &World,
    library: &Collectives<N>,
    collective: Collective,
    of: Reduction,
    comm: Comm,
) -> Option<c_int> {
    let Reduction {
        send,
        recv,
        datatype,
        op,
        root,
        ..
    } = of;
    // SAFETY: the caller promises valid arguments of this collective on `comm`; operands lie where they did, or are
    // copied.
    unsafe {
        match (of.count, collective) {
            (Counted::Each(counts), _) if is_in_place(send) => {
                let function = library.reduce_scatter;
                let run = |send| function(send, recv, counts.pointer(), datatype, op, comm);
                Some(steer::reduce_scatter_apart(world, of, (counts, comm), run))
            }
            // One buffer for both sides, where the library lets that pass, is what its own choice takes for a call in
            // place; some of its algorithms would read what they have written.
            (Counted::All(count), _) if world.takes_aliases() && send == recv.cast_const() => {
                let (in_place, count) = (abi::MPI_IN_PLACE as *const c_void, N::of(count));
                match collective {
                    Collective::Allreduce => Some((library.allreduce)(
                        in_place, recv, count, datatype, op, comm,
                    )),
                    Collective::Scan => {
                        Some((library.scan)(in_place, recv, count, datatype, op, comm))
                    }
                    // Elsewhere the result has no meaning.
                    Collective::Reduce => {
                        let reduce = library.reduce;
                        own_rank_at_root(world, comm, root)
                            .map(|_| reduce(in_place, recv, count, datatype, op, root, comm))
                    }
                    _ => None,
                }
            }
            _ => None,
        }
    }
}
