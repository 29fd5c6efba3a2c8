//! One account for all memory that the shim has on this rank between the program's calls.
//!
//! Whoever allocates asks first, where the ranks agree on whether all have room anyway; who is refused says no there,
//! and all run `default`. What little cannot be refused is counted all the same, so that others get less.

use std::ptr::null_mut;
use std::sync::atomic::{AtomicU64, Ordering};

/// The setting `memory_per_rank_max`, in bytes.
static MAX: AtomicU64 = AtomicU64::new(64 << 20);
static HELD: AtomicU64 = AtomicU64::new(0);

/// Says how many bytes the account has; the same on all ranks.
pub fn set_memory_max(bytes: u64) {
    MAX.store(bytes, Ordering::Relaxed);
}

/// What a library takes for communicators and messages of ours, and more.
const OF_THE_LIBRARY: u64 = 16 << 20;

/// Whether this process may map all that the account has left, and what the library takes for it. Near the limit of its
/// address space (RLIMIT_AS), or of its data, what we take would make the program's own calls fail.
pub fn has_address_space() -> bool {
    let is_limited = |what| {
        let mut limit = libc::rlimit {
            rlim_cur: 0,
            rlim_max: 0,
        };
        // SAFETY: one limit is written.
        let code = unsafe { libc::getrlimit(what, &mut limit) };
        code != 0 || limit.rlim_cur != libc::RLIM_INFINITY
    };
    if !is_limited(libc::RLIMIT_AS) && !is_limited(libc::RLIMIT_DATA) {
        return true;
    }
    let left = MAX.load(Ordering::Relaxed);
    let left = left.saturating_sub(HELD.load(Ordering::Relaxed));
    let bytes = usize::try_from(left.saturating_add(OF_THE_LIBRARY)).unwrap_or(usize::MAX);
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: a new mapping that overlaps nothing; it is never used and goes at once.
    unsafe {
        let start = libc::mmap(null_mut(), bytes, access, flags, -1, 0);
        start != libc::MAP_FAILED && libc::munmap(start, bytes) == 0
    }
}

/// Bytes of the account, which gets them back when this is dropped.
#[derive(Debug, Default)]
pub struct Reservation {
    bytes: u64,
}

impl Reservation {
    /// `None` where the account has not so much left.
    pub fn of(bytes: u64) -> Option<Reservation> {
        let mut reservation = Reservation::default();
        reservation.resize(bytes).then_some(reservation)
    }

    /// Holds so many bytes from now on. False where the account has not so much left; then it holds what it held.
    pub fn resize(&mut self, bytes: u64) -> bool {
        let max = MAX.load(Ordering::Relaxed);
        let changed = HELD.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |held| {
            let held = (held - self.bytes).saturating_add(bytes);
            // Giving back is always right, also where more is held than there may be.
            (held <= max || bytes <= self.bytes).then_some(held)
        });
        if changed.is_ok() {
            self.bytes = bytes;
        }
        changed.is_ok()
    }

    /// Holds so many bytes from now on, also beyond the limit: of what a call needs that all ranks have decided on.
    pub fn must_hold(&mut self, bytes: u64) {
        HELD.fetch_add(bytes, Ordering::Relaxed);
        HELD.fetch_sub(self.bytes, Ordering::Relaxed);
        self.bytes = bytes;
    }

    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        HELD.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// The account for one test alone, with so many bytes.
#[cfg(test)]
pub fn alone_with(bytes: u64) -> std::sync::MutexGuard<'static, ()> {
    static ALONE: std::sync::Mutex<()> = std::sync::Mutex::new(());
    let alone = ALONE
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    set_memory_max(bytes);
    alone
}

/// What is held of it.
#[cfg(test)]
pub fn held() -> u64 {
    HELD.load(Ordering::Relaxed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_held_never_exceeds_the_limit_unless_it_must_and_comes_back() {
        let _account = alone_with(100);
        let mut first = Reservation::of(60).unwrap();
        assert!(Reservation::of(41).is_none());
        let second = Reservation::of(40).unwrap();
        assert!(!first.resize(61));
        assert_eq!(first.bytes(), 60);
        first.must_hold(90);
        // Over the limit: less may be held, and nothing more.
        assert!(first.resize(80) && !first.resize(81));
        drop(second);
        assert!(first.resize(100));
        drop(first);
        assert_eq!(HELD.load(Ordering::Relaxed), 0);
        assert!(Reservation::of(u64::MAX).is_none());
    }
}
