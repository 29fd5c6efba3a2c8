//! Channels: the tags that keep the messages of one communicator apart from all others'.

use std::collections::BTreeSet;
use std::ffi::c_int;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::abi::Comm;
use crate::members;
use crate::world::World;

/// Tags of one channel. Between two ranks the messages of a communicator match in the order in
/// which they are sent, over all its calls, so one would do; more tell a fault from a match.
const TAGS: u64 = 4;
/// How often members look for a number that is free on all of them.
const TRIES: u32 = 64;

/// The first number that this process has not used.
static NEXT: AtomicU64 = AtomicU64::new(0);
/// The numbers in use.
static IN_USE: Mutex<BTreeSet<u64>> = Mutex::new(BTreeSet::new());

/// What a communicator has of its own.
#[derive(Default)]
pub enum Channel {
    #[default]
    Unopened,
    /// Could not be opened, on any member.
    Failed,
    Open(OpenChannel),
}

pub struct OpenChannel {
    number: u64,
    /// The rank in the communicator.
    pub rank: usize,
    /// For each rank of the communicator its rank in the world.
    pub world_ranks: Vec<c_int>,
}

impl OpenChannel {
    /// The tag of a call.
    #[inline]
    pub fn tag(&self, call: u32) -> c_int {
        (self.number * TAGS + u64::from(call) % TAGS) as c_int
    }
}

impl Channel {
    /// Opens one for the members of `comm`, all of the world. Collective, and alike on all.
    #[cold]
    pub fn open(world: &World, comm: Comm) -> Channel {
        // Alike on all ranks of the world.
        if world.messages.comm().is_none() {
            return Channel::Failed;
        }
        let world_ranks = members::world_ranks(world, comm).ok();
        let Some((number, world_ranks)) = agree(world, comm, world_ranks) else {
            return Channel::Failed;
        };
        let mut rank = 0;
        // SAFETY: the communicator is valid; one number is written.
        unsafe { (world.pmpi.comm_rank)(comm, &mut rank) };
        Channel::Open(OpenChannel {
            number,
            rank: rank as usize,
            world_ranks,
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

/// What a member wishes for that does not know who the others are.
const NONE: u64 = u64::MAX;

/// A number that no member uses for another communicator, where all know who they are. Threads may look for several at
/// once, so each is claimed before it is agreed on.
fn agree(world: &World, comm: Comm, world_ranks: Option<Vec<c_int>>) -> Option<(u64, Vec<c_int>)> {
    for _ in 0..TRIES {
        let mut wish = [match world_ranks {
            Some(_) => NEXT.load(Ordering::Relaxed),
            None => NONE,
        }];
        if !world.largest(comm, &mut wish) || wish[0] == NONE {
            return None;
        }
        NEXT.fetch_max(wish[0] + 1, Ordering::Relaxed);
        let number = wish[0] % (world.messages.tags() / TAGS);
        let claimed = in_use(|numbers| numbers.insert(number));
        let mut taken = [u64::from(!claimed)];
        let agreed = world.largest(comm, &mut taken);
        if agreed && taken[0] == 0 {
            return Some(number).zip(world_ranks);
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
