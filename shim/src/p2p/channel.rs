//! Channels: the tags by which the messages of one communicator are told from all others'.

use std::collections::BTreeSet;
use std::ffi::{c_int, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::abi::{self, Comm};
use crate::library::Pmpi;
use crate::private::{self, Parent, Private, Who};
use crate::tune::Tuner;

/// Tags of one channel. Between two ranks the messages of a communicator match in the order in
/// which they are sent, over all its calls, so one would do; more tell a fault from a match.
const TAGS: u64 = 4;
/// How often members look for a number that is free on all of them.
const TRIES: u32 = 64;

/// The first number that this process has not used.
static NEXT: AtomicU64 = AtomicU64::new(0);
/// The numbers in use.
static IN_USE: Mutex<BTreeSet<u64>> = Mutex::new(BTreeSet::new());

/// The communicator that carries everything.
#[derive(Clone, Copy, Default)]
pub struct World {
    private: Private,
    /// How many channels there can be.
    channels: u64,
    /// A tag that no message has.
    unused_tag: c_int,
}

impl World {
    /// Makes it. Collective over the world, and alike on all its ranks.
    pub fn open(tuner: &Tuner) -> World {
        let world = tuner.handles.comm_world;
        let (mut value, mut flag) = (null_mut::<c_void>(), 0);
        // SAFETY: the world is valid; the attribute's value is the address of an int.
        let largest = unsafe {
            let key = abi::MPI_TAG_UB as c_int;
            (tuner.pmpi.comm_get_attr)(world, key, (&raw mut value).cast(), &mut flag);
            match (flag, value.cast::<c_int>().as_ref()) {
                (1.., Some(tag)) => *tag,
                _ => 0,
            }
        };
        // The least that the standard promises.
        let tags = largest.max(32_767) as u64 + 1;
        let parent = Parent {
            comm: world,
            begun: 0,
        };
        World {
            private: Private::make(tuner, parent, || private::split(tuner, world, Who::All)),
            channels: (tags - 1) / TAGS,
            unused_tag: (tags - 1) as c_int,
        }
    }

    pub fn comm(&self) -> Option<Comm> {
        match self.private {
            Private::Made(comm) => Some(comm),
            _ => None,
        }
    }

    /// Lets the library take care of all messages under way. It asks for one that never comes, from
    /// anybody in the world: a question about one rank, or one that finds something, may end early.
    pub fn progress(&self, pmpi: &Pmpi) {
        let Private::Made(comm) = self.private else {
            return;
        };
        let (mut flag, status) = (0, abi::MPI_STATUS_IGNORE as *mut c_void);
        let source = abi::MPI_ANY_SOURCE as c_int;
        // SAFETY: the communicator is valid; one number is written.
        unsafe { (pmpi.iprobe)(source, self.unused_tag, comm, &mut flag, status) };
    }

    /// Only from MPI_Finalize.
    pub fn free(mut self, pmpi: &Pmpi) {
        self.private.free(pmpi);
    }
}

/// What a communicator has of its own.
#[derive(Default)]
pub enum Channel {
    #[default]
    Unopened,
    /// Could not be opened, on any member.
    Failed,
    Open(Open),
}

pub struct Open {
    number: u64,
    /// The rank in the communicator.
    pub rank: usize,
    /// For each rank of the communicator its rank in the world.
    pub world_ranks: Vec<c_int>,
}

impl Open {
    /// The tag of a call.
    #[inline]
    pub fn tag(&self, call: u32) -> c_int {
        (self.number * TAGS + u64::from(call) % TAGS) as c_int
    }
}

impl Channel {
    /// Opens one for the members of `comm`, all of the world. Collective, and alike on all.
    #[cold]
    pub fn open(tuner: &Tuner, comm: Comm) -> Channel {
        // Alike on all ranks of the world.
        if tuner.p2p.comm().is_none() {
            return Channel::Failed;
        }
        let Some(number) = agree(tuner, comm) else {
            return Channel::Failed;
        };
        let mut rank = 0;
        // SAFETY: the communicator is valid; one number is written.
        unsafe { (tuner.pmpi.comm_rank)(comm, &mut rank) };
        Channel::Open(Open {
            number,
            rank: rank as usize,
            world_ranks: tuner.ranks_in_world(comm),
        })
    }

    /// Gives the number back. Nothing of it is under way: every call ended.
    pub fn free(&mut self) {
        if let Channel::Open(open) = std::mem::take(self) {
            in_use(|numbers| numbers.remove(&open.number));
        }
    }
}

fn in_use<T>(work: impl FnOnce(&mut BTreeSet<u64>) -> T) -> T {
    work(&mut IN_USE.lock().unwrap_or_else(PoisonError::into_inner))
}

/// A number that no member uses for another communicator. Threads may look for several at once,
/// so each is claimed before it is agreed on.
fn agree(tuner: &Tuner, comm: Comm) -> Option<u64> {
    for _ in 0..TRIES {
        let mut wish = [NEXT.load(Ordering::Relaxed)];
        if !tuner.largest(comm, &mut wish) {
            return None;
        }
        NEXT.fetch_max(wish[0] + 1, Ordering::Relaxed);
        let number = wish[0] % tuner.p2p.channels;
        let claimed = in_use(|numbers| numbers.insert(number));
        let mut taken = [u64::from(!claimed)];
        let agreed = tuner.largest(comm, &mut taken);
        if agreed && taken[0] == 0 {
            return Some(number);
        }
        if claimed {
            in_use(|numbers| numbers.remove(&number));
        }
        if !agreed {
            return None;
        }
    }
    None
}
