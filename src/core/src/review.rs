//! What the ranks of a communicator conclude together from their samples of one cell.
//!
//! At certain sampled calls of a cell ([`due`]) its ranks combine their observations (the largest and the
//! sum of each, over ranks) and each applies this same function to the same numbers, so all conclude the
//! same: which variants are dropped for the rest of the run, and how far apart samples must be to
//! keep the cost of exploring within its budget.

/// One variant's samples on a communicator, as its ranks agreed on them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Observed {
    /// Sampled calls that ran it: the same number on every rank.
    pub samples: u64,
    /// Of the slowest rank of each call.
    pub fastest_ns: u64,
    pub total_ns: u64,
    /// Mean over the ranks of the time inside a call.
    pub time: Sums,
    /// Mean over the ranks of that and of the time from there to each one's next call: what the call costs the
    /// program. Of the last sample before each review it is not known.
    pub cost: Sums,
}

/// How many values of a quantity there are, their sum and that of their squares.
///
/// Units: nanoseconds and their squares. All ranks compute them alike from numbers that they have agreed on.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sums {
    pub n: u64,
    pub sum: f64,
    pub sum_of_squares: f64,
}

impl Sums {
    pub fn add(&mut self, value: f64) {
        self.n += 1;
        self.sum += value;
        self.sum_of_squares += value * value;
    }
}

/// Where exploring a cell stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Calls of the cell so far, sampled or not.
    pub calls: u64,
    /// Calls that one sample costs, its rehearsals with it.
    pub calls_per_sample: u64,
    /// Wall time since the communicator's first call of this cell.
    pub elapsed_ns: u64,
    /// The share of that time that exploring this cell may cost, in millionths.
    pub budget_ppm: u64,
}

/// The conclusion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Which variants are not drawn any more; as long as the observations.
    pub dropped: Vec<bool>,
    /// The least mean distance of sampled calls from here on.
    pub gap_least: u64,
}

/// A variant is dropped when three samples or more were all slower than this many times the
/// median of the cell's variants, or all it has, and be it the first alone, than this many times
/// what the default takes in the mean.
pub const TIMES_SLOWER_TO_DROP: u64 = 10;
pub const SAMPLES_TO_DROP: u64 = 3;
/// Until a run has this many samples of a cell, the budget widens their distance to
/// [`LEARNING_GAP`] samples' calls at the most: fewer would teach nothing.
pub const LEARNING_SAMPLES: u64 = 64;
pub const LEARNING_GAP: u64 = 4;

/// Messages from this size on come seldom, and a review is quick beside them.
const REVIEWED_EARLY_FROM: u64 = 32 << 10;

/// Whether a review is due after the `samples`-th sample of a cell whose messages have so many bytes at least: at 8,
/// 16, ... 64, 128, 192, ..., and of long messages at 2 and 4, too.
#[inline]
pub const fn due(samples: u64, least_bytes: u64) -> bool {
    let early = least_bytes >= REVIEWED_EARLY_FROM && (samples == 2 || samples == 4);
    early || samples.is_multiple_of(if samples <= 64 { 8 } else { 64 }) && samples > 0
}

/// Whether a variant with so many samples may be drawn: not where a review that knows the default has yet to
/// judge its first one. All ranks count the same samples, and the reviews are theirs together.
#[inline]
pub const fn may_be_drawn(samples: u64, judged: bool) -> bool {
    samples == 0 || judged
}

/// Reviews one cell. `reference` is the place of `default`, against which the cost of exploring
/// counts; without samples of it the fastest variant serves. Total.
pub fn review(observed: &[Observed], reference: Option<usize>, progress: Progress) -> Verdict {
    let mut fastest: Vec<u64> = observed
        .iter()
        .filter(|variant| variant.samples > 0)
        .map(|variant| variant.fastest_ns)
        .collect();
    fastest.sort_unstable();
    let median = fastest
        .get(fastest.len().saturating_sub(1) / 2)
        .copied()
        .unwrap_or(0);
    let mean = |variant: &Observed| variant.total_ns / variant.samples.max(1);
    let default_ns = reference
        .and_then(|place| observed.get(place))
        .filter(|default| default.samples > 0)
        .map(mean);
    let is_dropped = |variant: &Observed| {
        let than = |ns: u64| variant.fastest_ns > ns.saturating_mul(TIMES_SLOWER_TO_DROP);
        variant.samples >= SAMPLES_TO_DROP && than(median)
            || variant.samples > 0 && default_ns.is_some_and(than)
    };
    let dropped: Vec<bool> = observed.iter().map(is_dropped).collect();
    let kept = || {
        observed
            .iter()
            .zip(&dropped)
            .filter(|(variant, dropped)| variant.samples > 0 && !**dropped)
    };
    let base = default_ns
        .or_else(|| kept().map(|(variant, _)| mean(variant)).min())
        .unwrap_or(0);
    let samples = kept()
        .map(|(variant, _)| variant.samples)
        .fold(0, u64::saturating_add);
    let excess: u64 = kept()
        .map(|(variant, _)| {
            variant
                .total_ns
                .saturating_sub(base.saturating_mul(variant.samples))
        })
        .fold(0, u64::saturating_add);
    let excess_per_sample = excess / samples.max(1);
    let time_per_call = progress.elapsed_ns / progress.calls.max(1);
    let allowed_per_call = u128::from(time_per_call) * u128::from(progress.budget_ppm) / 1_000_000;
    let gap_least = u128::from(excess_per_sample)
        .saturating_mul(u128::from(progress.calls_per_sample))
        .checked_div(allowed_per_call)
        .unwrap_or(u128::from(excess_per_sample > 0) * 1000);
    let all_samples = observed
        .iter()
        .map(|variant| variant.samples)
        .fold(0, u64::saturating_add);
    let gap_most = if all_samples < LEARNING_SAMPLES {
        LEARNING_GAP.saturating_mul(progress.calls_per_sample.max(1))
    } else {
        u64::MAX
    };
    Verdict {
        dropped,
        gap_least: u64::try_from(gap_least)
            .unwrap_or(u64::MAX)
            .clamp(1, gap_most),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(samples: u64, each_ns: u64) -> Observed {
        Observed {
            samples,
            fastest_ns: each_ns,
            total_ns: samples * each_ns,
            ..Observed::default()
        }
    }

    const EASY: Progress = Progress {
        calls: 1,
        calls_per_sample: 1,
        elapsed_ns: 1 << 40,
        budget_ppm: 20_000,
    };

    #[test]
    fn three_samples_ten_times_above_the_median_drop_a_variant_and_two_do_not() {
        let rest = [seen(9, 100), seen(8, 110), seen(7, 120)];
        let drop_of = |variant| review(&[rest[0], rest[1], rest[2], variant], None, EASY).dropped;
        assert_eq!(drop_of(seen(3, 1101)), [false, false, false, true]);
        assert_eq!(drop_of(seen(2, 1101)), [false; 4]);
        assert_eq!(drop_of(seen(3, 1100)), [false; 4]);
    }

    #[test]
    fn a_first_sample_ten_times_beyond_the_default_is_the_last_one() {
        let default = seen(4, 100);
        let drop_of = |variant| review(&[default, variant], Some(0), EASY).dropped;
        assert_eq!(drop_of(seen(1, 1001)), [false, true]);
        assert_eq!(drop_of(seen(1, 1000)), [false, false]);
        let unknown = review(&[seen(0, 0), seen(1, 1001)], Some(0), EASY);
        assert_eq!(
            unknown.dropped, [false; 2],
            "nobody knows what the default takes"
        );
        // Draws in turn: whatever comes between two reviews, it is drawn once.
        let (mut observed, mut judged, mut dropped) = ([seen(0, 0); 3], [false; 3], vec![false; 3]);
        let takes = [100, 150, 50_000];
        for draw in 0..300 {
            let wish = [2, 1, 2, 0][draw % 4];
            let waits = !may_be_drawn(observed[wish].samples, judged[wish]);
            let arm = if dropped[wish] || waits { 0 } else { wish };
            observed[arm] = seen(observed[arm].samples + 1, takes[arm]);
            if due(draw as u64 + 1, 8) {
                dropped = review(&observed, Some(0), EASY).dropped;
                judged = observed.map(|arm| arm.samples > 0 && observed[0].samples > 0);
            }
        }
        assert_eq!(observed[2].samples, 1);
        assert!(observed[1].samples > 60, "others go on: {observed:?}");
    }

    #[test]
    fn the_budget_sets_the_distance_of_samples() {
        // Half of the samples cost 1,000 ns more than the default: 500 ns a sample. A call comes
        // every 10,000 ns, of which 2 % are 200 ns: at most two samples in five calls.
        let observed = [seen(80, 1000), seen(80, 2000)];
        let progress = Progress {
            calls: 100,
            calls_per_sample: 1,
            elapsed_ns: 1_000_000,
            budget_ppm: 20_000,
        };
        assert_eq!(review(&observed, Some(0), progress).gap_least, 2);
        assert_eq!(
            review(
                &observed,
                Some(0),
                Progress {
                    budget_ppm: 1_000,
                    ..progress
                }
            )
            .gap_least,
            50
        );
        assert_eq!(
            review(
                &observed,
                Some(0),
                Progress {
                    calls_per_sample: 3,
                    ..progress
                }
            )
            .gap_least,
            7,
            "three calls for a sample cost three times as much"
        );
        assert_eq!(
            review(&observed, Some(1), progress).gap_least,
            1,
            "faster than the default costs nothing"
        );
        let few = [seen(8, 1000), seen(8, 2000)];
        let strict = Progress {
            budget_ppm: 1_000,
            ..progress
        };
        assert_eq!(review(&few, Some(0), strict).gap_least, LEARNING_GAP);
    }

    #[test]
    fn it_is_total() {
        let extremes = [0, 1, u64::MAX];
        for samples in extremes {
            for ns in extremes {
                let variant = Observed {
                    samples,
                    fastest_ns: ns,
                    total_ns: ns,
                    ..Observed::default()
                };
                let progress = Progress {
                    calls: samples,
                    calls_per_sample: ns,
                    elapsed_ns: ns,
                    budget_ppm: ns,
                };
                let verdict = review(&[variant, variant], Some(5), progress);
                assert!(verdict.gap_least >= 1);
            }
        }
        assert!(review(&[], None, EASY).dropped.is_empty());
    }

    #[test]
    fn reviews_are_frequent_at_first_and_come_early_where_messages_are_long() {
        let all = |least_bytes| {
            (0..300)
                .filter(|&n| due(n, least_bytes))
                .collect::<Vec<_>>()
        };
        let first = [8, 16, 24, 32, 40, 48, 56, 64, 128, 192, 256];
        assert_eq!(all((32 << 10) - 1), first);
        assert_eq!(all(32 << 10), [&[2, 4], &first[..]].concat());
    }
}
