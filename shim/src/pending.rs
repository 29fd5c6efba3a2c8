//! Requests of collectives that are being recorded, from their start to the call that completes them.
//!
//! Requests are known by their handles and are never replaced. A completion call looks further only
//! while something is under way: one relaxed load otherwise. Requests that it may complete are taken out of the table
//! before the library sees the call, and those that it did not complete are put back behind it. The library may give
//! the handle of a completed request to another thread at once.
//!
//! Calls that were complete when they returned have no request of their own and never come here.
//!
//! A completion that the shim does not see would leave an entry behind, and another request with that
//! handle would be recorded as the old one. So no requests are recorded where a tool stands in front that
//! completes them by itself ([`sees_all`]). Where a program calls PMPI_Wait itself, that shows when a call
//! returns a handle that is still in the table: from then on none are recorded either.

use std::cell::{RefCell, UnsafeCell};
use std::ffi::{CStr, c_int};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};

use colltune_core::thin::next_sampled;

use crate::abi;
use crate::clock;
use crate::fence;
use crate::library;
use crate::tune::PassingCall;

/// One request that is known.
#[derive(Clone, Copy)]
pub struct Entry {
    passing: PassingCall,
    life: Life,
}

#[derive(Clone, Copy)]
enum Life {
    /// It ends with its completion.
    Once { begun: u64 },
    /// A persistent request; `begun` while a sampled start is under way.
    Persistent {
        starts: u64,
        next_sample: u64,
        begun: Option<u64>,
    },
}

struct Place {
    /// The request's handle, [`FREE`] or [`TAKEN`].
    handle: AtomicU64,
    entry: UnsafeCell<Option<Entry>>,
}

// SAFETY: whoever changes a handle to `TAKEN` alone touches the entry until it stores another value.
unsafe impl Sync for Place {}

/// No library's handle of a request.
const FREE: u64 = 0;
const TAKEN: u64 = u64::MAX;
/// More requests at once are not recorded.
const PLACES: usize = 1024;
/// A handle stands at most so many places behind its own.
const PROBES: usize = 8;

static TABLE: [Place; PLACES] = [const {
    Place {
        handle: AtomicU64::new(FREE),
        entry: UnsafeCell::new(None),
    }
}; PLACES];
/// Entries by the places that are theirs, [`PLACES`] / 64 together: a program may ask for a thousand requests of its own
/// at once, and each that is none of ours should cost one look.
static NEAR: [AtomicI64; 64] = [const { AtomicI64::new(0) }; 64];
/// Entries in the table that a completion call may complete. Not below 0 but for moments.
static UNDER_WAY: AtomicI64 = AtomicI64::new(0);
/// Entries, those of persistent requests that are not started included.
static KNOWN: AtomicI64 = AtomicI64::new(0);

/// Whether completions go past the shim.
static BLIND: AtomicBool = AtomicBool::new(false);

/// What completes, starts and frees requests.
const COMPLETING: [&CStr; 11] = [
    c"MPI_Wait",
    c"MPI_Waitall",
    c"MPI_Waitany",
    c"MPI_Waitsome",
    c"MPI_Test",
    c"MPI_Testall",
    c"MPI_Testany",
    c"MPI_Testsome",
    c"MPI_Start",
    c"MPI_Startall",
    c"MPI_Request_free",
];

/// Finds out whether the program's calls of these functions reach the shim first. Called once, at start.
pub fn find_out() {
    if !COMPLETING.iter().all(|name| library::is_ours(name)) {
        BLIND.store(true, Ordering::Relaxed);
    }
}

/// Whether every completion is seen, as far as is known.
#[inline]
pub fn sees_all() -> bool {
    !BLIND.load(Ordering::Relaxed)
}

/// Notes that a call has just returned this handle. An entry that has it already is of a request that
/// was completed out of sight: others may be so, too.
#[inline(always)]
pub fn renew(handle: u64) {
    if KNOWN.load(Ordering::Relaxed) > 0 && take(handle).is_some() {
        forget_all();
    }
}

/// Stops recording requests.
#[cold]
fn forget_all() {
    BLIND.store(true, Ordering::Relaxed);
    for place in &TABLE {
        let handle = place.handle.load(Ordering::Relaxed);
        if ![FREE, TAKEN].contains(&handle) {
            take(handle);
        }
    }
}

/// Remembers the request of a nonblocking call that began at a tick.
pub fn begin(handle: u64, passing: PassingCall, begun: u64) {
    insert(
        handle,
        Entry {
            passing,
            life: Life::Once { begun },
        },
    );
}

/// Remembers a persistent request.
pub fn prepare(handle: u64, passing: PassingCall) {
    let life = Life::Persistent {
        starts: 0,
        next_sample: 0,
        begun: None,
    };
    insert(handle, Entry { passing, life });
}

fn insert(handle: u64, entry: Entry) {
    if sees_all() {
        put(handle, entry);
    }
}

impl Entry {
    fn under_way(&self) -> i64 {
        match self.life {
            Life::Once { .. } | Life::Persistent { begun: Some(_), .. } => 1,
            Life::Persistent { begun: None, .. } => 0,
        }
    }
}

/// The place that is a handle's own.
fn own_place(handle: u64) -> usize {
    (handle.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 54) as usize
}

fn near(handle: u64) -> &'static AtomicI64 {
    &NEAR[own_place(handle) * NEAR.len() / PLACES]
}

fn places(handle: u64) -> impl Iterator<Item = &'static Place> {
    let first = own_place(handle);
    (0..PROBES).map(move |probe| &TABLE[(first + probe) % PLACES])
}

/// Takes the entry of a handle out of the table. Who does not put it back has forgotten it: so does a call
/// that is left by an exception or a longjmp.
fn take(handle: u64) -> Option<Entry> {
    if near(handle).load(Ordering::Relaxed) <= 0 {
        return None;
    }
    let place = places(handle).find(|place| {
        place.handle.load(Ordering::Relaxed) == handle
            && place
                .handle
                .compare_exchange(handle, TAKEN, Ordering::Acquire, Ordering::Relaxed)
                .is_ok()
    })?;
    // SAFETY: this thread changed the handle to `TAKEN`.
    let entry = unsafe { (*place.entry.get()).take() };
    place.handle.store(FREE, Ordering::Release);
    if let Some(entry) = &entry {
        near(handle).fetch_sub(1, Ordering::Relaxed);
        KNOWN.fetch_sub(1, Ordering::Relaxed);
        UNDER_WAY.fetch_sub(entry.under_way(), Ordering::Relaxed);
    }
    entry
}

/// Puts an entry into the table; where there is no room, it is forgotten.
fn put(handle: u64, entry: Entry) {
    let free = places(handle).find(|place| {
        place.handle.load(Ordering::Relaxed) == FREE
            && place
                .handle
                .compare_exchange(FREE, TAKEN, Ordering::Acquire, Ordering::Relaxed)
                .is_ok()
    });
    if let Some(place) = free {
        near(handle).fetch_add(1, Ordering::Relaxed);
        KNOWN.fetch_add(1, Ordering::Relaxed);
        UNDER_WAY.fetch_add(entry.under_way(), Ordering::Relaxed);
        // SAFETY: this thread changed the handle to `TAKEN`.
        unsafe { *place.entry.get() = Some(entry) };
        place.handle.store(handle, Ordering::Release);
    }
}

/// Runs a completion call on `n` requests. `handle` gives the handle that stands at a place now, and
/// `completes` says behind a call that succeeded whether it completed the request at a place.
#[inline(always)]
pub fn complete(
    n: usize,
    handle: impl Fn(usize) -> u64,
    call: impl FnOnce() -> c_int,
    completes: impl Fn(usize) -> bool,
) -> c_int {
    if UNDER_WAY.load(Ordering::Relaxed) <= 0 {
        return call();
    }
    complete_slowly(n, handle, call, completes)
}

thread_local! {
    /// Room for what one completion call takes out: its place, handle and entry.
    static ROOM: RefCell<Vec<(usize, u64, Entry)>> = const { RefCell::new(Vec::new()) };
}

#[cold]
fn complete_slowly(
    n: usize,
    handle: impl Fn(usize) -> u64,
    call: impl FnOnce() -> c_int,
    completes: impl Fn(usize) -> bool,
) -> c_int {
    // An error handler that the library calls may complete other requests: the room is not borrowed
    // while the call runs. A thread that ends has none.
    let mut taken = ROOM.try_with(RefCell::take).unwrap_or_default();
    for place in 0..n {
        let handle = handle(place);
        if let Some(entry) = take(handle) {
            if entry.under_way() > 0 {
                taken.push((place, handle, entry));
            } else {
                put(handle, entry);
            }
        }
    }
    let code = call();
    let now = clock::ticks();
    let null = null();
    for (place, before, entry) in taken.drain(..) {
        let gone = handle(place) == null;
        let done = code == abi::SUCCESS && (gone || completes(place));
        settle(before, entry, gone, done, now);
    }
    let _ = ROOM.try_with(|room| room.replace(taken));
    code
}

/// What became of a request that a completion call was asked about.
fn settle(handle: u64, entry: Entry, gone: bool, done: bool, now: u64) {
    match entry.life {
        Life::Once { begun } if gone => {
            if done {
                record(&entry.passing, begun, now, 0);
            }
        }
        Life::Persistent {
            starts,
            next_sample,
            begun: Some(begun),
        } if done => {
            record(&entry.passing, begun, now, starts - 1);
            let life = Life::Persistent {
                starts,
                next_sample,
                begun: None,
            };
            put(handle, Entry { life, ..entry });
        }
        _ => put(handle, entry),
    }
}

/// MPI_REQUEST_NULL; no handle at all where the tuner is gone.
fn null() -> u64 {
    fence::tuner().map_or(FREE, |tuner| abi::request_bits(tuner.handles.request_null))
}

fn record(passing: &PassingCall, begun: u64, ended: u64, start: u64) {
    if let Some(tuner) = fence::tuner().filter(|_| sees_all()) {
        tuner.record_passing(passing, start, begun, ended);
    }
}

/// Runs a call that starts `n` persistent requests.
#[inline(always)]
pub fn start(n: usize, handle: impl Fn(usize) -> u64, call: impl FnOnce() -> c_int) -> c_int {
    if KNOWN.load(Ordering::Relaxed) <= 0 {
        return call();
    }
    let begun = clock::ticks();
    let code = call();
    if code == abi::SUCCESS {
        (0..n).for_each(|place| started(handle(place), begun));
    }
    code
}

#[cold]
fn started(handle: u64, now: u64) {
    let Some(entry) = take(handle) else { return };
    let Life::Persistent {
        starts,
        next_sample,
        ..
    } = entry.life
    else {
        return put(handle, entry);
    };
    let samples = fence::tuner().map_or(1, |tuner| tuner.rules.terms.settings.samples_per_cell);
    let sampled = starts >= next_sample;
    let after = Entry {
        life: Life::Persistent {
            starts: starts + 1,
            next_sample: if sampled {
                next_sampled(entry.passing.key, starts, 0, samples, 1)
            } else {
                next_sample
            },
            begun: sampled.then_some(now),
        },
        ..entry
    };
    put(handle, after);
}

/// Runs MPI_Request_free.
#[inline(always)]
pub fn free(handle: impl Fn() -> u64, call: impl FnOnce() -> c_int) -> c_int {
    if KNOWN.load(Ordering::Relaxed) <= 0 {
        return call();
    }
    let before = handle();
    let entry = take(before);
    let code = call();
    if let Some(entry) = entry
        && handle() != null()
    {
        put(before, entry);
    }
    code
}
