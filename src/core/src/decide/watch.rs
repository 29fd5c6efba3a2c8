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
    pub fn next_sample(&self, key: u64, index: u64, warmups: u64, samples: u64) -> u64 {
        let gap = match samples % 2 {
            0 => self.gap_now,
            _ => 0,
        };
        next_sampled(key, index, warmups, u32::MAX, gap)
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

    const WARMUPS: u64 = 2;
    const CALL_NS: f64 = 20_000.0;
    /// By this call nine in ten choices are left that are a tenth slower than the default.
    const LEFT_BY: u64 = 4_000;
    /// A call may cost this share more for being watched, as `watch` is set by default.
    const ALLOWED: f64 = 0.005;

    fn uniform(seed: u64, what: u64) -> f64 {
        (mix(seed, what) >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Relative noise, uniform with a standard deviation of 10 %.
    fn noise(seed: u64, call: u64) -> f64 {
        1.0 + 0.1 * f64::sqrt(12.0) * (uniform(seed, call) - 0.5)
    }

    /// Watches a choice that takes `factor` of what the default takes; the call at which it is left, and the calls
    /// that ran the default.
    fn left_at(factor: f64, calls: u64, seed: u64) -> (Option<u64>, Vec<u64>) {
        let race = Race::new([0.5, 0.5].into_iter(), DEFAULT_ARM).unwrap();
        let mut watch = Watch::new(race, 200);
        let (mut samples, mut fresh, mut default) = (0, Vec::new(), Vec::new());
        let mut next = watch.next_sample(seed, 0, WARMUPS, 0);
        for call in 0..calls {
            let drawn = call + WARMUPS >= next;
            let arm = watch.arm(seed, samples);
            if drawn && arm == DEFAULT_ARM {
                default.push(call);
            }
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
                let allowed_ns = (CALL_NS * factor * ALLOWED) as u64;
                if watch.judge(WARMUPS + 1, allowed_ns) == Finding::Slower {
                    return (Some(call), default);
                }
            }
            next = watch.next_sample(seed, call, WARMUPS, samples);
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
        let (median, nine_in_ten) = (left[20], left[35]);
        let most = left[39];
        println!("median {median}, nine in ten {nine_in_ten}, most {most}");
        assert!(median < 2_000, "median {median}");
        assert!(nine_in_ten < LEFT_BY, "nine in ten {nine_in_ten}");
    }

    #[test]
    fn a_choice_that_is_faster_is_hardly_ever_left_and_watching_it_is_cheap() {
        for factor in [0.95, 0.7, 0.02] {
            let (mut left, mut default) = (0, 0);
            for seed in 0..50 {
                let (at, ran) = left_at(factor, 20_000, seed);
                left += u64::from(at.is_some());
                default += ran.len();
            }
            let share = default as f64 / (50.0 * 20_000.0);
            println!("{factor}: {left} left, the default ran {share} of the calls");
            assert!(left <= 1, "{factor}: {left} of 50");
            // The first pair, before anything is known, is in it.
            let cost = share * (1.0 - factor) / factor;
            assert!(cost < 0.02, "{factor}: watching costs {cost}");
        }
    }

    #[test]
    fn once_it_is_known_what_a_pair_costs_watching_costs_no_more_than_is_allowed() {
        const JOBS: u64 = 20;
        for (factor, calls) in [(0.95, 200_000), (0.7, 200_000), (0.02, 4_000_000)] {
            let (mut watched, mut default) = (0, 0);
            for seed in 0..JOBS {
                let (at, ran) = left_at(factor, calls, seed);
                if at.is_none() {
                    watched += 1;
                    default += ran.iter().filter(|call| **call >= calls / 2).count();
                }
            }
            assert!(watched + 2 >= JOBS, "{factor}: {watched} of {JOBS}");
            let share = default as f64 / (watched * calls / 2) as f64;
            let cost = share * (1.0 - factor) / factor;
            println!("{factor}: watching costs {cost:.5} of a call");
            // Pairs come by chance: a tenth more or less of them.
            assert!(cost > 0.0 && cost <= 1.1 * ALLOWED, "{factor}: {cost}");
        }
    }
}
