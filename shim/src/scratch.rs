//! Memory that calls use and give back: one block of bytes and a few lists for each process.
//!
//! Nothing in it outlives a call, so all communicators, algorithms and threads share it. Threads whose calls
//! run at the same time have one each beside it. A communicator is [promised](Promise) what its calls need when its
//! ranks agree on them; what no living communicator was promised goes back to the system.

use std::cell::Cell;
use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::abi::Request;
use crate::limits::Reservation;

/// Every region of a block begins on a cache line.
pub const ALIGN: usize = 64;
/// Blocks are whole pages, or several.
const PAGES: usize = 16 << 10;

/// A block of bytes of no particular content.
pub struct Block {
    start: *mut u8,
    bytes: usize,
    held: Reservation,
    /// A call needed more than the rank may hold.
    exceeds: bool,
}

impl Block {
    /// Sees to it that the block has at least `bytes` bytes; what it held is lost. False where the rank may not have
    /// so much memory, or there is none, and then the block is as it was.
    pub fn reserve(&mut self, bytes: usize) -> bool {
        let Some(bytes) = bytes.checked_next_multiple_of(PAGES) else {
            return false;
        };
        if bytes <= self.bytes {
            return true;
        }
        let held = self.held.bytes();
        if !self.held.resize(bytes as u64) {
            return false;
        }
        let mapped = self.map(bytes);
        if !mapped {
            self.held.resize(held);
        }
        mapped
    }

    /// The same for a call that all ranks have decided on: only where there is no memory at all it is refused.
    #[inline]
    pub fn provide(&mut self, bytes: usize) -> bool {
        bytes <= self.bytes || self.reserve(bytes) || self.provide_more(bytes)
    }

    #[cold]
    fn provide_more(&mut self, bytes: usize) -> bool {
        let bytes = bytes.checked_next_multiple_of(PAGES);
        let mapped = bytes.is_some_and(|bytes| self.map(bytes));
        self.held.must_hold(self.bytes as u64);
        self.exceeds |= mapped;
        mapped
    }

    /// Makes the block so long, above 0. False where that cannot be, and then it is as it was.
    fn map(&mut self, bytes: usize) -> bool {
        // SAFETY: a new mapping that overlaps nothing; or the present one, which is this block's own and not in use,
        // changes its length and perhaps its place.
        let start = unsafe {
            if self.bytes == 0 {
                let access = libc::PROT_READ | libc::PROT_WRITE;
                let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
                libc::mmap(null_mut(), bytes, access, kind, -1, 0)
            } else {
                libc::mremap(self.start.cast(), self.bytes, bytes, libc::MREMAP_MAYMOVE)
            }
        };
        if start == libc::MAP_FAILED {
            return false;
        }
        (self.start, self.bytes) = (start.cast(), bytes);
        true
    }

    /// Gives back what is behind the first `bytes` bytes.
    fn shrink(&mut self, bytes: usize) {
        self.exceeds = false;
        let bytes = bytes.next_multiple_of(PAGES);
        if bytes == 0 {
            *self = Block::default();
        } else if bytes < self.bytes && self.map(bytes) {
            self.held.resize(bytes as u64);
        }
    }

    pub fn start(&self) -> *mut u8 {
        self.start
    }

    /// Leaves the memory to messages that are still under way, for ever.
    pub fn abandon(&mut self) {
        std::mem::forget(std::mem::take(self));
    }
}

impl Default for Block {
    fn default() -> Block {
        Block {
            start: null_mut(),
            bytes: 0,
            held: Reservation::default(),
            exceeds: false,
        }
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        if self.bytes > 0 {
            // SAFETY: the mapping is this block's own, and nothing uses it any more.
            unsafe { libc::munmap(self.start.cast::<c_void>(), self.bytes) };
        }
    }
}

/// What a thread's calls use.
#[derive(Default)]
pub struct Scratch {
    pub block: Block,
    pub requests: Vec<Request>,
    /// For each request the operation whose received pieces lie in its staging buffer.
    pub staged: Vec<Option<u32>>,
    /// Where each temporary, and each request's staging buffer, begins.
    pub temporaries: Vec<*mut u8>,
    pub staging: Vec<*mut u8>,
    /// The operation that is under way.
    pub at: usize,
    /// For each receive between nodes how many bytes are received before it.
    pub before: Vec<u64>,
}

/// What a call needs of it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Demand {
    pub bytes: usize,
    pub requests: usize,
    pub temporaries: usize,
}

impl Demand {
    /// As much as either needs.
    pub fn max(self, other: Demand) -> Demand {
        Demand {
            bytes: self.bytes.max(other.bytes),
            requests: self.requests.max(other.requests),
            temporaries: self.temporaries.max(other.temporaries),
        }
    }
}

impl Scratch {
    fn reserve(&mut self, demand: Demand) -> bool {
        fn has_room<T>(list: &mut Vec<T>, most: usize) -> bool {
            list.clear();
            list.try_reserve(most).is_ok()
        }
        has_room(&mut self.requests, demand.requests)
            && has_room(&mut self.staged, demand.requests)
            && has_room(&mut self.staging, demand.requests)
            && has_room(&mut self.before, demand.requests)
            && has_room(&mut self.temporaries, demand.temporaries)
            && self.block.reserve(demand.bytes)
    }
}

/// Who borrows memory: what runs on a node runs schedules between nodes meanwhile, and what pads blocks either.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum User {
    Schedule,
    Node,
    Padded,
}

/// How many they are.
pub const USERS: usize = 3;

/// The process's own, for each user; null while a thread has it.
static SHARED: [AtomicPtr<Scratch>; USERS] = [const { AtomicPtr::new(null_mut()) }; USERS];
/// The bytes of each user's promises to living communicators, sorted.
static PROMISED: [Mutex<Vec<usize>>; USERS] = [const { Mutex::new(Vec::new()) }; USERS];

thread_local! {
    static OWN: [Cell<Option<Box<Scratch>>>; USERS] = const { [const { Cell::new(None) }; USERS] };
}

/// Lends the memory out. A thread whose calls run beside another's, and a call inside another, should
/// there ever be one, gets its own.
pub fn with<T>(user: User, work: impl FnOnce(&mut Scratch) -> T) -> T {
    let place = user as usize;
    let shared = SHARED[place].swap(null_mut(), Ordering::Acquire);
    let lent = if shared.is_null() {
        // A program may call MPI from what runs after its main thread's own memory is gone.
        let kept = OWN.try_with(|all| all[place].take()).ok().flatten();
        Box::into_raw(kept.unwrap_or_default())
    } else {
        shared
    };
    // Where an exception or a longjmp leaves the work, the library may still read the memory for messages: it is left
    // to them, and the next caller gets another. SAFETY: it came out of a box, and whoever takes it is its only
    // owner.
    let result = work(unsafe { &mut *lent });
    // What goes beyond the limit would keep all else from being held, for good. Phases of a call in a node's memory come
    // back for theirs.
    // SAFETY: it came out of a box, and has no other owner before it is given back below.
    let block = unsafe { &mut (*lent).block };
    if block.exceeds && !matches!(user, User::Node) {
        block.shrink(promised(user).last().copied().unwrap_or(0));
    }
    let null = null_mut();
    if let Err(_taken) =
        SHARED[place].compare_exchange(null, lent, Ordering::Release, Ordering::Relaxed)
    {
        // SAFETY: it was not given away.
        let own = unsafe { Box::from_raw(lent) };
        let _ = OWN.try_with(|all| all[place].set(Some(own)));
    }
    result
}

/// How much scratch memory a communicator may count on.
#[derive(Debug)]
pub struct Promise {
    user: User,
    bytes: usize,
}

impl Promise {
    /// Nothing yet.
    pub const fn to(user: User) -> Promise {
        Promise { user, bytes: 0 }
    }

    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Makes room for calls that need so much. False where there is none; then the promise is what it was.
    #[cold]
    pub fn raise(&mut self, demand: Demand) -> bool {
        // The lock keeps others from taking anything back meanwhile.
        let mut all = promised(self.user);
        let noted = all.try_reserve(1).is_ok();
        let fits = noted && with(self.user, |scratch| scratch.reserve(demand));
        if fits && demand.bytes > self.bytes {
            replace(&mut all, self.bytes, demand.bytes);
            self.bytes = demand.bytes;
        }
        fits
    }

    /// Takes back what goes beyond so many bytes, and frees memory beyond all promises.
    #[cold]
    pub fn lower(&mut self, bytes: usize) {
        if bytes < self.bytes {
            let mut all = promised(self.user);
            replace(&mut all, self.bytes, bytes);
            self.bytes = bytes;
            let most = all.last().copied().unwrap_or(0);
            with(self.user, |scratch| scratch.block.shrink(most));
        }
    }
}

impl Drop for Promise {
    fn drop(&mut self) {
        self.lower(0);
    }
}

fn promised(user: User) -> MutexGuard<'static, Vec<usize>> {
    PROMISED[user as usize]
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
}

/// Replaces one of the sorted promises by another; 0 is none. There is room for one more.
fn replace(all: &mut Vec<usize>, old: usize, new: usize) {
    if let Ok(place) = all.binary_search(&old) {
        all.remove(place);
    }
    if new > 0 {
        let place = all.partition_point(|bytes| *bytes < new);
        all.insert(place, new);
    }
}
