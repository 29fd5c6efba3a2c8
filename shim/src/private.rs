//! Communicators of our own beside a program's: made collectively, counted, freed with it.
//!
//! They have the program's members in its order, or some of them. They are made with MPI_Comm_split, because
//! MPI_Comm_dup would call the user's attribute callbacks, and only while a quota lasts: ids are a
//! resource of the program's too, and the error of running out of them would reach its handler.
//!
//! Programs may get away with beginning a nonblocking collective before a blocking one on some ranks and behind it
//! on others, which is wrong, but not noticed: the messages of the two differ. Open MPI's MPI_Comm_split is both, and
//! would wait for ever. So the ranks compare how many they have begun, and make ours when these are as many on all.

use std::ffi::c_int;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::abi::{self, Comm, Errhandler};
use crate::library::{Handles, Pmpi};
use crate::world::World;

/// The most that are alive at once in a process.
const ALIVE_MAX: u64 = 1024;
static ALIVE: AtomicU64 = AtomicU64::new(0);

/// A communicator of ours, made when it is first needed.
#[derive(Clone, Copy, Default)]
pub enum Private {
    #[default]
    Unmade,
    /// Could not be made, on any rank.
    Failed,
    Made(Comm),
    /// Made on other ranks; this one is in none.
    Apart,
}

/// A communicator of the program's, beside which one of ours is made.
#[derive(Clone, Copy)]
pub struct Parent {
    pub comm: Comm,
    /// Nonblocking collectives that this rank has begun on it.
    pub begun: u64,
}

/// Which members of a program's communicator are together in one of ours, and in which order.
#[derive(Clone, Copy)]
pub enum Who {
    All,
    /// Those of one colour, by their keys; who has none is nowhere.
    Coloured {
        colour: Option<c_int>,
        key: c_int,
    },
}

impl Private {
    /// Makes one beside `parent`, by `split`. Collective; `Failed` on all ranks or on none, and still `Unmade` on
    /// all where a nonblocking collective has begun on some ranks alone.
    #[cold]
    pub fn make(world: &World, parent: Parent, split: impl FnOnce() -> Private) -> Private {
        let Parent { comm, begun } = parent;
        let mut agreed = [ALIVE.load(Ordering::Relaxed), begun, !begun];
        if !world.largest(comm, &mut agreed) || agreed[0] >= ALIVE_MAX {
            return Private::Failed;
        }
        let [_, most, not_least] = agreed;
        if most != !not_least {
            return Private::Unmade;
        }
        let mut made = split();
        let mut failed = [u64::from(matches!(made, Private::Failed))];
        let agreed = world.largest(comm, &mut failed) && failed[0] == 0;
        if let Private::Made(_) = made {
            ALIVE.fetch_add(1, Ordering::Relaxed);
        }
        if !agreed {
            made.free(world.pmpi);
            return Private::Failed;
        }
        made
    }

    /// The communicator, on a rank that is in it.
    pub fn comm(self) -> Option<Comm> {
        match self {
            Private::Made(comm) => Some(comm),
            _ => None,
        }
    }

    /// Whether it was made, on this rank or on others.
    pub fn is_there(self) -> bool {
        matches!(self, Private::Made(_) | Private::Apart)
    }

    /// Frees it. Neither Open MPI nor MPICH waits for other ranks in that.
    pub fn free(&mut self, pmpi: &Pmpi) {
        if let Private::Made(mut comm) = std::mem::take(self) {
            // SAFETY: the communicator is ours and nothing is under way on it.
            unsafe { (pmpi.comm_free)(&mut comm) };
            ALIVE.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl From<Option<Comm>> for Private {
    fn from(comm: Option<Comm>) -> Private {
        comm.map_or(Private::Failed, Private::Made)
    }
}

/// A communicator with members of `comm`, which returns errors. Collective over `comm`.
pub fn split(world: &World, comm: Comm, who: Who) -> Private {
    let pmpi = world.pmpi;
    let handler = silence(pmpi, &world.handles, comm);
    let mut made = world.handles.comm_null;
    // SAFETY: `comm` is valid, and all its members make this call here.
    let code = unsafe {
        let (colour, key) = match who {
            Who::Coloured { colour, key } => (colour.unwrap_or(abi::MPI_UNDEFINED as c_int), key),
            Who::All => {
                let mut rank = 0;
                (pmpi.comm_rank)(comm, &mut rank);
                (0, rank)
            }
        };
        (pmpi.comm_split)(comm, colour, key, &mut made)
    };
    restore(pmpi, comm, handler);
    if code != abi::SUCCESS {
        return Private::Failed;
    }
    if abi::bits(made) == abi::bits(world.handles.comm_null) {
        return Private::Apart;
    }
    // SAFETY: the communicator is valid and ours.
    unsafe { (pmpi.comm_set_errhandler)(made, world.handles.errors_return) };
    Private::Made(made)
}

/// Makes a communicator return errors to us; the handler to give back, where that worked.
pub fn silence(pmpi: &Pmpi, handles: &Handles, comm: Comm) -> Option<Errhandler> {
    let mut handler = handles.errors_return;
    // SAFETY: `comm` is valid; both calls are local.
    unsafe {
        ((pmpi.comm_get_errhandler)(comm, &mut handler) == abi::SUCCESS
            && (pmpi.comm_set_errhandler)(comm, handles.errors_return) == abi::SUCCESS)
            .then_some(handler)
    }
}

/// Gives a communicator its error handler back.
pub fn restore(pmpi: &Pmpi, comm: Comm, handler: Option<Errhandler>) {
    if let Some(mut handler) = handler {
        // SAFETY: the handler came from `silence`, which took a reference that is given up here.
        unsafe {
            (pmpi.comm_set_errhandler)(comm, handler);
            (pmpi.errhandler_free)(&mut handler);
        }
    }
}

/// Hands an error of a communicator of ours to the program's own handler, and returns it.
pub fn report(world: &World, comm: Comm, code: c_int) -> c_int {
    if code != abi::SUCCESS {
        // SAFETY: the communicator is the program's, and valid.
        unsafe { (world.pmpi.comm_call_errhandler)(comm, code) };
    }
    code
}
