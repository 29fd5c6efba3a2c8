//! When the ranks of a communicator conclude together from their samples of one cell, what is hopeless among its
//! variants, and how far apart samples must be.
//!
//! At certain sampled calls of a cell ([`due`]) its ranks combine their observations (the largest and the sum of
//! each, over ranks). Each applies the same functions to the same numbers, here and in the [`race`] of the variants,
//! so all conclude the same.
//!
//! [`race`]: crate::race

/// One variant's samples on a communicator, as its ranks agreed on them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Observed {
    /// Sampled calls that ran it: the same number on every rank.
    pub samples: u64,
    /// Of the slowest rank of each call.
    pub fastest_ns: u64,
    pub total_ns: u64,
}

/// Where exploring a cell stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Calls of the cell so far, sampled or not.
    pub calls: u64,
    /// Calls that one sample costs, its warm-up calls with it.
    pub calls_per_sample: u64,
    /// Wall time since the communicator's first call of this cell.
    pub elapsed_ns: u64,
    /// The share of that time that exploring this cell may cost, in millionths.
    pub budget_ppm: u64,
}

impl Progress {
    /// What exploring may cost a call in the mean.
    pub fn allowed_per_call_ns(&self) -> u64 {
        let time_per_call = self.elapsed_ns / self.calls.max(1);
        let allowed = u128::from(time_per_call) * u128::from(self.budget_ppm) / 1_000_000;
        u64::try_from(allowed).unwrap_or(u64::MAX)
    }
}

/// A variant is dropped when three samples or more were all slower than this many times the median of the cell's
/// variants. It is also dropped when all its samples, be it one alone, were slower than this many times the default's
/// mean.
pub const TIMES_SLOWER_TO_DROP: u64 = 10;
pub const SAMPLES_TO_DROP: u64 = 3;
/// Until a run has this many samples of a cell, the budget widens their distance to
/// [`LEARNING_GAP`] samples' calls at the most: fewer would teach nothing.
pub const LEARNING_SAMPLES: u64 = 64;
pub const LEARNING_GAP: u64 = 4;

/// As if a job had run that long at least: later time pays for what agreements cost at its start.
const CREDIT_NS: u64 = 1_000_000_000;
/// Samples are at most that many times as far apart as their own cell asks for.
const STRETCH_MAX: u64 = 64;

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

/// The places of what is so slow that it is not drawn again; `reference` is that of `default`. Total.
pub fn hopeless(observed: &[Observed], reference: usize) -> impl Iterator<Item = usize> {
    let sampled = observed.iter().filter(|variant| variant.samples > 0);
    let mut fastest: Vec<u64> = sampled.map(|variant| variant.fastest_ns).collect();
    fastest.sort_unstable();
    let median = fastest.get(fastest.len().saturating_sub(1) / 2).copied();
    let median = median.unwrap_or(0);
    let default = observed.get(reference).filter(|one| one.samples > 0);
    let default_ns = default.map(|default| default.total_ns / default.samples);
    let all = observed.iter().enumerate();
    all.filter(move |(_, variant)| {
        let than = |ns: u64| variant.fastest_ns > ns.saturating_mul(TIMES_SLOWER_TO_DROP);
        variant.samples >= SAMPLES_TO_DROP && than(median)
            || variant.samples > 0 && default_ns.is_some_and(than)
    })
    .map(|(place, _)| place)
}

/// The least mean distance of sampled calls after so many samples, where a call that is drawn costs `excess_ns` more
/// than another one. Total.
pub fn gap_least(excess_ns: u64, samples: u64, progress: Progress) -> u64 {
    let cost_ns = excess_ns.saturating_mul(progress.calls_per_sample);
    let gap = cost_ns
        .checked_div(progress.allowed_per_call_ns())
        .unwrap_or(u64::from(excess_ns > 0) * 1000);
    let gap_most = match samples < LEARNING_SAMPLES {
        true => LEARNING_GAP.saturating_mul(progress.calls_per_sample.max(1)),
        false => u64::MAX,
    };
    gap.clamp(1, gap_most)
}

/// What agreements on all its communicators have cost a rank, in millionths of its time. Total.
pub fn spent_ppm(spent_ns: u64, elapsed_ns: u64) -> u64 {
    let spent = u128::from(spent_ns) * 1_000_000 / u128::from(elapsed_ns.max(CREDIT_NS));
    u64::try_from(spent).unwrap_or(u64::MAX)
}

/// Of what a communicator costs no more than this is believed: ranks that come late are waited for, too.
const EACH_MOST_NS: u64 = 100_000_000;
/// The least budget for that, in millionths: not all of it is exploring.
const EACH_LEAST_PPM: u64 = 20_000;

/// Whether a rank can pay for one more communicator that is tuned: for agreements, memory shared with neighbours, and so
/// on, which were `each_ns` on the mean so far. It can where agreements have cost it no more than the budget yet, or where
/// the communicator has lived so long that this once is no more of its life. Who has made many that lived shortly
/// expects the next one to live no longer than it has. Total.
pub fn pays(spent_ppm: u64, budget_ppm: u64, (lived_ns, each_ns): (u64, u64)) -> bool {
    let budget_ppm = budget_ppm.max(EACH_LEAST_PPM);
    let affordable = u128::from(lived_ns) * u128::from(budget_ppm) / 1_000_000;
    spent_ppm <= budget_ppm || affordable >= u128::from(each_ns.min(EACH_MOST_NS))
}

/// The least distance of a cell's samples where agreements have cost `spent_ppm` of the time of the rank that they cost
/// most: as many times as far apart as that is beyond `budget_ppm`. Fewer samples draw fewer variants that the ranks have
/// not agreed on yet, and lead to fewer reviews. Total.
pub fn stretched(gap_least: u64, spent_ppm: u64, budget_ppm: u64) -> u64 {
    let budget_ppm = budget_ppm.max(1);
    let spent_ppm = spent_ppm.clamp(budget_ppm, budget_ppm.saturating_mul(STRETCH_MAX));
    let gap = u128::from(gap_least) * u128::from(spent_ppm) / u128::from(budget_ppm);
    u64::try_from(gap).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: [usize; 0] = [];

    #[test]
    fn who_has_spent_too_much_pays_for_what_has_lived_long() {
        let (us, ms) = (1_000, 1_000_000);
        assert!(pays(20_000, 20_000, (0, 50 * ms)));
        assert!(!pays(20_001, 20_000, (10 * us, ms)));
        assert!(!pays(20_001, 20_000, (50 * ms - 50, ms)));
        assert!(pays(20_001, 20_000, (50 * ms, ms)));
        assert!(pays(900_000, 0, (50 * ms, ms)), "exploring or not");
        assert!(pays(900_000, 20_000, (5_000 * ms, 60_000 * ms)));
        assert!(pays(900_000, 20_000, (0, 0)), "there are few");
    }

    fn seen(samples: u64, each_ns: u64) -> Observed {
        Observed {
            samples,
            fastest_ns: each_ns,
            total_ns: samples.saturating_mul(each_ns),
        }
    }

    fn dropped(observed: &[Observed], reference: usize) -> Vec<usize> {
        hopeless(observed, reference).collect()
    }

    #[test]
    fn three_samples_ten_times_above_the_median_drop_a_variant_and_two_do_not() {
        let rest = [seen(9, 100), seen(8, 110), seen(7, 120)];
        let drop_of = |variant| dropped(&[rest[0], rest[1], rest[2], variant], 9);
        assert_eq!(drop_of(seen(3, 1101)), [3]);
        assert_eq!(drop_of(seen(2, 1101)), NONE);
        assert_eq!(drop_of(seen(3, 1100)), NONE);
    }

    #[test]
    fn a_first_sample_ten_times_beyond_the_default_is_the_last_one() {
        let default = seen(4, 100);
        assert_eq!(dropped(&[default, seen(1, 1001)], 0), [1]);
        assert_eq!(dropped(&[default, seen(1, 1000)], 0), NONE);
        let unknown = [seen(0, 0), seen(1, 1001)];
        assert_eq!(
            dropped(&unknown, 0),
            NONE,
            "nobody knows what the default takes"
        );
        // Draws in turn: whatever comes between two reviews, it is drawn once.
        let (mut observed, mut judged, mut gone) = ([seen(0, 0); 3], [false; 3], Vec::new());
        let takes = [100, 150, 50_000];
        for draw in 0..300 {
            let wish = [2, 1, 2, 0][draw % 4];
            let waits = !may_be_drawn(observed[wish].samples, judged[wish]);
            let arm = if gone.contains(&wish) || waits {
                0
            } else {
                wish
            };
            observed[arm] = seen(observed[arm].samples + 1, takes[arm]);
            if due(draw as u64 + 1, 0) {
                gone = dropped(&observed, 0);
                judged = observed.map(|arm| arm.samples > 0 && observed[0].samples > 0);
            }
        }
        assert_eq!(observed[2].samples, 1);
        assert!(observed[1].samples > 60, "others go on: {observed:?}");
    }

    #[test]
    fn the_budget_sets_the_distance_of_samples() {
        // A draw costs 500 ns more. A call comes every 10,000 ns, of which 2 % are 200 ns: at most two draws in five
        // calls.
        let progress = Progress {
            calls: 100,
            calls_per_sample: 1,
            elapsed_ns: 1_000_000,
            budget_ppm: 20_000,
        };
        assert_eq!(gap_least(500, 160, progress), 2);
        let strict = Progress {
            budget_ppm: 1_000,
            ..progress
        };
        assert_eq!(gap_least(500, 160, strict), 50);
        assert_eq!(gap_least(500, 16, strict), LEARNING_GAP);
        let warmed = Progress {
            calls_per_sample: 3,
            ..progress
        };
        let each_costs_three = gap_least(500, 160, warmed);
        assert_eq!(each_costs_three, 7);
        assert_eq!(gap_least(0, 160, progress), 1);
    }

    #[test]
    fn what_agreements_cost_beyond_their_share_spreads_the_samples_of_every_cell() {
        let minute = 60_000_000_000;
        assert_eq!(spent_ppm(minute / 50, minute), 20_000);
        assert_eq!(
            spent_ppm(5_000_000, 10_000_000),
            5_000,
            "half of ten milliseconds is 0.5 % of the first second"
        );
        assert_eq!(stretched(12, 20_000, 20_000), 12);
        assert_eq!(stretched(12, 1_000, 20_000), 12, "nothing is made up for");
        assert_eq!(stretched(12, 50_000, 20_000), 30);
        assert_eq!(stretched(12, 900_000_000, 20_000), 12 * STRETCH_MAX);
        for ppm in [0, 1, u64::MAX] {
            assert!(stretched(1, ppm, 0) >= 1 && stretched(u64::MAX, ppm, ppm) == u64::MAX);
            assert_eq!(spent_ppm(0, ppm), 0);
        }
    }

    #[test]
    fn it_is_total() {
        let extremes = [0, 1, u64::MAX];
        for samples in extremes {
            for ns in extremes {
                let variant = seen(samples, ns);
                let progress = Progress {
                    calls: samples,
                    calls_per_sample: ns,
                    elapsed_ns: ns,
                    budget_ppm: ns,
                };
                assert!(dropped(&[variant, variant], 5).len() <= 2);
                assert!(gap_least(ns, samples, progress) >= 1);
            }
        }
        assert_eq!(dropped(&[], 0), NONE);
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
