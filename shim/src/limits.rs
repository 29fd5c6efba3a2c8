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

/// What a library maps in one go for a communicator or its first messages, and more.
const MAPPED: usize = 16 << 20;

/// Whether as much as that could be mapped still: beyond a limit of the address space a library fails in the middle of
/// what it does, on this rank alone.
pub fn has_address_space() -> bool {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: a new mapping that overlaps nothing; nobody uses it, and it goes at once.
    unsafe {
        let start = libc::mmap(null_mut(), MAPPED, libc::PROT_NONE, flags, -1, 0);
        start != libc::MAP_FAILED && libc::munmap(start, MAPPED) == 0
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_held_never_exceeds_the_limit_unless_it_must_and_comes_back() {
        set_memory_max(100);
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
