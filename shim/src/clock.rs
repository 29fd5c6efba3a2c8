//! A clock that costs a few nanoseconds: the processor's time-stamp counter where it is invariant.
//!
//! `clock_gettime` takes 22 ns where the counter takes 8. Ranks of one node use one conversion to
//! nanoseconds (that of the node's first rank), so their readings can be compared.

use bincode::{Decode, Encode};

/// How ticks become nanoseconds: `base_ns + (ticks - base_ticks) * multiplier / 2^32`.
#[derive(Clone, Copy, Debug, Encode, Decode)]
pub struct Conversion {
    base_ticks: u64,
    base_ns: u64,
    multiplier: u64,
}

/// Nanoseconds of CLOCK_MONOTONIC.
pub fn monotonic_ns() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is a valid timespec to write to.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// The present tick.
#[inline(always)]
pub fn ticks() -> u64 {
    #[cfg(target_arch = "x86_64")]
    {
        // SAFETY: every x86-64 processor has this instruction; the kernel leaves it open to programs.
        unsafe { core::arch::x86_64::_rdtsc() }
    }
    #[cfg(not(target_arch = "x86_64"))]
    monotonic_ns()
}

/// A reading of both clocks, taken early; the rate follows from it and a later one.
#[derive(Clone, Copy)]
pub struct Reading {
    ticks: u64,
    ns: u64,
}

impl Reading {
    pub fn now() -> Reading {
        Reading {
            ticks: ticks(),
            ns: monotonic_ns(),
        }
    }

    /// The conversion, calibrated between this reading and now. Waits until 2 ms lie between.
    pub fn calibrate(self) -> Conversion {
        let mut later = Reading::now();
        while later.ns - self.ns < 2_000_000 {
            std::hint::spin_loop();
            later = Reading::now();
        }
        let ticks = u128::from(later.ticks.wrapping_sub(self.ticks).max(1));
        let multiplier = (u128::from(later.ns - self.ns) << 32) / ticks;
        Conversion {
            base_ticks: later.ticks,
            base_ns: later.ns,
            multiplier: multiplier as u64,
        }
    }
}

impl Conversion {
    /// The time of a tick in nanoseconds, on the node's common clock.
    pub fn at_ns(&self, ticks: u64) -> u64 {
        self.base_ns
            .wrapping_add(self.span_ns(ticks.wrapping_sub(self.base_ticks)))
    }

    /// The length of a span of ticks in nanoseconds.
    #[inline(always)]
    pub fn span_ns(&self, ticks: u64) -> u64 {
        ((u128::from(ticks) * u128::from(self.multiplier)) >> 32) as u64
    }
}
