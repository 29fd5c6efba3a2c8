//! Where a job's time goes: calls of collectives by collective and size, counted all and timed in part, and what is
//! said of them when the job ends.
//!
//! Reading the clock twice costs more than everything else that a call without tuning pays. So of each kind of call
//! the first few are timed, and of the rest one in [`thinning`] at a random distance; long calls are all timed. The
//! time of a kind is that of the first, plus the mean of the rest times their number. Nothing decides by it.

mod cause;
pub use cause::{CAUSES, Cause, Causes, Scope};

mod pairs;
pub use pairs::{MeasuredGain, PairOfEpochs, Pairs};

mod summary;
pub use summary::{
    Exit, JobFacts, JobSummary, OfCollective, OfSize, OverRanks, Refused, Together, WORDS,
};

use crate::collective::Collective;
use crate::select::{key, word};

/// Ranges of message bytes: none, then powers of 4, the last one open.
pub const SIZES: usize = 17;
/// The kinds of calls: a collective and a range of sizes.
pub const KINDS: usize = Collective::ALL.len() * SIZES;

/// So many calls of a kind are timed, each.
const FIRST: u64 = 16;
/// Of the others one in 16 up to this call, then one in 64: by then there are enough for the mean, and what timing
/// costs counts.
const OFTEN: u64 = 1024;
/// From this range on, 64 KiB, a call takes so long that each is timed.
const LONG: usize = 9;

/// The range of sizes that a message falls into.
#[inline(always)]
pub const fn size(bytes: u64) -> usize {
    let bits = (u64::BITS - bytes.leading_zeros()) as usize;
    let size = bits.div_ceil(2);
    if size < SIZES { size } else { SIZES - 1 }
}

/// The least bytes of a range.
pub const fn least_bytes(size: usize) -> u64 {
    if size == 0 { 0 } else { 1 << (2 * (size - 1)) }
}

/// The place of a call's kind.
#[inline(always)]
pub const fn kind(collective: Collective, bytes: u64) -> usize {
    collective.index() * SIZES + size(bytes)
}

/// The number of the next call of a kind that is timed, behind call `index`, which was.
pub fn next_timed(seed: u64, kind: usize, index: u64) -> u64 {
    if index + 1 < FIRST || kind % SIZES >= LONG {
        return index + 1;
    }
    index + 1 + word(key(seed, 0, kind as u64), index) % (2 * thinning(index) - 1)
}

/// How many calls there are for each that is timed, about call `index`.
const fn thinning(index: u64) -> u64 {
    if index < OFTEN { 16 } else { 64 }
}

/// For how many calls of a kind the timed call `index` stands; `None` for one that is timed whatever the random numbers
/// are, and stands for itself.
pub const fn stands_for(kind: usize, index: u64) -> Option<u64> {
    match index < FIRST || kind % SIZES >= LONG {
        true => None,
        false => Some(thinning(index)),
    }
}

/// What one rank has seen of a kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    pub calls: u64,
    /// Of those that are always timed.
    pub always: Timed,
    /// Of the rest.
    pub thinned: Timed,
}

/// Calls for which those stand that were timed, and how long they took by these.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timed {
    pub calls: u64,
    pub ns: u64,
    /// How long they would have taken with the library's own choices, by what trainings have measured.
    pub default_ns: u64,
}

impl Seen {
    /// The time of all calls, by those that were timed.
    pub fn ns(self) -> u64 {
        self.of_all(|timed| timed.ns)
    }

    /// The same with the library's own choices.
    pub fn default_ns(self) -> u64 {
        self.of_all(|timed| timed.default_ns)
    }

    fn of_all(self, ns: fn(Timed) -> u64) -> u64 {
        // So many calls that are like those.
        let like = |timed: Timed, calls: u64| {
            let ns = u128::from(ns(timed)) * u128::from(calls);
            let ns = ns.checked_div(timed.calls.into())?;
            Some(u64::try_from(ns).unwrap_or(u64::MAX))
        };
        let rest = self.calls.saturating_sub(self.always.calls);
        let rest_ns = like(self.thinned, rest).or_else(|| like(self.always, rest));
        ns(self.always).saturating_add(rest_ns.unwrap_or(0))
    }
}

/// How long a call of so many ticks would have taken with the library's own choice, whose time is `gain` times that of
/// what ran; nothing of a gain that is none. Reckoned in whole numbers, since floating-point operations would leave flags in
/// the program's environment, or end it where it traps them.
pub fn default_ticks(ticks: u64, gain: f64) -> u64 {
    const FRACTION_BITS: u32 = 52;
    let bits = gain.to_bits();
    let exponent = (bits >> FRACTION_BITS) as i32;
    // Below zero or next to it.
    if !(1..0x800).contains(&exponent) {
        return 0;
    }
    let significand = bits & ((1 << FRACTION_BITS) - 1) | 1 << FRACTION_BITS;
    let product = u128::from(ticks) * u128::from(significand);
    let ticks = match 1023 + FRACTION_BITS as i32 - exponent {
        below @ 0.. => product.checked_shr(below as u32).unwrap_or(0),
        _ => u128::MAX, // gains of 2^53 and more
    };
    u64::try_from(ticks).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_size_has_its_range_and_every_range_its_kind() {
        assert_eq!(
            [0, 1, 3, 4, 15, 16, 1 << 16, u64::MAX].map(size),
            [0, 1, 1, 2, 2, 3, LONG, SIZES - 1]
        );
        for range in 0..SIZES {
            assert_eq!(size(least_bytes(range)), range);
        }
        let last = kind(Collective::Barrier, u64::MAX);
        assert_eq!(last, KINDS - 1);
    }

    #[test]
    fn ticks_are_multiplied_as_floating_point_numbers_would_be_and_wild_gains_end_nowhere() {
        for gain in [1.0, 1.37, 0.5, 2.0, 1e-3, 17.25, 1e6] {
            for ticks in [0u64, 1, 999, 123_456_789, 1 << 40] {
                let (found, truth) = (default_ticks(ticks, gain), (ticks as f64 * gain) as u64);
                assert!(
                    found.abs_diff(truth) <= 1 + (truth >> 52),
                    "{ticks} {gain}: {found}"
                );
            }
        }
        assert_eq!(
            [0.0, -1.0, 1e-320].map(|gain| default_ticks(1 << 40, gain)),
            [0; 3]
        );
        let wild = [f64::INFINITY, f64::NAN, 1e300];
        assert_eq!(wild.map(|gain| default_ticks(5, gain)), [u64::MAX; 3]);
        assert_eq!(default_ticks(u64::MAX, 3.0), u64::MAX);
    }

    /// Timed calls of a kind, up to some number.
    fn timed(seed: u64, kind: usize, calls: u64) -> Vec<u64> {
        let next = |&index: &u64| Some(next_timed(seed, kind, index));
        std::iter::successors(Some(0), next)
            .take_while(|&index| index < calls)
            .collect()
    }

    #[test]
    fn the_first_and_all_long_calls_are_timed_and_of_the_rest_one_in_16_and_later_in_64() {
        let (short, long) = (
            kind(Collective::Allreduce, 8),
            kind(Collective::Bcast, 1 << 16),
        );
        assert_eq!(timed(1, long, 100), (0..100).collect::<Vec<_>>());
        let places = timed(1, short, 640_000);
        assert_eq!(places[..16], (0..16).collect::<Vec<_>>());
        let often = places.iter().filter(|&&place| place < OFTEN).count();
        assert!((60..100).contains(&often), "{often}");
        assert!((9_800..10_300).contains(&places.len()), "{}", places.len());
        assert_ne!(places, timed(2, short, 640_000), "each rank has its own");
    }

    #[test]
    fn the_time_of_a_kind_is_found_within_five_percent_whatever_its_period() {
        // A program whose every 16th call is a hundred times as long must not be in step with the clock.
        let place = kind(Collective::Allreduce, 8);
        for period in [2, 16, 32] {
            let takes = |index: u64| {
                if index.is_multiple_of(period) {
                    100_000
                } else {
                    1_000
                }
            };
            let calls = 2_000_000;
            let mut seen = Seen {
                calls,
                ..Seen::default()
            };
            for index in timed(3, place, calls) {
                let (part, weight) = match stands_for(place, index) {
                    None => (&mut seen.always, 1),
                    Some(weight) => (&mut seen.thinned, weight),
                };
                part.calls += weight;
                part.ns += weight * takes(index);
                // The library's own choice would have made the long ones three times as long.
                let gain = if takes(index) > 1_000 { 3.0 } else { 1.0 };
                part.default_ns += default_ticks(weight * takes(index), gain);
            }
            let all: u64 = (0..calls).map(takes).sum();
            let long: u64 = (0..calls).map(takes).filter(|ns| *ns > 1_000).sum();
            let ratio = seen.ns() as f64 / all as f64;
            assert!((0.95..1.05).contains(&ratio), "{period}: {ratio}");
            let ratio = seen.default_ns() as f64 / (all + 2 * long) as f64;
            assert!((0.95..1.05).contains(&ratio), "{period}: {ratio}");
        }
        let few = Seen {
            calls: 20,
            always: Timed {
                calls: 16,
                ns: 160,
                default_ns: 320,
            },
            ..Seen::default()
        };
        let all = (few.ns(), few.default_ns());
        assert_eq!(all, (200, 400), "without others the first stand for all");
        assert_eq!(Seen::default().ns(), 0);
    }
}
