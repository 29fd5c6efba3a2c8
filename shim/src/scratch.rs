//! Memory that calls use and give back: one block of bytes and a few lists for each process.
//!
//! Nothing in it outlives a call, so all communicators, algorithms and threads share it. Threads whose calls
//! run at the same time have one each beside it.

use std::alloc::{Layout, alloc, dealloc};
use std::cell::Cell;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

use crate::abi::Request;

/// Every region of a block begins on a cache line.
pub const ALIGN: usize = 64;

/// A block of bytes of no particular content.
pub struct Block {
    start: *mut u8,
    bytes: usize,
}

impl Block {
    /// Sees to it that the block has at least `bytes` bytes; what it held is lost. False where
    /// there is no such memory, and then the block is as it was.
    pub fn reserve(&mut self, bytes: usize) -> bool {
        if bytes <= self.bytes {
            return true;
        }
        let Ok(layout) = Layout::from_size_align(bytes, ALIGN) else {
            return false;
        };
        // SAFETY: the layout's size is above that of the present block, so it is not zero.
        let start = unsafe { alloc(layout) };
        if start.is_null() {
            return false;
        }
        // What was there before is given back by this.
        *self = Block { start, bytes };
        true
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
        }
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        if let Ok(layout) = Layout::from_size_align(self.bytes, ALIGN)
            && self.bytes > 0
        {
            // SAFETY: a block of more than 0 bytes came from `alloc` with this layout.
            unsafe { dealloc(self.start, layout) };
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

/// Who borrows memory: what runs on a node runs schedules between nodes meanwhile.
#[derive(Clone, Copy)]
pub enum User {
    Schedule,
    Node,
}

/// The process's own, for each user; null while a thread has it.
static SHARED: [AtomicPtr<Scratch>; 2] = [const { AtomicPtr::new(null_mut()) }; 2];

thread_local! {
    static OWN: [Cell<Option<Box<Scratch>>>; 2] = const { [Cell::new(None), Cell::new(None)] };
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
    // Where an exception or a longjmp leaves the work, messages may be under way out of the memory: it is left to
    // them, and the next one to ask gets other.
    // SAFETY: it came out of a box, and whoever takes it is its only owner.
    let result = work(unsafe { &mut *lent });
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
