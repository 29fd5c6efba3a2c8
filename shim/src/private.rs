//! Communicators of our own beside a program's: made collectively, counted, freed with it.
//!
//! They have the program's members in its order, or some of them. They are made with MPI_Comm_split, because
//! MPI_Comm_dup would call the user's attribute callbacks, and only while a quota lasts: ids are a
//! resource of the program's too, and the error of running out of them would reach its handler.
//!
//! Programs may get away with beginning a nonblocking collective before a blocking one on some ranks and behind it
//! on others, which is wrong, but not noticed: the messages of the two differ. Open MPI's MPI_Comm_split is both, and
//! would wait for ever. So the ranks compare how many they have begun, and make ours when these are as many on all.
//! Where they differ time after time, as behind a call that went past the shim on one rank, they make no more.
//!
//! Nor where a member has ever called MPI_Comm_idup, on whatever communicator. Open MPI's goes through stages as the
//! library finds time, each with a nonblocking collective. Where a rank makes another communicator between two of
//! them and others elsewhere, all wait for ever (4.1.4, without the shim as well). While a copy of a communicator
//! with a lower number is under way, Open MPI makes no other. The copy may need ranks that come to it behind the
//! present call.
//!
//! Nor where a member's threads call at will (MPI_THREAD_MULTIPLE): another one may be in MPI_Comm_dup, or in whatever
//! else makes a communicator, and wait there for ranks that come to it behind the present call. Beside that, Open MPI
//! makes none of a higher number either (`ompi_comm_cid_lowest_id`, comm_cid.c), and MPICH's ids are one thread's at a time.

use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::abi::{self, Comm, Errhandler};
use crate::frames;
use crate::library::{Handles, Pmpi};
use crate::limits::{Reservation, has_address_space};
use crate::world::World;

/// The most that are alive at once in a process. MPICH has about 2,048 ids for all communicators of a process, so there
/// ours take few of them.
const ALIVE_MAX: u64 = if cfg!(mpi = "openmpi") { 1024 } else { 128 };
static ALIVE: AtomicU64 = AtomicU64::new(0);
/// Whether this process may be making another communicator while one of ours is made: by MPI_Comm_idup, or in another
/// thread.
static MAKES_OTHERS: AtomicBool = AtomicBool::new(false);
/// What the libraries allocate for one, about, and for each of its ranks.
const BYTES: u64 = 16 << 10;
const BYTES_PER_RANK: u64 = 16;
/// How often the ranks compare in vain what they have begun.
const TRIES: u32 = 16;

/// A communicator of ours, made when it is first needed.
#[derive(Clone, Copy, Default)]
pub enum Private {
    #[default]
    Unmade,
    /// As many times a nonblocking collective had begun on some ranks alone; alike on all ranks.
    PutOff(u32),
    /// Could not be made, on any rank.
    Failed,
    Made(Comm),
    /// Made on other ranks; this one is in none.
    NoMember,
}

/// A communicator of the program's, beside which one of ours is made.
#[derive(Clone, Copy)]
pub struct Parent {
    pub comm: Comm,
    /// Nonblocking collectives that this rank has begun on it.
    pub begun: u64,
}

/// Notes that MPI_Comm_idup is about to be called.
pub fn copied() {
    MAKES_OTHERS.store(true, Ordering::Relaxed);
}

/// Notes that threads of this process call at will.
pub fn has_threads() {
    MAKES_OTHERS.store(true, Ordering::Relaxed);
}

/// Which members of a program's communicator are together in one of ours, and in which order.
#[derive(Clone, Copy)]
pub enum Who {
    /// For carriers alone.
    #[cfg(mpi = "openmpi")]
    All,
    /// Those of one colour, by their keys; without a colour a member is in none of them.
    Coloured { colour: Option<c_int>, key: c_int },
}

impl Private {
    /// Sees to it that there is one beside `parent`, made by `split`. Collective as long as there is none; the answer
    /// is the same on all ranks.
    #[inline]
    pub fn ready(
        &mut self,
        world: &World,
        parent: Parent,
        split: impl FnOnce() -> Private,
    ) -> bool {
        let tries = match self {
            Private::Unmade => 0,
            Private::PutOff(tries) => *tries,
            known => return known.is_there(),
        };
        *self = Private::make(world, parent, tries, split);
        self.is_there()
    }

    /// `Failed` on all ranks or on none, and put off on all where a nonblocking collective has begun on some alone.
    #[cold]
    fn make(world: &World, parent: Parent, tries: u32, split: impl FnOnce() -> Private) -> Private {
        let _agreement = world.spending.opening();
        let Parent { comm, begun } = parent;
        let bytes = bytes(world.pmpi, comm);
        let affordable = has_address_space() && hold(bytes);
        let alive = match affordable && !MAKES_OTHERS.load(Ordering::Relaxed) {
            true => ALIVE.load(Ordering::Relaxed),
            false => ALIVE_MAX,
        };
        let mut agreed = [alive, begun, !begun];
        let known = world.largest(comm, &mut agreed);
        let [alive, most, not_least] = agreed;
        let made = if !known || alive >= ALIVE_MAX {
            Private::Failed
        } else if most == !not_least {
            Private::by(world, comm, split)
        } else if tries + 1 < TRIES {
            Private::PutOff(tries + 1)
        } else {
            Private::Failed
        };
        if affordable && !matches!(made, Private::Made(_)) {
            give_back(bytes);
        }
        made
    }

    fn by(world: &World, comm: Comm, split: impl FnOnce() -> Private) -> Private {
        let mut made = split();
        let mut failed = [u64::from(matches!(made, Private::Failed))];
        if !world.largest(comm, &mut failed) || failed[0] != 0 {
            made.release(world.pmpi);
            return Private::Failed;
        }
        if let Private::Made(_) = made {
            ALIVE.fetch_add(1, Ordering::Relaxed);
        }
        made
    }

    /// One beside the world, in MPI_Init. Nothing has begun there and no other is alive, so all ranks can or none; but
    /// whether the library made it on all they have yet to compare.
    pub fn at_start(pmpi: &Pmpi, handles: &Handles) -> Private {
        let world = handles.comm_world;
        let bytes = bytes(pmpi, world);
        if !hold(bytes) {
            return Private::Failed;
        }
        let made = twin(pmpi, handles, world);
        match made {
            Private::Made(_) => _ = ALIVE.fetch_add(1, Ordering::Relaxed),
            _ => give_back(bytes),
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
        matches!(self, Private::Made(_) | Private::NoMember)
    }

    /// Frees it. Neither Open MPI nor MPICH waits for other ranks in that.
    pub fn free(&mut self, pmpi: &Pmpi) {
        if let Private::Made(comm) = *self {
            give_back(bytes(pmpi, comm));
            ALIVE.fetch_sub(1, Ordering::Relaxed);
        }
        self.release(pmpi);
    }

    fn release(&mut self, pmpi: &Pmpi) {
        if let Private::Made(mut comm) = std::mem::take(self) {
            // SAFETY: the communicator is ours and nothing is under way on it.
            unsafe { (pmpi.comm_free)(&mut comm) };
        }
    }
}

/// What one with as many ranks as `comm` takes of the rank's memory, about.
fn bytes(pmpi: &Pmpi, comm: Comm) -> u64 {
    let mut n_ranks = 0;
    // SAFETY: the communicator is valid; one number is written.
    unsafe { (pmpi.comm_size)(comm, &mut n_ranks) };
    BYTES + BYTES_PER_RANK * u64::try_from(n_ranks).unwrap_or(0)
}

/// What all that are alive hold.
static MEMORY: Mutex<Option<Reservation>> = Mutex::new(None);

fn memory<T>(change: impl FnOnce(&mut Reservation) -> T) -> T {
    let mut memory = MEMORY.lock().unwrap_or_else(PoisonError::into_inner);
    change(memory.get_or_insert_default())
}

fn hold(bytes: u64) -> bool {
    memory(|memory| memory.resize(memory.bytes() + bytes))
}

fn give_back(bytes: u64) {
    memory(|memory| memory.resize(memory.bytes().saturating_sub(bytes)));
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
            #[cfg(mpi = "openmpi")]
            Who::All => {
                let mut rank = 0;
                (pmpi.comm_rank)(comm, &mut rank);
                (0, rank)
            }
        };
        (pmpi.comm_split)(comm, colour, key, &mut made)
    };
    restore(pmpi, comm, handler);
    returning_errors(pmpi, &world.handles, code, made)
}

/// What the library made; it returns errors.
fn returning_errors(pmpi: &Pmpi, handles: &Handles, code: c_int, made: Comm) -> Private {
    if code != abi::SUCCESS {
        return Private::Failed;
    }
    if abi::bits(made) == abi::bits(handles.comm_null) {
        return Private::NoMember;
    }
    // SAFETY: the communicator is valid and ours.
    unsafe { (pmpi.comm_set_errhandler)(made, handles.errors_return) };
    Private::Made(made)
}

/// A communicator of all members of `comm`, in their order, which returns errors. Collective over `comm`. No colours
/// are exchanged here; [`split`] alone is tried with an algorithm forced meanwhile.
fn twin(pmpi: &Pmpi, handles: &Handles, comm: Comm) -> Private {
    let handler = silence(pmpi, handles, comm);
    let (mut group, mut made) = (handles.comm_null, handles.comm_null);
    // SAFETY: `comm` is valid, all its members make this call here, and the group is made, used and freed here.
    let code = unsafe {
        (pmpi.comm_group)(comm, &mut group);
        let code = (pmpi.comm_create)(comm, group, &mut made);
        (pmpi.group_free)(&mut group);
        code
    };
    restore(pmpi, comm, handler);
    returning_errors(pmpi, handles, code, made)
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
        frames::keep_out(|| unsafe { (world.pmpi.comm_call_errhandler)(comm, code) });
    }
    code
}
