//! A clock that costs a few nanoseconds: the processor's time-stamp counter, where it can be trusted.
//!
//! `clock_gettime` takes 22 ns where the counter takes 8. Ranks of one node use one conversion to
//! nanoseconds (that of the node's first rank), so their readings can be compared. Where the counter of any of them
//! cannot be trusted, all of them read CLOCK_MONOTONIC.

use std::sync::atomic::{AtomicBool, Ordering};

use bincode::{Decode, Encode};

/// Whether `ticks` are those of the counter; settled in `Conversion::agreed`, before the first call.
static COUNTER: AtomicBool = AtomicBool::new(false);

/// How ticks become nanoseconds: `base_ns + (ticks - base_ticks) * multiplier / 2^32`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Conversion {
    /// Whether the ticks are those of the counter; otherwise they are nanoseconds already.
    of_counter: bool,
    base_ticks: u64,
    base_ns: u64,
    multiplier: u64,
}

/// Ticks that are nanoseconds of CLOCK_MONOTONIC.
const MONOTONIC: Conversion = Conversion {
    of_counter: false,
    base_ticks: 0,
    base_ns: 0,
    multiplier: 1 << 32,
};

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
    if COUNTER.load(Ordering::Relaxed) {
        counter()
    } else {
        monotonic_ns()
    }
}

#[inline(always)]
fn counter() -> u64 {
    #[cfg(target_arch = "x86_64")]
    {
        // SAFETY: every x86-64 processor has this instruction; the kernel leaves it open to programs.
        unsafe { core::arch::x86_64::_rdtsc() }
    }
    #[cfg(not(target_arch = "x86_64"))]
    monotonic_ns()
}

/// Whether the counter runs at one rate for ever, in step on all processors of this node: the processor says the
/// first (hypervisors that may move a machine to another processor hide that), the kernel the second, by its choice.
fn can_be_trusted() -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        const EXTENDED: u32 = 0x8000_0000;
        const POWER: u32 = 0x8000_0007;
        let known = core::arch::x86_64::__cpuid(EXTENDED).eax >= POWER;
        let invariant = known && core::arch::x86_64::__cpuid(POWER).edx & 1 << 8 != 0;
        let source = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
        invariant && is_in_step(&std::fs::read_to_string(source).unwrap_or_default())
    }
    #[cfg(not(target_arch = "x86_64"))]
    false
}

/// Whether a kernel that keeps time by this source has found nothing wrong with the counter. Of a kernel that does
/// not tell, as in some containers, nothing bad is known.
fn is_in_step(clocksource: &str) -> bool {
    let other_clocks = ["hpet", "acpi_pm", "jiffies", "refined-jiffies", "pit"];
    !other_clocks.contains(&clocksource.trim())
}

/// The shortest span from which a rate is read: readings are within a microsecond, so it is known to 1 %.
const SPAN_LEAST_NS: u64 = 200_000;

/// A reading of both clocks, taken early; the rate follows from it and a later one.
#[derive(Clone, Copy)]
pub struct Reading {
    ticks: u64,
    ns: u64,
}

impl Reading {
    /// The closest of a few readings: one that was interrupted says nothing about the rate.
    pub fn now() -> Reading {
        let read = |_| {
            let (before, ns, after) = (counter(), monotonic_ns(), counter());
            let length = after.wrapping_sub(before);
            let ticks = before.wrapping_add(length / 2);
            (length, Reading { ticks, ns })
        };
        let readings: [_; 5] = std::array::from_fn(read);
        let [mut closest, ..] = readings;
        for reading in readings {
            if reading.0 < closest.0 {
                closest = reading;
            }
        }
        closest.1
    }

    /// The conversion, calibrated between this reading and now. `between` is one from in between; whatever comes too
    /// soon after the one before is waited for.
    pub fn calibrate(self, between: Reading) -> Conversion {
        let middle = match between.ns.saturating_sub(self.ns) < SPAN_LEAST_NS {
            true => self.later(SPAN_LEAST_NS),
            false => between,
        };
        let last = middle.later(SPAN_LEAST_NS);
        let conversion = self.conversion(last);
        if can_be_trusted() && runs_evenly([self, middle, last]) {
            conversion
        } else {
            MONOTONIC
        }
    }

    /// A reading at least so much later than this one.
    fn later(self, ns: u64) -> Reading {
        let mut later = Reading::now();
        while later.ns - self.ns < ns {
            std::hint::spin_loop();
            later = Reading::now();
        }
        later
    }

    /// What ticks are between this reading and a later one.
    fn conversion(self, later: Reading) -> Conversion {
        let ticks = u128::from(later.ticks.wrapping_sub(self.ticks).max(1));
        let multiplier = (u128::from(later.ns - self.ns) << 32) / ticks;
        Conversion {
            of_counter: true,
            base_ticks: later.ticks,
            base_ns: later.ns,
            multiplier: multiplier as u64,
        }
    }
}

/// Whether the counter ran as fast between the first two readings as between the last two, to 2 %: each is within a
/// microsecond unless all its attempts were interrupted, and they are [`SPAN_LEAST_NS`] apart and more.
fn runs_evenly([first, middle, last]: [Reading; 3]) -> bool {
    let rates = [
        first.conversion(middle).multiplier,
        middle.conversion(last).multiplier,
    ];
    rates[0] > 0 && rates[0].abs_diff(rates[1]) <= rates[0] / 50
}

impl Conversion {
    /// What the ranks of a node use, of whom each has calibrated its own; the first rank's comes first. From here on
    /// `ticks` are read accordingly.
    pub fn agreed(mut of_ranks: impl Iterator<Item = Conversion>) -> Conversion {
        let first = of_ranks.next().unwrap_or(MONOTONIC);
        let trusted = first.of_counter && of_ranks.all(|rank| rank.of_counter);
        COUNTER.store(trusted, Ordering::Relaxed);
        if trusted { first } else { MONOTONIC }
    }

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_is_used_where_the_kernel_has_not_given_it_up() {
        for source in ["tsc\n", "kvm-clock\n", "hyperv_clocksource_tsc_page\n", ""] {
            assert!(is_in_step(source), "{source}");
        }
        for source in ["hpet\n", "acpi_pm\n", "jiffies\n"] {
            assert!(!is_in_step(source), "{source}");
        }
    }

    #[test]
    fn a_counter_that_changes_its_rate_is_found_out() {
        let at = |ns: u64, ticks: u64| Reading { ticks, ns };
        let even = [at(0, 7), at(1_000_000, 3_000_007), at(2_100_000, 6_300_007)];
        assert!(runs_evenly(even));
        assert!(!runs_evenly([even[0], even[1], at(2_100_000, 5_000_000)]));
        assert!(!runs_evenly([even[0], even[0], even[2]]));
        let conversion = even[0].conversion(even[2]);
        assert!(conversion.span_ns(3_000).abs_diff(1_000) <= 1);
    }

    #[test]
    fn one_rank_without_a_counter_makes_its_whole_node_do_without() {
        let counter = Conversion {
            of_counter: true,
            multiplier: 1 << 30,
            ..MONOTONIC
        };
        assert_eq!(Conversion::agreed([counter, counter].into_iter()), counter);
        assert_eq!(
            Conversion::agreed([counter, MONOTONIC].into_iter()),
            MONOTONIC
        );
        assert_eq!(MONOTONIC.at_ns(5), 5);
        let (before, now) = (monotonic_ns(), ticks());
        assert!(
            now.abs_diff(before) < 1_000_000_000,
            "ticks are nanoseconds now"
        );
    }
}
