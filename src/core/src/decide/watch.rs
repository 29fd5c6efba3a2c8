//! Watching a choice in `exploit`: now and then the default runs next to it, in pairs whose order is drawn.

use crate::race::{Finding, Race};
use crate::select::word;
use crate::thin::next_sampled;

/// The watch over one cell's choice.
#[derive(Clone, Debug)]
pub(super) struct Watch {
    pub race: Race,
    /// The mean distance of pairs that the settings ask for.
    gap: u64,
    /// The same in force.
    gap_now: u64,
}

/// The arms.
pub(super) const DEFAULT_ARM: usize = 0;
pub(super) const CHOICE_ARM: usize = 1;

/// Where the choice seems to be slower than the default pairs are that many times as dense.
const CLOSER: u64 = 20;
/// The part of the draws' random numbers that orders pairs.
const ORDER: u64 = 1 << 60;

impl Watch {
    pub fn new(race: Race, gap: u64) -> Watch {
        Watch {
            race,
            gap,
            gap_now: gap,
        }
    }

    /// The arm of the `samples`-th sample: of each pair one arm and then the other.
    #[inline]
    pub fn arm(&self, key: u64, samples: u64) -> usize {
        let first = word(key, ORDER | (samples / 2)) & 1;
        match first ^ (samples & 1) {
            0 => DEFAULT_ARM,
            _ => CHOICE_ARM,
        }
    }

    /// The call that is sampled next, behind call `index`, after so many samples.
    pub fn next_sample(&self, key: u64, index: u64, rehearsals: u64, samples: u64) -> u64 {
        let gap = match samples % 2 {
            0 => self.gap_now,
            _ => 0,
        };
        next_sampled(key, index, rehearsals, u32::MAX, gap)
    }

    /// Whether the pairs are compared after so many samples: after the first one, which tells what a pair costs, and
    /// after every fourth.
    #[inline]
    pub const fn is_due(samples: u64) -> bool {
        samples == 2 || samples.is_multiple_of(8)
    }

    /// Judges the pairs so far. A call may cost `allowed_ns` more in the mean for them.
    pub fn judge(&mut self, calls_per_sample: u64, allowed_ns: u64) -> Finding {
        let watched = self.race.watch(CHOICE_ARM);
        let cost_ns = watched.excess_ns * calls_per_sample as f64;
        let affordable = (cost_ns / allowed_ns.max(1) as f64) as u64;
        let gap = match watched.finding {
            Finding::Suspected => self.gap / CLOSER,
            Finding::Holds | Finding::Slower => self.gap,
        };
        self.gap_now = gap.max(affordable);
        watched.finding
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::race::Sample;
    use crate::select::mix;

    const REHEARSALS: u64 = 2;
    const CALL_NS: f64 = 20_000.0;

    fn uniform(seed: u64, what: u64) -> f64 {
        (mix(seed, what) >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Relative noise, uniform with a standard deviation of 10 %.
    fn noise(seed: u64, call: u64) -> f64 {
        1.0 + 0.1 * f64::sqrt(12.0) * (uniform(seed, call) - 0.5)
    }

    /// Watches a choice that takes `factor` of what the default takes; the call at which it is left, and how many
    /// calls ran the default.
    fn left_at(factor: f64, calls: u64, seed: u64) -> (Option<u64>, u64) {
        let race = Race::new([0.5, 0.5].into_iter(), DEFAULT_ARM).unwrap();
        let mut watch = Watch::new(race, 200);
        let (mut samples, mut fresh, mut default) = (0, Vec::new(), 0);
        let mut next = watch.next_sample(seed, 0, REHEARSALS, 0);
        for call in 0..calls {
            let drawn = call + REHEARSALS >= next;
            let arm = watch.arm(seed, samples);
            default += u64::from(drawn && arm == DEFAULT_ARM);
            if call != next {
                continue;
            }
            fresh.push(Sample {
                arm,
                call,
                class: 0,
                time_ns: CALL_NS * [1.0, factor][arm] * noise(seed, call),
                shift_ns: None,
            });
            samples += 1;
            if Watch::is_due(samples) {
                watch.race.learn(&fresh, CHOICE_ARM, call);
                fresh.clear();
                if watch.judge(REHEARSALS + 1, (CALL_NS * factor * 0.005) as u64) == Finding::Slower
                {
                    return (Some(call), default);
                }
            }
            next = watch.next_sample(seed, call, REHEARSALS, samples);
        }
        (None, default)
    }

    #[test]
    fn each_pair_has_both_arms_in_either_order() {
        let race = Race::new([0.5, 0.5].into_iter(), DEFAULT_ARM).unwrap();
        let watch = Watch::new(race, 200);
        let pairs = (0..100).map(|pair| [0, 1].map(|which| watch.arm(7, 2 * pair + which)));
        let first = pairs.filter(|pair| {
            assert_ne!(pair[0], pair[1]);
            pair[0] == DEFAULT_ARM
        });
        assert!((35..65).contains(&first.count()));
    }

    #[test]
    fn a_choice_a_tenth_slower_than_the_default_is_left_within_two_thousand_calls() {
        let mut left: Vec<u64> = (0..40)
            .map(|seed| left_at(1.1, 100_000, seed).0.expect("it is left"))
            .collect();
        left.sort_unstable();
        println!("median {}, most {}", left[20], left[39]);
        assert!(left[20] < 2_000, "median {}", left[20]);
    }

    #[test]
    fn a_choice_that_is_faster_is_hardly_ever_left_and_watching_it_is_cheap() {
        for factor in [0.95, 0.7, 0.02] {
            let (mut left, mut default) = (0, 0);
            for seed in 0..50 {
                let (at, ran) = left_at(factor, 20_000, seed);
                left += u64::from(at.is_some());
                default += ran;
            }
            let share = default as f64 / (50.0 * 20_000.0);
            println!("{factor}: {left} left, the default ran {share} of the calls");
            assert!(left <= 1, "{factor}: {left} of 50");
            let cost = share * (1.0 - factor) / factor;
            assert!(cost < 0.02, "{factor}: watching costs {cost}");
        }
    }
}
